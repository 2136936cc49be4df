"""One session file, opened for reading whatever its name, folder and backend (`restartpoint inspect`)."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from os import PathLike
from pathlib import Path
from urllib.parse import quote

from restartpoint.errors import CorruptFile, SessionNotFound
from restartpoint.repo.port import ReadOnlySession
from restartpoint.seams import SystemClock
from restartpoint.storage import JsonlStorage, SqliteStorage

__all__ = ["open_session_file"]


async def open_session_file(path: str | PathLike[str]) -> ReadOnlySession:
    """A reader of a JSONL or SQLite session; the content says which, links are followed.

    Takes no lock or lease and never writes; the session may be open elsewhere.

    Raises:
        SessionNotFound: there is no file at the path.
        CorruptFile: the file is no session, or cannot be read.
        UnsupportedStorageVersion: a newer program wrote it.
    """
    file = _resolved(Path(path))
    clock = SystemClock()
    if _is_sqlite(file):
        return ReadOnlySession(await SqliteStorage.open(file, clock=clock, read_only=True))
    return ReadOnlySession(await JsonlStorage.open(file, clock=clock, read_only=True))


def _resolved(path: Path) -> Path:
    try:
        return path.resolve(strict=True)
    except FileNotFoundError:
        raise SessionNotFound(str(path)) from None
    except OSError as error:
        raise CorruptFile(str(path), f"the file cannot be opened: {error.strerror}") from error


def _is_sqlite(path: Path) -> bool:
    """Whether SQLite takes the file for a database that holds something.

    SQLite itself has to look: opening and closing the file ourselves would drop the locks of a session that this
    process has open.
    """
    if not path.is_file():
        return False
    try:
        with closing(sqlite3.connect(f"file:{quote(str(path))}?mode=ro", uri=True)) as connection:
            (version,) = connection.execute("PRAGMA schema_version").fetchone()
            return bool(version)
    except sqlite3.DatabaseError as error:
        return error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_NOTADB
