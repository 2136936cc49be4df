"""One file per session: what is in the folder, what is refused, and who else may own a file."""

import os
import sqlite3
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from restartpoint.contract import UNSET, SessionMetadata
from restartpoint.errors import (
    CorruptFile,
    SessionExists,
    SessionNotFound,
    StorageError,
    StorageInUse,
    UnsupportedStorageVersion,
)  # fmt: skip
from restartpoint.repo import FileRepository, JsonlRepository
from tests.harness.repo.stage import make_files
from tests.harness.session.stage import CONFIGURATION, StandingClock, counted_ids, say


async def closed(files: FileRepository, id: str = "s") -> Path:
    """A closed session in the folder; its file."""
    await (await files.create(id=id)).close()
    return files.path_of(id)


def contents(root: Path) -> dict[str, bytes | None]:
    """The names in the folder and what the regular files hold; no folder holds nothing."""
    paths = root.iterdir() if root.exists() else ()
    return {path.name: path.read_bytes() if path.is_file() else None for path in paths}


def without_sidecars(held: dict[str, bytes | None]) -> dict[str, bytes | None]:
    """The same without what SQLite keeps beside a database that somebody read."""
    return {name: content for name, content in held.items() if not name.endswith(("-wal", "-shm"))}


def modes(root: Path) -> tuple[int, set[int]]:
    """The permissions of the folder and of its files."""
    return stat.S_IMODE(root.stat().st_mode), {stat.S_IMODE(path.stat().st_mode) for path in root.iterdir()}


@pytest.mark.covers("ST-2.8-17")
async def test_the_folder_and_its_files_are_the_owners_alone(files: FileRepository, root: Path) -> None:
    assert await closed(files) == root / f"s{files.suffix}"
    assert modes(root) == (0o700, {0o600})


async def test_listing_needs_no_folder_and_makes_none(files: FileRepository, root: Path) -> None:
    assert (await files.list()).sessions == ()
    with pytest.raises(SessionNotFound):
        await files.open("s")
    assert not root.exists()


async def test_a_folder_that_is_a_file_is_an_error_that_names_it(kind: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    files = make_files(kind, tmp_path / "file")
    with pytest.raises(StorageError, match="file"):
        await files.create()
    with pytest.raises(StorageError, match="file"):
        await files.list()


@pytest.mark.covers("ST-2.8-19")
async def test_the_list_leaves_other_files_alone_and_names_those_that_are_no_sessions(
    files: FileRepository, root: Path
) -> None:
    good = await closed(files, "good")
    suffix = files.suffix
    for name in (f"x{suffix}.tmp", f"x{suffix}.lock", f"x{suffix}-wal", f"x{suffix}-shm", f".x{suffix}", "README"):
        (root / name).write_bytes(b"?")
    (root / f"empty{suffix}").write_bytes(b"")
    (root / f"garbage{suffix}").write_bytes(b"not a session\n" * 100)
    (root / f"other{suffix}").write_bytes(good.read_bytes())
    (root / f"bad name{suffix}").write_bytes(good.read_bytes())
    (root / f"link{suffix}").symlink_to(good)
    (root / f"folder{suffix}").mkdir()
    before = contents(root)
    listing = await files.list()
    assert [metadata.id for metadata in listing.sessions] == ["good"]
    reasons = {Path(unreadable.path).name.removesuffix(suffix): unreadable.reason for unreadable in listing.unreadable}
    assert reasons.keys() == {"empty", "garbage", "other", "bad name", "link", "folder"}
    assert "good" in reasons["other"]
    assert without_sidecars(contents(root)) == without_sidecars(before)


async def test_a_file_under_another_name_is_refused_and_left_as_it_is(files: FileRepository, root: Path) -> None:
    good = await closed(files)
    other = files.path_of("other")
    other.write_bytes(good.read_bytes())
    for attempt in (files.open, files.open_read_only):
        with pytest.raises(CorruptFile, match="'s'"):
            await attempt("other")
    assert other.read_bytes() == good.read_bytes()
    other.rename(root / "kept")
    await (await files.open("s")).close()


async def test_a_link_is_not_followed(files: FileRepository, root: Path, tmp_path: Path) -> None:
    good = await closed(files)
    outside = tmp_path / "outside"
    good.rename(outside)
    good.symlink_to(outside)
    before = outside.read_bytes()
    for attempt in (files.open, files.open_read_only):
        with pytest.raises(CorruptFile, match="link"):
            await attempt("s")
    with pytest.raises(SessionExists):
        await files.create(id="s")
    assert outside.read_bytes() == before
    good.unlink()
    good.symlink_to(tmp_path / "nowhere")
    with pytest.raises(SessionExists):
        await files.create(id="s")
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.covers("ST-2.8-20")
async def test_deleting_removes_the_sidecars_too(files: FileRepository, root: Path) -> None:
    async with await files.create(id="s") as session:
        await session.append_message(say("x"))
    await closed(files, "t")
    kept = {name for name in contents(root) if name.startswith("t")}
    await files.delete("s")
    assert contents(root).keys() == kept


async def test_a_corrupt_session_can_be_deleted(files: FileRepository, root: Path) -> None:
    await closed(files)
    files.path_of("s").write_bytes(b"garbage")
    with pytest.raises(CorruptFile):
        await files.open("s")
    await files.delete("s")
    with pytest.raises(SessionNotFound):
        await files.open("s")


async def test_a_refused_opening_leaves_the_session_free(files: FileRepository, kind: str, root: Path) -> None:
    path = await closed(files)
    content = path.read_bytes()
    path.write_bytes(b"garbage")
    with pytest.raises(CorruptFile):
        await files.open("s")
    path.write_bytes(content)
    await (await files.open("s")).close()
    async with make_files(kind, root) as other:
        await other.open("s")


# --- other owners -----------------------------------------------------------------------------------------------


async def test_another_repository_cannot_open_create_or_delete_what_is_open_here(
    files: FileRepository, kind: str, root: Path
) -> None:
    session = await files.create(id="s")
    async with make_files(kind, root) as other:
        with pytest.raises(StorageInUse):
            await other.open("s")
        with pytest.raises(StorageInUse):
            await other.delete("s")
        with pytest.raises(SessionExists):
            await other.create(id="s")
        assert [metadata.id for metadata in (await other.list()).sessions] == ["s"]
        await session.append_message(say("still mine"))
        await session.close()
        async with await other.open("s") as taken:
            assert (await taken.get_stats()).message_count == 1


@pytest.mark.covers("ST-2.8-21")
async def test_a_reader_changes_no_session(files: FileRepository, kind: str, root: Path) -> None:
    async with await files.create(id="s") as session:
        await session.append_message(say("x"))
    before = contents(root)
    async with make_files(kind, root) as other, await other.open_read_only("s") as reader:
        assert (await reader.get_stats()).message_count == 1
        assert [metadata.id for metadata in (await other.list()).sessions] == ["s"]
    assert without_sidecars(contents(root)) == before


CREATE = """
import sys, anyio
from restartpoint.errors import SessionExists
from restartpoint.repo import JsonlRepository
from tests.harness.repo.stage import FILES
async def main():
    repository = FILES[sys.argv[1]](sys.argv[2])
    print("ready", flush=True)
    sys.stdin.readline()
    try:
        session = await repository.create(id="s")
    except SessionExists:
        print("exists", flush=True)
    else:
        print("created", flush=True)
        sys.stdin.readline()
        await session.close()
anyio.run(main)
"""


def child(kind: str, root: Path) -> "subprocess.Popen[str]":
    place = Path(__file__).resolve().parents[3]
    command = [sys.executable, "-c", CREATE, kind, str(root)]
    pipe = subprocess.PIPE
    return subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, cwd=place, env={**os.environ})


