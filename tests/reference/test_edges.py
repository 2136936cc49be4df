"""The phases that a run may pass between, found by random walks through the model's transitions (§3.5)."""

from collections.abc import Iterable
from json import dumps, loads

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restartpoint_reference import TRANSITIONS, Commit, JsonObject, Namespace, SetRegister, State, Transition, apply
from restartpoint_reference.shapes import SAFE_INTEGER
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.settlement import SettleFailure, SettleRetryable
from tests.reference.walk import Step, Walk, assistant
from tests.reference.walks import SCENARIOS, runs
from tests.reference.walks.runs import R1, RUN, U1

ALLOWED = {
    "checkpoint": {"assistant", "compaction", "checkpoint", "idle"},
    "assistant": {"assistant", "tools", "compaction", "deferred", "checkpoint", "failure_drain", "idle"},
    "tools": {"tools", "checkpoint"},
    "failure_drain": {"failure_drain", "checkpoint", "idle"},
    "deferred": {"deferred", "assistant", "tools", "checkpoint", "failure_drain", "compaction", "idle"},
    "compaction": {"compaction", "checkpoint", "failure_drain", "idle"},
}
"""Where the specification lets a run go from each phase; ``idle`` is its end, by abort from wherever nothing is in
flight (decision AMB-43). A commit that changes only the inbox or the control leaves the phase as it is."""

MODELLED = {
    ("checkpoint", "assistant"), ("checkpoint", "checkpoint"), ("checkpoint", "idle"), ("assistant", "assistant"),
    ("assistant", "tools"), ("assistant", "deferred"), ("assistant", "checkpoint"), ("assistant", "failure_drain"),
    ("assistant", "idle"), ("tools", "tools"), ("tools", "checkpoint"), ("failure_drain", "failure_drain"),
    ("failure_drain", "checkpoint"), ("failure_drain", "idle"), ("deferred", "deferred"), ("deferred", "tools"),
    ("deferred", "checkpoint"), ("deferred", "failure_drain"), ("deferred", "idle"), ("compaction", "compaction"),
    ("compaction", "idle"), ("checkpoint", "compaction"), ("assistant", "compaction"), ("compaction", "checkpoint"),
    ("compaction", "failure_drain"),
}  # fmt: skip
"""The ones that the modelled transitions take."""

Move = tuple[Transition, Inputs]


def phase_of(state: State) -> str:
    value = state.value(Namespace.OP_STATE, RUN)
    if not isinstance(value, dict):
        return "idle"
    phase = value["phase"]
    assert isinstance(phase, dict)
    return str(phase["kind"])


def moves_of(steps: Iterable[Step]) -> list[Move]:
    return [(TRANSITIONS[step.commit.name], step.inputs) for step in steps]


WALKS = [scenario() for scenario in SCENARIOS]
MOVES = [move for walk in WALKS for move in moves_of(walk.steps)]


def edges_of(walk: Walk) -> set[tuple[str, str]]:
    """The edges of the run of a walk; the commits before its acceptance and beside it have none.

    An administrator may end a run anywhere (§4.9), which is no edge of its own.
    """
    found = set()
    afters = [*(step.before for step in walk.steps[1:]), walk.state]
    for step, after in zip(walk.steps, afters, strict=False):
        writes_state = any(write.to_json().get("namespace") == "op.state" for write in step.commit.writes)
        if writes_state and phase_of(step.before) != "idle" and step.commit.name != "finalize_externally":
            found.add((phase_of(step.before), phase_of(after)))
    return found


@pytest.mark.covers("RT-3.5-01", "RT-3.5-02", "RT-3.5-03", "RT-3.5-06")
@settings(deadline=None, max_examples=150)
@given(
    start=st.integers(0, len(WALKS) - 1), cut=st.integers(0, 12), tries=st.lists(st.sampled_from(MOVES), max_size=40)
)
def test_no_walk_takes_a_run_where_the_specification_does_not(start: int, cut: int, tries: list[Move]) -> None:
    """A walk begins as one of the scenarios does and goes on with whatever moves no guard forbids."""
    walk = Walk()
    for transition, inputs in moves_of(WALKS[start].steps)[:cut]:
        walk.lane = "main"
        attempt(walk, transition, inputs)
    for transition, inputs in tries:
        attempt(walk, transition, inputs)
    assert all(after in ALLOWED[before] for before, after in edges_of(walk))


