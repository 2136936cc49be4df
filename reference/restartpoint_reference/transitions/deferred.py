"""Polls of a deferred response: intent, settlement, and what becomes of an orphaned or cancelled one (§3.2, §4.5)."""

from dataclasses import replace
from typing import Final

from restartpoint_reference.classify import handles_are_equal
from restartpoint_reference.shapes import UNSET, Json, Unset, same
from restartpoint_reference.transitions.cancellation import cancellation_is_requested, response_is_aborted
from restartpoint_reference.transitions.frame import (
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_state,
    transition,
)
from restartpoint_reference.transitions.generation import (
    Reservation,
    SyntheticResponse,
    reserved_ids_are_new,
    unreceived,
)
from restartpoint_reference.transitions.settlement import (
    Response,
    SettleFailure,
    SettleToolCalls,
    failed,
    last_word,
    planned_batch,
    reserved_ids,
    response_is_an_error,
    results_follow_the_response,
    settled_calls,
    settled_failure,
    settled_response,
    settlement,
)
from restartpoint_reference.vocabulary.messages import (
    Message,
    StopReason,
    error_message,
    role,
    source_calls,
    stop_reason,
)
from restartpoint_reference.vocabulary.registers import ErrorCode, OperationError
from restartpoint_reference.vocabulary.states import (
    CancelRequested,
    DeferredPending,
    DeferredPhase,
    DeferredSuspended,
    FailureDrain,
)

POLL: Final = ("deferred.effect_pending",)
"""The phase that a poll settles from."""


def suspended(view: View) -> DeferredSuspended:
    """The deferred response that waits for a poll."""
    match view.run.phase:
        case DeferredPhase(deferred=DeferredSuspended() as found):
            return found
    raise NotThis("no deferred response waits")


def polled(view: View) -> DeferredPending:
    """The poll that may have been sent."""
    match view.run.phase:
        case DeferredPhase(deferred=DeferredPending() as found):
            return found
    raise NotThis("no poll is pending")


def keeps_waiting(view: View) -> bool:
    """Whether an activation without an unused poll permit leaves the run as it is, without a commit (T88, §4.5)."""
    return isinstance(view.run.phase, DeferredPhase) and not isinstance(view.run.control, CancelRequested)


# --- intent


def _intended(_: View, seen: Seen) -> Reservation:
    match seen.run().phase:
        case DeferredPhase(deferred=DeferredPending(response_entry_id=response_id, usage_id=usage_id)):
            return Reservation(response_entry_id=response_id, usage_id=usage_id)
    raise NotThis("the state that is set has no pending poll")


def _poll(view: View, inputs: Reservation, waiting: DeferredSuspended | DeferredPending, poll: int) -> Writes:
    pending = DeferredPending(
        step_id=waiting.step_id,
        source_entry_id=waiting.source_entry_id,
        poll=poll,
        response_entry_id=inputs.response_entry_id,
        usage_id=inputs.usage_id,
        configuration=waiting.configuration,
        stream_options=waiting.stream_options,
    )
    return (set_state(view, replace(view.run, phase=DeferredPhase(deferred=pending))),)


@transition(
    "T41",
    section="3.2",
    phases=("deferred.suspended",),
    inputs=Reservation,
    guards=(control_is_running, reserved_ids_are_new),
    extract=_intended,
)
def intend_poll(view: View, inputs: Reservation) -> Writes:
    """The intent of one poll: the next number, and ids reserved for its response and usage, before it is sent."""
    return _poll(view, inputs, suspended(view), suspended(view).poll + 1)


def unknown_ids_are_abandoned(view: View, inputs: Reservation) -> str | None:
    """The ids of the poll whose outcome is unknown are never used again (§3.2)."""
    reused = sorted({inputs.response_entry_id, inputs.usage_id} & set(reserved_ids(view)))
    return f"ids of the unknown poll are reserved again: {', '.join(reused)}" if reused else None


@transition(
    "T47",
    section="3.2, 4.5",
    phases=POLL,
    inputs=Reservation,
    guards=(control_is_running, reserved_ids_are_new, unknown_ids_are_abandoned),
    extract=_intended,
)
def replace_unknown_poll(view: View, inputs: Reservation) -> Writes:
    """The outcome of the poll is unknown: it is intended anew under the same number and fresh ids."""
    return _poll(view, inputs, polled(view), polled(view).poll)


# --- settlement


def handle(message: Message) -> Json | Unset:
    """The deferred handle that a response carries, UNSET without one."""
    return message.get("deferred", UNSET)


def _handle_is_the_sources(view: View, response: Message) -> bool:
    return handles_are_equal(handle(response), handle(view.message(polled(view).source_entry_id)))


def poll_is_still_pending(view: View, inputs: Response) -> str | None:
    """The provider has no answer yet, and its handle is completely equal to the source's (§3.2, decision AMB-34)."""
    if role(inputs.response) != "assistant" or stop_reason(inputs.response) is not StopReason.DEFERRED:
        return "the response is not deferred"
    return None if _handle_is_the_sources(view, inputs.response) else "the handle is not that of the source"


