"""One SQLite connection to a session file, and what its errors mean to a caller."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import msgspec

from restartpoint.errors import CommitRefused, CorruptFile, StorageError
from restartpoint.storage.jsonl.files import Durability

__all__ = ["BUSY_TIMEOUT_MS", "begin", "connect", "reading", "rollback", "storage_error"]

BUSY_TIMEOUT_MS = 5_000
"""How long a statement waits for a writer of another connection."""

_STATEMENTS = 256


def connect(path: Path, *, writable: bool, durability: Durability) -> sqlite3.Connection:
    """A connection to an existing file that opens transactions only by explicit statements; it creates no file.

    Nothing else in this process may open and close the file itself: closing any descriptor of a file drops the locks
    by which SQLite keeps other processes from deleting the write-ahead log under this one.
    """
    uri = f"file:{quote(str(path.absolute()))}?mode={'rw' if writable else 'ro'}"
    connection = sqlite3.connect(
        uri, uri=True, isolation_level=None, check_same_thread=False, cached_statements=_STATEMENTS
    )
    try:
        connection.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_MS}")
        if writable:
            connection.execute(f"PRAGMA synchronous = {'FULL' if durability == 'power' else 'NORMAL'}")
        else:
            connection.execute("PRAGMA query_only = ON")
    except BaseException:
        connection.close()
        raise
    return connection


def begin(connection: sqlite3.Connection, path: Path) -> None:
    """Take the write lock before anything is read, since a lock that is taken later could meet a stale snapshot.

    Raises:
        CommitRefused: another program holds the lock for longer than the timeout; nothing was changed.
    """
    try:
        connection.execute("BEGIN IMMEDIATE")
    except sqlite3.OperationalError as error:
        if _primary_code(error) == sqlite3.SQLITE_BUSY:
            raise CommitRefused(
                f"{path}: another program has held the write lock for {BUSY_TIMEOUT_MS} ms; end it and repeat the call"
            ) from error
        raise


def rollback(connection: sqlite3.Connection) -> None:
    """Leave no transaction open: where the rollback itself fails, the connection goes with it."""
    if not connection.in_transaction:
        return
    try:
        connection.execute("ROLLBACK")
    except sqlite3.Error:
        connection.close()


@contextmanager
def reading(path: Path) -> Iterator[None]:
    """Errors of SQLite and of decoding inside the block become storage errors.

    Raises:
        CorruptFile: the file is no database, is damaged, or holds a value that does not fit.
        StorageError: the file cannot be read now.
    """
    try:
        yield
    except sqlite3.Error as error:
        raise storage_error(path, error) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise CorruptFile(str(path), f"a stored value does not fit: {error}") from error


def storage_error(path: Path, error: sqlite3.Error) -> StorageError:
    """What a failed read or open means."""
    code = _primary_code(error)
    if code == sqlite3.SQLITE_NOTADB:
        return CorruptFile(str(path), "this file is no SQLite database")
    if code == sqlite3.SQLITE_CORRUPT:
        return CorruptFile(str(path), f"the database is damaged: {error}")
    if code == sqlite3.SQLITE_ERROR and str(error).startswith("no such"):
        return CorruptFile(str(path), f"this database is no session: {error}")
    return StorageError(f"{path}: SQLite cannot do it now: {error}")


def _primary_code(error: sqlite3.Error) -> int:
    """The result code without its extension; 0 where SQLite gave none."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF
