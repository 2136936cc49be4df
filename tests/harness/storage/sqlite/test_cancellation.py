"""A cancelled caller leaves no transaction open and no commit undecided, however it was cancelled and when."""

import asyncio
import threading
from collections.abc import Awaitable, Callable
from pathlib import Path

import anyio
import pytest

from restartpoint.contract import EntryScan
from restartpoint.errors import StorageClosed
from restartpoint.seams import FaultPoint
from restartpoint.storage.sqlite import LeaseSettings, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, Connections, created, opened, rows
from tests.harness.storage.stage import METADATA, HeldClock, said


class Parked:
    """Holds the connection's thread at a fault point until the test lets it go on."""

    def __init__(self, point: FaultPoint) -> None:
        self.point = point
        self.arrived = threading.Event()
        self.go = threading.Event()

    def reach(self, point: FaultPoint) -> None:
        if point == self.point and not self.arrived.is_set():
            self.arrived.set()
            assert self.go.wait(timeout=60)

    async def wait(self) -> None:
        """Return when the thread is parked, without holding up the event loop."""
        assert await anyio.to_thread.run_sync(lambda: self.arrived.wait(timeout=60))

    async def wait_until_queued(self) -> None:
        """Return when every other task waits, which is when the hop has what it was handed."""
        await anyio.wait_all_tasks_blocked()


Cancelled = Callable[[Callable[[], Awaitable[object]], Callable[[], Awaitable[None]]], Awaitable[None]]
"""Runs the first, waits for the second, and cancels the first."""


async def by_scope(work: Callable[[], Awaitable[object]], reached: Callable[[], Awaitable[None]]) -> None:
    async with anyio.create_task_group() as tasks:
        scope = anyio.CancelScope()

        async def run() -> None:
            with scope:
                await work()

        tasks.start_soon(run)
        await reached()
        scope.cancel()
        _go(reached)


async def by_native_cancel(work: Callable[[], Awaitable[object]], reached: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        await work()

    task = asyncio.create_task(run())
    await reached()
    task.cancel()
    _go(reached)
    with pytest.raises(asyncio.CancelledError):
        await task


async def by_native_timeout(work: Callable[[], Awaitable[object]], reached: Callable[[], Awaitable[None]]) -> None:
    async def run() -> None:
        async with asyncio.timeout(None) as limit:
            limits.append(limit)
            await work()

    limits: list[asyncio.Timeout] = []
    task = asyncio.create_task(run())
    await reached()
    limits[0].reschedule(asyncio.get_running_loop().time() - 1)
    await asyncio.sleep(0)
    _go(reached)
    with pytest.raises(TimeoutError):
        await task


def _go(reached: Callable[[], Awaitable[None]]) -> None:
    parked = getattr(reached, "__self__", None)
    assert isinstance(parked, Parked)
    parked.go.set()


WAYS = [
    pytest.param(backend, way, id=f"{backend}-{way.__name__}")
    for backend, ways in (("asyncio", (by_scope, by_native_cancel, by_native_timeout)), ("trio", (by_scope,)))
    for way in ways
]


@pytest.mark.covers("ST-1.4-23")
@pytest.mark.parametrize("anyio_backend, cancelled", WAYS)
@pytest.mark.parametrize("point", ["commit.before_write", "commit.after_write"])
async def test_a_commit_that_was_begun_is_kept_and_the_next_one_follows_it(
    path: Path, clock: HeldClock, connections: Connections, cancelled: Cancelled, point: FaultPoint
) -> None:
    parked = Parked(point)
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=parked)
    await cancelled(lambda: storage.commit(said("e2", "e1")), parked.wait)
    result = await storage.commit(said("e3", "e2"))
    assert [entry.id for entry in await storage.scan_entries(EntryScan())] == ["e1", "e2", "e3"]
    assert result.first_seq == 5
    assert not connections.last.in_transaction
    await storage.close()


@pytest.mark.parametrize("anyio_backend, cancelled", WAYS)
async def test_a_commit_that_waits_in_the_queue_is_written_in_its_turn(
    path: Path, clock: HeldClock, cancelled: Cancelled
) -> None:
    parked = Parked("commit.before_write")
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=parked)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.commit, said("e2", "e1"))
        await parked.wait()
        await cancelled(lambda: storage.commit(said("e3", "e2")), parked.wait_until_queued)
    await storage.close()
    assert rows(path, "SELECT id, seq FROM entries ORDER BY seq") == [("e1", 1), ("e2", 3), ("e3", 5)]


@pytest.mark.parametrize("anyio_backend, cancelled", WAYS)
async def test_closing_drains_what_a_cancelled_caller_left(path: Path, clock: HeldClock, cancelled: Cancelled) -> None:
    parked = Parked("commit.before_write")
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=parked)
    await cancelled(lambda: storage.commit(said("e2", "e1")), parked.wait)
    await storage.close()
    with pytest.raises(StorageClosed):
        await storage.commit(said("e3", "e2"))
    async with opened(path, clock) as again:
        assert [entry.id for entry in await again.scan_entries(EntryScan())] == ["e1", "e2"]


@pytest.mark.parametrize("anyio_backend, cancelled", WAYS)
async def test_a_close_that_is_cancelled_releases_all_the_same(
    path: Path, clock: HeldClock, cancelled: Cancelled
) -> None:
    parked = Parked("commit.before_write")
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=parked)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.commit, said("e2", "e1"))
        await parked.wait()
        await cancelled(storage.close, parked.wait_until_queued)
    await storage.close()
    async with opened(path, clock) as again:
        assert [entry.id for entry in await again.scan_entries(EntryScan())] == ["e1", "e2"]


class ParkedClock(HeldClock):
    """Holds the connection's thread where it takes the lease."""

    def __init__(self) -> None:
        super().__init__()
        self.parked = Parked("commit.before_write")

    def now_ms(self) -> int:
        if threading.current_thread() is not threading.main_thread():
            self.parked.reach("commit.before_write")
        return super().now_ms()


@pytest.mark.parametrize("anyio_backend, cancelled", WAYS)
async def test_an_open_that_is_cancelled_leaves_no_lease_and_no_thread(
    path: Path, clock: HeldClock, cancelled: Cancelled
) -> None:
    async with created(path, clock, initial=said("e1")):
        pass
    parked = ParkedClock()
    kept: list[SqliteStorage] = []

    async def work() -> None:
        kept.append(await SqliteStorage.open(path, clock=parked, lease=LeaseSettings(renew_ms=1)))

    await cancelled(work, parked.parked.wait)
    for storage in kept:  # trio lets what was begun come to its end
        await storage.close()
    assert "restartpoint-lease" not in {thread.name for thread in threading.enumerate()}
    async with opened(path, clock) as again:
        await again.commit(said("e2", "e1"))


async def test_a_caller_cancelled_beforehand_leaves_nothing_open(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        for number in range(20):
            with anyio.CancelScope() as scope:
                scope.cancel()
                await storage.commit(said(f"c{number}"))
        await storage.commit(said("e2", "e1"))
        assert not connections.last.in_transaction
        ids = [entry.id for entry in await storage.scan_entries(EntryScan())]
        assert ids[0] == "e1"
        assert ids[-1] == "e2"
        seqs = [seq for (seq,) in rows(path, "SELECT seq FROM entries ORDER BY seq")]
        assert seqs == list(range(1, 2 * len(seqs), 2))
