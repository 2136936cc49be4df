"""What a settled response means, first match wins, and the arithmetic of retries and limits (§3.7). Pure and total."""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from restartpoint.contract import (
    MAX_SAFE_INTEGER,
    AgentMessage,
    JsonObject,
    Model,
    ModelIdentity,
    OperationError,
    SourceCall,
    StreamOptions,
    source_calls,
)

__all__ = [
    "AbortedUnasked", "Cancelled", "Circumstances", "Classification", "DeferredAnswer", "Failed", "Finished",
    "InvalidHandle", "Overflow", "PlansTools", "Retryable", "backoff_ms", "classify", "has_valid_handle",
    "intended_output_limit", "is_cut_short", "is_overflow_error", "is_retryable_error", "not_before_ms",
]  # fmt: skip


class Circumstances(msgspec.Struct, frozen=True, kw_only=True):
    """What decides besides the response: durable control, the attempt (from 1) of how many, and the sent limit."""

    cancelled: bool
    attempt: int
    max_attempts: int
    intended_output_limit: int
    model: ModelIdentity


class _Class(msgspec.Struct, frozen=True, kw_only=True):
    message: AgentMessage
    """The message to commit: the response, or its normalization."""


class Cancelled(_Class, frozen=True, kw_only=True):
    """Control is cancelled: the response is recorded as aborted, whatever it was."""


class Overflow(_Class, frozen=True, kw_only=True):
    """The request did not fit (a heuristic): recorded as an error; compact once, then fail with ``error``."""

    error: OperationError


class DeferredAnswer(_Class, frozen=True, kw_only=True):
    """The provider answers later under ``handle``."""

    handle: JsonObject


class InvalidHandle(_Class, frozen=True, kw_only=True):
    """The provider answers later but gave no usable handle: recorded as an error."""

    error: OperationError


class Retryable(_Class, frozen=True, kw_only=True):
    """The error is of the moment and attempts remain."""

    error_text: str


class Failed(_Class, frozen=True, kw_only=True):
    """The error is final: not retryable, or the attempts are used up."""

    error: OperationError


class PlansTools(_Class, frozen=True, kw_only=True):
    """The response asks for tools; ``truncated`` ones are answered without running (genuine output limit)."""

    calls: tuple[SourceCall, ...]
    truncated: bool


class Finished(_Class, frozen=True, kw_only=True):
    """The response ends the turn."""


class AbortedUnasked(_Class, frozen=True, kw_only=True):
    """The provider says aborted (or something unsettled) though nobody asked: a defect, never recorded (AMB-59)."""


Classification: TypeAlias = (
    Cancelled | Overflow | DeferredAnswer | InvalidHandle | Retryable | Failed | PlansTools | Finished | AbortedUnasked
)


def classify(message: AgentMessage, given: Circumstances) -> Classification:
    """The first row of §3.7's classification order that the response meets."""
    reason = message.get("stopReason")
    if given.cancelled:
        return Cancelled(message=_cancelled(message))
    if _overflows(message, given.intended_output_limit):
        return _overflow(message)
    if reason == "deferred":
        return _deferred(message, given.model)
    if reason == "error":
        return _error(message, given)
    if reason not in ("stop", "length", "toolUse"):
        return AbortedUnasked(message=message)
    if calls := source_calls(message):
        return PlansTools(message=message, calls=calls, truncated=reason == "length")
    return Finished(message=message)


# --- rows -------------------------------------------------------------------------------------------------------


def _cancelled(message: AgentMessage) -> AgentMessage:
    if message.get("stopReason") == "aborted":
        return message
    said = _error_text(message)
    return _normalized(message, "aborted", f"aborted after stop reason {message.get('stopReason')}", said)


def _overflows(message: AgentMessage, limit: int) -> bool:
    match message.get("stopReason"):
        case "error":
            return is_overflow_error(_error_text(message))
        case "length":
            return is_cut_short(message, limit)
        case _:
            return False


def _overflow(message: AgentMessage) -> Overflow:
    if message.get("stopReason") == "error":
        normal = message
    else:
        why = "context window exceeded: the response stopped before its output limit (stop reason length)"
        normal = _normalized(message, "error", why, _error_text(message))
    return Overflow(message=normal, error=_operation_error("context_overflow", normal))


def _deferred(message: AgentMessage, model: ModelIdentity) -> DeferredAnswer | InvalidHandle:
    handle = message.get("deferred")
    if isinstance(handle, dict) and has_valid_handle(message, model):
        return DeferredAnswer(message=message, handle=handle)
    why = "the deferred response has no valid handle (stop reason deferred)"
    normal = _normalized(message, "error", why, _error_text(message))
    return InvalidHandle(message=normal, error=_operation_error("deferred_handle_invalid", normal))


