"""Every commit of every walk keeps the rules of a change, and each rule has a commit that breaks it alone."""

from collections.abc import Callable

import pytest

from restartpoint_reference import (
    DeleteRegister,
    Delta,
    Json,
    Namespace,
    SetRegister,
    State,
    Write,
    apply,
    invariants,
)
from restartpoint_reference.invariants import CHANGES
from restartpoint_reference.transitions.frame import insert_message
from tests.reference.test_invariants import _edited
from tests.reference.walk import Walk, assistant, uid, user
from tests.reference.walks import SCENARIOS, deferred, runs
from tests.reference.walks.runs import RUN, STEP

N = Namespace


def delta_of(state: State, *writes: Write) -> Delta:
    answer = apply(state, writes, timestamp=3)
    assert isinstance(answer, tuple), answer
    return answer[1]


def broken_by(delta: Delta) -> set[str]:
    return {rule.__name__ for _, rule in CHANGES if [*rule(delta)]}


@pytest.mark.covers("INV-14", "INV-16", "INV-19")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_commit_of_every_walk_keeps_the_rules(scenario: Callable[[], Walk]) -> None:
    for step in scenario().steps:
        if step.commit.name not in ("fork_into", "import_v3"):
            assert broken_by(delta_of(step.before, *step.commit.writes)) == set(), step.commit.name


def put(namespace: Namespace, key: str, value: Json) -> SetRegister:
    return SetRegister(namespace=namespace, key=key, value=value)


def claims_recovery() -> Delta:
    state = runs.requested().state
    held = state.value(N.OP_STATE, RUN)
    assert isinstance(held, dict)
    claimed = _edited(held, ["phase", "generation", "context", "overflowRecoveryUsed"], True)
    return delta_of(state, put(N.OP_STATE, RUN, claimed))


def ended_without_a_result() -> Delta:
    idle: Json = {"currentOperationId": None, "pendingNextRun": []}
    return delta_of(runs.prompted().state, put(N.LANE_STATE, "main", idle))


def result_without_an_end() -> Delta:
    state = runs.plain_run().state
    result = state.value(N.LANE_LAST_RESULT, "main")
    assert isinstance(result, dict)
    return delta_of(state, put(N.LANE_LAST_RESULT, "main", result))


def keeps_recovery_spent() -> Delta:
    claimed = claims_recovery().registers[N.OP_STATE, RUN][1]
    assert claimed is not None
    state = apply(runs.requested().state, [put(N.OP_STATE, RUN, claimed.value)], timestamp=3)
    assert isinstance(state, tuple)
    return delta_of(state[0], insert_message(uid(900, 1), None, user("more")), put(N.OP_STATE, RUN, claimed.value))


def rewritten(state: State, namespace: Namespace, key: str) -> Delta:
    held = state.register(namespace, key)
    assert held is not None
    return delta_of(state, put(namespace, key, held.value))


def settled_as_aborted(state: State, id: str) -> Delta:
    held = state.register(N.OP_STATE, RUN)
    assert held is not None
    return delta_of(state, insert_message(id, None, assistant(stop="aborted")), put(N.OP_STATE, RUN, held.value))


BROKEN: list[tuple[str, Callable[[], Delta]]] = [
    ("leaves_move_by_append_or_navigation", lambda: delta_of(runs.prompted().state, put(N.LANE_LEAF, "main", None))),
    ("leaves_move_by_append_or_navigation", lambda: delta_of(
        runs.prompted().state, DeleteRegister(namespace=N.LANE_LEAF, key="main"))),
    ("operations_are_accepted_by_idle_lanes", lambda: delta_of(
        runs.prompted().state, put(N.LANE_STATE, "main", {"currentOperationId": STEP, "pendingNextRun": []}))),
    ("results_come_with_the_end", ended_without_a_result),
    ("results_come_with_the_end", result_without_an_end),
    ("overflow_recovery_is_spent_by_a_compaction", claims_recovery),
    ("acceptance_data_is_written_once", lambda: rewritten(runs.prompted().state, N.OP_META, RUN)),
    ("new_input_restores_overflow_recovery", keeps_recovery_spent),
    ("aborted_responses_come_with_cancellation", lambda: settled_as_aborted(runs.requested().state, runs.R1)),
    ("aborted_responses_come_with_cancellation", lambda: settled_as_aborted(deferred.polled().state, deferred.P1)),
]  # fmt: skip


@pytest.mark.parametrize("name, delta", BROKEN, ids=[f"{name}-{at}" for at, (name, _) in enumerate(BROKEN)])
def test_a_commit_that_breaks_a_rule_breaks_it_alone(name: str, delta: Callable[[], Delta]) -> None:
    assert broken_by(delta()) == {name}


@pytest.mark.covers("INV-19")
def test_an_aborted_response_that_no_request_reserved_needs_no_cancellation() -> None:
    aborted = insert_message(uid(900, 1), None, assistant(stop="aborted"))
    assert broken_by(delta_of(runs.requested().state, aborted)) == set()
    held = runs.requested().state.register(N.OP_STATE, RUN)
    assert held is not None
    assert broken_by(delta_of(runs.requested().state, aborted, put(N.OP_STATE, RUN, held.value))) == set()


def test_every_rule_has_a_commit_that_breaks_it() -> None:
    assert {name for name, _ in BROKEN} == {rule.__name__ for _, rule in CHANGES}


def test_the_check_of_a_commit_asks_these_rules_as_well() -> None:
    state = runs.prompted().state
    answer = apply(state, [put(N.LANE_LEAF, "main", None)], timestamp=3)
    assert isinstance(answer, tuple)
    assert [found.name for found in invariants.check_commit(*answer)] == ["leaves_move_by_append_or_navigation"]
    assert invariants.check(answer[0]) == ()
