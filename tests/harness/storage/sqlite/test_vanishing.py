"""A session that somebody else deletes while it is being opened, read or deleted: it is not found, nothing else."""

import sqlite3
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, TypeAlias

import pytest

from restartpoint.contract import EntryScan
from restartpoint.errors import SessionLocked, SessionNotFound
from restartpoint.storage.jsonl.lock import FileLock
from restartpoint.storage.sqlite import InlineHop, SqliteStorage, files
from tests.harness.storage.sqlite.stage import BY_HAND, child, opened, rows
from tests.harness.storage.stage import METADATA, HeldClock, said

Call: TypeAlias = Callable[[Path, HeldClock], Awaitable[Any]]

CALLS: dict[str, Call] = {
    "open": lambda path, clock: SqliteStorage.open(path, clock=clock, lease=BY_HAND),
    "open for reading": lambda path, clock: SqliteStorage.open(path, clock=clock, read_only=True),
    "read the metadata": lambda path, _: SqliteStorage.read_metadata(path),
    "delete": lambda path, clock: SqliteStorage.delete(path, clock=clock),
}


async def publish(path: Path, clock: HeldClock) -> None:
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, hop=InlineHop())
    await storage.close()


def vanish(path: Path) -> None:
    files.remove_session(path, files.file_id(path))


def meanwhile(monkeypatch: pytest.MonkeyPatch, happens: Callable[[], None], *, connected: bool) -> None:
    """What happens once, around the first connection that is made to a session file."""
    connect: Callable[..., sqlite3.Connection] = sqlite3.connect

    def interrupted(database: str, **options: Any) -> sqlite3.Connection:
        if database == ":memory:":
            return connect(database, **options)
        monkeypatch.setattr(sqlite3, "connect", connect)
        if connected:
            connection = connect(database, **options)
            happens()
        else:
            happens()
            connection = connect(database, **options)
        return connection

    monkeypatch.setattr(sqlite3, "connect", interrupted)


@pytest.mark.parametrize("connected", [False, True], ids=["before SQLite opened it", "after"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_a_session_deleted_meanwhile_is_not_found(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch, call: Call, connected: bool
) -> None:
    await publish(path, clock)
    meanwhile(monkeypatch, lambda: vanish(path), connected=connected)
    with pytest.raises(SessionNotFound):
        await call(path, clock)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
async def test_another_session_that_got_the_name_meanwhile_is_neither_claimed_nor_removed(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch, call: Call
) -> None:
    await publish(path, clock)
    rival = path.with_name("rival")
    await publish(rival, clock)

    def replace() -> None:
        vanish(path)
        rival.rename(path)

    meanwhile(monkeypatch, replace, connected=True)
    with pytest.raises(SessionNotFound):
        await call(path, clock)
    assert rows(path, "SELECT count(*) FROM writer_lease") == [(0,)]
    async with opened(path, clock) as storage:
        assert len(await storage.scan_entries(EntryScan())) == 1


async def test_what_is_damaged_and_replaced_meanwhile_is_not_removed(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    path.write_text("no database " * 100)
    rival = path.with_name("rival")
    await publish(rival, clock)
    acquire = FileLock.acquire

    def late(locked: Path) -> FileLock:
        rival.rename(path)
        return acquire(locked)

    monkeypatch.setattr(FileLock, "acquire", late)
    with pytest.raises(SessionNotFound):
        await SqliteStorage.delete(path, clock=clock)
    async with opened(path, clock) as storage:
        assert len(await storage.scan_entries(EntryScan())) == 1


async def test_a_deletion_that_is_refused_gives_its_claim_back(path: Path, clock: HeldClock) -> None:
    await publish(path, clock)
    lock = FileLock.acquire(path)
    with pytest.raises(SessionLocked):
        await SqliteStorage.delete(path, clock=clock)
    lock.release(remove=True)
    async with opened(path, clock) as storage:
        assert len(await storage.scan_entries(EntryScan())) == 1


MIXED = """
import anyio, random, sys
from restartpoint.contract import EntryScan
from restartpoint.errors import SessionExists, SessionNotFound, StorageInUse
from restartpoint.repo import SqliteRepository

async def main():
    chance, repository = random.Random(sys.argv[2]), SqliteRepository(sys.argv[1])

    async def read(session_id):
        async with await repository.open_read_only(session_id) as session:
            await session.scan_entries(EntryScan())

    async def create(session_id):
        await (await repository.create(id=session_id)).close()

    async def open_(session_id):
        await (await repository.open(session_id)).close()

    async def list_(session_id):
        assert not (await repository.list()).unreadable

    for _ in range(100):
        try:
            await chance.choice([create, open_, read, list_, repository.delete])(chance.choice(["a", "b"]))
        except (SessionExists, SessionNotFound, StorageInUse):
            pass
    print("done")

anyio.run(main)
"""


def test_three_processes_that_create_open_list_and_delete_the_same_sessions_meet_no_other_refusal(
    tmp_path: Path,
) -> None:
    processes = [child(MIXED, tmp_path, seed) for seed in range(3)]
    assert [process.communicate(timeout=60)[0] for process in processes] == ["done\n"] * 3
