"""The writer lease: expiring, fenced ownership of a session file (§1.7)."""

from __future__ import annotations

import sqlite3
import threading
from dataclasses import dataclass
from pathlib import Path

from restartpoint.errors import CommitRefused, InvalidOptions, LeaseHeld, LeaseLost
from restartpoint.seams.clock import Clock
from restartpoint.storage.sqlite import connection as sqlite
from restartpoint.storage.sqlite import files
from restartpoint.storage.sqlite.files import FileId

__all__ = ["Lease", "LeaseRenewer", "LeaseSettings", "acquire", "insert"]


@dataclass(frozen=True, kw_only=True)
class LeaseSettings:
    """How long a claim lasts without renewal, how often it is renewed while idle, and whether a thread does that.

    With ``background`` off, somebody calls ``SqliteStorage.renew_lease`` every ``renew_ms`` milliseconds.
    """

    ttl_ms: int = 30_000
    renew_ms: int = 10_000
    background: bool = True

    def __post_init__(self) -> None:
        if not 0 < self.renew_ms < self.ttl_ms:
            raise InvalidOptions("lease", "renew_ms must be above 0 and below ttl_ms")


@dataclass(frozen=True, kw_only=True)
class Lease:
    """A claim that was taken: the pair of owner and fence never occurs again."""

    path: Path
    owner_id: str
    fence: int
    ttl_ms: int

    def extend(self, connection: sqlite3.Connection, now_ms: int) -> None:
        """Check and extend the claim inside the transaction that is open. An expired claim that nobody took holds.

        Raises:
            LeaseLost: somebody took it.
        """
        updated = connection.execute(
            "UPDATE writer_lease SET expires_at_ms = ? WHERE owner_id = ? AND fence = ?",
            (now_ms + self.ttl_ms, self.owner_id, self.fence),
        )
        if updated.rowcount != 1:
            raise LeaseLost(
                f"{self.path}: another writer took the session over, so nothing of this was written; open it again"
            )

    def release(self, connection: sqlite3.Connection) -> None:
        """Remove the claim if it is still this one, on a full disk too if the database itself has the room."""
        try:
            self._remove(connection)
        except sqlite3.OperationalError:
            # The log cannot grow. Once its content is in the database, the next transaction begins it anew.
            sqlite.rollback(connection)
            connection.execute("PRAGMA wal_checkpoint(PASSIVE)")
            self._remove(connection)

    def _remove(self, connection: sqlite3.Connection) -> None:
        sqlite.begin(connection, self.path)
        connection.execute("DELETE FROM writer_lease WHERE owner_id = ? AND fence = ?", (self.owner_id, self.fence))
        connection.execute("COMMIT")


def insert(connection: sqlite3.Connection, lease: Lease, now_ms: int) -> None:
    """Replace whatever claim there is, inside the transaction that is open."""
    connection.execute("DELETE FROM writer_lease")
    connection.execute(
        "INSERT INTO writer_lease (owner_id, fence, expires_at_ms) VALUES (?, ?, ?)",
        (lease.owner_id, lease.fence, now_ms + lease.ttl_ms),
    )


def acquire(
    connection: sqlite3.Connection, path: Path, found: FileId, *, owner_id: str, ttl_ms: int, now_ms: int
) -> Lease:
    """The claim of the session in the file that was found at the path, now this owner's.

    Raises:
        SessionNotFound: the path leads elsewhere by now, so the log that is open may be another session's.
        LeaseHeld: another owner's claim has not expired.
        CommitRefused: another program holds the write lock.
    """
    sqlite.begin(connection, path)
    try:
        files.check_stays(path, found)
        row = connection.execute("SELECT owner_id, fence, expires_at_ms FROM writer_lease").fetchone()
        if row is not None and row[2] > now_ms:
            raise LeaseHeld(str(path), row[0], row[2])
        lease = Lease(path=path, owner_id=owner_id, fence=1 if row is None else row[1] + 1, ttl_ms=ttl_ms)
        insert(connection, lease, now_ms)
        connection.execute("COMMIT")
    except BaseException:
        sqlite.rollback(connection)
        raise
    return lease


class LeaseRenewer:
    """Extends the claim from one daemon thread with a connection of its own, whatever the event loop does."""

    def __init__(self, lease: Lease, *, renew_ms: int, clock: Clock) -> None:
        self._lease = lease
        self._renew_ms = renew_ms
        self._clock = clock
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="restartpoint-lease", daemon=True)

    def start(self) -> None:
        """Begin; the first renewal comes after one interval."""
        self._thread.start()

    def stop(self) -> None:
        """Return when the thread has ended and its connection is closed."""
        self._stop.set()
        self._thread.join()

    def _run(self) -> None:
        connection: sqlite3.Connection | None = None
        while not self._stop.wait(self._renew_ms / 1000):
            try:
                if connection is None:
                    connection = sqlite.connect(self._lease.path, writable=True, durability="process")
                self._renew(connection)
            except LeaseLost:
                break  # the next commit finds out by itself
            except (sqlite3.Error, CommitRefused):
                continue  # a busy or failing disk: commits extend the claim too, and the next interval tries again
        if connection is not None:
            connection.close()

    def _renew(self, connection: sqlite3.Connection) -> None:
        sqlite.begin(connection, self._lease.path)
        try:
            self._lease.extend(connection, self._clock.now_ms())
            connection.execute("COMMIT")
        finally:
            sqlite.rollback(connection)
