"""Paths that hold no session are refused with one clear error, and nothing is changed or created."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from restartpoint.errors import CorruptFile, SessionExists, SessionNotFound, StorageError
from restartpoint.storage import JsonlStorage
from tests.harness.storage.stage import INITIAL, METADATA, HeldClock, said

REFUSALS: dict[str, tuple[Callable[[Path], object], type[Exception], str]] = {
    "nothing": (lambda path: None, SessionNotFound, "no session"),
    "a folder": (lambda path: path.mkdir(), CorruptFile, "a folder, not a session file"),
    "a link to a session": (lambda path: path.symlink_to("other.jsonl"), CorruptFile, "a symbolic link"),
    "a broken link": (lambda path: path.symlink_to("nowhere"), CorruptFile, "a symbolic link"),
    "a pipe": (os.mkfifo, CorruptFile, "a special file"),
    "an empty file": (lambda path: path.write_bytes(b""), CorruptFile, "the file is empty"),
    "another file": (lambda path: path.write_bytes(b"\x7fELF\0\n"), CorruptFile, "line 1 (byte 0)"),
}


@pytest.mark.parametrize("make, error, text", REFUSALS.values(), ids=REFUSALS.keys())
async def test_what_is_no_session_is_refused_the_same_way_by_each_reader(
    path: Path, clock: HeldClock, make: Callable[[Path], object], error: type[Exception], text: str
) -> None:
    await (await JsonlStorage.create(path.with_name("other.jsonl"), METADATA, INITIAL, clock=clock)).close()
    make(path)
    there = os.path.lexists(path)
    for refused in (
        JsonlStorage.open(path, clock=clock, read_only=True),
        JsonlStorage.read_metadata(path),
        JsonlStorage.open(path, clock=clock),
    ):
        with pytest.raises(error) as found:
            await refused
        assert text in str(found.value)
    assert os.path.lexists(path) == there


async def test_a_missing_session_gets_no_lock_file(path: Path, clock: HeldClock) -> None:
    for missing in (path, path.parent / "no" / "folder.jsonl"):
        with pytest.raises(SessionNotFound):
            await JsonlStorage.open(missing, clock=clock)
    assert list(path.parent.iterdir()) == []


@pytest.mark.parametrize("make", [lambda path: path.write_bytes(b"mine"), lambda path: path.symlink_to("nowhere")])
async def test_creating_replaces_nothing(path: Path, clock: HeldClock, make: Callable[[Path], object]) -> None:
    make(path)
    before = path.lstat()
    for _ in range(2):
        with pytest.raises(SessionExists):
            await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    assert os.path.samestat(path.lstat(), before)


async def test_a_folder_that_does_not_exist_is_said(path: Path, clock: HeldClock) -> None:
    with pytest.raises(StorageError, match="cannot be opened: No such file"):
        await JsonlStorage.create(path.parent / "no" / "s.jsonl", METADATA, INITIAL, clock=clock)


@pytest.mark.covers("ST-1.7-31")
async def test_a_creation_that_was_cut_short_leaves_no_session_whatever_it_had_written(
    path: Path, clock: HeldClock
) -> None:
    """Before the rename there is only the sibling, of any length; after it the session is whole."""
    model = path.with_name("model.jsonl")
    storage = await JsonlStorage.create(model, METADATA, INITIAL, clock=clock)
    await storage.close()
    whole = model.read_bytes()
    sibling = path.with_name("s1.jsonl.tmp")
    for length in range(0, len(whole) + 1, 7):
        sibling.write_bytes(whole[:length])
        with pytest.raises(SessionNotFound):
            await JsonlStorage.open(path, clock=clock)
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await storage.commit(said("a"))
    await storage.close()
    assert path.read_bytes().startswith(whole)
    assert not sibling.exists()
