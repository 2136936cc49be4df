"""What a response means: the rows in their order, the two heuristics, and the arithmetic of retries."""

from typing import Any

import pytest

from restartpoint.contract import MAX_SAFE_INTEGER, AgentMessage, NormalizedRetryPolicy, RetryPolicy, normalized_retry
from restartpoint.execution import (
    AbortedUnasked,
    Cancelled,
    Circumstances,
    Classification,
    DeferredAnswer,
    Failed,
    Finished,
    InvalidHandle,
    Overflow,
    PlansTools,
    Retryable,
    backoff_ms,
    classify,
    intended_output_limit,
    is_overflow_error,
    is_retryable_error,
    not_before_ms,
)
from tests.harness.execution.stage import MODEL, USAGE, answer

CALL = {"type": "toolCall", "id": "c1", "name": "echo", "arguments": {}}
HANDLE = {"id": "h1", "provider": "acme", "modelId": "m-1", "api": "acme-api"}
OVERFLOW_TEXT = "400: prompt is too long: 9 tokens > 8"


def given(**fields: Any) -> Circumstances:
    return Circumstances(
        **{
            "cancelled": False,
            "attempt": 1,
            "max_attempts": 1,
            "intended_output_limit": 3,
            "model": MODEL.identity,
            **fields,
        }
    )


def failed(text: str, **fields: Any) -> AgentMessage:
    return answer(content=[], stopReason="error", errorMessage=text, **fields)


ROWS: list[tuple[AgentMessage, Circumstances, type]] = [
    (answer(), given(), Finished),
    (answer(stopReason="toolUse", content=[CALL]), given(), PlansTools),
    (answer(stopReason="stop", content=[CALL]), given(), PlansTools),
    (answer(stopReason="toolUse"), given(), Finished),
    (answer(stopReason="length"), given(), Finished),
    (answer(stopReason="length", content=[CALL]), given(), PlansTools),
    (answer(stopReason="length"), given(intended_output_limit=4), Overflow),
    (answer(stopReason="length", content=[CALL]), given(intended_output_limit=4), Overflow),
    (failed(OVERFLOW_TEXT), given(), Overflow),
    (failed(f"503 {OVERFLOW_TEXT}"), given(max_attempts=3), Overflow),
    (failed("503 service unavailable"), given(max_attempts=2), Retryable),
    (failed("503 service unavailable"), given(attempt=2, max_attempts=2), Failed),
    (failed("401 unauthorized"), given(max_attempts=2), Failed),
    (failed("no such model"), given(max_attempts=2), Failed),
    (answer(stopReason="error", content=[CALL]), given(), Failed),
    (answer(stopReason="deferred", deferred=HANDLE), given(), DeferredAnswer),
    (answer(stopReason="deferred", deferred=HANDLE, content=[CALL]), given(), DeferredAnswer),
    (answer(stopReason="deferred"), given(), InvalidHandle),
    (answer(stopReason="aborted"), given(), AbortedUnasked),
    (answer(stopReason="pending"), given(), AbortedUnasked),
    ({}, given(), AbortedUnasked),
    (answer(stopReason="aborted"), given(cancelled=True), Cancelled),
    (answer(stopReason="toolUse", content=[CALL]), given(cancelled=True), Cancelled),
    (failed(OVERFLOW_TEXT), given(cancelled=True), Cancelled),
    (answer(stopReason="deferred", deferred=HANDLE), given(cancelled=True), Cancelled),
    (failed("503"), given(cancelled=True, max_attempts=3), Cancelled),
]


@pytest.mark.covers("RT-3.7-08", "RT-3.7-09", "RT-3.7-10", "RT-3.7-11")
@pytest.mark.parametrize("message, circumstances, expected", ROWS)
def test_the_first_row_that_a_response_meets_decides(
    message: AgentMessage, circumstances: Circumstances, expected: type[Classification]
) -> None:
    assert type(classify(message, circumstances)) is expected


