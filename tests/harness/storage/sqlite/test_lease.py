"""The writer lease: who may open, commit and release, by whose clock, and what the renewing thread does."""

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from restartpoint.contract import LANE_LEAF, EntryScan
from restartpoint.errors import CommitRefused, InvalidOptions, LeaseHeld, LeaseLost
from restartpoint.seams import IdGenerator
from restartpoint.storage.sqlite import InlineHop, LeaseSettings, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, Connections, created, opened, raw, rows
from tests.harness.storage.stage import METADATA, HeldClock, said

TTL = LeaseSettings().ttl_ms


def lease(path: Path) -> tuple[str, int, int]:
    ((owner_id, fence, expires_at_ms),) = rows(path, "SELECT owner_id, fence, expires_at_ms FROM writer_lease")
    return owner_id, fence, expires_at_ms


@pytest.mark.covers("ST-1.7-50", "ST-1.7-61")
async def test_opening_takes_the_lease_and_closing_removes_it(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        first, fence, expires_at_ms = lease(path)
        assert (fence, expires_at_ms) == (1, clock.now + 30_000)
    assert rows(path, "SELECT * FROM writer_lease") == []
    async with opened(path, clock):
        second, fence, _ = lease(path)
        assert fence == 1
        assert second != first


async def test_the_owner_s_id_comes_from_the_injected_generator(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        pass
    ids = IdGenerator(clock, bytes)
    storage = await SqliteStorage.open(path, clock=clock, lease=BY_HAND, ids=ids)
    assert lease(path)[0] == IdGenerator(clock, bytes).next()
    await storage.close()


@pytest.mark.covers("ST-0.6-03")
async def test_an_unexpired_lease_is_respected_and_named(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        owner_id, _, expires_at_ms = lease(path)
        clock.now += TTL - 1
        with pytest.raises(LeaseHeld) as held:
            await SqliteStorage.open(path, clock=clock, lease=BY_HAND)
        assert (held.value.owner_id, held.value.expires_at_ms) == (owner_id, expires_at_ms)


@pytest.mark.covers("ST-1.7-51", "ST-1.7-62")
async def test_an_owner_whose_expired_lease_was_taken_writes_and_releases_nothing(path: Path, clock: HeldClock) -> None:
    old = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND)
    clock.now += TTL
    async with opened(path, clock) as new:
        taken = lease(path)
        assert taken[1] == 2
        with pytest.raises(LeaseLost) as lost:
            await old.commit(said("stale", "e1"))
        clock.now += 1
        with pytest.raises(LeaseLost) as again:
            await old.commit(said("stale", "e1"))
        assert again.value is lost.value
        await old.close()
        assert lease(path) == taken
        await new.commit(said("e2", "e1"))
        assert [entry.id for entry in await new.scan_entries(EntryScan())] == ["e1", "e2"]


async def test_an_expired_lease_that_nobody_took_still_serves_its_owner(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        clock.now += 10 * TTL
        await storage.commit(said("e1"))
        assert lease(path)[2] == clock.now + TTL


async def test_every_commit_extends_the_lease(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        for number in range(3):
            clock.now += TTL - 1
            await storage.commit(said(f"e{number}"))
            assert lease(path)[2] == clock.now + TTL


async def test_a_refused_commit_changes_no_lease(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        before = lease(path)
        clock.now += 5
        with pytest.raises(Exception, match="taken"):
            await storage.commit(said("e1"))
        assert lease(path) == before


async def test_somebody_may_renew_the_lease_by_hand(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        clock.now += 7
        await storage.renew_lease()
        assert lease(path)[2] == clock.now + TTL
        with raw(path) as thief:
            thief.execute("UPDATE writer_lease SET owner_id = 'thief'")
        with pytest.raises(LeaseLost):
            await storage.renew_lease()
        with pytest.raises(LeaseLost):
            await storage.commit(said("e1"))


async def test_reading_takes_no_lease_and_cannot_write(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=said("e1")) as owner:
        before = lease(path)
        async with opened(path, clock, read_only=True) as reader:
            assert lease(path) == before
            await owner.commit(said("e2", "e1"))
            assert [entry.id for entry in await reader.scan_entries(EntryScan())] == ["e1", "e2"]
            with pytest.raises(CommitRefused):
                await reader.commit(said("e3", "e2"))
            with pytest.raises(CommitRefused):
                await reader.renew_lease()
        assert lease(path)[:2] == before[:2]


@pytest.mark.parametrize("renew_ms", [0, -1, 30_000, 40_000])
def test_a_renewal_that_comes_too_late_is_refused(renew_ms: int) -> None:
    with pytest.raises(InvalidOptions):
        LeaseSettings(renew_ms=renew_ms)


# --- the thread


class WatchedClock(HeldClock):
    """Tells when another thread than the test's reads it."""

    def __init__(self) -> None:
        super().__init__()
        self.own = threading.get_ident()
        self.renewals = threading.Semaphore(0)

    def now_ms(self) -> int:
        if threading.current_thread().name == "restartpoint-lease":
            self.renewals.release()
        return super().now_ms()

    def wait_for_renewals(self, number: int) -> None:
        for _ in range(number):
            assert self.renewals.acquire(timeout=60)

    def wait_until_renewed(self) -> None:
        """Return when a renewal that read the present time is complete, which the reading after it shows."""
        while self.renewals.acquire(blocking=False):
            pass
        self.wait_for_renewals(2)


@pytest.fixture
def watched() -> Iterator[WatchedClock]:
    yield WatchedClock()
    assert "restartpoint-lease" not in {thread.name for thread in threading.enumerate()}


async def test_one_thread_renews_the_lease_while_nothing_happens(path: Path, watched: WatchedClock) -> None:
    quickly = LeaseSettings(renew_ms=1)
    async with created(path, watched, lease=quickly, hop=InlineHop()) as storage:
        assert [thread.name for thread in threading.enumerate()].count("restartpoint-lease") == 1
        watched.now += TTL - 1
        watched.wait_until_renewed()  # the event loop stands still all the while
        assert lease(path)[2] == watched.now + TTL
        await storage.commit(said("e1"))


async def test_the_thread_survives_a_busy_database(path: Path, watched: WatchedClock, connections: Connections) -> None:
    quickly = LeaseSettings(renew_ms=1)
    async with created(path, watched, lease=quickly, hop=InlineHop()):
        watched.wait_for_renewals(2)
        connections.last.execute("PRAGMA busy_timeout = 0")
        with raw(path) as other:
            other.execute("PRAGMA busy_timeout = 60000")
            other.execute("BEGIN IMMEDIATE")
            refused = connections.take()
            while not refused.count("BEGIN IMMEDIATE") > 2:
                refused += connections.take()
            other.execute("COMMIT")
        watched.now += 5
        watched.wait_until_renewed()
        assert lease(path)[2] == watched.now + TTL


async def test_the_thread_ends_when_the_lease_is_lost(path: Path, watched: WatchedClock) -> None:
    async with created(path, watched, lease=LeaseSettings(renew_ms=1), hop=InlineHop()) as storage:
        (thread,) = [thread for thread in threading.enumerate() if thread.name == "restartpoint-lease"]
        assert thread.daemon
        with raw(path) as thief:
            thief.execute("PRAGMA busy_timeout = 60000")
            thief.execute("UPDATE writer_lease SET owner_id = 'thief'")
        thread.join(timeout=60)
        assert not thread.is_alive()
        with pytest.raises(LeaseLost):
            await storage.commit(said("e1"))


async def test_without_background_there_is_no_thread(path: Path, watched: WatchedClock) -> None:
    async with created(path, watched, lease=BY_HAND) as storage:
        assert "restartpoint-lease" not in {thread.name for thread in threading.enumerate()}
        assert await storage.get_register(LANE_LEAF, "main") is not None
