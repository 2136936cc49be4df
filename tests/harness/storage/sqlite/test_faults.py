"""Disks that fail and processes that end in the middle: whole commits, and none after an uncertain one."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from restartpoint.contract import LANE_LEAF, EntryScan, Expectation, Namespace, RegisterSet, Transaction, UsageScan
from restartpoint.errors import CommitRefused, DuplicateId, InvariantBroken, LeaseHeld, StaleExpectation, WriteUncertain
from restartpoint.seams import FaultPoint
from restartpoint.storage.sqlite import InlineHop, LeaseSettings, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, Connections, created, opened, raw
from tests.harness.storage.stage import METADATA, HeldClock, ProcessEnded, StopAt, contents, said, say, tx, usage


@contextmanager
def no_file_longer_than(length: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (length, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


async def ids(storage: SqliteStorage) -> list[str]:
    return [entry.id for entry in await storage.scan_entries(EntryScan())]


@pytest.mark.covers("ST-1.4-22")
async def test_a_disk_that_is_full_while_writing_poisons_the_storage_and_keeps_whole_commits(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1"), hop=InlineHop()) as storage:
        before = await contents(storage)
        connections.last.execute("PRAGMA max_page_count = 1")
        with pytest.raises(WriteUncertain, match="full") as first:
            await storage.commit(tx(say("e2", "e1", "x" * 1_000_000), usage("u1")))
        assert not connections.last.in_transaction
        connections.last.execute("PRAGMA max_page_count = 1000000")
        with pytest.raises(WriteUncertain) as second:
            await storage.commit(said("e3", "e1"))
        assert second.value is first.value
        assert await contents(storage) == before
    async with opened(path, clock) as again:
        assert await contents(again) == before
        assert (await again.commit(said("e3", "e1"))).first_seq == 3


async def test_a_disk_that_fails_at_the_commit_itself_poisons_the_storage(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1"), hop=InlineHop()) as storage:
        await storage.commit(said("e2", "e1"))
        log = path.with_name(f"{path.name}-wal").stat().st_size
        with no_file_longer_than(log + 100), pytest.raises(WriteUncertain):
            await storage.commit(said("e3", "e2"))
        assert "COMMIT" in connections.take()[-2:]
        assert not connections.last.in_transaction
        with pytest.raises(WriteUncertain):
            await storage.commit(said("e4", "e2"))
        assert await ids(storage) == ["e1", "e2"]
    async with opened(path, clock) as again:
        assert await ids(again) == ["e1", "e2"]


async def test_a_close_on_a_full_disk_gives_the_claim_up_where_the_database_has_the_room(
    path: Path, clock: HeldClock
) -> None:
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, hop=InlineHop())
    for number in range(2, 9):
        await storage.commit(said(f"e{number}", f"e{number - 1}"))
    log = path.with_name(f"{path.name}-wal").stat().st_size
    assert log > path.stat().st_size
    with no_file_longer_than(log):
        with pytest.raises(WriteUncertain):
            await storage.commit(said("e9", "e8"))
        await storage.close()
    async with opened(path, clock) as again:
        assert await ids(again) == [f"e{number}" for number in range(1, 9)]


async def test_a_close_on_a_disk_too_full_for_that_leaves_the_claim_to_expire(path: Path, clock: HeldClock) -> None:
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, hop=InlineHop())
    await storage.commit(tx(say("e2", "e1", "x" * 200_000)))
    with no_file_longer_than(path.stat().st_size):
        with pytest.raises(WriteUncertain):
            await storage.commit(said("e3", "e2"))
        await storage.close()
    with pytest.raises(LeaseHeld):
        await SqliteStorage.open(path, clock=clock, lease=BY_HAND)
    clock.now += LeaseSettings().ttl_ms
    async with opened(path, clock) as again:
        assert await ids(again) == ["e1", "e2"]


@pytest.mark.parametrize("point, kept", [("commit.before_write", ["e1"]), ("commit.after_write", ["e1", "e2"])])
async def test_a_process_that_ends_around_the_write_leaves_a_whole_commit_or_none(
    path: Path, clock: HeldClock, point: FaultPoint, kept: list[str]
) -> None:
    faults = StopAt(point)
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=faults)
    with pytest.raises(ProcessEnded):
        await storage.commit(tx(say("e2", "e1", "a"), usage("u1")))
    with pytest.raises(WriteUncertain):
        await storage.commit(said("e3", "e1"))
    await storage.close()
    async with opened(path, clock) as again:
        assert await ids(again) == kept
        assert len(await again.scan_usage(UsageScan())) == len(kept) - 1
        stats = await again.get_stats()
        assert stats.message_count == len(kept)


async def test_each_point_is_reached_once_per_commit_and_never_by_a_refusal(path: Path, clock: HeldClock) -> None:
    faults = StopAt()
    async with created(path, clock, initial=said("e1"), faults=faults) as storage:
        await storage.commit(said("e2", "e1"))
        assert faults.reached == ["commit.before_write", "commit.after_write"]
        with pytest.raises(DuplicateId):
            await storage.commit(said("e2", "e1"))
        assert faults.reached == ["commit.before_write", "commit.after_write"]


async def test_refusals_leave_the_storage_usable(path: Path, clock: HeldClock, connections: Connections) -> None:
    unknown: Namespace[int] = Namespace("no.such", int)
    async with created(path, clock, initial=said("e1"), hop=InlineHop()) as storage:
        with pytest.raises(InvariantBroken):
            await storage.commit(tx(RegisterSet(unknown, "k", 1)))
        with pytest.raises(StaleExpectation):
            await storage.commit(Transaction(said("e2", "e1").writes, (Expectation(LANE_LEAF, "main", 1),)))
        assert not connections.last.in_transaction
        await storage.commit(said("e2", "e1"))
        assert await ids(storage) == ["e1", "e2"]


async def test_a_write_lock_that_is_never_let_go_refuses_the_commit_and_nothing_else(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1"), hop=InlineHop()) as storage:
        connections.last.execute("PRAGMA busy_timeout = 0")
        with raw(path) as other:
            other.execute("BEGIN IMMEDIATE")
            with pytest.raises(CommitRefused, match="write lock"):
                await storage.commit(said("e2", "e1"))
            assert await ids(storage) == ["e1"]
            other.execute("ROLLBACK")
        await storage.commit(said("e2", "e1"))


@pytest.mark.covers("ST-1.7-63")
async def test_an_id_taken_by_the_other_store_is_refused(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=tx(say("e1", None, "a"), usage("u1"))) as storage:
        for writes in ((usage("e1"),), (say("u1", None, "b"),), (say("n1", None, "c"), usage("n1"))):
            with pytest.raises(DuplicateId):
                await storage.commit(tx(*writes))
