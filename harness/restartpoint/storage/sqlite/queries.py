"""Every read of the port over one connection, each driven by an index (§1.5, §2.5)."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable, Sequence
from typing import Any, TypeVar

from restartpoint.contract.entries import Entry, EntryStructure, EntryType
from restartpoint.contract.queries import BranchScan, EntryScan, SessionStats, UsageScan
from restartpoint.contract.registers import Namespace, Register, RegisterKey
from restartpoint.contract.usage import UsageRow
from restartpoint.errors import InvalidQuery, StorageCorruption, UnknownEntry
from restartpoint.storage.limit import checked_limit
from restartpoint.storage.sqlite import branches, rows
from restartpoint.storage.sqlite.branches import Segment

__all__ = ["BATCH", "Queries", "segment_sql"]

V = TypeVar("V")
R = TypeVar("R")

BATCH = 500
"""How many ids one statement asks for."""

_LARGEST = 2**63 - 1
_LAST_CODE_POINT = "\U0010ffff"


class Queries:
    """The reads of one session over its connection; values are decoded where they are read."""

    def __init__(self, connection: sqlite3.Connection) -> None:
        self._connection = connection

    def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist among ``ids``, by id."""
        wanted = [key for key in dict.fromkeys(ids) if _is_storable(key)]
        found: dict[str, Entry] = {}
        for start in range(0, len(wanted), BATCH):
            batch = wanted[start : start + BATCH]
            places = ",".join("?" * len(batch))
            sql = f"SELECT {rows.ENTRY_COLUMNS} FROM entries e WHERE e.id IN ({places})"
            for columns in self._connection.execute(sql, batch):
                entry = rows.entry_of(columns)
                found[entry.id] = entry
        return found

    def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        """The register, or None."""
        if not _is_storable(key):
            return None
        row = self._connection.execute(
            "SELECT seq, value FROM registers WHERE namespace = ? AND key = ?", (namespace.name, key)
        ).fetchone()
        return (
            None if row is None else Register(namespace=namespace, key=key, value=namespace.decode(row[1]), seq=row[0])
        )

    def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        """The registers in the order of ``keys``, None where there is none."""
        return [self.get_register(namespace, key) for namespace, key in keys]

    def list_registers(
        self, namespace: Namespace[V], key_prefix: str = "", limit: int | None = None
    ) -> list[Register[V]]:
        """The registers whose key starts with the prefix, ascending by code points."""
        if not _is_storable(key_prefix):
            return []
        sql, arguments = "SELECT key, seq, value FROM registers WHERE namespace = ? AND key >= ?", [key_prefix]
        end = _end_of_prefix(key_prefix)
        if end is not None:
            sql, arguments = f"{sql} AND key < ?", [key_prefix, end]
        found = self._connection.execute(f"{sql} ORDER BY key LIMIT ?", (namespace.name, *arguments, _sql_limit(limit)))
        return [
            Register(namespace=namespace, key=key, value=namespace.decode(value), seq=seq) for key, seq, value in found
        ]

    def scan_branch(self, query: BranchScan) -> list[Entry]:
        """The entries that a branch scan selects; reads only the segments and rows that the answer needs."""
        return [rows.entry_of(columns) for columns in self._branch_rows(query, rows.ENTRY_COLUMNS)]

    def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        """The same without payloads."""
        return [rows.structure_of(columns) for columns in self._branch_rows(query, rows.STRUCTURE_COLUMNS)]

    def scan_entries(self, query: EntryScan) -> list[Entry]:
        """The entries that an inventory selects, by sequence."""
        limit = _sql_limit(query.limit)
        conditions, arguments = _seq_range("e.seq", query.from_seq, query.to_seq)
        if query.type is not None:
            conditions, arguments = f"{conditions} AND e.type = ?", [*arguments, query.type.value]
        if query.custom_type is not None:
            if not _is_storable(query.custom_type):
                return []
            conditions, arguments = f"{conditions} AND e.custom_type = ?", [*arguments, query.custom_type]
        order = "DESC" if query.order == "desc" else "ASC"
        sql = f"SELECT {rows.ENTRY_COLUMNS} FROM entries e WHERE {conditions} ORDER BY e.seq {order} LIMIT ?"
        return [rows.entry_of(columns) for columns in self._connection.execute(sql, (*arguments, limit))]

    def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        """The ledger rows that a scan selects, by sequence."""
        limit = _sql_limit(query.limit)
        conditions, arguments = _seq_range("seq", query.from_seq, query.to_seq)
        order = "DESC" if query.order == "desc" else "ASC"
        sql = f"SELECT {rows.USAGE_COLUMNS} FROM usage_ledger WHERE {conditions} ORDER BY seq {order} LIMIT ?"
        return [rows.usage_of(columns) for columns in self._connection.execute(sql, (*arguments, limit))]

    def get_stats(self) -> SessionStats:
        """Message count and ledger total, as the commits maintain them."""
        count, usage = self._connection.execute("SELECT message_count, usage_payload FROM session").fetchone()
        return SessionStats(message_count=count, usage=json.loads(usage))

    # --- branch scans -----------------------------------------------------------------------------------------------

    def _branch_rows(self, query: BranchScan, columns: str) -> list[Any]:
        limit = _sql_limit(query.limit)
        if query.start is None:
            raise InvalidQuery("a branch scan of a storage needs a start; a session view fills in its lane's leaf")
        path = branches.segments(self._connection, query.start) if _is_storable(query.start) else iter(())
        newest = next(path, None)
        if newest is None:
            raise self._unindexed(query.start)
        if limit == 0 or (query.custom_type is not None and not _is_storable(query.custom_type)):
            return []
        if query.order == "newestFirst":
            return self._newest_first(_chain(newest, path), query, columns, limit)
        return self._oldest_first([newest, *path], query, columns, limit)

    def _newest_first(self, path: Iterable[Segment], query: BranchScan, columns: str, limit: int) -> list[Any]:
        sql = segment_sql(columns, query, descending=True)
        found: list[Any] = []
        for segment in path:
            stop = self._stop(segment, query, branches.newest_of_type, max)
            above = segment.above if stop is None else stop - 1
            through = segment.through if query.cursor is None else min(segment.through, _clamped(query.cursor.seq) - 1)
            remaining = limit if limit < 0 else limit - len(found)
            found += self._connection.execute(sql, _arguments(segment, query, above, through, remaining))
            if stop is not None or len(found) == limit:
                break
        return found

    def _oldest_first(self, path: list[Segment], query: BranchScan, columns: str, limit: int) -> list[Any]:
        sql = segment_sql(columns, query, descending=False)
        found: list[Any] = []
        for segment in reversed(path):
            stop = self._stop(segment, query, branches.oldest_of_type, min)
            above = segment.above if query.cursor is None else max(segment.above, _clamped(query.cursor.seq))
            through = segment.through if stop is None else stop
            remaining = limit if limit < 0 else limit - len(found)
            found += self._connection.execute(sql, _arguments(segment, query, above, through, remaining))
            if stop is not None or len(found) == limit:
                break
        return found

    def _stop(
        self,
        segment: Segment,
        query: BranchScan,
        of_type: Callable[[sqlite3.Connection, Segment, str], int | None],
        first: Callable[[list[int]], int],
    ) -> int | None:
        """Where in the segment the scan ends, inclusive: the first match of either condition."""
        stops: list[int | None] = []
        if query.stop_at_type is not None:
            stops.append(of_type(self._connection, segment, query.stop_at_type.value))
        if query.stop_at_id is not None and _is_storable(query.stop_at_id):
            stops.append(branches.seq_of(self._connection, segment, query.stop_at_id))
        met = [stop for stop in stops if stop is not None]
        return first(met) if met else None

    def _unindexed(self, id: str) -> UnknownEntry | StorageCorruption:
        if _is_storable(id) and self._connection.execute("SELECT 1 FROM entries WHERE id = ?", (id,)).fetchone():
            return branches.unindexed(id)
        return UnknownEntry(id)


