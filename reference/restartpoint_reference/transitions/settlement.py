"""Settlement of an assistant request: response, usage and next state in one commit (§3.7)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from restartpoint_reference.classify import (
    Circumstances,
    Verdict,
    backoff,
    classify,
    has_valid_handle,
    is_cut_short,
    says_overflow,
)
from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset, read_object
from restartpoint_reference.transitions.frame import (
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    insert_message,
    set_leaf,
    set_state,
    transition,
)
from restartpoint_reference.vocabulary.entries import InsertUsage, NewUsage
from restartpoint_reference.vocabulary.messages import (
    Message,
    StopReason,
    error_message,
    role,
    source_calls,
    stop_reason,
)
from restartpoint_reference.vocabulary.registers import ErrorCode, LaneConfiguration, OperationError
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CancelRequested,
    Checkpoint,
    DeferredPending,
    DeferredPhase,
    DeferredSuspended,
    FailureDrain,
    GenerationPending,
    GenerationRetryWait,
    MayFinish,
    PlannedCall,
    ResponseProvenance,
    RunPhase,
    ToolBatch,
    ToolsPhase,
)

PENDING: Final = ("assistant.effect_pending",)
"""The phase that a settlement starts from."""


def verdict(view: View, response: Message) -> Verdict:
    """How the pending request's response is classified under the current control (§3.7)."""
    pending = view.pending
    return classify(
        response,
        Circumstances(
            cancelled=isinstance(view.run.control, CancelRequested),
            attempt=pending.attempt,
            max_attempts=pending.context.retry_policy.max_attempts,
            intended_output_limit=pending.intended_output_limit,
            model=pending.context.configuration.model,
        ),
    )


def reserved_ids(view: View) -> tuple[str, str]:
    """The ids of the response and the usage row that the pending request or poll settles under (§3.2)."""
    match view.run.phase:
        case (
            AssistantPhase(generation=GenerationPending(response_entry_id=response_id, usage_id=usage_id))
            | DeferredPhase(deferred=DeferredPending(response_entry_id=response_id, usage_id=usage_id))
        ):
            return response_id, usage_id
    raise NotThis("no request is pending")


def settlement(view: View, response: Message, phase: RunPhase) -> Writes:
    """The writes of every settlement; the ledger row carries the response's own usage (§1.6, §3.7)."""
    response_id, usage_id = reserved_ids(view)
    row = NewUsage(id=usage_id, entry_id=response_id, adjustment=False, usage=read_object(response.get("usage")))
    return (
        insert_message(response_id, view.leaf, response),
        set_leaf(view, response_id),
        InsertUsage(row=row),
        set_state(view, replace(view.run, phase=phase, latest_assistant_entry_id=response_id)),
    )


@dataclass(frozen=True, kw_only=True)
class Response(Inputs):
    """The settled response as it is committed."""

    response: JsonObject


def settled_response(_: View, seen: Seen) -> Response:
    """The inputs of a settlement that only the response decides."""
    return Response(response=seen.first_message())


def is_classified(*allowed: Verdict) -> Callable[[View, Inputs], str | None]:
    """The guard that the response is an assistant's and has one of these verdicts (§3.7)."""

    def response_is_classified_so(view: View, inputs: Inputs) -> str | None:
        response = getattr(inputs, "response", None)
        if not isinstance(response, dict) or role(response) != "assistant":
            return "the response is not an assistant message"
        found = verdict(view, response)
        return None if found in allowed else f"the response is classified {found}"

    return response_is_classified_so


@dataclass(frozen=True, kw_only=True)
class SettleToolCalls(Inputs):
    """The response, and the ids minted for the results of its calls."""

    response: JsonObject
    result_ids: tuple[str, ...]


def settled_calls(_: View, seen: Seen) -> SettleToolCalls:
    """The inputs of a settlement that plans a batch."""
    match seen.run().phase:
        case ToolsPhase(batch=batch):
            ids = tuple(call.result_entry_id for call in batch.calls)
            return SettleToolCalls(response=seen.first_message(), result_ids=ids)
    raise NotThis("the state that is set has no tool batch")


def results_follow_the_response(view: View, inputs: SettleToolCalls) -> str | None:
    """One distinct new id per call, minted as a follower of the response's: the same first 48 bits (§1.2)."""
    calls = source_calls(inputs.response)
    if len(inputs.result_ids) != len(calls) or len(set(inputs.result_ids)) != len(calls):
        return f"{len(calls)} calls need as many distinct result ids"
    prefix = id_time(reserved_ids(view)[0])
    strays = [key for key in inputs.result_ids if id_time(key) != prefix or key in view.state.entries]
    return f"not new followers of the response: {', '.join(strays)}" if strays else None


