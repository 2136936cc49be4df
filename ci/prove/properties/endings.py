"""The end of an operation: nothing that it owned survives, and nothing else is touched (§3.13)."""

from enum import Enum
from typing import Final, Protocol

from ci.prove.contract import proves
from ci.prove.states import (
    CONFIGURATION,
    LANE,
    LEAF,
    OPERATION,
    Few,
    finishing,
    inbox,
    run_state,
    session,
    with_register,
)
from restartpoint_reference.shapes import Json
from restartpoint_reference.store import Delta, State, Violation, apply
from restartpoint_reference.transitions.frame import View, Writes
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.vocabulary.entries import DeleteRegister, Namespace, SetRegister
from restartpoint_reference.vocabulary.registers import Outcome

__all__: list[str] = []

OWNED: Final = (Namespace.OP_META, Namespace.OP_STATE, Namespace.OP_TOOL_ARGS, Namespace.OP_PREPARATION)


class Ends(Protocol):
    """The signature of ``terminal``, without what it publishes."""

    def __call__(self, view: View, outcome: Outcome) -> Writes: ...


TERMINAL: Final[Ends] = terminal


def _working(steer: Few, writes: Few, arguments: Few, prepared: bool) -> State:
    """A session whose run has this much to clean up, beside the registers of an operation whose id begins alike."""
    state = session(run_state(finishing(), inbox(steer, Few.NONE, writes)))
    for index in range(arguments.value):
        state = with_register(state, Namespace.OP_TOOL_ARGS, f"{OPERATION}:t1:{index}", {})
    if prepared:
        state = with_register(state, Namespace.OP_PREPARATION, f"{OPERATION}:task", {})
    for namespace in OWNED:
        key = f"{OPERATION}0" if namespace in (Namespace.OP_META, Namespace.OP_STATE) else f"{OPERATION}0:t1:0"
        state = with_register(state, namespace, key, {})
    return state


def _after(state: State, writes: Writes) -> tuple[State, Delta] | None:
    answer = apply(state, writes, timestamp=9)
    return None if isinstance(answer, Violation) else answer


WORK = "zero to two steers, deferred writes and tool arguments each; a preparation or none"


def _keeping_the_preparation(view: View, outcome: Outcome) -> Writes:
    """What a compaction prepared outlives its operation."""
    return tuple(
        write
        for write in terminal(view, outcome)
        if not (isinstance(write, DeleteRegister) and write.namespace is Namespace.OP_PREPARATION)
    )


@proves(
    TERMINAL,
    section="3.13",
    twin=_keeping_the_preparation,
    symbolic=WORK,
    fixed="the run is at a checkpoint and completes; the ids",
)
def terminal_leaves_no_register_of_the_operation(
    ends: Ends, steer: Few, writes: Few, arguments: Few, prepared: bool
) -> bool:
    """Afterwards no op.* register is the operation's, nothing queued for it waits, and the lane is idle."""
    state = _working(steer, writes, arguments, prepared)
    made = _after(state, ends(View(state, LANE), Outcome.COMPLETED))
    if made is None:
        return False
    after = made[0]
    owned = [key for namespace in OWNED for key in after.namespaces[namespace] if key.partition(":")[0] == OPERATION]
    idle = View(after, LANE).lane_state.current_operation_id is None
    return not owned and set(after.namespaces[Namespace.PENDING_ENTRY]) == {"n1"} and idle


def _by_bare_prefix(view: View, outcome: Outcome) -> Writes:
    """Arguments are removed of every operation whose id begins alike."""
    alike = view.state.keys(Namespace.OP_TOOL_ARGS, view.operation_id)
    removed = tuple(DeleteRegister(namespace=Namespace.OP_TOOL_ARGS, key=key) for key in alike)
    return (*removed, *terminal(view, outcome))


@proves(
    TERMINAL,
    section="3.13",
    twin=_by_bare_prefix,
    symbolic=WORK,
    fixed="the run is at a checkpoint and completes; another operation, whose id begins alike, owns one of each",
)
def terminal_touches_nothing_that_the_operation_does_not_own(
    ends: Ends, steer: Few, writes: Few, arguments: Few, prepared: bool
) -> bool:
    """The other operation's registers, the leaf, the configuration, entries, ledger and the lane's queue stay."""
    state = _working(steer, writes, arguments, prepared)
    made = _after(state, ends(View(state, LANE), Outcome.COMPLETED))
    if made is None:
        return False
    after = made[0]
    others = all(_others(after, namespace) == _others(state, namespace) for namespace in OWNED)
    lane = View(after, LANE)
    queue = lane.lane_state.pending_next_run == ("n1",)
    rows = after.entries is state.entries and after.usage is state.usage
    return others and lane.leaf == LEAF and lane.configuration == CONFIGURATION and queue and rows


def _others(state: State, namespace: Namespace) -> dict[str, int]:
    held = state.namespaces[namespace]
    return {key: held[key].seq for key in held if key.partition(":")[0] != OPERATION}


class End(Enum):
    """How an operation may end without an error."""

    COMPLETED = Outcome.COMPLETED
    ABORTED = Outcome.ABORTED
    DECLINED = Outcome.DECLINED


def _result_of_nothing(view: View, outcome: Outcome) -> Writes:
    """The result is written without the outcome that was given: everything completes."""
    return terminal(view, Outcome.COMPLETED if outcome is Outcome.DECLINED else outcome)


@proves(
    TERMINAL,
    section="3.13",
    twin=_result_of_nothing,
    symbolic="every outcome but failure; zero to two steers",
    fixed="the run is at a checkpoint",
    quick=True,
)
def terminal_records_the_outcome_once(ends: Ends, end: End, steer: Few) -> bool:
    """lane.lastResult is written once, with the operation, its kind, the leaf and the outcome."""
    state = session(run_state(finishing(), inbox(steer, Few.NONE, Few.NONE)))
    writes = ends(View(state, LANE), end.value)
    results = [
        write.value
        for write in writes
        if isinstance(write, SetRegister) and write.namespace is Namespace.LANE_LAST_RESULT
    ]
    expected: Json = {"operationId": OPERATION, "kind": "run", "leafId": LEAF, "outcome": end.value.value}
    return results == [expected]
