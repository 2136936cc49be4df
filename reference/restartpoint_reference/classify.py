"""What a settled response means, and the arithmetic of retries (§3.7, §0.7)."""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from restartpoint_reference.shapes import (
    SAFE_INTEGER,
    UNSET,
    Json,
    Refused,
    Unset,
    read_boolean,
    read_integer,
    same,
)
from restartpoint_reference.vocabulary.messages import Message, StopReason, error_message, source_calls, stop_reason
from restartpoint_reference.vocabulary.registers import ModelIdentity
from restartpoint_reference.vocabulary.states import RetryPolicy

CONTEXT_LIMIT: Final = re.compile(
    r"prompt is too long|exceeds the context window|input token count.*exceeds the maximum"
    r"|maximum prompt length is \d+|reduce the length of the messages|maximum context length is \d+ tokens"
    r"|exceeds the available context size|greater than the context length|context window exceed"
    r"|exceeded model token limit|context[_ ]length[_ ]exceeded|too many tokens|token limit exceeded",
    re.IGNORECASE,
)
"""Errors that mean the request did not fit: a heuristic, and the only source of that meaning (decision AMB-29)."""

RETRYABLE: Final = re.compile(
    r"overloaded|rate.?limit|too many requests|\b429\b|\b50[0234]\b|\b529\b|service.?unavailable|server.?error"
    r"|internal.?error|network.?error|connection.?(error|refused|reset|lost)|fetch failed|timed?.?out|time-?out",
    re.IGNORECASE,
)
"""Errors of the moment: rate limits, overload, 5xx, network, timeouts (decision AMB-27)."""

AUTHENTICATION: Final = re.compile(
    r"unauthori[sz]ed|forbidden|\b40[13]\b|invalid.{0,8}api.?key|authentication", re.IGNORECASE
)
"""Errors that no retry mends (decision AMB-27)."""


class Verdict(StrEnum):
    """What a settlement does with a response; the order is that of §3.7."""

    CANCELLED = "cancelled"
    OVERFLOW = "overflow"
    DEFERRED = "deferred"
    INVALID_DEFERRED = "invalid_deferred"
    RETRY = "retry"
    EXHAUSTED = "exhausted"
    FAILED = "failed"
    TOOLS = "tools"
    MAY_FINISH = "may_finish"
    CORRUPT = "corrupt"
    """Aborted although nobody asked, or not settled: unreachable in a correct runtime (§3.7)."""


@dataclass(frozen=True, kw_only=True)
class Circumstances:
    """What the classification knows besides the response: the control and the pending attempt."""

    cancelled: bool
    attempt: int
    max_attempts: int
    intended_output_limit: int
    model: ModelIdentity


def classify(response: Message, given: Circumstances) -> Verdict:
    """The first row of the classification order that the response meets; total (§3.7)."""
    if given.cancelled:
        return Verdict.CANCELLED
    if is_overflow(response, given.intended_output_limit):
        return Verdict.OVERFLOW
    match stop_reason(response):
        case StopReason.DEFERRED:
            return Verdict.DEFERRED if has_valid_handle(response, given.model) else Verdict.INVALID_DEFERRED
        case StopReason.ERROR if is_retryable(error_message(response)):
            return Verdict.RETRY if given.attempt < given.max_attempts else Verdict.EXHAUSTED
        case StopReason.ERROR:
            return Verdict.FAILED
        case StopReason.ABORTED | StopReason.PENDING:
            return Verdict.CORRUPT
        case StopReason.STOP | StopReason.LENGTH | StopReason.TOOL_USE:
            return Verdict.TOOLS if source_calls(response) else Verdict.MAY_FINISH


def is_overflow(response: Message, intended_output_limit: int) -> bool:
    """Whether the request did not fit: an error that says so, or an answer cut before its limit (§3.7). A heuristic."""
    match stop_reason(response):
        case StopReason.ERROR:
            return says_overflow(error_message(response))
        case StopReason.LENGTH:
            return is_cut_short(response, intended_output_limit)
        case _:
            return False


def says_overflow(error: str) -> bool:
    """Whether the error text matches the context-limit patterns."""
    return CONTEXT_LIMIT.search(error) is not None


def is_cut_short(response: Message, intended_output_limit: int) -> bool:
    """Whether the reported output is below the limit that was sent; unknown output is not (decision AMB-31)."""
    usage = response.get("usage")
    output = usage.get("output") if isinstance(usage, dict) else None
    if isinstance(output, bool) or not isinstance(output, int | float):
        return False
    return output < intended_output_limit


def is_retryable(error: str) -> bool:
    """Whether a later attempt may succeed; never for overflow or authentication (decision AMB-27)."""
    if says_overflow(error) or AUTHENTICATION.search(error) is not None:
        return False
    return RETRYABLE.search(error) is not None


def has_valid_handle(response: Message, model: ModelIdentity) -> bool:
    """Whether a deferred response carries a handle with an id, of the captured model and the response's API (§3.2)."""
    handle = response.get("deferred")
    if not isinstance(handle, dict) or not isinstance(handle.get("id"), str) or not handle["id"]:
        return False
    named = (handle.get("provider"), handle.get("modelId"), handle.get("api"))
    return named == (model.provider, model.model_id, response.get("api"))


def handles_are_equal(one: Json | Unset, other: Json | Unset) -> bool:
    """Whether both are present and equal field by field, whatever the order of keys (decision AMB-35); total."""
    return one is not UNSET and other is not UNSET and same(one, other)


def safe_count(value: Json, name: str) -> int:
    """A finite non-negative safe integer (decision ST-0.7-12); raises ``Refused`` naming the setting otherwise."""
    try:
        count = read_integer(value)
    except Refused as refused:
        raise refused.under(name) from None
    if count < 0:
        raise Refused("not negative", name)
    return count


def normalized_retry(policy: Json) -> RetryPolicy:
    """The stored form ``{maxAttempts, baseDelayMs}`` of a public ``{enabled, maxRetries, baseDelayMs}`` (§0.7)."""
    if not isinstance(policy, dict) or set(policy) != {"enabled", "maxRetries", "baseDelayMs"}:
        raise Refused("expected enabled, maxRetries and baseDelayMs")
    enabled = read_boolean(policy["enabled"])
    retries, delay = safe_count(policy["maxRetries"], "maxRetries"), safe_count(policy["baseDelayMs"], "baseDelayMs")
    if retries + 1 > SAFE_INTEGER:
        raise Refused("maxRetries + 1 must stay safe", "maxRetries")
    return RetryPolicy(max_attempts=retries + 1 if enabled else 1, base_delay_ms=delay)


def backoff(base_delay_ms: int, failed_attempt: int) -> int:
    """The delay after the k-th failed attempt: base x 2^(k-1) ms, saturating at 2^53-1 (decision AMB-28)."""
    exponent = min(failed_attempt - 1, 64)
    return min(base_delay_ms << exponent, SAFE_INTEGER)


def not_before(now_ms: int, base_delay_ms: int, failed_attempt: int) -> int:
    """The time in Unix milliseconds before which no next attempt starts, saturating at 2^53-1 (decision AMB-28)."""
    return min(now_ms + backoff(base_delay_ms, failed_attempt), SAFE_INTEGER)
