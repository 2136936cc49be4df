"""Which states of a lane are refused, item by item (§3.3), and what is left of a lost process (§4.5)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, Namespace, Progress, Refusal, State, View, invariants
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.finalization import Finalize
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.generation import SyntheticFailure
from restartpoint_reference.transitions.queues import QueuedMessage
from restartpoint_reference.transitions.settlement import SettleToolCalls
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.registers import Outcome
from tests.reference.requirements.writes import written
from tests.reference.test_invariants import dropped, edited, put
from tests.reference.walk import NOTHING, Walk, result, uid, usage, user
from tests.reference.walks import abort, compaction, deferred, inbox, navigation, runs
from tests.reference.walks.inbox import F1, S1, W1
from tests.reference.walks.runs import C1, R1, RUN, STEP, U1

N = Namespace
GONE, NOTE = uid(1, 1), uid(299, 2)
UNKNOWN = SyntheticFailure(
    api="scripted", timestamp=7, reason="outcome unknown", error_message="outcome unknown"
)  # fmt: skip


def broken(state: State) -> set[str]:
    return {found.name for found in invariants.check(state)}


def half_done() -> Walk:
    """A batch whose first call is completed and whose second is under way."""
    walk = runs.with_tools()
    runs.clear(walk, 1)
    runs.clear(walk, 3)
    walk.take(T["settle_tool"], ToolResult(message=result("t1", "remove")))
    return walk


def queueing() -> Walk:
    """A run with something in every list, and input for the next one."""
    walk = inbox.answered()
    inbox.steer(walk, S1)
    inbox.follow_up(walk, F1)
    inbox.write_note(walk, W1)
    walk.take(T["enqueue_next_run"], QueuedMessage(id=uid(430, 1), message=user("next time")))
    return walk


def idle_with_a_queue() -> Walk:
    walk = runs.plain_run()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=uid(430, 1), message=user("next time")))
    return walk


@pytest.mark.covers("RT-3.3-03")
@pytest.mark.parametrize(
    "damage",
    [
        lambda state: dropped(state, N.OP_META, RUN),
        lambda state: dropped(state, N.OP_STATE, RUN),
        lambda state: edited(state, N.OP_META, RUN, "lane", "other"),
        lambda state: edited(state, N.OP_META, RUN, "intent", {"kind": "compaction"}),
        lambda state: edited(state, N.LANE_STATE, "main", "currentOperationId", None),
    ],
)
def test_an_open_operation_has_both_registers_of_its_lane_and_kind(damage: Callable[[State], State]) -> None:
    state = half_done().state
    assert broken(state) == set()
    assert broken(damage(state)) & {"everything_is_readable", "every_operation_is_owned"}


def navigating() -> Walk:
    return navigation.moving(runs.plain_run(), navigation.ASKED)


PROMPT = uid(95, 1)
BATCH, NAMED = "batches_are_complete", "named_entries_exist"
POLLED = "deferred_sources_are_deferred"


@pytest.mark.covers("RT-3.3-04")
@pytest.mark.parametrize(
    "lead, namespace, path, wrong, rules",
    [
        (half_done, N.OP_META, "sourceLeafId", GONE, {NAMED}),
        (half_done, N.OP_META, "intent.promptEntryIds.0", GONE, {NAMED}),
        (half_done, N.OP_STATE, "latestAssistantEntryId", GONE, {NAMED}),
        (half_done, N.OP_STATE, "latestAssistantEntryId", PROMPT, {NAMED}),
        (half_done, N.OP_STATE, "phase.batch.assistantEntryId", GONE, {NAMED, BATCH}),
        (half_done, N.OP_STATE, "phase.batch.assistantEntryId", PROMPT, {NAMED, BATCH}),
        (half_done, N.OP_STATE, "phase.batch.calls.0.resultEntryId", GONE, {NAMED}),
        (half_done, N.OP_STATE, "phase.batch.calls.0.resultEntryId", PROMPT, {"results_match_their_calls"}),
        (runs.prompted, N.OP_STATE, "phase.triggerEntryId", GONE, {NAMED}),
        (runs.requested, N.OP_STATE, "phase.generation.context.triggerEntryId", GONE, {NAMED}),
        (deferred.suspended, N.OP_STATE, "phase.deferred.sourceEntryId", GONE, {NAMED, POLLED}),
        (deferred.suspended, N.OP_STATE, "phase.deferred.sourceEntryId", PROMPT, {NAMED, POLLED}),
        (inbox.failing, N.OP_STATE, "phase.provenance.entryId", PROMPT, {NAMED}),
        (abort.compacting, N.OP_META, "sourceLeafId", GONE, {NAMED, "structural_work_fits"}),
        (navigating, N.OP_META, "intent.targetId", GONE, {NAMED, "state_fits_the_intent"}),
    ],
)
def test_every_entry_that_is_named_exists_and_is_of_its_type(
    lead: Callable[[], Walk], namespace: Namespace, path: str, wrong: str, rules: set[str]
) -> None:
    state = lead().state
    assert broken(state) == set()
    assert broken(edited(state, namespace, View(state, "main").operation_id, path, wrong)) == rules


@pytest.mark.covers("RT-3.3-04")
def test_a_note_is_neither_a_prompt_nor_a_response() -> None:
    walk = runs.queues_and_facts()
    walk.lane = "main"
    runs.request(walk, STEP, R1, U1)
    walk.take(T["settle_tool_calls"], SettleToolCalls(response=runs.two_calls(), result_ids=(C1, runs.C2)))
    runs.clear(walk, 1)
    assert walk.state.entries[NOTE].message is None
    for namespace, path, rules in (
        (N.OP_META, "intent.promptEntryIds.0", {NAMED}),
        (N.OP_STATE, "phase.batch.assistantEntryId", {NAMED, BATCH}),
    ):
        assert broken(edited(walk.state, namespace, RUN, path, NOTE)) == rules


@pytest.mark.covers("RT-3.3-04", "RT-3.3-13")
@pytest.mark.parametrize("lead", [runs.prompted, runs.plain_run])
def test_the_leaf_of_a_lane_exists_also_when_it_is_idle(lead: Callable[[], Walk]) -> None:
    assert "leaves_exist" in broken(put(lead().state, N.LANE_LEAF, "main", GONE))


@pytest.mark.covers("RT-3.3-05", "RT-3.3-13")
@pytest.mark.parametrize(
    "lead, key",
    [
        (queueing, S1), (queueing, F1), (queueing, W1), (queueing, uid(430, 1)), (idle_with_a_queue, uid(430, 1)),
        (lambda: abort.abort(queueing()), S1), (lambda: abort.abort(queueing()), F1),
    ],
)  # fmt: skip
def test_whatever_waits_or_was_drained_has_its_content(lead: Callable[[], Walk], key: str) -> None:
    state = lead().state
    assert broken(state) == set()
    assert broken(dropped(state, N.PENDING_ENTRY, key)) == {"queued_content_waits_once"}


@pytest.mark.covers("RT-3.3-06")
def test_a_call_that_is_under_way_has_its_arguments() -> None:
    assert broken(dropped(half_done().state, N.OP_TOOL_ARGS, f"{RUN}:{STEP}:3")) == {"named_registers_exist"}


@pytest.mark.covers("RT-3.3-08")
@pytest.mark.parametrize(
    "path, value",
    [
        ("phase.batch.calls.1.sourceIndex", 2),
        ("phase.batch.calls.1.sourceIndex", 1),
        ("phase.batch.calls.1.sourceIndex", 0),
        ("phase.batch.calls.1.sourceIndex", 9),
        ("phase.batch.calls.1.resultEntryId", C1),
        ("phase.batch.calls", []),
    ],
)
def test_a_batch_names_each_call_of_its_response_once_in_order(path: str, value: Json) -> None:
    assert "batches_are_complete" in broken(edited(half_done().state, N.OP_STATE, RUN, path, value))


@pytest.mark.covers("RT-3.3-09")
def test_a_completed_result_is_that_of_its_call() -> None:
    walk = half_done()
    entry = walk.state.entries[C1]
    for message in (result("t2", "remove"), result("t1", "read"), user("done")):
        payload = {**entry.payload, "message": message}
        damaged = with_payload(walk.state, C1, payload)
        assert "results_match_their_calls" in broken(damaged)


def with_payload(state: State, key: str, payload: dict[str, Json]) -> State:
    entries = state.entries.set(key, replace(state.entries[key], payload=payload))
    return replace(state, entries=entries)


@pytest.mark.covers("RT-3.3-11")
def test_what_the_last_result_says_changes_nothing_that_may_follow() -> None:
    for lead in (runs.requested, idle_with_a_queue):
        state = lead().state
        wrong = put(state, N.LANE_LAST_RESULT, "main", {
            "operationId": GONE, "kind": "compaction", "leafId": None, "outcome": "aborted",
        })  # fmt: skip
        assert Progress.of(wrong).due("main") == Progress.of(state).due("main")


# --- a lost process


@pytest.mark.covers("RT-4.5-T27")
def test_a_request_of_unknown_outcome_is_made_again_under_the_next_number() -> None:
    walk = runs.requested()
    assert Progress.of(walk.state).due("main") == ("recover_assistant",)
    assert written(walk.take(T["recover_assistant"])) == ["op.state"]
    found = View(walk.state, "main").ready
    assert (found.next_attempt, found.context.step_id) == (2, STEP)
    assert R1 not in str(walk.state.value(N.OP_STATE, RUN))
    assert (R1 in walk.state.entries, U1 in walk.state.usage) == (False, False)


@pytest.mark.covers("RT-4.5-T28")
def test_the_last_request_of_unknown_outcome_fails_the_run_under_its_reserved_ids() -> None:
    walk = runs.requested(attempts=1)
    assert Progress.of(walk.state).due("main") == ("recover_exhausted_assistant",)
    commit = walk.take(T["recover_exhausted_assistant"], UNKNOWN)
    assert written(commit) == ["entry", "lane.leaf", "usage", "op.state"]
    message = walk.state.entries[R1].message
    assert message is not None
    assert (message["stopReason"], message["content"]) == ("error", [])
    assert (walk.state.usage[U1].entry_id, walk.state.usage[U1].usage) == (R1, usage())
    assert View(walk.state, "main").phase == "failure_drain"


@pytest.mark.covers("INV-21")
@pytest.mark.parametrize(
    "name, inputs",
    [
        ("finish_run", NOTHING),
        ("append_run_end_follow_up", RunEndFollowUp(id=uid(150, 1), message=user("and then?"))),
        ("mark_threshold_checked", NOTHING),
        ("finalize_externally", Finalize(outcome=Outcome.ABORTED)),
    ],
)
def test_an_operation_ends_once_and_no_step_that_was_due_is_taken_after_it(name: str, inputs: Inputs) -> None:
    walk, ended = inbox.answered(), inbox.answered()
    walk.take(T[name], inputs)
    ended.take(T["finalize_externally"], Finalize(outcome=Outcome.ABORTED))
    late = T[name](ended.state, "main", inputs)
    assert isinstance(late, Refusal)
    assert late.guard == "from_phase"


@pytest.mark.covers("RT-3.9-06")
@pytest.mark.parametrize(
    "scenario", [compaction.overflow_compacted, compaction.failed_after_a_retry, navigation.summarized]
)
def test_an_attempt_whose_process_is_lost_before_it_is_published_has_an_unknown_outcome(
    scenario: Callable[[], Walk],
) -> None:
    seen = 0
    for step in scenario().steps:
        view = View(step.before, "main")
        if view.phase.endswith(".generating") and "effect_pending" in str(view.structural.to_json()):
            seen += 1
            assert set(Progress.of(step.before).due("main")) <= {"recover_summary", "recover_exhausted_summary"}
            assert compaction.RESULT not in step.before.entries
    assert seen >= 3