def id_time(id: str) -> str:
    """The first 48 bits of a UUIDv7, its mint time, as twelve hexadecimal digits (§1.2)."""
    return id.replace("-", "")[:12]


@transition(
    "T17",
    section="3.7",
    phases=PENDING,
    inputs=SettleToolCalls,
    guards=(control_is_running, is_classified(Verdict.TOOLS), results_follow_the_response),
    extract=settled_calls,
)
def settle_tool_calls(view: View, inputs: SettleToolCalls) -> Writes:
    """The response asks for tools: every call is planned, with its result id reserved."""
    context = view.pending.context
    return planned_batch(view, inputs, context.configuration, turn_id=context.step_id)


def planned_batch(view: View, inputs: SettleToolCalls, configuration: LaneConfiguration, *, turn_id: str) -> Writes:
    """The settlement that plans every call of the response under its reserved result id (§3.7)."""
    calls = zip(source_calls(inputs.response), inputs.result_ids, strict=True)
    batch = ToolBatch(
        assistant_entry_id=reserved_ids(view)[0],
        configuration=configuration,
        turn_id=turn_id,
        calls=tuple(PlannedCall(source_index=call.source_index, result_entry_id=reserved) for call, reserved in calls),
    )
    return settlement(view, inputs.response, ToolsPhase(batch=batch))


@dataclass(frozen=True, kw_only=True)
class SettleRetryable(Inputs):
    """The response, and when the next attempt may start: the clock's reading plus the delay (decision AMB-28)."""

    response: JsonObject
    not_before: int


def _retryable(_: View, seen: Seen) -> SettleRetryable:
    match seen.run().phase:
        case AssistantPhase(generation=GenerationRetryWait(not_before=time)):
            return SettleRetryable(response=seen.first_message(), not_before=time)
    raise NotThis("the state that is set waits for no retry")


def delay_is_kept(view: View, inputs: SettleRetryable) -> str | None:
    """The wait is at least the backoff of the failed attempt (decision AMB-28)."""
    least = backoff(view.pending.context.retry_policy.base_delay_ms, view.pending.attempt)
    return None if inputs.not_before >= least else f"notBefore {inputs.not_before} is below the delay {least}"


@transition(
    "T18",
    section="3.7",
    phases=PENDING,
    inputs=SettleRetryable,
    guards=(control_is_running, is_classified(Verdict.RETRY), delay_is_kept),
    extract=_retryable,
)
def settle_retryable(view: View, inputs: SettleRetryable) -> Writes:
    """The request failed for the moment and attempts remain: the next one waits for its time."""
    wait = GenerationRetryWait(
        context=view.pending.context,
        next_attempt=view.pending.attempt + 1,
        not_before=inputs.not_before,
        error_message=error_message(inputs.response),
    )
    return settlement(view, inputs.response, AssistantPhase(generation=wait))


@transition(
    "T21",
    section="3.2, 3.7",
    phases=PENDING,
    inputs=Response,
    guards=(control_is_running, is_classified(Verdict.DEFERRED)),
    extract=settled_response,
)
def settle_deferred(view: View, inputs: Response) -> Writes:
    """The provider will answer later: the run suspends at its handle."""
    context = view.pending.context
    suspended = DeferredSuspended(
        step_id=context.step_id,
        source_entry_id=view.pending.response_entry_id,
        poll=0,
        configuration=context.configuration,
        stream_options=context.stream_options,
    )
    return settlement(view, inputs.response, DeferredPhase(deferred=suspended))


@transition(
    "T23",
    section="3.7",
    phases=PENDING,
    inputs=Response,
    guards=(control_is_running, is_classified(Verdict.MAY_FINISH)),
    extract=settled_response,
)
def settle_stop(view: View, inputs: Response) -> Writes:
    """The model stopped, or reached its output limit, without calls: the run may finish."""
    return last_word(view, inputs.response)


def last_word(view: View, response: Message) -> Writes:
    """The settlement after which the run may finish with this response (§3.7)."""
    trigger = reserved_ids(view)[0]
    phase = Checkpoint(continuation=MayFinish(include_final_assistant=True), trigger_entry_id=trigger)
    return settlement(view, response, phase)


# --- settlement into failure


@dataclass(frozen=True, kw_only=True)
class SettleFailure(Inputs):
    """The response as committed, and the words of the operation's error.

    ``cut_short`` says that the response was an answer cut below its limit before it was normalised to an error; its
    original stop reason is stored nowhere else (§3.7).
    """

    response: JsonObject
    error_message: str
    error_details: Json | Unset = UNSET
    cut_short: bool = False


