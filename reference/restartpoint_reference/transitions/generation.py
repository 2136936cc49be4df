"""Assistant generation: start, intent, waits, and what becomes of an orphaned request (§3.7, §4.5)."""

from dataclasses import dataclass, replace

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.transitions.frame import (
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_state,
    transition,
)
from restartpoint_reference.transitions.settlement import PENDING, settlement
from restartpoint_reference.vocabulary.messages import (
    Message,
    StopReason,
    error_message,
    zero_usage,
)
from restartpoint_reference.vocabulary.registers import ErrorCode, ModelIdentity, OperationError
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    Checkpoint,
    FailureDrain,
    GenerationContext,
    GenerationPending,
    GenerationReady,
    GenerationRetryWait,
    NeedAssistant,
    ResponseProvenance,
    RetryPolicy,
)

# --- start and intent


@dataclass(frozen=True, kw_only=True)
class StartGeneration(Inputs):
    """The minted step id, and the settings of the harness at that moment."""

    step_id: str
    stream_options: JsonObject
    retry_policy: RetryPolicy


def _started(_: View, seen: Seen) -> StartGeneration:
    match seen.run().phase:
        case AssistantPhase(generation=GenerationReady(context=context)):
            return StartGeneration(
                step_id=context.step_id, stream_options=context.stream_options, retry_policy=context.retry_policy
            )
    raise NotThis("the state that is set has no ready generation")


def turn_is_owed(view: View, _: Inputs) -> str | None:
    """The checkpoint continues with a model turn (§3.12)."""
    match view.run.phase:
        case Checkpoint(continuation=NeedAssistant()):
            return None
    return "no model turn is owed"


@transition(
    "T11",
    section="3.7, 3.12",
    phases=("checkpoint",),
    inputs=StartGeneration,
    guards=(control_is_running, turn_is_owed),
    extract=_started,
)
def start_generation(view: View, inputs: StartGeneration) -> Writes:
    """A generation step starts and captures the lane's configuration, stream options and retry policy."""
    match view.run.phase:
        case Checkpoint(continuation=NeedAssistant(overflow_recovery_used=used), trigger_entry_id=trigger):
            context = GenerationContext(
                step_id=inputs.step_id,
                trigger_entry_id=trigger,
                configuration=view.configuration,
                stream_options=inputs.stream_options,
                retry_policy=inputs.retry_policy,
                overflow_recovery_used=used,
            )
            phase = AssistantPhase(generation=GenerationReady(context=context, next_attempt=1))
            return (set_state(view, replace(view.run, phase=phase)),)
    raise NotThis("no model turn is owed")


@dataclass(frozen=True, kw_only=True)
class Reservation(Inputs):
    """The ids minted for a response and its usage."""

    response_entry_id: str
    usage_id: str


@dataclass(frozen=True, kw_only=True)
class IntendAssistant(Reservation):
    """With them, the limits calculated from the resolved model (decision AMB-30)."""

    intended_output_limit: int
    context_window: int


def _intended(_: View, seen: Seen) -> IntendAssistant:
    match seen.run().phase:
        case AssistantPhase(generation=GenerationPending() as pending):
            return IntendAssistant(
                response_entry_id=pending.response_entry_id,
                usage_id=pending.usage_id,
                intended_output_limit=pending.intended_output_limit,
                context_window=pending.context_window,
            )
    raise NotThis("the state that is set has no pending request")


def reserved_ids_are_new(view: View, inputs: Reservation) -> str | None:
    """Two distinct ids that name nothing yet (§1.2, §2.2)."""
    ids = {inputs.response_entry_id, inputs.usage_id}
    taken = [minted for minted in sorted(ids) if minted in view.state.entries or minted in view.state.usage]
    return None if len(ids) == 2 and not taken else f"reserved ids {sorted(ids)} are not two new ones"


@transition(
    "T16",
    section="3.7",
    phases=("assistant.ready",),
    inputs=IntendAssistant,
    guards=(control_is_running, reserved_ids_are_new),
    extract=_intended,
)
def intend_assistant(view: View, inputs: IntendAssistant) -> Writes:
    """The intent of one request: its response and usage ids are reserved and its limits fixed, before it is sent."""
    pending = GenerationPending(
        context=view.ready.context,
        attempt=view.ready.next_attempt,
        response_entry_id=inputs.response_entry_id,
        usage_id=inputs.usage_id,
        intended_output_limit=inputs.intended_output_limit,
        context_window=inputs.context_window,
    )
    return (set_state(view, replace(view.run, phase=AssistantPhase(generation=pending))),)


