"""Session files as files: published whole, never over another, refused with the reason, removed with their sidecars."""

import os
import sqlite3
from pathlib import Path

import pytest

from restartpoint.contract import STORAGE_VERSION, EntryScan
from restartpoint.errors import (
    CorruptFile,
    DuplicateId,
    LeaseHeld,
    SessionExists,
    SessionLocked,
    SessionNotFound,
    StorageError,
    UnsupportedStorageVersion,
)
from restartpoint.storage.sqlite import SqliteStorage, files
from tests.harness.storage.sqlite.stage import BY_HAND, created, opened, raw, rows, run_child
from tests.harness.storage.stage import INITIAL, METADATA, HeldClock, ProcessEnded, said, say, tx


async def create(path: Path, clock: HeldClock) -> SqliteStorage:
    return await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND)


async def open_(path: Path, clock: HeldClock, *, read_only: bool = False) -> SqliteStorage:
    return await SqliteStorage.open(path, clock=clock, lease=BY_HAND, read_only=read_only)


async def test_an_existing_session_is_never_overwritten(path: Path, clock: HeldClock) -> None:
    await (await create(path, clock)).close()
    before = path.read_bytes()
    with pytest.raises(SessionExists):
        await create(path, clock)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


async def test_of_two_creators_the_one_that_comes_late_to_the_name_loses(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    link = os.link

    def late(source: Path, target: Path) -> None:
        target.write_text("the other one")
        link(source, target)

    monkeypatch.setattr(os, "link", late)
    with pytest.raises(SessionExists):
        await create(path, clock)
    assert path.read_text() == "the other one"
    assert list(path.parent.iterdir()) == [path]


async def test_a_file_system_without_hard_links_will_do(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(source: Path, target: Path) -> None:
        raise PermissionError

    monkeypatch.setattr(os, "link", refuse)
    await (await create(path, clock)).close()
    with pytest.raises(SessionExists):
        await create(path, clock)
    async with opened(path, clock) as storage:
        assert len(await storage.scan_entries(EntryScan())) == 1


async def test_a_creation_that_fails_leaves_nothing(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(DuplicateId):
        await SqliteStorage.create(path, METADATA, tx(say("a", None, "1"), say("a", None, "2")), clock=clock)
    with pytest.raises(StorageError, match="cannot be created"):
        await create(path.parent / "nowhere" / "s1.sqlite", clock)

    def end(source: Path, target: Path) -> None:
        raise ProcessEnded

    monkeypatch.setattr(os, "link", end)
    with pytest.raises(ProcessEnded):
        await create(path, clock)
    assert list(path.parent.iterdir()) == []


DYING_CREATOR = """
import anyio, os, sys
from pathlib import Path
from restartpoint.seams import SystemClock
from restartpoint.storage.sqlite import SqliteStorage
from tests.harness.storage.stage import INITIAL, METADATA
os.link = lambda source, target: os._exit(9)
anyio.run(lambda: SqliteStorage.create(Path(sys.argv[1]), METADATA, INITIAL, clock=SystemClock()))
"""


async def test_a_creator_that_dies_leaves_no_half_session_and_the_next_one_succeeds(
    path: Path, clock: HeldClock
) -> None:
    assert run_child(DYING_CREATOR, path)[0] == 9
    assert not path.exists()
    await (await create(path, clock)).close()
    assert path.exists()


async def test_the_log_of_a_session_that_was_removed_half_way_is_not_read_into_a_new_one(
    path: Path, clock: HeldClock
) -> None:
    storage = await create(path, clock)
    await storage.commit(said("old", "e1"))
    log = path.with_name(f"{path.name}-wal")
    left = log.read_bytes()
    await storage.close()
    path.unlink()
    log.write_bytes(left)
    storage = await SqliteStorage.create(path, METADATA, INITIAL, clock=clock, lease=BY_HAND)
    assert await storage.scan_entries(EntryScan()) == []
    await storage.close()


@pytest.mark.parametrize("read_only", [False, True])
async def test_what_is_no_session_is_refused_with_the_reason_and_left_as_it_is(
    tmp_path: Path, clock: HeldClock, read_only: bool
) -> None:
    folder, link, empty, text, other = (tmp_path / name for name in ("folder", "link", "empty", "text", "other"))
    folder.mkdir()
    link.symlink_to(tmp_path / "target")
    empty.touch()
    text.write_text("not a database " * 100)
    with raw(other) as connection:
        connection.execute("CREATE TABLE t(x)")
    reasons = {folder: "folder", link: "symbolic link", empty: "empty", text: "no SQLite database", other: "no session"}
    for path, reason in reasons.items():
        with pytest.raises(CorruptFile, match=reason):
            await open_(path, clock, read_only=read_only)
        with pytest.raises(CorruptFile, match=reason):
            await SqliteStorage.read_metadata(path)
    with pytest.raises(SessionNotFound):
        await open_(tmp_path / "nothing", clock, read_only=read_only)
    with pytest.raises(SessionNotFound):
        await open_(text / "below", clock, read_only=read_only)
    assert text.read_text() == "not a database " * 100
    assert {file.name for file in tmp_path.iterdir()} == {"folder", "link", "empty", "text", "other"}


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
async def test_a_file_that_may_not_be_read_is_refused(path: Path, clock: HeldClock) -> None:
    await (await create(path, clock)).close()
    path.chmod(0)
    with pytest.raises(CorruptFile, match="may not"):
        await open_(path, clock)


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_newer_version_is_refused_before_anything_is_written(
    path: Path, clock: HeldClock, read_only: bool
) -> None:
    await (await create(path, clock)).close()
    with raw(path) as connection:
        connection.execute("UPDATE session SET storage_version = 2")
    before = path.read_bytes()
    with pytest.raises(UnsupportedStorageVersion) as refused:
        await open_(path, clock, read_only=read_only)
    assert (refused.value.version, refused.value.supported) == (2, STORAGE_VERSION)
    assert path.read_bytes() == before


@pytest.mark.parametrize("damage", ["DELETE FROM session", "UPDATE session SET storage_version = 'x'"])
async def test_a_damaged_session_row_is_refused(path: Path, clock: HeldClock, damage: str) -> None:
    await (await create(path, clock)).close()
    with raw(path) as connection:
        connection.execute(damage)
    with pytest.raises(CorruptFile):
        await open_(path, clock)


async def test_reading_leaves_the_file_as_it_is(path: Path, clock: HeldClock) -> None:
    await (await create(path, clock)).close()
    before = path.read_bytes()
    async with opened(path, clock, read_only=True) as reader:
        assert len(await reader.scan_entries(EntryScan())) == 1
        assert await SqliteStorage.read_metadata(path) == METADATA
    assert path.read_bytes() == before


@pytest.mark.covers("ST-2.8-20")
async def test_a_session_is_deleted_with_its_sidecars_unless_somebody_has_it_open(path: Path, clock: HeldClock) -> None:
    storage = await create(path, clock)
    with pytest.raises(LeaseHeld):
        await SqliteStorage.delete(path, clock=clock)
    await storage.commit(said("e2", "e1"))
    await storage.close()
    for suffix in ("-wal", "-shm"):
        path.with_name(f"{path.name}{suffix}").touch()
    await SqliteStorage.delete(path, clock=clock)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(SessionNotFound):
        await SqliteStorage.delete(path, clock=clock)


async def test_nobody_creates_a_session_between_the_two_halves_of_a_deletion(
    path: Path, clock: HeldClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await (await create(path, clock)).close()
    unlink, refused = Path.unlink, list[type[Exception]]()

    def interrupted(removed: Path, missing_ok: bool = False) -> None:
        unlink(removed, missing_ok=missing_ok)
        if removed == path:
            draft = files.draft_path(path, "rival")
            draft.write_text("a rival's session")
            with pytest.raises(SessionLocked) as caught:
                files.publish(path, draft, id="s1", durability="process")
            refused.append(caught.type)

    monkeypatch.setattr(Path, "unlink", interrupted)
    await SqliteStorage.delete(path, clock=clock)
    assert refused == [SessionLocked]
    assert list(path.parent.iterdir()) == []


async def test_what_is_damaged_can_be_deleted_too(path: Path, clock: HeldClock) -> None:
    path.write_text("no database " * 100)
    await SqliteStorage.delete(path, clock=clock)
    assert not path.exists()


async def test_a_path_with_characters_of_an_address_is_a_path(tmp_path: Path, clock: HeldClock) -> None:
    path = tmp_path / "a?mode=memory&b#c%20é.sqlite"
    async with created(path, clock):
        assert path.exists()
    async with opened(path, clock):
        assert rows(path, "SELECT count(*) FROM session") == [(1,)]


async def test_looking_at_an_open_session_drops_none_of_its_locks(path: Path, clock: HeldClock) -> None:
    """Closing a descriptor of the file drops all locks of the process on it; another process would then end the log."""
    storage = await create(path, clock)
    await storage.commit(said("e2", "e1"))
    await SqliteStorage.read_metadata(path)
    await (await open_(path, clock, read_only=True)).close()
    for refused in (SqliteStorage.delete(path, clock=clock), open_(path, clock)):
        with pytest.raises(LeaseHeld):
            await refused
    visit = "import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); print(*c.execute('SELECT count(*) FROM entries'))"
    assert run_child(f"{visit}; c.close()", path) == (0, "(2,)\n")
    assert path.with_name(f"{path.name}-wal").exists()
    await storage.commit(said("e3", "e2"))
    assert rows(path, "SELECT count(*) FROM entries") == [(3,)]
    await storage.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
