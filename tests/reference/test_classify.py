"""The classification order and the arithmetic of retries (§3.7, §0.7)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint_reference import Json, JsonObject, Refused
from restartpoint_reference.classify import (
    Circumstances,
    Verdict,
    backoff,
    classify,
    is_retryable,
    normalized_retry,
    not_before,
    says_overflow,
)
from restartpoint_reference.shapes import SAFE_INTEGER
from restartpoint_reference.vocabulary.registers import ModelIdentity
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.walk import assistant, call, text

GIVEN = Circumstances(
    cancelled=False,
    attempt=1,
    max_attempts=3,
    intended_output_limit=100,
    model=ModelIdentity(provider="acme", model_id="m-1"),
)
CANCELLED = replace(GIVEN, cancelled=True)
LAST = replace(GIVEN, attempt=3)
HANDLE: JsonObject = {"id": "job", "provider": "acme", "modelId": "m-1", "api": "scripted"}
CALL = call("t1", "read")
NO_USAGE: JsonObject = {**assistant(stop="length"), "usage": {}}


def deferred(**handle: Json) -> JsonObject:
    return {**assistant(stop="deferred"), "deferred": {**HANDLE, **handle}}


TABLE: list[tuple[JsonObject, Circumstances, Verdict]] = [
    (assistant(stop="error", error="prompt is too long"), CANCELLED, Verdict.CANCELLED),
    (assistant(CALL, stop="toolUse"), CANCELLED, Verdict.CANCELLED),
    (deferred(), CANCELLED, Verdict.CANCELLED),
    (assistant(stop="aborted"), CANCELLED, Verdict.CANCELLED),
    (assistant(stop="error", error="prompt is too long: 429"), GIVEN, Verdict.OVERFLOW),
    (assistant(CALL, stop="length", output=99), GIVEN, Verdict.OVERFLOW),
    (assistant(stop="length", output=0), GIVEN, Verdict.OVERFLOW),
    (assistant(stop="length", output=100), GIVEN, Verdict.MAY_FINISH),
    (assistant(CALL, stop="length", output=100), GIVEN, Verdict.TOOLS),
    (assistant(stop="length", output=7), replace(GIVEN, intended_output_limit=0), Verdict.MAY_FINISH),
    (NO_USAGE, GIVEN, Verdict.MAY_FINISH),
    (deferred(), GIVEN, Verdict.DEFERRED),
    (deferred(id=""), GIVEN, Verdict.INVALID_DEFERRED),
    (deferred(modelId="m-2"), GIVEN, Verdict.INVALID_DEFERRED),
    (deferred(provider="other"), GIVEN, Verdict.INVALID_DEFERRED),
    (deferred(api="other"), GIVEN, Verdict.INVALID_DEFERRED),
    (assistant(stop="deferred"), GIVEN, Verdict.INVALID_DEFERRED),
    (assistant(stop="error", error="overloaded"), GIVEN, Verdict.RETRY),
    (assistant(stop="error", error="overloaded"), LAST, Verdict.EXHAUSTED),
    (assistant(stop="error", error="401 overloaded"), GIVEN, Verdict.FAILED),
    (assistant(stop="error"), GIVEN, Verdict.FAILED),
    (assistant(CALL, stop="error", error="overloaded"), GIVEN, Verdict.RETRY),
    (assistant(CALL, stop="toolUse"), GIVEN, Verdict.TOOLS),
    (assistant(text("x"), CALL), GIVEN, Verdict.TOOLS),
    (assistant(stop="toolUse"), GIVEN, Verdict.MAY_FINISH),
    (assistant(text("x")), GIVEN, Verdict.MAY_FINISH),
    (assistant(stop="aborted"), GIVEN, Verdict.CORRUPT),
    (assistant(stop="pending"), GIVEN, Verdict.CORRUPT),
]


@pytest.mark.covers("RT-3.7-04", "RT-3.7-08", "RT-3.7-09", "RT-3.7-10")
@pytest.mark.parametrize("response, given_facts, verdict", TABLE)
def test_a_response_meets_the_first_row_that_fits(
    response: JsonObject, given_facts: Circumstances, verdict: Verdict
) -> None:
    assert classify(response, given_facts) is verdict


@pytest.mark.covers("RT-3.7-11")
def test_an_error_that_is_overflow_and_retryable_is_overflow() -> None:
    both = "429: maximum context length is 8000 tokens"
    assert classify(assistant(stop="error", error=both), GIVEN) is Verdict.OVERFLOW
    assert not is_retryable(both)


@pytest.mark.parametrize(
    "error, overflow, retryable",
    [
        ("Rate limit reached", False, True),
        ("HTTP 503 Service Unavailable", False, True),
        ("connection reset by peer", False, True),
        ("request timed out", False, True),
        ("fetch failed", False, True),
        ("1503 widgets", False, False),
        ("invalid x-api-key", False, False),
        ("403 forbidden", False, False),
        ("context_length_exceeded", True, False),
        ("Input token count (9) exceeds the maximum", True, False),
        ("", False, False),
    ],
)
@pytest.mark.covers("AMB-27")
def test_error_texts_are_told_apart(error: str, overflow: bool, retryable: bool) -> None:
    assert (says_overflow(error), is_retryable(error)) == (overflow, retryable)


@given(
    reason=st.sampled_from(["stop", "length", "toolUse", "error", "aborted", "deferred", "pending"]),
    error=st.none() | st.text() | st.sampled_from(["overloaded", "too many tokens"]),
    calls=st.booleans(),
    output=st.integers(0, 200),
    cancelled=st.booleans(),
    attempt=st.integers(1, 4),
)
def test_the_classification_is_total(
    reason: str, error: str | None, calls: bool, output: int, cancelled: bool, attempt: int
) -> None:
    response = assistant(*([CALL] if calls else []), stop=reason, error=error, output=output)
    found = classify(response, replace(GIVEN, cancelled=cancelled, attempt=attempt))
    assert (found is Verdict.CANCELLED) == cancelled
    assert (found is Verdict.CORRUPT) == (not cancelled and reason in ("aborted", "pending"))


@pytest.mark.covers("ST-0.7-04", "RT-3.2-20")
@given(enabled=st.booleans(), retries=st.integers(0, SAFE_INTEGER - 1), delay=st.integers(0, SAFE_INTEGER))
def test_a_retry_policy_is_normalised_to_attempts(enabled: bool, retries: int, delay: int) -> None:
    policy: JsonObject = {"enabled": enabled, "maxRetries": retries, "baseDelayMs": delay}
    attempts = retries + 1 if enabled else 1
    assert normalized_retry(policy) == RetryPolicy(max_attempts=attempts, base_delay_ms=delay)


@pytest.mark.parametrize("value", [-1, 1.5, 1.0, float("nan"), float("inf"), 2**53, True, None, "3"])
@pytest.mark.parametrize("key", ["maxRetries", "baseDelayMs"])
@pytest.mark.covers("ST-0.7-12")
def test_a_setting_that_is_no_safe_count_is_refused(key: str, value: Json) -> None:
    with pytest.raises(Refused) as refused:
        normalized_retry({"enabled": True, "maxRetries": 1, "baseDelayMs": 1, key: value})
    assert refused.value.path == key


def test_one_attempt_more_than_the_retries_must_stay_safe() -> None:
    with pytest.raises(Refused):
        normalized_retry({"enabled": False, "maxRetries": SAFE_INTEGER, "baseDelayMs": 1})


@pytest.mark.covers("ST-0.7-06")
@given(base=st.integers(0, SAFE_INTEGER), attempt=st.integers(1, 10**9), now=st.integers(0, SAFE_INTEGER))
def test_delays_double_are_monotone_and_saturate(base: int, attempt: int, now: int) -> None:
    delay, longer = backoff(base, attempt), backoff(base, attempt + 1)
    assert 0 <= delay <= longer <= SAFE_INTEGER
    assert longer == min(2 * delay, SAFE_INTEGER) or delay == SAFE_INTEGER
    assert backoff(base, 1) == base
    assert not_before(now, base, attempt) == min(now + delay, SAFE_INTEGER)