# --- waiting, and orphaned requests


@transition(
    "T26",
    section="3.7, 4.5",
    phases=("assistant.retry_wait",),
    inputs=Nothing,
    guards=(control_is_running,),
    extract=lambda _view, _seen: Nothing(),
)
def end_retry_wait(view: View, _: Nothing) -> Writes:
    """The wait is over: the next attempt is ready."""
    match view.run.phase:
        case AssistantPhase(generation=GenerationRetryWait(context=context, next_attempt=attempt)):
            ready = GenerationReady(context=context, next_attempt=attempt)
            return (set_state(view, replace(view.run, phase=AssistantPhase(generation=ready))),)
    raise NotThis("no retry waits")


def attempts_remain(view: View, _: Inputs) -> str | None:
    """The captured policy admits another attempt (§4.5)."""
    left = view.pending.attempt < view.pending.context.retry_policy.max_attempts
    return None if left else "the attempts are exhausted"


def attempts_are_exhausted(view: View, inputs: Inputs) -> str | None:
    """The captured policy admits no other attempt (§4.5)."""
    return "attempts remain" if attempts_remain(view, inputs) is None else None


@transition(
    "T27",
    section="4.5",
    phases=PENDING,
    inputs=Nothing,
    guards=(control_is_running, attempts_remain),
    extract=lambda _view, _seen: Nothing(),
)
def recover_assistant(view: View, _: Nothing) -> Writes:
    """The outcome of the request is unknown: a later attempt is ready, the reserved ids are abandoned."""
    ready = GenerationReady(context=view.pending.context, next_attempt=view.pending.attempt + 1)
    return (set_state(view, replace(view.run, phase=AssistantPhase(generation=ready))),)


@dataclass(frozen=True, kw_only=True)
class SyntheticResponse(Inputs):
    """The words, the API name and the time of a response that nobody received; the rest of it is prescribed."""

    api: str
    timestamp: int
    reason: str


def synthetic_response(view: View, inputs: SyntheticResponse, stop_reason: StopReason) -> Message:
    """The response that settles a request of unknown outcome: no content, no usage, the captured model (AMB-46)."""
    return unreceived(view.pending.context.configuration.model, inputs, stop_reason)


def unreceived(model: ModelIdentity, inputs: SyntheticResponse, stop_reason: StopReason) -> Message:
    """The message of this model that stands for a response which nobody received (AMB-46)."""
    return {
        "role": "assistant",
        "content": [],
        "api": inputs.api,
        "provider": model.provider,
        "model": model.model_id,
        "usage": zero_usage(),
        "stopReason": stop_reason.value,
        "errorMessage": inputs.reason,
        "timestamp": inputs.timestamp,
    }


@dataclass(frozen=True, kw_only=True)
class SyntheticFailure(SyntheticResponse):
    """The same, and the words of the operation's error."""

    error_message: str
    error_details: Json | Unset = UNSET


def _synthetic(_: View, seen: Seen) -> SyntheticFailure:
    message = seen.first_message()
    timestamp = message.get("timestamp")
    match seen.run().phase:
        case FailureDrain(error=OperationError(code=ErrorCode.UNKNOWN_OUTCOME) as error) if isinstance(timestamp, int):
            return SyntheticFailure(
                api=str(message.get("api")),
                timestamp=timestamp,
                reason=error_message(message),
                error_message=error.message,
                error_details=error.details,
            )
    raise NotThis("no unknown outcome is settled")


def reason_is_given(_: View, inputs: SyntheticResponse) -> str | None:
    """A synthetic response says why in its errorMessage (decision AMB-46)."""
    return None if inputs.reason else "a synthetic response says why"


@transition(
    "T28",
    section="4.5",
    phases=PENDING,
    inputs=SyntheticFailure,
    guards=(control_is_running, attempts_are_exhausted, reason_is_given),
    extract=_synthetic,
)
def recover_exhausted_assistant(view: View, inputs: SyntheticFailure) -> Writes:
    """The outcome of the last admitted request is unknown: a synthetic error settles it and the run fails."""
    error = OperationError(code=ErrorCode.UNKNOWN_OUTCOME, message=inputs.error_message, details=inputs.error_details)
    provenance = ResponseProvenance(entry_id=view.pending.response_entry_id)
    response = synthetic_response(view, inputs, StopReason.ERROR)
    return settlement(view, response, FailureDrain(error=error, provenance=provenance))
