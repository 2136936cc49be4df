"""One commit: admission, claim, statements, index and statistics in one SQL transaction (§1.4, §1.7)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Container
from dataclasses import dataclass
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

__all__ = ["Totals", "Writer", "admit", "apply"]

_IS_ENTRY = "SELECT 1 FROM entries WHERE id = ?"
_IS_TAKEN = "SELECT 1 FROM entries WHERE id = ? UNION ALL SELECT 1 FROM usage_ledger WHERE id = ?"
_REGISTER_SEQ = "SELECT seq FROM registers WHERE namespace = ? AND key = ?"
_SET_REGISTER = """INSERT INTO registers (namespace, key, seq, value) VALUES (?, ?, ?, ?)
    ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value"""
_DELETE_REGISTER = "DELETE FROM registers WHERE namespace = ? AND key = ?"
_INSERT_ENTRY = """INSERT INTO entries (id, parent_id, seq, type, custom_type, timestamp, payload)
    VALUES (?, ?, ?, ?, ?, ?, ?)"""
_INSERT_USAGE = f"INSERT INTO usage_ledger ({rows.USAGE_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?)"
_TOTALS = "SELECT next_seq, message_count, usage_payload FROM session"
_ADVANCE = "UPDATE session SET next_seq = ?, message_count = ?"
_ADVANCE_AND_BILL = "UPDATE session SET next_seq = ?, message_count = ?, usage_payload = ?"
_MOST_TIPS = 32


@dataclass(frozen=True, kw_only=True, slots=True)
class Totals:
    """What the session row counts. Only the owner of the claim changes it: a commit knows it from the one before."""

    next_seq: int
    messages: int
    usage: Usage

    @classmethod
    def stored(cls, connection: sqlite3.Connection) -> Totals:
        """The totals in the file. That of usage may outgrow what the codec takes, so it is Python's own JSON."""
        next_seq, messages, usage = connection.execute(_TOTALS).fetchone()
        return cls(next_seq=next_seq, messages=messages, usage=json.loads(usage))

    def store(self, connection: sqlite3.Connection, *, billed: bool) -> None:
        """Write them, the usage only where the commit has changed it."""
        if billed:
            usage = json.dumps(self.usage, separators=(",", ":"))
            connection.execute(_ADVANCE_AND_BILL, (self.next_seq, self.messages, usage))
        else:
            connection.execute(_ADVANCE, (self.next_seq, self.messages))


def admit(connection: sqlite3.Connection, tx: Transaction, written: Container[str] = ()) -> None:
    """The part of admission that needs the stored state, inside the transaction that is open.

    ``written``: entries that are known to be there.
    """

    def register_seq(namespace: str, key: str) -> int | None:
        row = connection.execute(_REGISTER_SEQ, (namespace, key)).fetchone()
        return None if row is None else row[0]

    check_against_state(
        tx,
        register_seq=register_seq,
        is_taken=lambda key: connection.execute(_IS_TAKEN, (key, key)).fetchone() is not None,
        is_entry=lambda key: key in written or connection.execute(_IS_ENTRY, (key,)).fetchone() is not None,
    )


def apply(
    connection: sqlite3.Connection, tx: Transaction, timestamp: int, before: Totals, tips: dict[str, str]
) -> tuple[CommitResult, Totals]:
    """Write an admitted transaction inside the SQL transaction that is open; nothing is durable yet."""
    first, messages, usage = before.next_seq, before.messages, before.usage
    for seq, write in enumerate(tx.writes, first):
        match write:
            case RegisterSet():
                value = rows.text_of(write.value)
                connection.execute(_SET_REGISTER, (write.namespace.name, write.key, seq, value))
            case InsertEntry(entry=draft):
                messages += _insert_entry(connection, draft, seq, timestamp, tips)
            case InsertUsage(row=row):
                connection.execute(_INSERT_USAGE, rows.usage_columns(row, seq))
                usage = add_usage(usage, row.usage)
            case RegisterDelete():
                connection.execute(_DELETE_REGISTER, (write.namespace.name, write.key))
            case _:
                assert_never(write)
    following = first + len(tx.writes)
    after = Totals(next_seq=following, messages=messages, usage=usage)
    after.store(connection, billed=usage is not before.usage)
    return CommitResult(first_seq=first, seqs=tuple(range(first, following)), timestamp=timestamp), after


def _insert_entry(
    connection: sqlite3.Connection, draft: EntryDraft, seq: int, timestamp: int, tips: dict[str, str]
) -> bool:
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
    branches.append(connection, draft.id, draft.parent_id, seq, type_.value, tips)
    return type_ is EntryType.MESSAGE


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
        self._totals: Totals | None = None
        """As the commit before has left them; None before the first one."""
        self._tips: dict[str, str] = {}
        """The segment at whose tip an entry is, for the tips that this claim wrote last."""

    def commit(self, tx: Transaction) -> CommitResult:
        """Write a whole transaction or nothing; raises what the port says."""
        self._assert_usable()
        check_alone(tx)
        now = self._clock.now_ms()
        self._begin()
        try:
            self._lease.extend(self._connection, now)
            admit(self._connection, tx, self._tips)
            before = Totals.stored(self._connection) if self._totals is None else self._totals
            result, after = apply(self._connection, tx, now, before, self._tips)
            self._faults.reach("commit.before_write")
            self._connection.execute("COMMIT")
            self._faults.reach("commit.after_write")
        except (CommitRefused, StorageCorruption, InvariantBroken):
            sqlite.rollback(self._connection)
            self._tips.clear()
            raise
        except BaseException as error:
            # Whatever it was, nobody was told that the transaction is kept, so nothing may follow (P10).
            sqlite.rollback(self._connection)
            fault = self._poisoned(error)
            if isinstance(error, sqlite3.Error):
                raise fault from error
            raise
        self._totals = after
        while len(self._tips) > _MOST_TIPS:
            del self._tips[next(iter(self._tips))]
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