def _error(message: AgentMessage, given: Circumstances) -> Retryable | Failed:
    said = _error_text(message)
    if not is_retryable_error(said):
        return Failed(message=message, error=_operation_error("provider_error", message))
    if given.attempt < given.max_attempts:
        return Retryable(message=message, error_text=said)
    return Failed(message=message, error=_operation_error("retries_exhausted", message))


def _normalized(message: AgentMessage, reason: str, why: str, said: str) -> AgentMessage:
    return {**message, "stopReason": reason, "errorMessage": f"{why}: {said}" if said else why}


def _operation_error(code: str, message: AgentMessage) -> OperationError:
    return OperationError(code=code, message=_error_text(message) or "the provider gave no reason")


def _error_text(message: AgentMessage) -> str:
    said = message.get("errorMessage")
    return said if isinstance(said, str) else ""


# --- predicates -------------------------------------------------------------------------------------------------

_OVERFLOW_WORDS = (
    r"prompt is too long",
    r"exceeds the context window",
    r"context window exceed",
    r"input token count.*exceeds the maximum",
    r"maximum prompt length is \d+",
    r"maximum context length is \d+ tokens",
    r"reduce the length of the messages",
    r"exceeds the available context size",
    r"greater than the context length",
    r"exceeded model token limit",
    r"token limit exceeded",
    r"context[_ ]length[_ ]exceeded",
    r"too many tokens",
)
_AUTHENTICATION_WORDS = (
    r"unauthori[sz]ed",
    r"forbidden",
    r"authentication",
    r"invalid.{0,8}api.?key",
    r"\b40[13]\b",
)
_RETRYABLE_WORDS = (
    r"rate.?limit",
    r"too many requests",
    r"\b429\b",
    r"overloaded",
    r"\b529\b",
    r"\b50[0234]\b",
    r"service.?unavailable",
    r"server.?error",
    r"internal.?error",
    r"network.?error",
    r"connection.?(error|refused|reset|lost)",
    r"fetch failed",
    r"timed?.?out",
    r"time-?out",
)


def _any_of(words: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


_OVERFLOW, _AUTHENTICATION, _RETRYABLE = map(_any_of, (_OVERFLOW_WORDS, _AUTHENTICATION_WORDS, _RETRYABLE_WORDS))


def is_overflow_error(text: str) -> bool:
    """Whether a provider's error text says that the request exceeds the context window. A heuristic (AMB-29)."""
    return _OVERFLOW.search(text) is not None


def is_retryable_error(text: str) -> bool:
    """Whether the error is a rate limit, overload, 5xx, network failure or timeout; never overflow or auth (AMB-27)."""
    if is_overflow_error(text) or _AUTHENTICATION.search(text) is not None:
        return False
    return _RETRYABLE.search(text) is not None


def is_cut_short(message: AgentMessage, limit: int) -> bool:
    """Whether the reported output is below the limit that was sent; unknown output is not. A heuristic (AMB-31)."""
    usage = message.get("usage")
    output = usage.get("output") if isinstance(usage, dict) else None
    return isinstance(output, int | float) and not isinstance(output, bool) and output < limit


def has_valid_handle(message: AgentMessage, model: ModelIdentity) -> bool:
    """Whether a deferred response carries a handle with an id, of the captured model and the response's API (§3.2)."""
    handle = message.get("deferred")
    if not isinstance(handle, dict) or not isinstance(handle.get("id"), str) or not handle["id"]:
        return False
    named = (handle.get("provider"), handle.get("modelId"), handle.get("api"))
    return named == (model.provider, model.model_id, message.get("api"))


# --- arithmetic -------------------------------------------------------------------------------------------------


def backoff_ms(base_delay_ms: int, failed_attempt: int) -> int:
    """The wait after failed attempt k: base * 2^(k-1), at most 2^53-1 (AMB-28)."""
    return min(base_delay_ms << min(failed_attempt - 1, 53), MAX_SAFE_INTEGER)


def not_before_ms(now_ms: int, base_delay_ms: int, failed_attempt: int) -> int:
    """When the next attempt may start, in Unix milliseconds, at most 2^53-1 (AMB-28)."""
    return min(now_ms + backoff_ms(base_delay_ms, failed_attempt), MAX_SAFE_INTEGER)


def intended_output_limit(model: Model, options: StreamOptions) -> int:
    """The output limit in tokens that a request sends: the option ``maxTokens``, else the model's own (AMB-30)."""
    asked = options.get("maxTokens")
    return asked if isinstance(asked, int) and not isinstance(asked, bool) and asked > 0 else model.max_tokens
