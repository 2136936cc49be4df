"""One commit: admission, claim, statements, index and statistics in one SQL transaction (§1.4, §1.7)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import assert_never

from restartpoint.contract.entries import EntryDraft, EntryType, custom_type_of, entry_type_of
from restartpoint.contract.usage import Usage, add_usage
from restartpoint.contract.writes import (
    CommitResult,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    Transaction,
)
from restartpoint.errors import (
    CommitRefused,
    InvariantBroken,
    LeaseLost,
    StorageCorruption,
    StorageFault,
    WriteUncertain,
)
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints
from restartpoint.storage.admission import check_against_state, check_alone
from restartpoint.storage.sqlite import branches, rows
from restartpoint.storage.sqlite import connection as sqlite
from restartpoint.storage.sqlite.lease import Lease

__all__ = ["Writer", "admit", "apply"]

_IS_ENTRY = "SELECT 1 FROM entries WHERE id = ?"
_IS_TAKEN = "SELECT 1 FROM entries WHERE id = ? UNION ALL SELECT 1 FROM usage_ledger WHERE id = ?"
_REGISTER_SEQ = "SELECT seq FROM registers WHERE namespace = ? AND key = ?"
_SET_REGISTER = """INSERT INTO registers (namespace, key, seq, value) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value"""
_DELETE_REGISTER = "DELETE FROM registers WHERE namespace = ? AND key = ?"
_INSERT_ENTRY = """INSERT INTO entries (id, parent_id, seq, type, custom_type, timestamp, payload)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_INSERT_USAGE = f"INSERT INTO usage_ledger ({rows.USAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_ADVANCE = "UPDATE session SET next_seq = ?, message_count = message_count + ?"
_ADD_USAGE = "UPDATE session SET usage_payload = ?"


def admit(connection: sqlite3.Connection, tx: Transaction) -> None:
    """The part of admission that needs the stored state, inside the transaction that is open."""

    def register_seq(namespace: str, key: str) -> int | None:
        row = connection.execute(_REGISTER_SEQ, (namespace, key)).fetchone()
        return None if row is None else row[0]

    check_against_state(
        tx,
        register_seq=register_seq,
        is_taken=lambda key: connection.execute(_IS_TAKEN, (key, key)).fetchone() is not None,
        is_entry=lambda key: connection.execute(_IS_ENTRY, (key,)).fetchone() is not None,
    )


def apply(connection: sqlite3.Connection, tx: Transaction, timestamp: int) -> CommitResult:
    """Write an admitted transaction inside the SQL transaction that is open; nothing is durable yet."""
    first: int = connection.execute("SELECT next_seq FROM session").fetchone()[0]
    messages = 0
    usages: list[Usage] = []
    for seq, write in enumerate(tx.writes, first):
        match write:
            case RegisterSet():
                value = rows.text_of(write.value)
                connection.execute(_SET_REGISTER, (write.namespace.name, write.key, seq, value))
            case InsertEntry(entry=draft):
                messages += _insert_entry(connection, draft, seq, timestamp)
            case InsertUsage(row=row):
                connection.execute(_INSERT_USAGE, rows.usage_columns(row, seq))
                usages.append(row.usage)
            case RegisterDelete():
                connection.execute(_DELETE_REGISTER, (write.namespace.name, write.key))
            case _:
                assert_never(write)
    following = first + len(tx.writes)
    connection.execute(_ADVANCE, (following, messages))
    if usages:
        _add_usages(connection, usages)
    return CommitResult(first_seq=first, seqs=tuple(range(first, following)), timestamp=timestamp)


def _insert_entry(connection: sqlite3.Connection, draft: EntryDraft, seq: int, timestamp: int) -> bool:
    """Insert and index an entry; whether it is a message."""
    type_ = entry_type_of(draft.payload)
    connection.execute(
        _INSERT_ENTRY,
        (
            draft.id,
            draft.parent_id,
            seq,
            type_.value,
            custom_type_of(draft.payload),
            timestamp,
            rows.payload_text(draft),
        ),
    )
    branches.append(connection, draft.id, draft.parent_id, seq, type_.value)
    return type_ is EntryType.MESSAGE


def _add_usages(connection: sqlite3.Connection, usages: Sequence[Usage]) -> None:
    """Continue the sum from left to right. The total may outgrow what the codec takes, so it is Python's own JSON."""
    total: Usage = json.loads(connection.execute("SELECT usage_payload FROM session").fetchone()[0])
    for usage in usages:
        total = add_usage(total, usage)
    connection.execute(_ADD_USAGE, (json.dumps(total, separators=(",", ":")),))


class Writer:
    """The commits of one claimed session. Everything here happens on the connection's thread."""

    def __init__(
        self, connection: sqlite3.Connection, path: Path, lease: Lease, *, clock: Clock, faults: FaultPoints
    ) -> None:
        self._connection = connection
        self._path = path
        self._lease = lease
        self._clock = clock
        self._faults = faults
        self._fault: StorageFault | None = None

    def commit(self, tx: Transaction) -> CommitResult:
        """Write a whole transaction or nothing; raises what the port says."""
        self._assert_usable()
        check_alone(tx)
        now = self._clock.now_ms()
        self._begin()
        try:
            self._lease.extend(self._connection, now)
            admit(self._connection, tx)
            result = apply(self._connection, tx, now)
            self._faults.reach("commit.before_write")
            self._connection.execute("COMMIT")
            self._faults.reach("commit.after_write")
        except (CommitRefused, StorageCorruption, InvariantBroken):
            sqlite.rollback(self._connection)
            raise
        except BaseException as error:
            # Whatever it was, nobody was told that the transaction is kept, so nothing may follow (P10).
            sqlite.rollback(self._connection)
            fault = self._poisoned(error)
            if isinstance(error, sqlite3.Error):
                raise fault from error
            raise
        return result

    def renew(self) -> None:
        """Check and extend the claim in a transaction of its own; raises ``LeaseLost`` or ``CommitRefused``."""
        self._assert_usable()
        self._begin()
        try:
            self._lease.extend(self._connection, self._clock.now_ms())
            self._connection.execute("COMMIT")
        except sqlite3.Error as error:
            sqlite.rollback(self._connection)
            raise self._poisoned(error) from error
        except LeaseLost as error:
            sqlite.rollback(self._connection)
            self._poisoned(error)
            raise

    def release(self) -> None:
        """Remove the claim if it is still this one."""
        with sqlite.reading(self._path):
            self._lease.release(self._connection)

    def _begin(self) -> None:
        try:
            sqlite.begin(self._connection, self._path)
        except sqlite3.Error as error:
            raise self._poisoned(error) from error

    def _assert_usable(self) -> None:
        if self._fault is not None:
            raise self._fault

    def _poisoned(self, error: BaseException) -> StorageFault:
        """The fault that every later commit raises too."""
        if isinstance(error, StorageFault):
            self._fault = error
        else:
            self._fault = WriteUncertain(
                f"{self._path}: a commit was cut short: {error!r}; reopen the session, which keeps whole commits only"
            )
            self._fault.__cause__ = error
        return self._fault
