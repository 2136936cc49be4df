"""A commit is one write; when that write fails part-way, nothing may follow it."""

import errno
import os
import signal
import stat
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from restartpoint.contract import FACT_CUSTOM, RegisterSet, Transaction
from restartpoint.errors import CommitRefused, StorageError, WriteUncertain
from restartpoint.seams import FaultPoint
from restartpoint.storage import FileCalls, JsonlStorage
from tests.harness.storage.stage import INITIAL, METADATA, HeldClock, ProcessEnded, StopAt, contents, said, tx, usage


class Disk:
    """Writes and syncs for real, counts both, and fails the next one as told."""

    def __init__(self) -> None:
        self.writes: list[int] = []
        self.syncs = 0
        self.next_write: Callable[[int, bytes], int] = os.write
        self.failing_sync = False

    @property
    def calls(self) -> FileCalls:
        return FileCalls(write=self.write, fsync=self.fsync)

    def write(self, descriptor: int, data: bytes) -> int:
        self.writes.append(len(data))
        return self.next_write(descriptor, data)

    def fsync(self, descriptor: int) -> None:
        self.syncs += 1
        if self.failing_sync:
            raise OSError(errno.EIO, "Input/output error")
        os.fsync(descriptor)


def half(descriptor: int, data: bytes) -> int:
    return os.write(descriptor, data[: len(data) // 2])


def all_but_newline(descriptor: int, data: bytes) -> int:
    return os.write(descriptor, data[:-1])


def full(descriptor: int, data: bytes) -> int:
    raise OSError(errno.ENOSPC, "No space left on device")


def half_then_full(descriptor: int, data: bytes) -> int:
    half(descriptor, data)
    return full(descriptor, data)


def whole_then_failing(descriptor: int, data: bytes) -> int:
    os.write(descriptor, data)
    raise OSError(errno.EIO, "Input/output error")


@pytest.fixture
def disk() -> Disk:
    return Disk()


@pytest.mark.covers("ST-1.4-22")
@pytest.mark.parametrize(
    "write, kept",
    [(half, False), (all_but_newline, False), (full, False), (half_then_full, False), (whole_then_failing, True)],
)
async def test_a_failing_write_poisons_and_reopening_keeps_whole_commits_only(
    path: Path, clock: HeldClock, disk: Disk, write: Callable[[int, bytes], int], kept: bool
) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, calls=disk.calls)
    await storage.commit(said("a"))
    before = await contents(storage)
    disk.next_write = write
    with pytest.raises(WriteUncertain) as fault:
        await storage.commit(said("b", "a"))
    disk.next_write = os.write
    written = path.read_bytes()
    with pytest.raises(WriteUncertain) as later:
        await storage.commit(said("c", "a"))
    assert later.value is fault.value
    assert path.read_bytes() == written
    assert await contents(storage) == before
    await storage.close()
    again = await JsonlStorage.open(path, clock=clock)
    assert list(await again.get_entries(["a", "b", "c"])) == (["a", "b"] if kept else ["a"])
    await again.commit(said("d", "a"))
    live = await contents(again)
    await again.close()
    final = await JsonlStorage.open(path, clock=clock, read_only=True)
    assert await contents(final) == live


@pytest.mark.covers("ST-1.7-24")
async def test_a_commit_is_one_write_whose_size_does_not_grow_with_the_file(
    path: Path, clock: HeldClock, disk: Disk
) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, calls=disk.calls)
    for number in range(100, 300):
        if number == 150:  # from here on every sequence number has three digits
            disk.writes.clear()
        await storage.commit(tx(usage(f"u{number}"), RegisterSet(FACT_CUSTOM, "k", {"x": [number]})))
    await storage.close()
    assert len(disk.writes) == 150
    assert len(set(disk.writes)) == 1
    assert disk.syncs == 0


async def test_power_durability_syncs_each_commit_and_the_creation(path: Path, clock: HeldClock, disk: Disk) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, durability="power", calls=disk.calls)
    assert disk.syncs == 2  # the file before it gets its name, then the folder that holds the name
    for number in range(3):
        await storage.commit(tx(usage(f"u{number}")))
        assert disk.syncs == 3 + number
    await storage.close()
    again = await JsonlStorage.open(path, clock=clock, durability="power", calls=disk.calls)
    await again.commit(tx(usage("u")))
    assert disk.syncs == 6
    await again.close()


