"""What a settled response means: the order of the classification, row by row (§3.7)."""

from collections.abc import Callable
from enum import Enum
from typing import TypeAlias

from ci.prove.contract import proves
from restartpoint_reference.classify import Circumstances, Verdict, classify, is_retryable
from restartpoint_reference.shapes import Json, JsonObject
from restartpoint_reference.vocabulary.messages import Message, StopReason, error_message, source_calls, stop_reason
from restartpoint_reference.vocabulary.registers import ModelIdentity

__all__: list[str] = []

Classify: TypeAlias = Callable[[Message, Circumstances], Verdict]

MODEL = ModelIdentity(provider="acme", model_id="m-1")


class Words(Enum):
    """An error text of every kind, and those that are of two kinds at once."""

    NONE = ""
    OTHER = "something else"
    OVERFLOW = "prompt is too long"
    RETRYABLE = "overloaded"
    OVERFLOW_AND_RETRYABLE = "429: prompt is too long"
    AUTHENTICATION_AND_RETRYABLE = "401 overloaded"


class Handle(Enum):
    """A deferred handle: of the captured model and API, absent, without an id, or of another origin."""

    VALID = "valid"
    ABSENT = "absent"
    NAMELESS = "nameless"
    OTHER_MODEL = "another model"
    OTHER_API = "another api"

    @property
    def json(self) -> Json:
        """The handle itself, null where there is none."""
        whole: JsonObject = {"id": "job", "provider": "acme", "modelId": "m-1", "api": "scripted"}
        match self:
            case Handle.VALID:
                return whole
            case Handle.ABSENT:
                return None
            case Handle.NAMELESS:
                return {**whole, "id": ""}
            case Handle.OTHER_MODEL:
                return {**whole, "modelId": "m-2"}
            case Handle.OTHER_API:
                return {**whole, "api": "other"}


OVERFLOWS = (Words.OVERFLOW, Words.OVERFLOW_AND_RETRYABLE)

RESPONSES = "every stop reason; an error text of each kind; calls or none; every output and limit"


def _response(
    stop: StopReason, *, words: Words = Words.NONE, calls: bool = False, output: int = 1, handle: Handle = Handle.ABSENT
) -> Message:
    content: list[Json] = [{"type": "toolCall", "id": "c1", "name": "read", "arguments": {}}] if calls else []
    made: Message = {
        "role": "assistant",
        "content": content,
        "api": "scripted",
        "usage": {"output": output},
        "stopReason": stop.value,
        "errorMessage": words.value,
    }
    if handle is not Handle.ABSENT:
        made["deferred"] = handle.json
    return made


def _given(*, cancelled: bool = False, attempt: int = 1, attempts: int = 1, limit: int = 1) -> Circumstances:
    return Circumstances(
        cancelled=cancelled, attempt=attempt, max_attempts=attempts, intended_output_limit=limit, model=MODEL
    )


def _silent_about_pending(response: Message, given: Circumstances) -> Verdict:
    """A response that never settled meets no row."""
    if stop_reason(response) is StopReason.PENDING and not given.cancelled:
        raise LookupError("no row")
    return classify(response, given)


@proves(
    classify,
    section="3.7",
    twin=_silent_about_pending,
    symbolic=f"{RESPONSES}; every attempt of every number of attempts; cancelled or not",
    fixed="the model; no handle",
)
def every_response_is_classified(
    classified: Classify,
    stop: StopReason,
    words: Words,
    calls: bool,
    output: int,
    limit: int,
    attempt: int,
    attempts: int,
    cancelled: bool,
) -> bool:
    """Every response meets a row of the order, whatever the circumstances."""
    given = _given(cancelled=cancelled, attempt=attempt, attempts=attempts, limit=limit)
    try:
        found = classified(_response(stop, words=words, calls=calls, output=output), given)
    except LookupError:
        return False
    return isinstance(found, Verdict)


def _overflow_before_cancellation(response: Message, given: Circumstances) -> Verdict:
    """Overflow is asked before cancellation, so that a cancelled run compacts."""
    running = classify(response, _given(limit=given.intended_output_limit))
    return running if running is Verdict.OVERFLOW else classify(response, given)


@proves(
    classify,
    section="3.7",
    twin=_overflow_before_cancellation,
    symbolic=f"{RESPONSES}; cancelled or not",
    fixed="the model; no handle; one attempt of one",
)
def cancellation_comes_first(
    classified: Classify, stop: StopReason, words: Words, calls: bool, output: int, limit: int, cancelled: bool
) -> bool:
    """A response is classified cancelled if and only if cancellation was requested."""
    response = _response(stop, words=words, calls=calls, output=output)
    return (classified(response, _given(cancelled=cancelled, limit=limit)) is Verdict.CANCELLED) == cancelled


def _retry_before_overflow(response: Message, given: Circumstances) -> Verdict:
    """Retryable words are asked before overflow, so that the request that did not fit is sent again unchanged."""
    found = classify(response, given)
    retryable = found is Verdict.OVERFLOW and "429" in error_message(response)
    return Verdict.RETRY if retryable and given.attempt < given.max_attempts else found


