"""Retries, limits and thresholds: arithmetic over unbounded integers (§0.7, §3.7, §3.12)."""

from collections.abc import Callable
from typing import TypeAlias

from ci.prove.contract import proves
from restartpoint_reference.classify import backoff, is_cut_short, normalized_retry, not_before
from restartpoint_reference.shapes import SAFE_INTEGER, Json, Refused
from restartpoint_reference.threshold import should_compact
from restartpoint_reference.vocabulary.messages import Message
from restartpoint_reference.vocabulary.registers import CompactionSettings
from restartpoint_reference.vocabulary.states import RetryPolicy

__all__: list[str] = []

Delay: TypeAlias = Callable[[int, int], int]
Instant: TypeAlias = Callable[[int, int, int], int]

DELAYS = "every base delay >= 0, every attempt >= 1"


def _is_delay(base: int, attempt: int) -> bool:
    return base >= 0 and attempt >= 1


# --- the delay


def _unbounded(base_delay_ms: int, failed_attempt: int) -> int:
    """The delay grows beyond 2^53-1."""
    return base_delay_ms << min(failed_attempt - 1, 64)


@proves(backoff, section="0.7", twin=_unbounded, symbolic=DELAYS, given=_is_delay)
def delay_is_never_beyond_the_safe_integer(delay: Delay, base: int, attempt: int) -> bool:
    """The delay lies between zero and 2^53-1."""
    return 0 <= delay(base, attempt) <= SAFE_INTEGER


def _doubling_too_early(base_delay_ms: int, failed_attempt: int) -> int:
    """The first retry already waits for twice the base delay."""
    return min(base_delay_ms << min(failed_attempt, 64), SAFE_INTEGER)


@proves(backoff, section="0.7", twin=_doubling_too_early, symbolic=DELAYS, given=_is_delay)
def delay_starts_at_the_base_and_doubles(delay: Delay, base: int, attempt: int) -> bool:
    """The first delay is the base delay, each later one twice the one before, as long as that is safe."""
    first = delay(base, 1) == min(base, SAFE_INTEGER)
    return first and delay(base, attempt + 1) == min(2 * delay(base, attempt), SAFE_INTEGER)


def _wrapping_exponent(base_delay_ms: int, failed_attempt: int) -> int:
    """The exponent wraps at 64 instead of staying there."""
    return min(base_delay_ms << ((failed_attempt - 1) % 64), SAFE_INTEGER)


@proves(backoff, section="0.7", twin=_wrapping_exponent, symbolic=DELAYS, given=_is_delay)
def delay_never_shrinks_with_the_attempt(delay: Delay, base: int, attempt: int) -> bool:
    """A later attempt waits at least as long."""
    return delay(base, attempt) <= delay(base, attempt + 1)


def _wrapping_delay(base_delay_ms: int, failed_attempt: int) -> int:
    """The delay wraps at 2^53 instead of staying at 2^53-1."""
    return (base_delay_ms << min(failed_attempt - 1, 64)) % (SAFE_INTEGER + 1)


def _are_delays(base: int, more: int, attempt: int) -> bool:
    return base >= 0 and more >= 0 and attempt >= 1


@proves(
    backoff,
    section="0.7",
    twin=_wrapping_delay,
    symbolic="every two base delays >= 0 in order, every attempt >= 1",
    given=_are_delays,
)
def delay_never_shrinks_with_the_base(delay: Delay, base: int, more: int, attempt: int) -> bool:
    """A greater base delay waits at least as long."""
    return delay(base, attempt) <= delay(base + more, attempt)


def _without_the_clock(_: int, base_delay_ms: int, failed_attempt: int) -> int:
    """The delay is taken for the time at which it ends."""
    return backoff(base_delay_ms, failed_attempt)


def _is_instant(now: int, base: int, attempt: int) -> bool:
    return 0 <= now <= SAFE_INTEGER and base >= 0 and attempt >= 1


@proves(
    not_before,
    section="0.7",
    twin=_without_the_clock,
    symbolic=f"every time between 0 and 2^53-1, {DELAYS}",
    given=_is_instant,
)
def no_retry_is_due_in_the_past(instant: Instant, now: int, base: int, attempt: int) -> bool:
    """The time of the next attempt is not before now, and never beyond 2^53-1."""
    return now <= instant(now, base, attempt) <= SAFE_INTEGER


# --- settings


def _counting_retries_only(policy: Json) -> RetryPolicy:
    """As many attempts as retries: the first attempt is not counted."""
    right = normalized_retry(policy)
    return RetryPolicy(max_attempts=max(right.max_attempts - 1, 1), base_delay_ms=right.base_delay_ms)


@proves(
    normalized_retry,
    section="0.7",
    twin=_counting_retries_only,
    symbolic="every integer for both numbers, enabled or not",
    fixed="the three keys; values of other types",
    quick=True,
)
def retry_policy_is_normalized(
    normalized: Callable[[Json], RetryPolicy], enabled: bool, retries: int, delay: int
) -> bool:
    """The stored policy has one attempt more than retries, one when disabled; unsafe or negative counts are refused."""
    safe = 0 <= retries < SAFE_INTEGER and 0 <= delay <= SAFE_INTEGER
    try:
        made = normalized({"enabled": enabled, "maxRetries": retries, "baseDelayMs": delay})
    except Refused:
        return not safe
    return safe and made.max_attempts == (retries + 1 if enabled else 1) and made.base_delay_ms == delay


def _compacting_at_the_reserve(context_tokens: int, context_window: int, settings: CompactionSettings) -> bool:
    """A context that just leaves the reserve free is compacted already."""
    left = context_window - settings.reserve_tokens
    return settings.enabled and context_window > 0 and context_tokens >= left


@proves(
    should_compact,
    section="3.12",
    twin=_compacting_at_the_reserve,
    symbolic="every integer for the tokens, the window and the reserve, enabled or not",
    fixed="the tokens to keep, which it does not read",
    quick=True,
)
def context_is_compacted_exactly_when_it_eats_into_the_reserve(
    compacts: Callable[[int, int, CompactionSettings], bool], tokens: int, window: int, reserve: int, enabled: bool
) -> bool:
    """It compacts if and only if it is enabled, the window is known, and tokens and reserve exceed it."""
    settings = CompactionSettings(enabled=enabled, reserve_tokens=reserve, keep_recent_tokens=0)
    return compacts(tokens, window, settings) == (enabled and window > 0 and tokens + reserve > window)


def _cut_at_the_limit(response: Message, intended_output_limit: int) -> bool:
    """An answer that used exactly its limit counts as cut short."""
    return is_cut_short(response, intended_output_limit + 1)


@proves(
    is_cut_short,
    section="3.7",
    twin=_cut_at_the_limit,
    symbolic="every integer for the output and the limit; output reported or not",
    fixed="the rest of the response",
    quick=True,
)
def answer_is_cut_short_only_below_its_limit(
    cut: Callable[[Message, int], bool], reported: bool, output: int, limit: int
) -> bool:
    """An answer is cut short if and only if it reports an output below the limit that was sent."""
    usage: Json = {"output": output} if reported else {}
    return cut({"role": "assistant", "usage": usage}, limit) == (reported and output < limit)
