"""The one shape of every end, for each kind of operation and each outcome (§3.13)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Commit, Json, Namespace, Refusal, State, View, apply
from restartpoint_reference.transitions.finalization import Finalize
from restartpoint_reference.transitions.queues import QueuedId, QueuedMessage
from restartpoint_reference.vocabulary.registers import LaneLastResult, Outcome
from restartpoint_reference.vocabulary.states import CancelRequested, RunState
from tests.reference.walk import NOTHING, Step, Walk, user
from tests.reference.walks import SCENARIOS, abort, inbox, runs
from tests.reference.walks.planted import plant

N = Namespace


@dataclass(frozen=True, kw_only=True)
class End:
    """A terminal commit, what stood before it, and what it left."""

    step: Step
    lane: str
    operation_id: str
    after: State

    @property
    def last_result(self) -> LaneLastResult:
        value = self.after.value(N.LANE_LAST_RESULT, self.lane)
        assert isinstance(value, dict)
        return LaneLastResult.from_json(value)


def ends() -> Iterator[End]:
    """Every commit of every walk that deletes its operation."""
    for scenario in SCENARIOS:
        for step in scenario().steps:
            deleted = [write.to_json() for write in step.commit.writes if write.to_json().get("op") == "delete"]
            operations = [str(write["key"]) for write in deleted if write["namespace"] == N.OP_META]
            if operations:
                applied = apply(step.before, step.commit.writes, timestamp=1)
                assert isinstance(applied, tuple)
                assert step.commit.lane is not None
                yield End(step=step, lane=step.commit.lane, operation_id=operations[0], after=applied[0])


ENDS = [*ends()]
MATRIX = {
    "run": {"completed", "failed", "aborted"},
    "compaction": {"completed", "declined", "failed", "aborted"},
    "navigation": {"completed", "declined", "failed", "aborted"},
}
"""The outcomes of each kind; a run is never declined."""

Address = tuple[str, str, str]


def owned(end: End) -> list[Address]:
    """The deletes that the state before the end asks for, in the order of the specification (decision AMB-05)."""
    state, held = end.step.before, View(end.step.before, end.lane).operation_state
    inbox = (*held.inbox.steer, *held.inbox.follow_up, *held.inbox.writes) if isinstance(held, RunState) else ()
    control = held.control
    drained = (*control.drained_steer, *control.drained_follow_up) if isinstance(control, CancelRequested) else ()
    prefixed = [
        (namespace, key)
        for namespace in (N.OP_TOOL_ARGS, N.OP_PREPARATION)
        for key in sorted(state.keys(namespace))
        if key.startswith(f"{end.operation_id}:")
    ]
    pending = [(N.PENDING_ENTRY, key) for key in (*inbox, *drained)]
    names = [(N.OP_META, end.operation_id), (N.OP_STATE, end.operation_id), *prefixed, *pending]
    return [("delete", str(namespace), key) for namespace, key in names]


@pytest.mark.covers("RT-3.13-TERMINAL", "RT-3.13-06")
def test_every_kind_and_outcome_ends_by_the_same_writes() -> None:
    found: dict[str, set[str]] = {kind: set() for kind in MATRIX}
    for end in ENDS:
        found[end.last_result.kind.value].add(end.last_result.outcome.value)
        removal = [
            *owned(end),
            ("set", str(N.LANE_LAST_RESULT), end.lane),
            ("set", str(N.LANE_STATE), end.lane),
        ]
        written = [write.to_json() for write in end.step.commit.writes]
        tail = [(write["op"], write["namespace"], write["key"]) for write in written[-len(removal) :]]
        assert tail == removal, end.step.commit.name
        published = written[: -len(removal)]
        assert all(is_publication(write) for write in published), end.step.commit.name
    assert found == MATRIX


def is_publication(write: dict[str, Json]) -> bool:
    """Whether a write publishes content: entries, their usage, the leaf, a label."""
    return write["kind"] in ("entry", "usage") or write.get("namespace") in (N.LANE_LEAF, N.FACT_LABEL)


@pytest.mark.covers("RT-3.13-TERMINAL", "RT-3.13-14", "RT-3.5-09")
def test_nothing_of_an_ended_operation_is_left_and_the_lane_is_idle_with_its_queue() -> None:
    for end in ENDS:
        left = [
            (namespace, key)
            for namespace in (N.OP_META, N.OP_STATE, N.OP_TOOL_ARGS, N.OP_PREPARATION)
            for key in end.after.keys(namespace)
            if key.split(":")[0] == end.operation_id
        ]
        assert left == [], end.step.commit.name
        waiting = View(end.after, end.lane).lane_state.pending_next_run
        assert set(end.after.keys(N.PENDING_ENTRY)) == set(waiting), end.step.commit.name
        before, after = View(end.step.before, end.lane).lane_state, View(end.after, end.lane).lane_state
        assert after.current_operation_id is None
        assert after.pending_next_run == before.pending_next_run
        assert end.last_result.operation_id == end.operation_id
        assert end.last_result.leaf_id == View(end.after, end.lane).leaf


@pytest.mark.covers("RT-3.13-TERMINAL")
def test_what_has_ended_does_not_end_again() -> None:
    for end in ENDS:
        again = T[end.step.commit.name].commit(View(end.after, end.lane), end.step.inputs)
        assert isinstance(again, Refusal), again
        assert again.guard == "from_phase"


@pytest.mark.covers("RT-3.13-13", "RT-3.13-10")
def test_only_an_end_sets_the_last_result_and_none_takes_a_row_from_the_ledger() -> None:
    for scenario in SCENARIOS:
        for step in scenario().steps:
            elements = [write.to_json() for write in step.commit.writes]
            sets = any(one.get("namespace") == N.LANE_LAST_RESULT for one in elements)
            ends_one = any(one.get("namespace") == N.OP_META and one["op"] == "delete" for one in elements)
            assert sets == ends_one, step.commit.name
    for end in ENDS:
        assert set(end.step.before.usage) <= set(end.after.usage)


FIELDS = {
    "completed": {"operationId", "kind", "leafId", "outcome"},
    "failed": {"operationId", "kind", "leafId", "outcome", "error"},
    "declined": {"operationId", "kind", "leafId", "outcome"},
    "aborted": {"operationId", "kind", "leafId", "outcome"},
}


@pytest.mark.covers("RT-3.13-01")
def test_a_result_has_the_fields_of_its_outcome() -> None:
    for end in ENDS:
        held = end.last_result.to_json()
        only_of_runs = {"finalAssistantEntryId", "runCompletion"} if held["kind"] == "run" else set()
        fields = FIELDS[str(held["outcome"])]
        assert fields <= set(held) <= fields | only_of_runs
        assert ("runCompletion" in held) == (held["outcome"] == "completed" and held["kind"] == "run")


@pytest.mark.covers("RT-3.13-04", "AMB-48")
@pytest.mark.parametrize(
    "walk, outcome, newest",
    [
        (abort.before_the_first_request, "aborted", None),
        (abort.received, "aborted", runs.R1),
        (abort.suspended, "aborted", runs.R1),
        (abort.failing, "aborted", runs.R1),
        (runs.exhausted_run, "failed", runs.R1),
        (runs.failed_run, "failed", runs.R2),
        (runs.orphaned_requests, "failed", runs.R2),
    ],
)
def test_a_run_without_a_last_word_names_its_newest_response_of_any_kind(
    walk: Callable[[], Walk], outcome: str, newest: str | None
) -> None:
    held = walk().state.value(N.LANE_LAST_RESULT, "main")
    assert isinstance(held, dict)
    assert (held["outcome"], held.get("finalAssistantEntryId")) == (outcome, newest)
    assert ("finalAssistantEntryId" in held) == (newest is not None)


@pytest.mark.covers("RT-3.13-07", "RT-3.4-04")
@pytest.mark.parametrize("aborted", [False, True])
def test_what_waits_for_the_next_run_outlives_the_end_of_this_one(aborted: bool) -> None:
    walk = inbox.answered()
    inbox.steer(walk, inbox.S1)
    walk.take(T["enqueue_next_run"], QueuedMessage(id=inbox.F1, message=user("next time")))
    if aborted:
        abort.abort(walk).take(T["finish_aborted_run"])
    else:
        walk.take(T["cancel_queued"], QueuedId(id=inbox.S1))
        walk.take(T["finish_run"])
    assert walk.state.keys(N.PENDING_ENTRY) == [inbox.F1]
    assert walk.state.value(N.LANE_STATE, "main") == {"currentOperationId": None, "pendingNextRun": [inbox.F1]}


@pytest.mark.covers("RT-3.13-07", "AMB-05")
@pytest.mark.parametrize("aborted", [False, True])
def test_what_a_run_owned_goes_in_the_order_of_its_lists_and_keys(aborted: bool) -> None:
    """Written here and not derived, since few runs end with every list full."""
    walk = runs.with_tools()
    runs.clear(walk, 3)
    runs.clear(walk, 1)
    steer, follow_up, writes = (inbox.S2, inbox.S1), (inbox.F2, inbox.F1), (inbox.W2, inbox.W1)
    inbox.write_note(walk, writes[0])
    inbox.follow_up(walk, *follow_up)
    inbox.steer(walk, *steer)
    inbox.write_note(walk, writes[1])
    walk = abort.abort(walk) if aborted else walk
    walk.take(T["finalize_externally"], Finalize(outcome=Outcome.ABORTED))
    deleted = [write.to_json() for write in walk.steps[-1].commit.writes if write.to_json().get("op") == "delete"]
    pending = [*writes, *steer, *follow_up] if aborted else [*steer, *follow_up, *writes]
    arguments = [f"{runs.RUN}:{runs.STEP}:{index}" for index in (1, 3)]
    assert [one["key"] for one in deleted] == [runs.RUN, runs.RUN, *arguments, *pending]


@pytest.mark.covers("RT-3.13-08", "AMB-07")
def test_an_end_sweeps_the_arguments_of_its_own_operation_and_of_no_other() -> None:
    """Also those that no batch names any more; an id that merely begins alike is another operation's."""
    walk = inbox.answered()
    leaked, other = f"{runs.RUN}:{runs.STEP}:7", f"{runs.RUN}0:{runs.STEP}:7"
    plant(walk, (N.OP_TOOL_ARGS, leaked, {}), (N.OP_TOOL_ARGS, other, {}))
    commit = T["finish_run"](walk.state, "main", NOTHING)
    assert isinstance(commit, Commit)
    deleted = [write.to_json() for write in commit.writes if write.to_json().get("namespace") == N.OP_TOOL_ARGS]
    assert [(one["op"], one["key"]) for one in deleted] == [("delete", leaked)]