def settled_failure(_: View, seen: Seen) -> SettleFailure:
    """The inputs of a settlement that fails the run."""
    match seen.run().phase:
        case FailureDrain(error=error):
            response = seen.first_message()
            overflow = error.code is ErrorCode.CONTEXT_OVERFLOW and not says_overflow(error_message(response))
            return SettleFailure(
                response=response, error_message=error.message, error_details=error.details, cut_short=overflow
            )
    raise NotThis("the state that is set drains no failure")


def response_is_an_error(_: View, inputs: SettleFailure) -> str | None:
    """A failed settlement commits an assistant message that stopped by error, normalised where needed (§3.7)."""
    if role(inputs.response) != "assistant" or stop_reason(inputs.response) is not StopReason.ERROR:
        return "the committed response did not stop by error"
    return None


def _overflowed(view: View, inputs: SettleFailure) -> bool:
    if inputs.cut_short:
        return is_cut_short(inputs.response, view.pending.intended_output_limit)
    return verdict(view, inputs.response) is Verdict.OVERFLOW


def first_overflow(view: View, inputs: SettleFailure) -> str | None:
    """The request did not fit, and overflow recovery was not spent (§3.9)."""
    if view.pending.context.overflow_recovery_used:
        return "overflow recovery was already used"
    return None if _overflowed(view, inputs) else "the response is no overflow"


def failure_is_final(view: View, inputs: SettleFailure) -> str | None:
    """No retry is left, and an overflow is not the first (§3.7)."""
    if _overflowed(view, inputs):
        return None if view.pending.context.overflow_recovery_used else "a first overflow compacts"
    if inputs.cut_short:
        return "the response was not cut below its limit"
    found = verdict(view, inputs.response)
    return None if found in (Verdict.FAILED, Verdict.EXHAUSTED) else f"the response is classified {found}"


def failed(view: View, inputs: SettleFailure, code: ErrorCode) -> Writes:
    """The settlement after which the run fails by this response (§3.7)."""
    error = OperationError(code=code, message=inputs.error_message, details=inputs.error_details)
    provenance = ResponseProvenance(entry_id=reserved_ids(view)[0])
    return settlement(view, inputs.response, FailureDrain(error=error, provenance=provenance))


@transition(
    "T20",
    section="3.7, 3.9",
    phases=PENDING,
    inputs=SettleFailure,
    guards=(control_is_running, response_is_an_error, first_overflow),
    extract=settled_failure,
)
def settle_unpreparable_overflow(view: View, inputs: SettleFailure) -> Writes:
    """The request did not fit and there is nothing to compact: the run fails."""
    return failed(view, inputs, ErrorCode.CONTEXT_OVERFLOW)


@transition(
    "T24",
    section="3.7",
    phases=PENDING,
    inputs=SettleFailure,
    guards=(control_is_running, response_is_an_error, failure_is_final),
    extract=settled_failure,
)
def settle_failure(view: View, inputs: SettleFailure) -> Writes:
    """The request failed for good: a final error, attempts exhausted, or a second overflow."""
    if _overflowed(view, inputs):
        return failed(view, inputs, ErrorCode.CONTEXT_OVERFLOW)
    exhausted = verdict(view, inputs.response) is Verdict.EXHAUSTED
    return failed(view, inputs, ErrorCode.RETRIES_EXHAUSTED if exhausted else ErrorCode.PROVIDER_ERROR)


def _invalid_deferred(view: View, seen: Seen) -> SettleFailure:
    match seen.run().phase:
        case FailureDrain(error=OperationError(code=ErrorCode.DEFERRED_HANDLE_INVALID)):
            return settled_failure(view, seen)
    raise NotThis("the failure is not that of a deferred handle")


def handle_is_invalid(view: View, inputs: SettleFailure) -> str | None:
    """What is left of the handle is not a valid one (§3.2)."""
    valid = has_valid_handle(inputs.response, view.pending.context.configuration.model)
    return "the handle is valid" if valid else None


@transition(
    "T22",
    section="3.2, 3.7",
    phases=PENDING,
    inputs=SettleFailure,
    guards=(control_is_running, response_is_an_error, handle_is_invalid),
    extract=_invalid_deferred,
)
def settle_invalid_deferred(view: View, inputs: SettleFailure) -> Writes:
    """The provider deferred without a usable handle: the run fails."""
    return failed(view, inputs, ErrorCode.DEFERRED_HANDLE_INVALID)