def attempt(walk: Walk, transition: Transition, inputs: Inputs) -> None:
    commit = transition(walk.state, walk.lane if transition.takes_lane else None, inputs)
    if isinstance(commit, Commit) and isinstance(apply(walk.state, commit.writes, timestamp=1), tuple):
        walk.take(transition, inputs)


@pytest.mark.covers("RT-3.5-01", "RT-3.5-02", "RT-3.5-03", "RT-3.5-06")
def test_the_scenarios_take_every_modelled_edge() -> None:
    assert set().union(*(edges_of(walk) for walk in WALKS)) == MODELLED


# --- settlements by themselves ----------------------------------------------------------------------------------


def state_of(walk: Walk) -> JsonObject:
    state = walk.state.value(Namespace.OP_STATE, RUN)
    assert isinstance(state, dict)
    return state


@pytest.mark.covers("RT-3.7-T18", "RT-3.2-25")
@pytest.mark.parametrize("not_before", [5000, SAFE_INTEGER])
def test_a_failed_attempt_has_its_entry_and_its_row_and_the_next_one_waits(not_before: int) -> None:
    walk = runs.requested(attempts=3)
    before = state_of(walk)["phase"]
    overloaded = assistant(stop="error", error="overloaded")
    walk.take(TRANSITIONS["settle_retryable"], SettleRetryable(response=overloaded, not_before=not_before))
    assert walk.state.entries[R1].message == overloaded
    assert walk.state.usage[U1].entry_id == R1
    assert isinstance(before, dict)
    assert state_of(walk)["phase"] == {
        "kind": "assistant",
        "generation": {
            "status": "retry_wait",
            "context": before["generation"]["context"],  # type: ignore[index,call-overload]
            "nextAttempt": 2,
            "notBefore": not_before,
            "errorMessage": "overloaded",
        },
    }


@pytest.mark.covers("RT-3.7-T18")
def test_a_wait_shorter_than_the_delay_is_refused() -> None:
    walk = runs.requested(attempts=3)
    early = SettleRetryable(response=assistant(stop="error", error="overloaded"), not_before=49)
    assert getattr(TRANSITIONS["settle_retryable"](walk.state, "main", early), "guard", "") == "delay_is_kept"


@pytest.mark.covers("RT-3.7-T24")
@pytest.mark.parametrize(
    "error, attempts, code",
    [("invalid api key", 3, "provider_error"), ("overloaded", 1, "retries_exhausted")],
)
def test_a_final_error_and_exhausted_attempts_drain(error: str, attempts: int, code: str) -> None:
    walk = runs.requested(attempts=attempts)
    failed = SettleFailure(response=assistant(stop="error", error=error), error_message=error)
    walk.take(TRANSITIONS["settle_failure"], failed)
    phase = state_of(walk)["phase"]
    assert isinstance(phase, dict)
    assert (phase["kind"], phase["provenance"]) == ("failure_drain", {"kind": "response", "entryId": R1})
    assert phase["error"]["code"] == code  # type: ignore[index,call-overload]


@pytest.mark.covers("RT-3.7-T24")
def test_a_second_overflow_drains() -> None:
    walk = runs.requested()
    text = dumps(state_of(walk), separators=(",", ":")).replace(
        '"overflowRecoveryUsed":false', '"overflowRecoveryUsed":true'
    )
    applied = apply(walk.state, [SetRegister(namespace=Namespace.OP_STATE, key=RUN, value=loads(text))], timestamp=1)
    assert isinstance(applied, tuple)
    walk.state = applied[0]
    error = "prompt is too long"
    failed = SettleFailure(response=assistant(stop="error", error=error), error_message=error)
    walk.take(TRANSITIONS["settle_failure"], failed)
    phase = state_of(walk)["phase"]
    assert isinstance(phase, dict)
    assert phase["kind"] == "failure_drain"
    assert phase["error"]["code"] == "context_overflow"  # type: ignore[index,call-overload]
