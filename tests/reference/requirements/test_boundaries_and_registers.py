"""Boundaries of a run, and the registers that its state names (§1.3, §3.3, §3.12)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import InsertEntry, Json, JsonObject, Namespace, State, View, invariants, next_steps
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from tests.reference.test_invariants import dropped, edited
from tests.reference.walk import Walk, uid, user
from tests.reference.walks import SCENARIOS, abort, compaction, inbox, navigation, runs

N = Namespace


@pytest.mark.covers("RT-3.12-05")
@pytest.mark.parametrize(
    "lead, summarized, end", [(runs.prompted, 1, "start_generation"), (inbox.answered, 2, "finish_run")]
)
def test_a_boundary_is_compacted_before_the_turn_or_the_end_and_only_once(
    lead: Callable[[], Walk], summarized: int, end: str
) -> None:
    walk = lead()
    due = next_steps(View(walk.state, "main"))
    assert due.index("begin_threshold_compaction") < due.index(end)
    compaction.begun(walk, summarized)
    assert end not in next_steps(View(walk.state, "main"))
    walk.take(T["decline_threshold"])
    assert "begin_threshold_compaction" not in next_steps(View(walk.state, "main"))
    with pytest.raises(AssertionError, match="boundary_is_unchecked"):
        compaction.begun(walk, summarized, compaction.SECOND_TASK)


@pytest.mark.covers("AMB-23")
def test_what_before_run_end_adds_is_a_user_message_that_owes_a_turn_before_anything_else() -> None:
    walk = inbox.answered()
    more = RunEndFollowUp(id=uid(150, 1), message=user("and then?"))
    walk.take(T["append_run_end_follow_up"], more)
    assert walk.state.entries[more.id].message == {
        "role": "user", "content": [{"type": "text", "text": "and then?"}], "timestamp": 1
    }  # fmt: skip
    assert walk.state.keys(N.PENDING_ENTRY) == []
    assert View(walk.state, "main").run.phase.to_json() == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": more.id,
        "skipInboxOnce": True,
    }


def broken(state: State) -> set[str]:
    return {found.name for found in invariants.check(state)}


@pytest.mark.covers("RT-3.3-07")
@pytest.mark.parametrize(
    "lead", [compaction.at_threshold, compaction.overflowed, abort.compacting, navigation.summarized]
)
def test_structural_work_without_its_preparation_is_found(lead: Callable[[], Walk]) -> None:
    walk = lead()
    state = walk.steps[-1].before if View(walk.state, "main").phase == "idle" else walk.state
    (key,) = state.keys(N.OP_PREPARATION)
    assert broken(state) == set()
    assert "named_registers_exist" in broken(dropped(state, N.OP_PREPARATION, key))


RUNNING: JsonObject = {"status": "running"}
HALF_CANCELLED: JsonObject = {"status": "cancel_requested", "requestedAt": 4}
LEAVING: JsonObject = {"status": "running", "drainedSteer": []}


@pytest.mark.covers("RT-3.3-10")
@pytest.mark.parametrize(
    "lead, path, value",
    [
        (inbox.answered, "control", HALF_CANCELLED),
        (inbox.answered, "control", LEAVING),
        (abort.navigating, "targetId", navigation.ASKED),
        (abort.navigating, "summarize", True),
        (abort.navigating, "phase", {"kind": "summary", "structural": {"taskId": "t", "status": "deciding"}}),
        (abort.compacting, "structural", {"taskId": "t", "status": "generating"}),
        (compaction.at_threshold, "phase.reason", "manual"),
    ],
)
def test_a_state_whose_parts_do_not_fit_together_is_found(lead: Callable[[], Walk], path: str, value: Json) -> None:
    state = lead().state
    assert broken(state) == set()
    assert broken(edited(state, N.OP_STATE, View(state, "main").operation_id, path, value)) != set()


@pytest.mark.covers("RT-3.3-10")
@pytest.mark.parametrize("lead", [abort.compacting, abort.navigating])
def test_structural_work_away_from_its_source_is_found(lead: Callable[[], Walk]) -> None:
    state = lead().state
    moved = edited(state, N.OP_META, View(state, "main").operation_id, "sourceLeafId", runs.R1)
    assert broken(moved) == {"structural_work_fits"}


@pytest.mark.covers("AMB-80")
@pytest.mark.parametrize(
    "lead, path",
    [
        (inbox.failing, "phase.provenance.entryId"),
        (compaction.overflowed, "phase.resumeAfter.triggerEntryId"),
        (compaction.at_threshold, "phase.resumeAfter.triggerEntryId"),
        (compaction.at_threshold, "phase.resumeAfter.thresholdCheckedTriggerEntryId"),
        (inbox.answered, "phase.triggerEntryId"),
        (compaction.threshold_declined, "phase.thresholdCheckedTriggerEntryId"),
    ],
)
def test_every_entry_that_a_state_names_exists_also_beside_the_main_path(lead: Callable[[], Walk], path: str) -> None:
    walk = lead()
    state = walk.steps[-1].before if View(walk.state, "main").phase == "idle" else walk.state
    assert broken(state) == set()
    assert broken(edited(state, N.OP_STATE, runs.RUN, path, uid(1, 1))) == {"named_entries_exist"}


@pytest.mark.covers("ST-1.3-21")
def test_queued_content_leaves_its_register_when_it_is_placed_withdrawn_or_its_operation_ends() -> None:
    """The registers that go, commit by commit, in every walk."""
    reasons: set[str] = set()
    for scenario in SCENARIOS:
        for step in scenario().steps:
            elements = [write.to_json() for write in step.commit.writes]
            deleted = {(one["namespace"], one["key"]) for one in elements if one.get("op") == "delete"}
            gone = {str(key) for namespace, key in deleted if namespace == N.PENDING_ENTRY}
            placed = {write.entry.id for write in step.commit.writes if isinstance(write, InsertEntry)}
            ends = any(namespace == N.OP_META for namespace, _ in deleted)
            if ends and gone:
                reasons.add("ended")
                assert gone <= owned(step.before, step.commit.lane or "main")
                assert gone.isdisjoint(placed)
            elif step.commit.name in ("cancel_queued", "cancel_next_run"):
                reasons.add("withdrawn")
                assert len(gone) == 1
                assert gone.isdisjoint(placed)
            elif gone:
                reasons.add("placed")
                assert gone <= placed
    assert reasons == {"placed", "withdrawn", "ended"}


def owned(state: State, lane: str) -> set[str]:
    """The queued content of the open run: what waits, and what an abort drained."""
    held = View(state, lane).run.to_json()
    inbox_, control = held["inbox"], held["control"]
    assert isinstance(inbox_, dict)
    assert isinstance(control, dict)
    lists = [*inbox_.values(), control.get("drainedSteer", []), control.get("drainedFollowUp", [])]
    return {str(one) for found in lists if isinstance(found, list) for one in found}
