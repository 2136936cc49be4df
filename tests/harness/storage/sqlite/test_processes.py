"""Two writers and many readers of one file: what waits, what fails, and what a reader in another process sees."""

import sqlite3
import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from restartpoint.contract import LANE_LEAF, EntryScan, RegisterSet
from restartpoint.seams import FaultPoint, SystemClock
from restartpoint.storage.sqlite import InlineHop, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, child, created, opened, raw, run_child
from tests.harness.storage.stage import METADATA, HeldClock, said, say, tx

# --- the write lock comes first (the one owner of the lease beside writers of other tables)


@pytest.mark.covers("ST-9.3-10", "ST-9.3-11")
async def test_a_commit_after_a_read_survives_another_connection_s_commit_in_between(
    path: Path, clock: HeldClock
) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        before = await storage.get_register(LANE_LEAF, "main")
        assert before is not None
        with raw(path) as other:
            other.execute("UPDATE writer_lease SET expires_at_ms = expires_at_ms + 1")
        result = await storage.commit(said("e2", "e1"))
        assert result.first_seq == before.seq + 1


class LetTheOtherTry:
    """Inside the transaction, starts another writer and sees that it waits."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.order: list[str] = []
        self.trying = threading.Event()
        self.other = threading.Thread(target=self._write)

    def reach(self, point: FaultPoint) -> None:
        if point == "commit.before_write" and not self.other.ident:
            with raw(self.path) as hasty, pytest.raises(sqlite3.OperationalError, match="locked"):
                hasty.execute("BEGIN IMMEDIATE")
            self.other.start()
            assert self.trying.wait(timeout=60)
            self.order.append("ours")

    def _write(self) -> None:
        other = sqlite3.connect(self.path, isolation_level=None, timeout=60)
        self.trying.set()
        other.execute("BEGIN IMMEDIATE")
        self.order.append("theirs")
        other.execute("UPDATE writer_lease SET expires_at_ms = expires_at_ms + 1")
        other.execute("COMMIT")
        other.close()


@pytest.mark.covers("ST-9.3-10")
async def test_a_second_writer_waits_for_the_commit_and_then_succeeds(path: Path, clock: HeldClock) -> None:
    faults = LetTheOtherTry(path)
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=faults)
    await storage.commit(said("e2", "e1"))
    await anyio.to_thread.run_sync(faults.other.join)
    assert faults.order == ["ours", "theirs"]
    await storage.commit(said("e3", "e2"))
    await storage.close()


async def test_a_deferred_transaction_in_its_place_would_fail_without_waiting(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        with raw(path) as deferred:
            deferred.execute("PRAGMA busy_timeout = 60000")
            deferred.execute("BEGIN")
            deferred.execute("SELECT next_seq FROM session").fetchone()
            await storage.commit(said("e2", "e1"))
            with pytest.raises(sqlite3.OperationalError, match="locked"):
                deferred.execute("UPDATE session SET next_seq = next_seq")
            deferred.execute("ROLLBACK")


# --- other processes

READER = """
import anyio, sys
from pathlib import Path
from restartpoint.contract import LANE_LEAF, EntryScan
from restartpoint.seams import SystemClock
from restartpoint.storage.sqlite import InlineHop, SqliteStorage

async def main():
    storage = await SqliteStorage.open(Path(sys.argv[1]), clock=SystemClock(), read_only=True, hop=InlineHop())
    seen = 0
    print("ready", flush=True)
    while seen < int(sys.argv[2]):
        entries = await storage.scan_entries(EntryScan())
        seen = len(entries)
        assert seen % 2 == 0, f"half a transaction: {seen}"
        stats = await storage.get_stats()
        assert stats.message_count >= seen and stats.message_count % 2 == 0
    await storage.close()
    print("whole", flush=True)

anyio.run(main)
"""


@pytest.mark.covers("ST-1.7-53")
async def test_a_reader_in_another_process_sees_whole_transactions_only(path: Path, clock: HeldClock) -> None:
    first = tx(say("a0", None, "x"), say("b0", "a0", "y"))
    async with created(path, clock, initial=first, hop=InlineHop()) as storage:
        with child(READER, path, 402) as reader:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
            for number in range(1, 201):
                a, b = f"a{number}", f"b{number}"
                writes = (say(a, f"b{number - 1}", "x" * 2000), say(b, a, "y"), RegisterSet(LANE_LEAF, "main", b))
                await storage.commit(tx(*writes))
            assert reader.stdout.read() == "whole\n"
        assert reader.returncode == 0


WRITER = """
import anyio, sys
from pathlib import Path
from restartpoint.errors import LeaseHeld
from restartpoint.seams import SystemClock
from restartpoint.storage.sqlite import SqliteStorage
from tests.harness.storage.stage import said

async def main():
    try:
        storage = await SqliteStorage.open(Path(sys.argv[1]), clock=SystemClock())
    except LeaseHeld:
        print("held")
        return
    await storage.commit(said(sys.argv[2], sys.argv[3]))
    await storage.close()
    print("written")

anyio.run(main)
"""


async def test_another_process_writes_only_after_the_owner_has_closed(path: Path) -> None:
    def other(id: str, parent: str) -> str:
        return run_child(WRITER, path, id, parent)[1]

    clock = SystemClock()
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock)
    assert other("e2", "e1") == "held\n"
    await storage.commit(said("e2", "e1"))
    await storage.close()
    assert other("e3", "e2") == "written\n"
    again = await SqliteStorage.open(path, clock=clock)
    assert [entry.id for entry in await again.scan_entries(EntryScan())] == ["e1", "e2", "e3"]
    await again.close()


async def test_an_owner_that_died_blocks_until_its_lease_expires_and_its_commits_stay(
    path: Path, clock: HeldClock
) -> None:
    dying = """
import anyio, os, sys
from pathlib import Path
from restartpoint.storage.sqlite import SqliteStorage
from tests.harness.storage.stage import METADATA, HeldClock, said

async def main():
    storage = await SqliteStorage.create(Path(sys.argv[1]), METADATA, said("e1"), clock=HeldClock())
    await storage.commit(said("e2", "e1"))
    os._exit(9)

anyio.run(main)
"""
    assert run_child(dying, path)[0] == 9
    clock.now += 30_000
    async with opened(path, clock, hop=InlineHop()) as storage:
        assert [entry.id for entry in await storage.scan_entries(EntryScan())] == ["e1", "e2"]
