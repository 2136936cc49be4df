"""Settings are checked before anyone sees them, and option patches leave the original alone."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import (
    MAX_SAFE_INTEGER,
    UNSET,
    CompactionSettings,
    JsonObject,
    RetryPolicy,
    check_compaction_settings,
    check_retry_policy,
    encode_json,
    normalized_retry,
    patched_options,
)
from restartpoint.errors import InvalidOptions

WRONG_COUNTS: list[Any] = [-1, 1.5, True, None, "1", float("nan"), MAX_SAFE_INTEGER + 1]


@pytest.mark.covers("ST-0.7-12")
@pytest.mark.parametrize("count", WRONG_COUNTS)
@pytest.mark.parametrize("field", ["max_retries", "base_delay_ms"])
def test_a_retry_number_must_be_a_safe_integer_that_is_not_negative(field: str, count: Any) -> None:
    with pytest.raises(InvalidOptions, match=f"retry.{field}"):
        check_retry_policy(RetryPolicy(**{field: count}))


@pytest.mark.covers("ST-0.7-07", "ST-0.7-12")
@pytest.mark.parametrize("count", WRONG_COUNTS)
@pytest.mark.parametrize("field", ["reserve_tokens", "keep_recent_tokens"])
def test_a_token_count_must_be_a_safe_integer_that_is_not_negative(field: str, count: Any) -> None:
    with pytest.raises(InvalidOptions, match=f"compaction.{field}"):
        check_compaction_settings(CompactionSettings(**{field: count}))


def test_the_limits_themselves_are_allowed_and_one_more_attempt_must_be_safe() -> None:
    check_retry_policy(RetryPolicy(max_retries=0, base_delay_ms=0))
    check_retry_policy(RetryPolicy(max_retries=MAX_SAFE_INTEGER - 1, base_delay_ms=MAX_SAFE_INTEGER))
    check_compaction_settings(CompactionSettings(reserve_tokens=0, keep_recent_tokens=MAX_SAFE_INTEGER))

    with pytest.raises(InvalidOptions):
        check_retry_policy(RetryPolicy(max_retries=MAX_SAFE_INTEGER))


@pytest.mark.covers("ST-0.7-04")
@given(enabled=st.booleans(), retries=st.integers(0, MAX_SAFE_INTEGER - 1), delay=st.integers(0, MAX_SAFE_INTEGER))
def test_a_retry_policy_is_stored_as_the_number_of_attempts_in_all(enabled: bool, retries: int, delay: int) -> None:
    policy = RetryPolicy(enabled=enabled, max_retries=retries, base_delay_ms=delay)
    check_retry_policy(policy)
    stored = normalized_retry(policy)

    assert (stored.max_attempts, stored.base_delay_ms) == (retries + 1 if enabled else 1, delay)
    assert 1 <= stored.max_attempts <= MAX_SAFE_INTEGER
    assert encode_json(stored) == b'{"maxAttempts":%d,"baseDelayMs":%d}' % (stored.max_attempts, delay)


PATCHES: list[tuple[JsonObject, Any, JsonObject]] = [
    ({"a": 1}, {}, {"a": 1}),
    ({"a": 1}, {"a": 2, "b": None}, {"a": 2, "b": None}),
    ({"a": 1, "b": 2}, {"a": UNSET, "c": UNSET}, {"b": 2}),
    ({"headers": {"x": "1", "y": "2"}}, {"headers": {"x": UNSET, "z": "3"}}, {"headers": {"y": "2", "z": "3"}}),
    ({}, {"headers": {"x": UNSET, "z": "3"}}, {"headers": {"z": "3"}}),
    ({"headers": None}, {"metadata": {"m": 1}, "headers": {"x": "1"}}, {"headers": {"x": "1"}, "metadata": {"m": 1}}),
    ({"headers": {"x": "1"}}, {"headers": UNSET}, {}),
    ({"headers": {"x": "1"}}, {"headers": None}, {"headers": None}),
    ({"nested": {"x": 1}}, {"nested": {"y": 2}}, {"nested": {"y": 2}}),
]


@pytest.mark.parametrize("options, patch, expected", PATCHES)
def test_a_patch_replaces_fields_and_merges_headers_and_metadata_by_key(
    options: JsonObject, patch: Any, expected: JsonObject
) -> None:
    before = repr(options)

    assert patched_options(options, patch) == expected
    assert repr(options) == before
