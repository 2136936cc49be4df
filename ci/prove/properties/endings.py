"""The end of an operation and the moves of the leaf: nothing owned survives, nothing else is touched (§2.3, §3.13)."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final, Protocol, TypeAlias

from ci.prove.contract import faulty, proves
from ci.prove.states import (
    CONFIGURATION,
    LANE,
    LEAF,
    NOTHING,
    OPERATION,
    Few,
    committed,
    finishing,
    inbox,
    navigation,
    pending_request,
    run_state,
    running_calls,
    session,
    with_register,
)
from restartpoint_reference import TRANSITIONS, Commit, Refusal, Transition
from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.store import Delta, State, Violation, apply
from restartpoint_reference.transitions.cancellation import Abort
from restartpoint_reference.transitions.checkpoint import Drain, RunEndFollowUp
from restartpoint_reference.transitions.frame import Inputs, View, Writes, set_leaf
from restartpoint_reference.transitions.navigation import navigate
from restartpoint_reference.transitions.queues import QueuedId
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.entries import DeleteRegister, Namespace, SetRegister
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import Outcome
from restartpoint_reference.vocabulary.states import CancelRequested

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


# --- the leaf


class Target(Enum):
    """Where a navigation goes."""

    ROOT = None
    FIRST = "e1"


def _elsewhere(view: View, inputs: Inputs) -> Writes:
    """The navigation ends, and the leaf goes to the root whatever the target was."""
    return tuple(
        set_leaf(view, None) if isinstance(write, SetRegister) and write.namespace is Namespace.LANE_LEAF else write
        for write in navigate.build(view, inputs)
    )


@proves(
    navigate,
    section="2.3, 3.10",
    twin=faulty(navigate, _elsewhere),
    symbolic="a target that is the root or an older entry, with a label or without",
    fixed="no summary is asked for; the root gets no label",
    quick=True,
)
def navigation_moves_the_leaf_to_its_target(transition: Transition, target: Target, labelled: bool) -> bool:
    """The leaf is where the navigation was asked to go, no entry is written, and the lane is idle."""
    label: str | Unset = "here" if labelled and target is not Target.ROOT else UNSET
    made = committed(navigation(target.value, label), transition)
    if made is None:
        return False
    after, delta = made
    lane = View(after, LANE)
    names = after.value(Namespace.FACT_LABEL, target.value or "")
    return lane.leaf == target.value and lane.phase == "idle" and not delta.entries and names == label


class Step(Enum):
    """A transition, with the inputs that it is tried with."""

    ABORT = "abort_run"
    CONSUME_STEER = "consume_steer"
    CONSUME_FOLLOW_UP = "consume_follow_up"
    APPLY = "apply_projecting_writes"
    FINISH = "finish_run"
    FINISH_ABORTED = "finish_aborted_run"
    FOLLOW_UP_AT_THE_END = "append_run_end_follow_up"
    RECOVER = "recover_assistant"
    SETTLE_STOP = "settle_stop"
    SETTLE_TOOL = "settle_tool"
    CANCEL_QUEUED = "cancel_queued"
    NAVIGATE = "navigate"

    @property
    def inputs(self) -> Inputs:
        """What is chosen outside."""
        match self:
            case Step.ABORT:
                return Abort(requested_at=7)
            case Step.APPLY:
                return Drain(count=1)
            case Step.FOLLOW_UP_AT_THE_END:
                return RunEndFollowUp(id="e9", message={"role": "user", "content": "more"})
            case Step.SETTLE_STOP:
                return Response(response=RESPONSE)
            case Step.SETTLE_TOOL:
                return ToolResult(message=RESULT)
            case Step.CANCEL_QUEUED:
                return QueuedId(id="s1")
            case _:
                return NOTHING


class Where(Enum):
    """A state of the session in which a step is tried."""

    CHECKPOINT = "checkpoint"
    BUSY_CHECKPOINT = "checkpoint with input"
    CANCELLED = "cancelled checkpoint"
    REQUEST = "a request is pending"
    TOOLS = "two calls are running"
    NAVIGATION = "a navigation is ready"

    @property
    def state(self) -> State:
        """The state itself."""
        match self:
            case Where.CHECKPOINT:
                return session(run_state(finishing()))
            case Where.BUSY_CHECKPOINT:
                return session(run_state(finishing(), inbox(Few.ONE, Few.ONE, Few.ONE)))
            case Where.CANCELLED:
                control = CancelRequested(requested_at=7, drained_steer=(), drained_follow_up=())
                return session(replace(run_state(finishing()), control=control))
            case Where.REQUEST:
                return session(run_state(pending_request(1, 2)))
            case Where.TOOLS:
                return session(run_state(running_calls()))
            case Where.NAVIGATION:
                return navigation("e1")


RESPONSE: Final[JsonObject] = {
    "role": "assistant", "content": [], "api": "scripted", "provider": "acme", "model": "m-1", "usage": zero_usage(),
    "stopReason": "stop", "timestamp": 3,
}  # fmt: skip
RESULT: Final[JsonObject] = {
    "role": "toolResult", "toolCallId": "c1", "toolName": "read", "content": [], "isError": False, "timestamp": 3,
}  # fmt: skip

Make: TypeAlias = Callable[[Transition, View, Inputs], Commit | Refusal]


def _rewinding(transition: Transition, view: View, inputs: Inputs) -> Commit | Refusal:
    """An abort also takes the leaf back to where the run began."""
    commit = transition.commit(view, inputs)
    if isinstance(commit, Commit) and transition.name == Step.ABORT.value:
        return replace(commit, writes=(*commit.writes, set_leaf(view, view.operation.source_leaf_id)))
    return commit


@proves(
    Transition.commit,
    section="2.3, 9.1",
    twin=_rewinding,
    symbolic="twelve transitions, each tried in six states of the session",
    fixed="the inputs of each transition; the other transitions",
)
def leaf_moves_only_by_append_or_navigation(make: Make, step: Step, where: Where) -> bool:
    """If the transition may be made, the leaf stays, or is an entry of the commit, or is a navigation's target."""
    state = where.state
    before = View(state, LANE)
    commit = make(TRANSITIONS[step.value], before, step.inputs)
    if isinstance(commit, Refusal):
        return True
    made = apply(state, commit.writes, timestamp=9)
    if isinstance(made, Violation):
        return False
    leaf = View(made[0], LANE).leaf
    appended = leaf in [entry.id for entry in made[1].entries]
    return appended or leaf == before.leaf or (step is Step.NAVIGATE and leaf == "e1")
