"""Any file as a session to read, with what its bytes say besides, or one clear reason why it is none."""

from __future__ import annotations

import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from restartpoint.errors import CorruptFile
from restartpoint.repo import ReadOnlySession, open_session_file
from restartpoint.seams import SystemClock
from restartpoint.storage import SqliteStorage

__all__ = ["Backend", "SessionFile", "open_file"]

Backend: TypeAlias = Literal["jsonl", "sqlite"]

_SQLITE_MAGIC = b"SQLite format 3\0"
_BLOCK = 1 << 16


class SessionFile(msgspec.Struct, frozen=True, kw_only=True):
    """An open session file. ``torn_bytes`` follow the last whole line of a JSONL file; a writer will drop them."""

    path: Path
    backend: Backend
    session: ReadOnlySession
    torn_bytes: int = 0


@asynccontextmanager
async def open_file(path: Path) -> AsyncIterator[SessionFile]:
    """The session in a file, read without a claim and without changing anything; links are followed.

    Raises:
        CorruptFile: there is no file, it may not be read, or it is no session; says where it goes wrong.
        UnsupportedStorageVersion: a newer program wrote it.
        StorageInUse: somebody keeps every reader out.
    """
    target, start, torn = _look(path)
    if start == _SQLITE_MAGIC:  # so that a damaged database is told as one
        storage = await SqliteStorage.open(target, clock=SystemClock(), read_only=True)
        async with ReadOnlySession(storage) as session:
            yield SessionFile(path=path, backend="sqlite", session=session)
    else:
        async with await open_session_file(path) as session:
            yield SessionFile(path=path, backend="jsonl", session=session, torn_bytes=torn)


def _look(path: Path) -> tuple[Path, bytes, int]:
    """The regular file that the path leads to, its first bytes, and how many bytes follow its last line break."""
    try:
        mode = path.stat().st_mode
        if not stat.S_ISREG(mode):  # opening a pipe would wait for its other end
            kind = "a folder; name one session file in it" if stat.S_ISDIR(mode) else "no regular file"
            raise CorruptFile(str(path), f"this is {kind}")
        with path.open("rb") as file:  # a process that has this very file open as SQLite would lose its locks here
            return path.resolve(), file.read(len(_SQLITE_MAGIC)), _after_last_line(file.fileno())
    except (FileNotFoundError, NotADirectoryError):
        raise CorruptFile(str(path), "there is no such file") from None
    except OSError as error:
        raise CorruptFile(str(path), f"the file cannot be read: {error.strerror}") from error


def _after_last_line(descriptor: int) -> int:
    end = os.fstat(descriptor).st_size
    at = end
    while at > 0:
        start = max(0, at - _BLOCK)
        found = os.pread(descriptor, at - start, start).rfind(b"\n")
        if found >= 0:
            return end - (start + found + 1)
        at = start
    return end
