"""A setting that is refused changes nothing that can be seen (§0.7)."""

from typing import Any

import pytest

from restartpoint.contract import MAX_SAFE_INTEGER, RetryPolicy
from restartpoint.errors import InvalidOptions
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.stage import Stage


@pytest.fixture
def place(tmp_path: Any) -> Place:
    """Settings are the process's own, so one backend is enough."""
    return MemoryPlace(tmp_path)


WRONG_POLICIES: list[dict[str, Any]] = [
    {field: wrong}
    for field in ("max_retries", "base_delay_ms")
    for wrong in (-1, 1.5, float("nan"), float("inf"), MAX_SAFE_INTEGER + 1, True)
] + [{"max_retries": MAX_SAFE_INTEGER}]


@pytest.mark.covers("ST-0.7-05", "ST-0.7-12")
@pytest.mark.parametrize("wrong", WRONG_POLICIES, ids=str)
async def test_a_retry_policy_that_is_no_safe_count_is_refused_and_the_old_one_stays(
    wrong: dict[str, Any], place: Place, log: Log
) -> None:
    policy = RetryPolicy(enabled=False, max_retries=2, base_delay_ms=7)
    async with Stage(place, [], log=log).open(retry=policy) as harness:
        with pytest.raises(InvalidOptions):
            await harness.set_retry_policy(RetryPolicy(enabled=False, **wrong))
        assert await harness.get_retry_policy() == policy
    stage = Stage(place.another(), [], log=log)
    with pytest.raises(InvalidOptions):
        async with stage.open(retry=RetryPolicy(enabled=False, **wrong)):
            pass


@pytest.mark.covers("ST-0.7-03")
async def test_a_queue_mode_is_all_or_one_at_a_time_and_nothing_else(place: Place, log: Log) -> None:
    async with Stage(place, [], log=log).open() as harness:
        for setter, getter in (
            (harness.set_steering_mode, harness.get_steering_mode),
            (harness.set_follow_up_mode, harness.get_follow_up_mode),
        ):
            await setter("all")
            assert await getter() == "all"
            await setter("one-at-a-time")
            wrong: Any
            for wrong in ("one", "All", "", None, True, 1):
                with pytest.raises(InvalidOptions):
                    await setter(wrong)
            assert await getter() == "one-at-a-time"