@pytest.mark.covers("RT-3.7-05", "RT-3.7-12")
def test_a_cancelled_response_becomes_aborted_and_says_what_it_was() -> None:
    cut = classify(answer(stopReason="length", content=[CALL]), given(cancelled=True, intended_output_limit=9))
    lost = classify(failed(OVERFLOW_TEXT), given(cancelled=True))

    assert cut.message == answer(stopReason="aborted", content=[CALL], errorMessage="aborted after stop reason length")
    assert lost.message["stopReason"] == "aborted"
    assert lost.message["errorMessage"] == f"aborted after stop reason error: {OVERFLOW_TEXT}"


def test_a_response_that_was_aborted_as_asked_stays_as_it_is() -> None:
    message = answer(stopReason="aborted", errorMessage="Request was aborted")

    assert classify(message, given(cancelled=True)).message is message


@pytest.mark.covers("RT-3.7-06", "RT-3.7-14", "RT-3.7-17")
def test_an_overflow_is_recorded_as_an_error_and_plans_no_tools() -> None:
    cut = classify(answer(stopReason="length", content=[CALL]), given(intended_output_limit=4))
    said = classify(failed(OVERFLOW_TEXT), given())
    genuine = classify(answer(stopReason="length"), given(intended_output_limit=3))

    assert isinstance(cut, Overflow)
    assert (cut.message["stopReason"], cut.message["content"]) == ("error", [CALL])
    assert "stop reason length" in str(cut.message["errorMessage"])
    assert cut.error.code == "context_overflow"
    assert isinstance(said, Overflow)
    assert said.message == failed(OVERFLOW_TEXT)
    assert isinstance(genuine, Finished)


@pytest.mark.parametrize("usage", [None, {}, {"output": None}, {"output": "1"}, {"output": True}, {"output": 3}])
def test_a_length_of_unknown_or_full_output_is_genuine(usage: Any) -> None:
    assert isinstance(classify(answer(stopReason="length", usage=usage), given()), Finished)


def test_a_limit_of_zero_never_means_overflow() -> None:
    empty = {**USAGE, "output": 0}

    assert isinstance(classify(answer(stopReason="length", usage=empty), given(intended_output_limit=0)), Finished)


def test_a_genuine_length_with_calls_plans_them_as_truncated() -> None:
    planned = classify(answer(stopReason="length", content=[CALL]), given())

    assert isinstance(planned, PlansTools)
    assert (planned.truncated, [call.id for call in planned.calls]) == (True, ["c1"])


def test_calls_keep_their_position_in_the_content() -> None:
    content = [{"type": "text", "text": "first"}, CALL, {"type": "text", "text": "then"}, {**CALL, "id": "c2"}]
    planned = classify(answer(stopReason="toolUse", content=content), given())

    assert isinstance(planned, PlansTools)
    assert [(call.source_index, call.id) for call in planned.calls] == [(1, "c1"), (3, "c2")]
    assert not planned.truncated


@pytest.mark.covers("RT-3.7-07")
@pytest.mark.parametrize(
    "handle",
    [
        None,
        "h1",
        {},
        {**HANDLE, "id": ""},
        {**HANDLE, "id": 7},
        {**HANDLE, "provider": "other"},
        {**HANDLE, "modelId": "m-2"},
        {**HANDLE, "api": "other"},
    ],
)
def test_a_deferred_response_without_a_usable_handle_is_an_error(handle: Any) -> None:
    wrong = classify(answer(stopReason="deferred", deferred=handle), given())
    right = classify(answer(stopReason="deferred", deferred=HANDLE), given())

    assert isinstance(wrong, InvalidHandle)
    assert (wrong.message["stopReason"], wrong.error.code) == ("error", "deferred_handle_invalid")
    assert "stop reason deferred" in str(wrong.message["errorMessage"])
    assert isinstance(right, DeferredAnswer)
    assert right.handle == HANDLE


@pytest.mark.parametrize(
    "text, attempt, code",
    [("no such model", 1, "provider_error"), ("503", 2, "retries_exhausted"), ("", 1, "provider_error")],
)
def test_a_final_error_says_whether_attempts_ran_out(text: str, attempt: int, code: str) -> None:
    outcome = classify(failed(text), given(attempt=attempt, max_attempts=2))

    assert isinstance(outcome, Failed)
    assert outcome.error.code == code
    assert outcome.error.message == (text or "the provider gave no reason")


