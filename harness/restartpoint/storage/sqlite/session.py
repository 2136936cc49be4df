"""The synchronous core of the SQLite backend: one session file, opened, read, written and closed on one thread."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from restartpoint.contract.json import UNSET
from restartpoint.contract.metadata import STORAGE_VERSION, SessionMetadata
from restartpoint.contract.usage import zero_usage
from restartpoint.contract.writes import CommitResult, Transaction
from restartpoint.errors import CommitRefused, CorruptFile, StorageError, UnsupportedStorageVersion
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints
from restartpoint.storage.admission import check_alone
from restartpoint.storage.jsonl.files import Durability
from restartpoint.storage.sqlite import connection as sqlite
from restartpoint.storage.sqlite import files, rows
from restartpoint.storage.sqlite.files import FileId
from restartpoint.storage.sqlite.lease import Lease, LeaseRenewer, LeaseSettings, acquire, insert
from restartpoint.storage.sqlite.queries import Queries
from restartpoint.storage.sqlite.schema import SCHEMA
from restartpoint.storage.sqlite.writing import Totals, Writer, admit, apply

__all__ = ["SqliteSession", "delete_file", "publish_file", "read_metadata"]

R = TypeVar("R")

_INSERT_SESSION = """INSERT INTO session
    (created_at, parent_session_id, storage_version, metadata, message_count, usage_payload, next_seq)
    VALUES (?, ?, ?, ?, 0, ?, 1)"""


class SqliteSession:
    """A session file in use. ``metadata`` is set once it is open. Every call happens on the hop's thread."""

    metadata: SessionMetadata

    def __init__(self, path: Path, *, clock: Clock, durability: Durability, faults: FaultPoints) -> None:
        self._path = path
        self._clock = clock
        self._durability: Durability = durability
        self._faults = faults
        self._connection: sqlite3.Connection | None = None
        self._queries: Queries | None = None
        self._writer: Writer | None = None
        self._renewer: LeaseRenewer | None = None

    def open_for_reading(self) -> None:
        """Open without any claim; raises what ``SqliteStorage.open`` lists."""
        with files.staying(self._path):
            self._connect(writable=False)

    def open_for_writing(self, owner_id: str, settings: LeaseSettings) -> None:
        """Open and take the claim; raises what ``SqliteStorage.open`` lists."""
        with files.staying(self._path) as found, sqlite.reading(self._path):
            connection = self._connect(writable=True)
            now_ms = self._clock.now_ms()
            lease = acquire(connection, self._path, found, owner_id=owner_id, ttl_ms=settings.ttl_ms, now_ms=now_ms)
            connection.execute("PRAGMA journal_mode = WAL")  # a copy that VACUUM INTO made has another mode
        self._write_under(connection, lease, settings)

    def create(self, metadata: SessionMetadata, initial: Transaction, owner_id: str, settings: LeaseSettings) -> None:
        """Publish a new session with its first transaction, claimed, and open it."""
        lease = Lease(path=self._path, owner_id=owner_id, fence=1, ttl_ms=settings.ttl_ms)
        publish_file(
            self._path, metadata, initial, lease=lease, now_ms=self._clock.now_ms(), durability=self._durability
        )
        self._write_under(self._connect(writable=True), lease, settings)

    def read(self, query: Callable[[Queries], R]) -> R:
        """The answer of a query. Without a claim others may write meanwhile, so it is one snapshot."""
        assert self._connection is not None
        assert self._queries is not None
        with sqlite.reading(self._path):
            if self._writer is not None:
                return query(self._queries)
            self._connection.execute("BEGIN")
            try:
                return query(self._queries)
            finally:
                sqlite.rollback(self._connection)

    def commit(self, tx: Transaction) -> CommitResult:
        """See ``Storage.commit``."""
        return self._claimed().commit(tx)

    def renew_lease(self) -> None:
        """See ``SqliteStorage.renew_lease``."""
        self._claimed().renew()

    def close(self) -> None:
        """Stop the renewal, give up the claim, close; does nothing where nothing is open."""
        if self._renewer is not None:
            self._renewer.stop()
            self._renewer = None
        connection, self._connection = self._connection, None
        writer, self._writer = self._writer, None
        if connection is None:
            return
        try:
            if writer is not None:
                with suppress(StorageError):  # where the disk fails, the claim expires by itself
                    writer.release()
        finally:
            connection.close()

    def _connect(self, *, writable: bool) -> sqlite3.Connection:
        files.check_session_file(self._path, writable=writable)
        with sqlite.reading(self._path):
            connection = sqlite.connect(self._path, writable=writable, durability=self._durability)
            try:
                self.metadata = _stored_metadata(connection, self._path)
            except BaseException:
                connection.close()
                raise
        self._connection = connection
        self._queries = Queries(connection)
        return connection

    def _write_under(self, connection: sqlite3.Connection, lease: Lease, settings: LeaseSettings) -> None:
        self._writer = Writer(connection, self._path, lease, clock=self._clock, faults=self._faults)
        if settings.background:
            self._renewer = LeaseRenewer(lease, renew_ms=settings.renew_ms, clock=self._clock)
            self._renewer.start()

    def _claimed(self) -> Writer:
        if self._writer is None:
            raise CommitRefused(f"{self._path} is open for reading only; open it for writing to commit")
        return self._writer


