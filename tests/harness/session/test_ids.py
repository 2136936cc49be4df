"""Ids are UUIDv7: time first, chance behind it, both injected."""

import uuid

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.seams import IdGenerator, timestamp_of
from tests.harness.session.stage import StandingClock, counted_ids


@pytest.mark.covers("ST-1.1-02", "ST-1.2-01", "ST-1.2-02")
@given(st.integers(0, 2**48 - 1), st.binary(min_size=10, max_size=10))
def test_an_id_is_a_uuid_of_version_7_that_shows_its_time(now: int, chance: bytes) -> None:
    minted = IdGenerator(StandingClock(now), lambda size: chance[:size]).next()
    parsed = uuid.UUID(minted)
    assert str(parsed) == minted
    assert (parsed.version, parsed.variant) == (7, uuid.RFC_4122)
    assert parsed.int >> 80 == now == timestamp_of(minted)


@given(st.binary(min_size=10, max_size=10), st.binary(min_size=10, max_size=10))
def test_seventy_four_bits_are_chance(one: bytes, other: bytes) -> None:
    used = (0xFFF << 68) | ((1 << 62) - 1)

    def drawn(chance: bytes) -> int:
        return int.from_bytes(chance, "big") & used

    ids = [IdGenerator(StandingClock(), lambda _, chance=chance: chance).next() for chance in (one, other)]  # type: ignore[misc]
    assert (ids[0] == ids[1]) is (drawn(one) == drawn(other))


@pytest.mark.covers("ST-1.2-04")
def test_a_follower_shares_its_leaders_time_and_nothing_else() -> None:
    ids = counted_ids(StandingClock())
    leader, follower, other = ids.next(), ids.next(5), ids.next(5)
    assert timestamp_of(follower) == timestamp_of(other) == 5 != timestamp_of(leader)
    assert follower != other


def test_later_ids_sort_later() -> None:
    clock = StandingClock()
    ids = IdGenerator(clock)
    minted = []
    for _ in range(50):
        minted.append(ids.next())
        clock.now += 1
    assert sorted(minted) == minted


@pytest.mark.covers("ST-1.2-11")
def test_ids_of_one_millisecond_are_unique() -> None:
    ids = IdGenerator(StandingClock())
    assert len({ids.next() for _ in range(100_000)}) == 100_000


def test_equal_clocks_and_equal_chance_mint_equal_ids() -> None:
    one, other = counted_ids(StandingClock()), counted_ids(StandingClock())
    assert [one.next() for _ in range(5)] == [other.next() for _ in range(5)]