def test_a_retryable_error_carries_the_text_that_the_wait_records() -> None:
    outcome = classify(failed("429 slow down"), given(max_attempts=2))

    assert isinstance(outcome, Retryable)
    assert outcome.error_text == "429 slow down"


OVERFLOWS = [
    "prompt is too long: 213462 tokens > 200000 maximum",
    "Your input exceeds the context window of this model. Please adjust your input and try again.",
    "The input token count (1196265) exceeds the maximum number of tokens allowed (1048575).",
    "This model's maximum prompt length is 131072 but the request contains 537812 tokens",
    "Please reduce the length of the messages or completion.",
    "This endpoint's maximum context length is 4096 tokens. However, you requested about 5000 tokens",
    "the request exceeds the available context size. try increasing it",
    "tokens to keep from the initial prompt is greater than the context length",
    "invalid params, context window exceeds limit (2013)",
    "Your request exceeded model token limit: 262144",
    "context_length_exceeded",
    "CONTEXT LENGTH EXCEEDED",
]
RETRYABLES = [
    "429 Too Many Requests",
    "rate limit reached for requests",
    "rate_limit_error",
    '529 {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}',
    "500 internal server error",
    "502 Bad Gateway",
    "503 Service Unavailable",
    "504",
    "upstream connection refused",
    "connection reset by peer",
    "ConnectionError: connection lost",
    "fetch failed",
    "network error",
    "TimeoutError",
    "request timed out",
    "read timeout",
]
FINALS = [
    "400 invalid request: no such field",
    "401 unauthorized",
    "403 Forbidden: rate limit of this key is zero",
    "invalid x-api-key",
    "authentication_error: 500 characters of key expected",
    "model not found",
    "max_tokens must be below 5000",
    "",
]


@pytest.mark.parametrize("text", OVERFLOWS)
def test_these_errors_mean_that_the_request_did_not_fit(text: str) -> None:
    assert is_overflow_error(text)
    assert not is_retryable_error(f"503 {text}")


@pytest.mark.parametrize("text", RETRYABLES)
def test_these_errors_are_of_the_moment(text: str) -> None:
    assert is_retryable_error(text)
    assert not is_overflow_error(text)


@pytest.mark.parametrize("text", FINALS)
def test_these_errors_are_final(text: str) -> None:
    assert not is_retryable_error(text)
    assert not is_overflow_error(text)


@pytest.mark.parametrize(
    "base, attempt, expected",
    [
        (2000, 1, 2000),
        (2000, 2, 4000),
        (2000, 5, 32_000),
        (0, 10**9, 0),
        (1, 54, MAX_SAFE_INTEGER),
        (1, 53, 2**52),
        (3, 10**9, MAX_SAFE_INTEGER),
        (MAX_SAFE_INTEGER, 1, MAX_SAFE_INTEGER),
        (MAX_SAFE_INTEGER, 2, MAX_SAFE_INTEGER),
    ],
)
def test_the_wait_doubles_and_saturates(base: int, attempt: int, expected: int) -> None:
    assert backoff_ms(base, attempt) == expected
    assert not_before_ms(0, base, attempt) == expected


def test_the_deadline_saturates() -> None:
    assert not_before_ms(1_700_000_000_000, 2000, 3) == 1_700_000_008_000
    assert not_before_ms(1_700_000_000_000, MAX_SAFE_INTEGER, 1) == MAX_SAFE_INTEGER


@pytest.mark.parametrize(
    "policy, attempts",
    [(RetryPolicy(max_retries=3), 4), (RetryPolicy(max_retries=0), 1), (RetryPolicy(enabled=False), 1)],
)
def test_a_retry_policy_is_stored_as_a_number_of_attempts(policy: RetryPolicy, attempts: int) -> None:
    assert normalized_retry(policy) == NormalizedRetryPolicy(max_attempts=attempts, base_delay_ms=2000)


@pytest.mark.parametrize(
    "options, limit", [({}, 64), ({"maxTokens": 8}, 8), ({"maxTokens": 0}, 64), ({"maxTokens": True}, 64)]
)
def test_the_limit_that_is_sent_is_the_option_or_the_models_own(options: Any, limit: int) -> None:
    assert intended_output_limit(MODEL, options) == limit
