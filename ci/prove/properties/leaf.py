"""Moves of the leaf: it goes where an entry was appended, or where a navigation was asked to go (§2.3, §3.10)."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import Final, TypeAlias

from ci.prove.contract import faulty, proves
from ci.prove.states import (
    LANE,
    NOTHING,
    Few,
    committed,
    finishing,
    inbox,
    navigation,
    pending_request,
    run_state,
    running_calls,
    session,
)
from restartpoint_reference import TRANSITIONS, Commit, Refusal, Transition
from restartpoint_reference.shapes import UNSET, JsonObject, Unset
from restartpoint_reference.store import State, Violation, apply
from restartpoint_reference.transitions.cancellation import Abort
from restartpoint_reference.transitions.checkpoint import Drain, RunEndFollowUp
from restartpoint_reference.transitions.frame import Inputs, View, Writes, set_leaf
from restartpoint_reference.transitions.navigation import navigate
from restartpoint_reference.transitions.queues import QueuedId
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.entries import Namespace, SetRegister
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.states import CancelRequested

__all__: list[str] = []


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