def segment_sql(columns: str, query: BranchScan, *, descending: bool) -> str:
    """The one statement that reads a segment; CROSS JOIN keeps the index of the segment in front."""
    type_ = "" if _indexed_type(query) is None else " AND b.entry_type = ?"
    custom_type = "" if query.custom_type is None else " AND e.custom_type = ?"
    return (
        f"SELECT {columns} FROM branch_entries b CROSS JOIN entries e ON e.id = b.entry_id"
        f" WHERE b.branch_id = ? AND b.entry_seq > ? AND b.entry_seq <= ?{type_}{custom_type}"
        f" ORDER BY b.entry_seq{' DESC' if descending else ''} LIMIT ?"
    )


def _arguments(segment: Segment, query: BranchScan, above: int, through: int, limit: int) -> list[str | int]:
    arguments: list[str | int] = [segment.branch_id, above, through]
    type_ = _indexed_type(query)
    if type_ is not None:
        arguments.append(type_.value)
    if query.custom_type is not None:
        arguments.append(query.custom_type)
    return [*arguments, limit]


def _indexed_type(query: BranchScan) -> EntryType | None:
    """The type that the index filters by; a custom type alone implies custom entries."""
    return EntryType.CUSTOM if query.type is None and query.custom_type is not None else query.type


def _chain(first: Segment, rest: Iterable[Segment]) -> Iterable[Segment]:
    yield first
    yield from rest


def _seq_range(column: str, from_seq: int | None, to_seq: int | None) -> tuple[str, list[str | int]]:
    """Both bounds as a condition, inclusive."""
    low = 0 if from_seq is None else _clamped(from_seq)
    high = _LARGEST if to_seq is None else _clamped(to_seq)
    return f"{column} >= ? AND {column} <= ?", [low, high]


def _sql_limit(limit: int | None) -> int:
    """The limit as SQLite takes it, -1 for none."""
    checked = checked_limit(limit)
    return -1 if checked is None else checked


def _clamped(seq: int) -> int:
    return max(0, min(seq, _LARGEST))


def _is_storable(text: str) -> bool:
    """Whether the text can be in the file at all: a lone surrogate cannot."""
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _end_of_prefix(prefix: str) -> str | None:
    """The least text above everything that starts with the prefix; None when there is none."""
    rest = prefix.rstrip(_LAST_CODE_POINT)
    if not rest:
        return None
    following = ord(rest[-1]) + 1
    return rest[:-1] + chr(0xE000 if following == 0xD800 else following)