@transition(
    "T42",
    section="3.2",
    phases=POLL,
    inputs=Response,
    guards=(control_is_running, poll_is_still_pending),
    extract=settled_response,
)
def settle_poll_pending(view: View, inputs: Response) -> Writes:
    """There is no answer yet: the run suspends again, at the response that it just got."""
    poll = polled(view)
    waiting = DeferredSuspended(
        step_id=poll.step_id,
        source_entry_id=poll.response_entry_id,
        poll=poll.poll,
        configuration=poll.configuration,
        stream_options=poll.stream_options,
    )
    return settlement(view, inputs.response, DeferredPhase(deferred=waiting))


def poll_is_answered(_: View, inputs: Inputs) -> str | None:
    """The response is ready: it stopped, reached its limit, or asks for tools (decision AMB-33)."""
    response = getattr(inputs, "response", None)
    ready = (StopReason.STOP, StopReason.LENGTH, StopReason.TOOL_USE)
    if not isinstance(response, dict) or role(response) != "assistant" or stop_reason(response) not in ready:
        return "the response is no answer"
    return None


def answer_has_calls(_: View, inputs: SettleToolCalls) -> str | None:
    """The answer asks for tools (§3.2)."""
    return None if source_calls(inputs.response) else "the answer has no calls"


def answer_has_no_calls(_: View, inputs: Response) -> str | None:
    """The answer asks for nothing (§3.2)."""
    return "the answer has calls" if source_calls(inputs.response) else None


@transition(
    "T44",
    section="3.2",
    phases=POLL,
    inputs=SettleToolCalls,
    guards=(control_is_running, poll_is_answered, answer_has_calls, results_follow_the_response),
    extract=settled_calls,
)
def settle_poll_tool_calls(view: View, inputs: SettleToolCalls) -> Writes:
    """The answer asks for tools: every call is planned, in a turn that is named after the poll (decision AMB-08)."""
    poll = polled(view)
    return planned_batch(view, inputs, poll.configuration, turn_id=f"{poll.step_id}:poll:{poll.poll}")


@transition(
    "T45",
    section="3.2",
    phases=POLL,
    inputs=Response,
    guards=(control_is_running, poll_is_answered, answer_has_no_calls),
    extract=settled_response,
)
def settle_poll_ready(view: View, inputs: Response) -> Writes:
    """The answer asks for nothing: the run may finish."""
    return last_word(view, inputs.response)


def _failed_with(code: ErrorCode, seen: Seen, view: View) -> SettleFailure:
    match seen.run().phase:
        case FailureDrain(error=OperationError(code=found)) if found is code:
            return settled_failure(view, seen)
    raise NotThis(f"the failure is not {code}")


def handle_differs(view: View, inputs: SettleFailure) -> str | None:
    """What is left of the handle is not the source's (§3.2)."""
    return "the handle is that of the source" if _handle_is_the_sources(view, inputs.response) else None


@transition(
    "T43",
    section="3.2",
    phases=POLL,
    inputs=SettleFailure,
    guards=(control_is_running, response_is_an_error, handle_differs),
    extract=lambda view, seen: _failed_with(ErrorCode.DEFERRED_HANDLE_MISMATCH, seen, view),
)
def settle_poll_mismatch(view: View, inputs: SettleFailure) -> Writes:
    """The provider answered for another handle, or for none: the run fails."""
    return failed(view, inputs, ErrorCode.DEFERRED_HANDLE_MISMATCH)


@transition(
    "T46",
    section="3.2",
    phases=POLL,
    inputs=SettleFailure,
    guards=(control_is_running, response_is_an_error),
    extract=lambda view, seen: _failed_with(ErrorCode.DEFERRED_FAILED, seen, view),
)
def settle_poll_failure(view: View, inputs: SettleFailure) -> Writes:
    """The poll failed: there is no retry, and an overflow is an error like any other (decision AMB-33)."""
    return failed(view, inputs, ErrorCode.DEFERRED_FAILED)


# --- cancellation


def aborted_response_says_why(_: View, inputs: Response) -> str | None:
    """An aborted response keeps the reason that its stop reason no longer tells (§3.7, decision AMB-46)."""
    if role(inputs.response) != "assistant":
        return "the response is not an assistant message"
    return None if error_message(inputs.response) else "an aborted response says why"


def _who_answered(view: View, inputs: Response) -> str:
    """``synthetic`` for the prescribed message of the captured model and the source's API, ``live`` for any other."""
    api, timestamp = view.message(polled(view).source_entry_id).get("api"), inputs.response.get("timestamp")
    if not isinstance(api, str) or not isinstance(timestamp, int):
        return "live"
    said = SyntheticResponse(api=api, timestamp=timestamp, reason=error_message(inputs.response))
    prescribed = unreceived(polled(view).configuration.model, said, StopReason.ABORTED)
    return "synthetic" if same(inputs.response, prescribed) else "live"


@transition(
    "T48",
    section="3.2, 4.6",
    phases=POLL,
    inputs=Response,
    guards=(cancellation_is_requested, response_is_aborted, aborted_response_says_why),
    extract=settled_response,
    detail=_who_answered,
)
def cancel_poll(view: View, inputs: Response) -> Writes:
    """The poll settles as aborted, with the usage of a fetch that was really started and otherwise with none."""
    return last_word(view, inputs.response)
