"""One writer per session file, in this process and in any other."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from restartpoint.errors import CorruptFile, SessionExists, SessionLocked, SessionNotFound
from restartpoint.storage import JsonlStorage
from restartpoint.storage.jsonl.lock import FileLock, lock_path
from tests.harness.storage.stage import INITIAL, METADATA, HeldClock, contents, said

OTHER = """
import pathlib, sys
import anyio
from restartpoint.errors import SessionLocked
from restartpoint.seams import SystemClock
from restartpoint.storage import JsonlStorage

async def main():
    try:
        storage = await JsonlStorage.open(pathlib.Path(sys.argv[1]), clock=SystemClock())
    except SessionLocked:
        print("locked", flush=True)
        return
    print("open", flush=True)
    sys.stdin.readline()

anyio.run(main)
"""


def other(path: Path) -> "subprocess.Popen[str]":
    """Another process that opens the session and holds it until it is killed or told to go."""
    return subprocess.Popen(
        [sys.executable, "-c", OTHER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )


def answer(process: "subprocess.Popen[str]") -> str:
    assert process.stdout is not None
    return process.stdout.readline().strip()


async def test_a_second_open_in_this_process_is_refused_until_the_first_closes(path: Path, clock: HeldClock) -> None:
    first = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    for _ in range(2):
        with pytest.raises(SessionLocked) as error:
            await JsonlStorage.open(path, clock=clock)
        assert error.value.path == str(path)
    await first.commit(said("a"))
    await first.close()
    second = await JsonlStorage.open(path, clock=clock)
    assert list(await second.get_entries(["a"])) == ["a"]
    await second.close()


async def test_a_second_process_is_refused_and_the_kernel_frees_the_lock_of_a_killed_one(
    path: Path, clock: HeldClock
) -> None:
    mine = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    with other(path) as process:
        assert answer(process) == "locked"
    await mine.close()
    with other(path) as process:
        assert answer(process) == "open"
        with pytest.raises(SessionLocked):
            await JsonlStorage.open(path, clock=clock)
        process.send_signal(signal.SIGKILL)
    again = await JsonlStorage.open(path, clock=clock)
    await again.close()


async def test_a_reader_needs_no_lock_and_takes_none(path: Path, clock: HeldClock) -> None:
    writer = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await writer.commit(said("a"))
    reader = await JsonlStorage.open(path, clock=clock, read_only=True)
    assert await contents(reader) == await contents(writer)
    await writer.close()
    lock_path(path).unlink()
    await (await JsonlStorage.open(path, clock=clock, read_only=True)).close()
    assert not lock_path(path).exists()
    await (await JsonlStorage.open(path, clock=clock)).close()
    await reader.close()


async def test_a_failed_open_gives_the_lock_back(path: Path, clock: HeldClock) -> None:
    path.write_bytes(b"garbage\n")
    for _ in range(2):
        with pytest.raises(CorruptFile):
            await JsonlStorage.open(path, clock=clock)


async def test_only_one_of_two_creations_of_a_session_succeeds(path: Path, clock: HeldClock) -> None:
    lock = FileLock.acquire(path)  # the other creation is between its check and its rename
    with pytest.raises(SessionLocked):
        await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    lock.release()
    assert not path.exists()


async def test_creating_a_session_that_somebody_has_open_says_that_it_exists(path: Path, clock: HeldClock) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    with pytest.raises(SessionExists):
        await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await storage.close()


async def test_the_lock_file_stays_when_a_session_closes(path: Path, clock: HeldClock) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    inode = lock_path(path).stat().st_ino
    await storage.close()
    assert lock_path(path).stat().st_ino == inode
    await (await JsonlStorage.open(path, clock=clock)).close()
    assert lock_path(path).stat().st_ino == inode


async def test_an_open_session_cannot_be_deleted_and_a_closed_one_leaves_nothing(path: Path, clock: HeldClock) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    with pytest.raises(SessionLocked):
        await JsonlStorage.delete(path)
    await storage.commit(said("a"))
    await storage.close()
    await JsonlStorage.delete(path)
    assert list(path.parent.iterdir()) == []
    with pytest.raises(SessionNotFound):
        await JsonlStorage.delete(path)


def test_a_lock_on_a_sidecar_that_was_removed_meanwhile_is_taken_again_on_the_new_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A deleter removes the sidecar between the opening and the locking of the next owner."""
    real, opened = os.open, []

    def open_then_remove(target: Path, flags: int, mode: int = 0o777) -> int:
        descriptor = real(target, flags, mode)
        opened.append(descriptor)
        if len(opened) == 1:
            target.unlink()
        return descriptor

    monkeypatch.setattr(os, "open", open_then_remove)
    lock = FileLock.acquire(path)
    assert len(opened) == 2
    with pytest.raises(SessionLocked):
        FileLock.acquire(path)
    lock.release()


def test_no_descriptor_of_a_session_leaks_into_child_processes(path: Path) -> None:
    lock = FileLock.acquire(path)
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False)
    lock.release()
    FileLock.acquire(path).release()
    child.communicate(b"\n")
