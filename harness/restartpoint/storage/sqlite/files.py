"""Session files as paths: what may be opened, how a new one is published whole, how one is removed (§1.7).

Nothing here opens a file that SQLite may have open: closing it would drop SQLite's locks of this whole process.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from restartpoint.errors import CorruptFile, SessionExists, SessionNotFound, StorageError
from restartpoint.storage.jsonl.files import Durability
from restartpoint.storage.jsonl.lock import FileLock

__all__ = [
    "FileId", "check_session_file", "check_stays", "draft_path", "file_id", "make_draft", "publish", "remove",
    "remove_session", "staying",
]  # fmt: skip

FileId: TypeAlias = tuple[int, int]
"""A file whatever its name: its device and its number there, which is not given anew while SQLite has it open."""

_SIDECARS = ("-wal", "-shm", "-journal")


def check_session_file(path: Path, *, writable: bool) -> None:
    """Return when SQLite may open the file.

    Raises:
        SessionNotFound: there is nothing at the path.
        CorruptFile: it is no regular file (a link, a folder, a pipe), is empty, or may not be read or written.
    """
    status = _status(path)
    if not stat.S_ISREG(status.st_mode):
        raise CorruptFile(str(path), f"this is {_kind(status.st_mode)}, not a session file")
    if status.st_size == 0:
        raise CorruptFile(str(path), "the file is empty; no session was ever published like this")
    if not os.access(path, os.R_OK | os.W_OK if writable else os.R_OK):
        raise CorruptFile(str(path), f"this user may not {'write' if writable else 'read'} the file")


def file_id(path: Path) -> FileId:
    """What the path leads to now; a link is not followed.

    Raises:
        SessionNotFound: there is nothing at the path.
        CorruptFile: this user may not look.
    """
    status = _status(path)
    return status.st_dev, status.st_ino


@contextmanager
def staying(path: Path) -> Iterator[FileId]:
    """The file that the block may use; when the path leads elsewhere at its end, the session was deleted meanwhile.

    SQLite opens the sidecars by their names, so a file that lost its own has lost them too, or has found those of
    another session: then nothing that it read or failed with counts.

    Raises:
        SessionNotFound: there is nothing at the path, or no longer the same.
    """
    found = file_id(path)
    try:
        yield found
    except StorageError:
        check_stays(path, found)
        raise
    check_stays(path, found)


def check_stays(path: Path, found: FileId) -> None:
    """Return while the path leads to that file.

    Raises:
        SessionNotFound: the file was removed, and the name may be another session's.
    """
    if file_id(path) != found:
        raise SessionNotFound(path.name)


def draft_path(path: Path, owner_id: str) -> Path:
    """Where a creator prepares a session; no two creators share it, and no listing shows it."""
    return path.with_name(f".{path.name}.{owner_id}.tmp")


def make_draft(path: Path, draft: Path, *, id: str) -> None:
    """An empty owner-only file; SQLite gives its mode to the sidecars.

    Raises:
        SessionExists: the final path is taken.
        StorageError: the file cannot be made.
    """
    if os.path.lexists(path):
        raise SessionExists(id)
    try:
        os.close(os.open(draft, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
    except OSError as error:
        raise StorageError(f"{path}: the session cannot be created: {error.strerror}") from error


def publish(path: Path, draft: Path, *, id: str, durability: Durability) -> None:
    """Give a complete, closed draft its final name, unless the name is taken by now.

    Raises:
        SessionExists: somebody else published first.
        SessionLocked: somebody else creates or deletes it at this moment.
        StorageError: the file cannot be published.
    """
    try:
        if durability == "power":
            _fsync(draft, os.O_RDONLY)
        with _alone_at(path):
            if not os.path.lexists(path):
                # The log of a session that was deleted half-way would be read into the new one.
                _remove_sidecars(path)
            _give_name(draft, path)
        if durability == "power":
            _fsync(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except FileExistsError:
        raise SessionExists(id) from None
    except OSError as error:
        raise StorageError(f"{path}: the session cannot be created: {error.strerror}") from error
    finally:
        remove(draft)


def remove(path: Path) -> None:
    """Remove a draft, then its sidecars; nobody else knows the name."""
    path.unlink(missing_ok=True)
    _remove_sidecars(path)


def remove_session(path: Path, found: FileId) -> None:
    """Remove that session file, then its sidecars, and none of a session that is created there meanwhile.

    Raises:
        SessionNotFound: the path leads elsewhere by now.
        SessionLocked: somebody else creates or deletes it at this moment.
    """
    with _alone_at(path):
        check_stays(path, found)
        remove(path)


def _status(path: Path) -> os.stat_result:
    try:
        return path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        raise SessionNotFound(path.name) from None
    except OSError as error:
        raise CorruptFile(str(path), f"the file cannot be opened: {error.strerror}") from error


@contextmanager
def _alone_at(path: Path) -> Iterator[None]:
    """Nobody else gives the name to a file or takes it away in between: their sidecars have the same names."""
    lock = FileLock.acquire(path)
    try:
        yield
    finally:
        lock.release(remove=True)


def _remove_sidecars(path: Path) -> None:
    for suffix in _SIDECARS:
        path.with_name(f"{path.name}{suffix}").unlink(missing_ok=True)


def _give_name(draft: Path, path: Path) -> None:
    """A hard link refuses a taken name in one step; where the file system has none, the name is looked at first."""
    try:
        os.link(draft, path)
    except FileExistsError:
        raise
    except OSError:
        if os.path.lexists(path):
            raise FileExistsError(path) from None
        draft.rename(path)


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a folder"
    return "a symbolic link" if stat.S_ISLNK(mode) else "a special file"
