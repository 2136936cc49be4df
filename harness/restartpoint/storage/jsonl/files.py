"""Opening, publishing and deleting session files; every refusal is one error that says what the path is."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

from restartpoint.errors import CorruptFile, SessionExists, SessionNotFound, StorageError
from restartpoint.storage.jsonl.lock import FileLock

__all__ = ["Durability", "FileCalls", "assert_free", "delete", "open_session", "publish"]

Durability: TypeAlias = Literal["process", "power"]
"""What a resolved commit survives: the death of the process, or the loss of power (fsync per commit)."""


@dataclass(frozen=True)
class FileCalls:
    """The calls that make a commit durable, as a seam for tests of failing disks."""

    write: Callable[[int, bytes], int] = os.write
    fsync: Callable[[int], None] = os.fsync


def open_session(path: Path, *, writable: bool) -> int:
    """A descriptor of an existing session file, appending when writable.

    Raises:
        SessionNotFound: there is nothing at the path.
        CorruptFile: it is no regular file (a link, a folder, a pipe), or it may not be read.
    """
    try:
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode):
            raise CorruptFile(str(path), f"this is {_kind(mode)}, not a session file")
        return os.open(path, (os.O_RDWR | os.O_APPEND if writable else os.O_RDONLY) | os.O_NOFOLLOW)
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFound(path.name) from None
    except OSError as error:
        raise CorruptFile(str(path), f"the file cannot be opened: {error.strerror}") from error


def assert_free(path: Path, id: str) -> None:
    """Return when nothing is at the path.

    Raises:
        SessionExists: something is, whether a session or not.
    """
    if os.path.lexists(path):
        raise SessionExists(id)


def publish(path: Path, content: bytes, *, id: str, durability: Durability, calls: FileCalls) -> int:
    """Create the session file whole or not at all, owner-only; an appending descriptor of it. Hold its lock.

    Raises:
        SessionExists: the path is taken.
        StorageError: the file cannot be written; there is none.
    """
    assert_free(path, id)
    sibling = path.with_name(f"{path.name}.tmp")
    try:
        sibling.unlink(missing_ok=True)
        descriptor = os.open(sibling, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL, 0o600)
    except OSError as error:
        raise _not_created(path, error.strerror) from error
    made = sibling
    try:
        if calls.write(descriptor, content) != len(content):
            raise _not_created(path, "the disk took only a part of it")
        if durability == "power":
            calls.fsync(descriptor)
        made = sibling.rename(path)
        if durability == "power":
            _fsync_folder(path.parent, calls)
    except OSError as error:
        _discard(made, descriptor)
        raise _not_created(path, error.strerror) from error
    except StorageError:
        _discard(made, descriptor)
        raise
    return descriptor


def delete(path: Path) -> None:
    """Remove a session file and its sidecar.

    Raises:
        SessionNotFound: there is nothing at the path.
        SessionLocked: somebody has the session open for writing.
    """
    if not os.path.lexists(path):
        raise SessionNotFound(path.name)
    lock = FileLock.acquire(path)
    try:
        path.unlink(missing_ok=True)
    finally:
        lock.release(remove=True)


def _not_created(path: Path, reason: str | None) -> StorageError:
    return StorageError(f"{path}: the session cannot be created: {reason}")


def _discard(made: Path, descriptor: int) -> None:
    os.close(descriptor)
    made.unlink(missing_ok=True)


def _fsync_folder(folder: Path, calls: FileCalls) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        calls.fsync(descriptor)
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a symbolic link" if stat.S_ISLNK(mode) else "a special file"
