"""The one shape of every end, for each kind of operation and each outcome (§3.13)."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, Namespace, Refusal, State, View, apply
from restartpoint_reference.vocabulary.registers import LaneLastResult
from restartpoint_reference.vocabulary.states import CancelRequested, RunState
from tests.reference.walk import Step
from tests.reference.walks import SCENARIOS

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


@pytest.mark.covers("RT-3.13-TERMINAL")
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


@pytest.mark.covers("RT-3.13-TERMINAL")
def test_nothing_of_an_ended_operation_is_left_and_the_lane_is_idle_with_its_queue() -> None:
    for end in ENDS:
        left = [
            (namespace, key)
            for namespace in (N.OP_META, N.OP_STATE, N.OP_TOOL_ARGS, N.OP_PREPARATION)
            for key in end.after.keys(namespace)
            if key.split(":")[0] == end.operation_id
        ]
        assert left == [], end.step.commit.name
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