async def test_a_failing_sync_poisons_too(path: Path, clock: HeldClock, disk: Disk) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, durability="power", calls=disk.calls)
    disk.failing_sync = True
    for _ in range(2):
        with pytest.raises(WriteUncertain, match="Input/output error"):
            await storage.commit(said("a"))
    assert len(disk.writes) == 2  # the creation and the first commit
    await storage.close()


@pytest.mark.parametrize("point, kept", [("commit.before_write", 0), ("commit.after_write", 1)])
async def test_the_fault_points_stand_directly_around_the_write(
    path: Path, clock: HeldClock, point: FaultPoint, kept: int
) -> None:
    faults = StopAt(point)
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, faults=faults)
    before = path.read_bytes()
    with pytest.raises(ProcessEnded):
        await storage.commit(said("a"))
    assert path.read_bytes().count(b"\n") == before.count(b"\n") + kept
    await storage.close()


CHILD = """
import os, pathlib, signal, sys
import anyio
from restartpoint.seams import SystemClock
from restartpoint.storage import JsonlStorage
from tests.harness.storage.stage import said

async def main():
    storage = await JsonlStorage.open(pathlib.Path(sys.argv[1]), clock=SystemClock())
    await storage.commit(said("a"))
    os.kill(os.getpid(), signal.SIGKILL)

anyio.run(main)
"""


def exit_code_of_child(path: Path) -> int:
    environment = {**os.environ, "PYTHONPATH": os.fspath(Path(__file__).parents[4])}
    return subprocess.run([sys.executable, "-c", CHILD, str(path)], env=environment, check=False).returncode


@pytest.mark.covers("ST-1.7-19")
async def test_a_resolved_commit_survives_a_kill(path: Path, clock: HeldClock) -> None:
    await (await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)).close()
    assert exit_code_of_child(path) == -signal.SIGKILL
    storage = await JsonlStorage.open(path, clock=clock)
    assert list(await storage.get_entries(["a"])) == ["a"]
    await storage.close()


async def test_files_are_for_their_owner_only(path: Path, clock: HeldClock) -> None:
    umask = os.umask(0)
    try:
        await (await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)).close()
    finally:
        os.umask(umask)
    modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in path.parent.iterdir()}
    assert modes == {"s1.jsonl": 0o600, "s1.jsonl.lock": 0o600}


async def test_a_storage_open_for_reading_refuses_commits(path: Path, clock: HeldClock) -> None:
    await (await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)).close()
    before = path.read_bytes()
    reader = await JsonlStorage.open(path, clock=clock, read_only=True)
    with pytest.raises(CommitRefused, match="reading only"):
        await reader.commit(said("a"))
    await reader.close()
    assert path.read_bytes() == before


@pytest.mark.parametrize("write", [half, full])
async def test_a_failed_creation_leaves_no_session_and_can_be_repeated(
    path: Path, clock: HeldClock, disk: Disk, write: Callable[[int, bytes], int]
) -> None:
    disk.next_write = write
    with pytest.raises(StorageError, match="cannot be created"):
        await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, calls=disk.calls)
    assert [file.name for file in path.parent.iterdir()] == ["s1.jsonl.lock"]
    await (await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)).close()


@pytest.mark.parametrize("fails_from", [1, 2])
async def test_a_creation_whose_syncs_fail_leaves_no_session_either(
    path: Path, clock: HeldClock, disk: Disk, fails_from: int
) -> None:
    def sync(descriptor: int) -> None:
        disk.failing_sync = disk.syncs + 1 >= fails_from
        disk.fsync(descriptor)

    calls = FileCalls(write=os.write, fsync=sync)
    with pytest.raises(StorageError, match="cannot be created: Input/output error"):
        await JsonlStorage.create(path, METADATA, INITIAL, clock=clock, durability="power", calls=calls)
    assert disk.syncs == fails_from
    assert [file.name for file in path.parent.iterdir()] == ["s1.jsonl.lock"]


async def test_a_refused_initial_transaction_touches_no_file(path: Path, clock: HeldClock) -> None:
    with pytest.raises(CommitRefused):
        await JsonlStorage.create(path, METADATA, Transaction(()), clock=clock)
    assert list(path.parent.iterdir()) == []