def publish_file(
    path: Path,
    metadata: SessionMetadata,
    initial: Transaction,
    *,
    lease: Lease,
    now_ms: int,
    durability: Durability,
) -> None:
    """Make a session file beside its path, complete and claimed, and give it its name.

    Raises:
        SessionExists: the path is taken.
        StorageError: the file cannot be written, or what ``commit`` raises; there is no session then.
    """
    check_alone(initial)
    draft = files.draft_path(path, lease.owner_id)
    files.make_draft(path, draft, id=metadata.id)
    try:
        with sqlite.reading(path):
            connection = sqlite.connect(draft, writable=True, durability="process")
            try:
                _fill(connection, metadata, initial, lease, now_ms)
            finally:
                connection.close()
    except BaseException:
        files.remove(draft)
        raise
    files.publish(path, draft, id=metadata.id, durability=durability)


def _fill(
    connection: sqlite3.Connection, metadata: SessionMetadata, initial: Transaction, lease: Lease, now_ms: int
) -> None:
    connection.execute("PRAGMA journal_mode = WAL")
    connection.execute("BEGIN IMMEDIATE")
    for statement in SCHEMA:
        connection.execute(statement)
    parent_id = None if metadata.parent_session_id is UNSET else metadata.parent_session_id
    usage = json.dumps(zero_usage(), separators=(",", ":"))
    connection.execute(
        _INSERT_SESSION, (metadata.created_at, parent_id, metadata.storage_version, rows.text_of(metadata), usage)
    )
    insert(connection, lease, now_ms)
    admit(connection, initial)
    apply(connection, initial, now_ms, Totals.stored(connection), {})
    connection.execute("COMMIT")


def read_metadata(path: Path) -> SessionMetadata:
    """The identity of a session, without a claim; raises what opening raises."""
    with files.staying(path), sqlite.reading(path):
        files.check_session_file(path, writable=False)
        connection = sqlite.connect(path, writable=False, durability="process")
        try:
            return _stored_metadata(connection, path)
        finally:
            connection.close()


def delete_file(path: Path, *, owner_id: str, settings: LeaseSettings, clock: Clock) -> None:
    """Remove a session that nobody claims.

    Raises:
        SessionNotFound: there is nothing at the path.
        LeaseHeld: somebody has the session open.
        SessionLocked: somebody else creates or deletes it at this moment.
        StorageError: the file cannot be removed.
    """
    with files.staying(path) as found:
        try:
            lease = _claimed(path, found, owner_id=owner_id, ttl_ms=settings.ttl_ms, now_ms=clock.now_ms())
        except CorruptFile:
            lease = None  # what is no session has no owner either
    try:
        files.remove_session(path, found)
    except (OSError, StorageError) as error:
        if lease is not None:
            _give_back(path, lease)
        if isinstance(error, StorageError):
            raise
        raise StorageError(f"{path}: the session cannot be removed: {error.strerror}") from error


def _claimed(path: Path, found: FileId, *, owner_id: str, ttl_ms: int, now_ms: int) -> Lease:
    """The claim of a session, taken with a connection that is closed again."""
    files.check_session_file(path, writable=True)
    with sqlite.reading(path):
        connection = sqlite.connect(path, writable=True, durability="process")
        try:
            return acquire(connection, path, found, owner_id=owner_id, ttl_ms=ttl_ms, now_ms=now_ms)
        finally:
            connection.close()


def _give_back(path: Path, lease: Lease) -> None:
    """Remove the claim of a session that stays; where that fails too, the claim expires by itself."""
    with suppress(StorageError), sqlite.reading(path):
        connection = sqlite.connect(path, writable=True, durability="process")
        try:
            lease.release(connection)
        finally:
            connection.close()


def _stored_metadata(connection: sqlite3.Connection, path: Path) -> SessionMetadata:
    """The session row; read before anything is written, so that a newer file stays as it is."""
    found = connection.execute("SELECT storage_version, metadata FROM session").fetchall()
    if len(found) != 1:
        raise CorruptFile(str(path), f"the session table has {len(found)} rows instead of one")
    version, metadata = found[0]
    if type(version) is not int or version < 1:
        raise CorruptFile(str(path), f"the storage version is {version!r}, not a whole number from 1 up")
    if version > STORAGE_VERSION:
        raise UnsupportedStorageVersion(str(path), version, STORAGE_VERSION)
    return rows.metadata_of(version, metadata)
