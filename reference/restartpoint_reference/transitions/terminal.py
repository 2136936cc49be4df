"""The terminal transaction, and the ends of a run (§3.12, §3.13)."""

from dataclasses import replace

from restartpoint_reference.shapes import UNSET, Unset
from restartpoint_reference.transitions.frame import (
    Inputs,
    Nothing,
    NotThis,
    View,
    Writes,
    control_is_running,
    delete,
    set_lane_state,
    transition,
)
from restartpoint_reference.vocabulary.entries import Namespace, SetRegister
from restartpoint_reference.vocabulary.registers import LaneLastResult, OperationError, Outcome, RunCompletion
from restartpoint_reference.vocabulary.states import (
    EMPTY_INBOX,
    CancelRequested,
    Checkpoint,
    FailureDrain,
    MayFinish,
    RunState,
)


def terminal(
    view: View,
    outcome: Outcome,
    *,
    publication: Writes = (),
    leaf_id: str | None | Unset = UNSET,
    final_assistant_entry_id: str | None = None,
    error: OperationError | Unset = UNSET,
    run_completion: RunCompletion | Unset = UNSET,
) -> Writes:
    """The end of any operation: what it publishes, the removal of all that it owns, its result, an idle lane.

    ``leaf_id`` is the leaf after the publication; without it, the current one. Ledger and the lane's own queue stay.
    """
    operation_id = view.operation_id
    result = LaneLastResult(
        operation_id=operation_id,
        kind=view.operation.kind,
        leaf_id=view.leaf if leaf_id is UNSET else leaf_id,
        final_assistant_entry_id=UNSET if final_assistant_entry_id is None else final_assistant_entry_id,
        outcome=outcome,
        error=error,
        run_completion=run_completion,
    )
    return (
        *publication,
        *delete(Namespace.OP_META, operation_id),
        *delete(Namespace.OP_STATE, operation_id),
        *delete(Namespace.OP_TOOL_ARGS, *view.state.keys(Namespace.OP_TOOL_ARGS, f"{operation_id}:")),
        *delete(Namespace.OP_PREPARATION, *view.state.keys(Namespace.OP_PREPARATION, f"{operation_id}:")),
        *delete(Namespace.PENDING_ENTRY, *owned_pending_ids(view)),
        SetRegister(namespace=Namespace.LANE_LAST_RESULT, key=view.lane, value=result.to_json()),
        set_lane_state(view, replace(view.lane_state, current_operation_id=None)),
    )


def owned_pending_ids(view: View) -> tuple[str, ...]:
    """The queued content that dies with the operation: its inbox and what an abort drained (§3.13, AMB-05)."""
    state = view.operation_state
    inbox = state.inbox if isinstance(state, RunState) else EMPTY_INBOX
    control = state.control
    drained = (*control.drained_steer, *control.drained_follow_up) if isinstance(control, CancelRequested) else ()
    return (*inbox.steer, *inbox.follow_up, *inbox.writes, *drained)


def inbox_is_empty(view: View, _: Inputs) -> str | None:
    """Nothing accepted waits, reread in the mutation (§3.12, decision AMB-25)."""
    return None if view.run.inbox == EMPTY_INBOX else "the inbox is not empty"


def _may_finish(view: View) -> MayFinish:
    match view.run.phase:
        case Checkpoint(continuation=MayFinish() as continuation):
            return continuation
    raise NotThis("the run may not finish")


def assistant_had_the_last_word(view: View, _: Inputs) -> str | None:
    """The run may finish with its final assistant message (§3.13)."""
    return None if _may_finish(view).include_final_assistant else "tools ended the run"


def tools_ended_the_run(view: View, _: Inputs) -> str | None:
    """The run may finish with tool results as its final entries (§3.8)."""
    return "the run ends with an assistant message" if _may_finish(view).include_final_assistant else None


@transition(
    "T14",
    section="3.12, 3.13",
    phases=("checkpoint",),
    inputs=Nothing,
    guards=(control_is_running, inbox_is_empty, assistant_had_the_last_word),
    extract=lambda _view, _seen: Nothing(),
)
def finish_run(view: View, _: Nothing) -> Writes:
    """The run completes with its newest assistant message as the last word."""
    return terminal(
        view,
        Outcome.COMPLETED,
        final_assistant_entry_id=view.run.latest_assistant_entry_id,
        run_completion=RunCompletion.ASSISTANT,
    )


@transition(
    "T15",
    section="3.12, 3.13",
    phases=("checkpoint",),
    inputs=Nothing,
    guards=(control_is_running, inbox_is_empty, tools_ended_the_run),
    extract=lambda _view, _seen: Nothing(),
)
def finish_terminated_tools(view: View, _: Nothing) -> Writes:
    """The run completes with tool results that all asked to end it, and without a final assistant message."""
    return terminal(view, Outcome.COMPLETED, run_completion=RunCompletion.TERMINATED_TOOLS)


@transition(
    "T76",
    section="3.12, 3.13",
    phases=("failure_drain",),
    inputs=Nothing,
    guards=(control_is_running, inbox_is_empty),
    extract=lambda _view, _seen: Nothing(),
)
def finish_failed(view: View, _: Nothing) -> Writes:
    """The failed run ends, since no input revived it."""
    match view.run.phase:
        case FailureDrain(error=error):
            latest = view.run.latest_assistant_entry_id
            return terminal(view, Outcome.FAILED, final_assistant_entry_id=latest, error=error)
    raise NotThis("the run did not fail")