def say_to(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None
    process.stdin.write("\n")
    process.stdin.flush()


def heard_from(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


def test_of_several_processes_that_create_one_id_exactly_one_succeeds(kind: str, root: Path) -> None:
    processes = [child(kind, root) for _ in range(3)]
    assert [heard_from(process) for process in processes] == ["ready"] * 3
    for process in processes:
        say_to(process)
    assert sorted(heard_from(process) for process in processes) == ["created", "exists", "exists"]
    for process in processes:
        process.communicate("\n")
        assert process.returncode == 0


async def test_another_process_holds_its_session_until_it_dies(files: FileRepository, kind: str, root: Path) -> None:
    process = child(kind, root)
    assert heard_from(process) == "ready"
    say_to(process)
    assert heard_from(process) == "created"
    with pytest.raises(StorageInUse):
        await files.open("s")
    with pytest.raises(StorageInUse):
        await files.delete("s")
    async with await files.open_read_only("s") as reader:
        assert reader.metadata.cwd is UNSET
    process.communicate("\n")
    async with await files.open("s") as session:
        await session.append_message(say("x"))


# --- versions ---------------------------------------------------------------------------------------------------


def make_newer(path: Path) -> None:
    """Give the session the version that a later program would write."""
    if path.suffix == ".jsonl":
        path.write_bytes(path.read_bytes().replace(b'"storageVersion":1', b'"storageVersion":2', 1))
        return
    connection = sqlite3.connect(path)
    connection.execute("UPDATE session SET storage_version = 2")
    connection.commit()
    connection.close()


async def test_a_newer_session_is_refused_listed_as_unreadable_and_left_as_it_is(files: FileRepository) -> None:
    path = await closed(files)
    make_newer(path)
    newer = path.read_bytes()
    for attempt in (files.open, files.open_read_only):
        with pytest.raises(UnsupportedStorageVersion) as caught:
            await attempt("s")
        assert (caught.value.version, caught.value.supported) == (2, 1)
    listing = await files.list()
    assert (listing.sessions, [unreadable.path for unreadable in listing.unreadable]) == ((), [str(path)])
    assert path.read_bytes() == newer


class FailingDisk(JsonlRepository):
    """A folder in which the file of one session cannot be read at this moment."""

    async def _read_metadata(self, path: Path) -> SessionMetadata:
        if path.name == "bad.jsonl":
            raise StorageError("the disk does not answer")
        return await super()._read_metadata(path)


async def test_a_file_that_the_disk_does_not_give_now_hides_no_other_session(tmp_path: Path) -> None:
    async with FailingDisk(tmp_path) as files:
        path = await closed(files, "bad")
        await closed(files, "good")
        listing = await files.list()
    assert [metadata.id for metadata in listing.sessions] == ["good"]
    assert [(one.path, one.reason) for one in listing.unreadable] == [(str(path), "the disk does not answer")]


async def test_equal_clocks_and_equal_chance_write_equal_jsonl_bytes(tmp_path: Path) -> None:
    written: list[bytes] = []
    for name in ("one", "other"):
        async with JsonlRepository(tmp_path / name, clock=StandingClock(), ids=counted_ids(StandingClock())) as files:
            session = await files.create()
            await session.append_message(say("x"))
            await session.create_lane("side", None, CONFIGURATION)
            await session.set_custom_fact("k", {"b": 1, "a": 1.0})
            written.append(files.path_of(session.metadata.id).read_bytes())
    assert written[0] == written[1] != b""
