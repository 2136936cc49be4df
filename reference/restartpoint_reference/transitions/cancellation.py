"""Abort: the durable marker, the settlement of what was begun, and the aborted ends (§3.12, §4.6)."""

from dataclasses import dataclass, replace

from restartpoint_reference.classify import Verdict
from restartpoint_reference.shapes import JsonObject, same
from restartpoint_reference.transitions.checkpoint import unprojected
from restartpoint_reference.transitions.frame import (
    COMPACTION,
    IN_RUN_COMPACTION,
    NAVIGATION,
    RUN,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    read_state,
    set_state,
    transition,
)
from restartpoint_reference.transitions.generation import SyntheticResponse, reason_is_given, synthetic_response
from restartpoint_reference.transitions.placement import pending_entry
from restartpoint_reference.transitions.settlement import (
    PENDING,
    Response,
    is_classified,
    last_word,
    settled_response,
)
from restartpoint_reference.transitions.terminal import inbox_is_empty, terminal
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.messages import Message, StopReason, error_message, role, stop_reason
from restartpoint_reference.vocabulary.registers import Outcome, PendingMessage
from restartpoint_reference.vocabulary.states import CancelRequested, Inbox


def cancellation_is_requested(view: View, _: Inputs) -> str | None:
    """Somebody has durably asked the operation to stop (§4.6)."""
    return None if isinstance(view.operation_state.control, CancelRequested) else "nobody asked to cancel"


# --- the marker


@dataclass(frozen=True, kw_only=True)
class Abort(Inputs):
    """When it was asked for, in Unix milliseconds."""

    requested_at: int


def _requested(view: View, seen: Seen) -> Abort:
    control = seen.read(Namespace.OP_STATE, lambda value: read_state(view.operation.kind, value)).control
    if not isinstance(control, CancelRequested):
        raise NotThis("no cancellation is requested")
    return Abort(requested_at=control.requested_at)


@transition(
    "T83",
    section="3.11, 4.6",
    phases=RUN,
    inputs=Abort,
    guards=(control_is_running,),
    extract=_requested,
    public=True,
)
def abort_run(view: View, inputs: Abort) -> Writes:
    """The run is asked to stop wherever it is: its messages are drained, its deferred writes still wait."""
    inbox = view.run.inbox
    control = CancelRequested(
        requested_at=inputs.requested_at, drained_steer=inbox.steer, drained_follow_up=inbox.follow_up
    )
    kept = Inbox(steer=(), follow_up=(), writes=inbox.writes)
    return (set_state(view, replace(view.run, control=control, inbox=kept)),)


@transition(
    "T84",
    section="4.6",
    phases=(*COMPACTION, *NAVIGATION),
    inputs=Abort,
    guards=(control_is_running,),
    extract=_requested,
    public=True,
)
def abort_structural(view: View, inputs: Abort) -> Writes:
    """A compaction or navigation is asked to stop."""
    control = CancelRequested(requested_at=inputs.requested_at, drained_steer=(), drained_follow_up=())
    return (set_state(view, replace(view.operation_state, control=control)),)


@dataclass(frozen=True, kw_only=True)
class Aborted:
    """What every abort of an operation answers: the messages that the first one drained (§3.11)."""

    operation_id: str
    steer: tuple[JsonObject, ...]
    follow_up: tuple[JsonObject, ...]


def answer_of_abort(view: View) -> Aborted:
    """The answer of the abort that just committed, of each later one (T85), and of a reopened session."""
    control = view.operation_state.control
    if not isinstance(control, CancelRequested):
        raise NotThis("nobody asked to cancel")
    return Aborted(
        operation_id=view.operation_id,
        steer=tuple(_message(view, queued) for queued in control.drained_steer),
        follow_up=tuple(_message(view, queued) for queued in control.drained_follow_up),
    )


def _message(view: View, queued: str) -> Message:
    match pending_entry(view, queued):
        case PendingMessage(payload=message):
            return message
    raise NotThis(f"pending.entry/{queued} is not a message")


# --- a request that was intended


def response_is_aborted(_: View, inputs: Response) -> str | None:
    """A cancelled settlement commits a response that stopped by abort (§3.7)."""
    if role(inputs.response) != "assistant":
        return "the response is not an assistant message"
    aborted = stop_reason(inputs.response) is StopReason.ABORTED
    return None if aborted else "the committed response is not aborted"