@proves(
    classify,
    section="3.7",
    twin=_retry_before_overflow,
    symbolic=f"{RESPONSES}; every attempt of every number of attempts",
    fixed="the model; no handle; not cancelled",
)
def overflow_comes_before_everything_but_cancellation(
    classified: Classify,
    stop: StopReason,
    words: Words,
    calls: bool,
    output: int,
    limit: int,
    attempt: int,
    attempts: int,
) -> bool:
    """An error that says so, or an answer below its limit, is an overflow, whatever else it is; nothing else is."""
    response = _response(stop, words=words, calls=calls, output=output)
    found = classified(response, _given(attempt=attempt, attempts=attempts, limit=limit))
    said = stop is StopReason.ERROR and words in OVERFLOWS
    return (found is Verdict.OVERFLOW) == (said or (stop is StopReason.LENGTH and output < limit))


def _one_attempt_too_many(response: Message, given: Circumstances) -> Verdict:
    """The last admitted attempt is followed by another."""
    found = classify(response, given)
    return Verdict.RETRY if found is Verdict.EXHAUSTED and given.attempt == given.max_attempts else found


@proves(
    classify,
    section="3.7",
    twin=_one_attempt_too_many,
    symbolic="an error text of each kind; every attempt of every number of attempts",
    fixed="an error, not cancelled",
    quick=True,
)
def only_an_error_of_the_moment_with_attempts_left_is_retried(
    classified: Classify, words: Words, attempt: int, attempts: int
) -> bool:
    """An error is retried if and only if its words are of the moment alone and the attempt is not the last."""
    found = classified(_response(StopReason.ERROR, words=words), _given(attempt=attempt, attempts=attempts))
    if words is not Words.RETRYABLE:
        return found is (Verdict.OVERFLOW if words in OVERFLOWS else Verdict.FAILED)
    return found is (Verdict.RETRY if attempt < attempts else Verdict.EXHAUSTED)


def _any_handle(response: Message, given: Circumstances) -> Verdict:
    """A handle is taken as valid whatever API it is of."""
    found = classify(response, given)
    handle = response.get("deferred")
    forgiven = isinstance(handle, dict) and handle.get("api") != response.get("api")
    return Verdict.DEFERRED if found is Verdict.INVALID_DEFERRED and forgiven else found


@proves(
    classify,
    section="3.2, 3.7",
    twin=_any_handle,
    symbolic="every stop reason; a handle that is valid, absent, nameless, of another model or API; calls or none",
    fixed="no error text; an output at its limit; not cancelled",
    quick=True,
)
def response_is_deferred_exactly_by_a_valid_handle(
    classified: Classify, stop: StopReason, handle: Handle, calls: bool
) -> bool:
    """A response is deferred if and only if it stopped so with a valid handle; with another one it is invalid."""
    found = classified(_response(stop, handle=handle, calls=calls), _given())
    deferred = stop is StopReason.DEFERRED
    valid = handle is Handle.VALID
    return (found is Verdict.DEFERRED) == (deferred and valid) and (
        (found is Verdict.INVALID_DEFERRED) == (deferred and not valid)
    )


def _calls_by_stop_reason(response: Message, given: Circumstances) -> Verdict:
    """The stop reason alone says that tools are asked for, not the calls."""
    found = classify(response, given)
    if found is Verdict.TOOLS and stop_reason(response) is not StopReason.TOOL_USE:
        return Verdict.MAY_FINISH
    return found


@proves(
    classify,
    section="3.7",
    twin=_calls_by_stop_reason,
    symbolic="every stop reason; calls or none; every output and limit",
    fixed="no error text, no handle, not cancelled",
    quick=True,
)
def accepted_response_asks_for_tools_exactly_by_its_calls(
    classified: Classify, stop: StopReason, calls: bool, output: int, limit: int
) -> bool:
    """An accepted response goes on to tools if it has calls, and otherwise may finish; what failed does neither."""
    response = _response(stop, calls=calls, output=output)
    found = classified(response, _given(limit=limit))
    whole = stop in (StopReason.STOP, StopReason.TOOL_USE) or (stop is StopReason.LENGTH and output >= limit)
    if not whole:
        return found not in (Verdict.TOOLS, Verdict.MAY_FINISH)
    return found is (Verdict.TOOLS if len(source_calls(response)) else Verdict.MAY_FINISH)


def _any_error_of_the_moment(error: str) -> bool:
    """Overflow and authentication are not asked about first."""
    return is_retryable(error) or "overloaded" in error


@proves(
    is_retryable,
    section="3.7",
    twin=_any_error_of_the_moment,
    symbolic="an error text of each kind",
    quick=True,
)
def no_retry_mends_overflow_or_authentication(retryable: Callable[[str], bool], words: Words) -> bool:
    """An error is of the moment only if it says neither overflow nor authentication."""
    return retryable(words.value) == (words is Words.RETRYABLE)