def _unreceived(_: View, seen: Seen) -> SyntheticResponse:
    return _synthetic_inputs(seen.first_message())


def _synthetic_inputs(message: Message) -> SyntheticResponse:
    api, timestamp = message.get("api"), message.get("timestamp")
    if not isinstance(api, str) or not isinstance(timestamp, int):
        raise NotThis("the response has no api or no timestamp")
    return SyntheticResponse(api=api, timestamp=timestamp, reason=error_message(message))


def response_was_received(view: View, inputs: Response) -> str | None:
    """The response holds something that a provider said; one that holds nothing is the synthetic one (§4.6)."""
    synthetic = synthetic_response(view, _synthetic_inputs(inputs.response), StopReason.ABORTED)
    nothing = same(inputs.response, synthetic) and error_message(inputs.response)
    return "the response is the synthetic one" if nothing else None


@transition(
    "T25",
    section="3.7, 4.6",
    phases=PENDING,
    inputs=Response,
    guards=(is_classified(Verdict.CANCELLED), response_is_aborted, response_was_received),
    extract=settled_response,
)
def settle_cancelled(view: View, inputs: Response) -> Writes:
    """A request that had started settles as aborted with what it reported; the run is at a cancelled checkpoint."""
    return last_word(view, inputs.response)


@transition(
    "T29",
    section="4.6",
    phases=PENDING,
    inputs=SyntheticResponse,
    guards=(cancellation_is_requested, reason_is_given),
    extract=_unreceived,
)
def cancel_assistant(view: View, inputs: SyntheticResponse) -> Writes:
    """A request without a live result settles as aborted, without content and without usage."""
    return last_word(view, synthetic_response(view, inputs, StopReason.ABORTED))


# --- what remains


def writes_are_left(view: View, _: Inputs) -> str | None:
    """Some deferred write was accepted and not placed (§4.6)."""
    return None if view.run.inbox.writes else "no deferred write waits"


@transition(
    "T72",
    section="3.12, 4.6",
    phases=("checkpoint", "assistant.ready", "assistant.retry_wait", "deferred.suspended", *IN_RUN_COMPACTION,
            "failure_drain"),
    inputs=Nothing,
    guards=(cancellation_is_requested, writes_are_left),
    extract=lambda _view, _seen: Nothing(),
)  # fmt: skip
def apply_cancelled_writes(view: View, _: Nothing) -> Writes:
    """Every deferred write enters the tree, context or not; no turn is owed, nothing is in flight."""
    return unprojected(view, view.run.inbox.writes)


def _aborted_run(view: View) -> Writes:
    return terminal(view, Outcome.ABORTED, final_assistant_entry_id=view.run.latest_assistant_entry_id)


@transition(
    "T73",
    section="3.12, 4.6",
    phases=("checkpoint", "assistant.ready", "assistant.retry_wait", "failure_drain"),
    inputs=Nothing,
    guards=(cancellation_is_requested, inbox_is_empty),
    extract=lambda _view, _seen: Nothing(),
)
def finish_aborted_run(view: View, _: Nothing) -> Writes:
    """The cancelled run ends between effects, whatever it would have done next."""
    return _aborted_run(view)


@transition(
    "T49",
    section="3.2, 4.6",
    phases=("deferred.suspended",),
    inputs=Nothing,
    guards=(cancellation_is_requested, inbox_is_empty),
    extract=lambda _view, _seen: Nothing(),
)
def finish_aborted_deferred(view: View, _: Nothing) -> Writes:
    """The cancelled run ends without another poll."""
    return _aborted_run(view)


@transition(
    "T71",
    section="3.5, 4.6",
    phases=IN_RUN_COMPACTION,
    inputs=Nothing,
    guards=(cancellation_is_requested, inbox_is_empty),
    extract=lambda _view, _seen: Nothing(),
)
def finish_aborted_compaction_in_run(view: View, _: Nothing) -> Writes:
    """The cancelled run ends, and its unpublished compaction is discarded."""
    return _aborted_run(view)


@transition(
    "T70",
    section="3.9, 3.10, 4.6",
    phases=(*COMPACTION, *NAVIGATION),
    inputs=Nothing,
    guards=(cancellation_is_requested,),
    extract=lambda _view, _seen: Nothing(),
)
def finish_aborted_structural(view: View, _: Nothing) -> Writes:
    """A cancelled compaction or navigation ends with nothing published and the leaf where it was."""
    return terminal(view, Outcome.ABORTED)
