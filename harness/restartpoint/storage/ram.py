"""One session held in memory: the maps, how a transaction changes them, and every query of the port (§1.5, §1.7).

The Memory backend is these maps; a JSONL file is the recipe that replays into them. Everything here is synchronous,
trusts what it is given (`admission` has looked at it), and costs a commit nothing that grows with the session.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from operator import attrgetter
from typing import Any, TypeVar, assert_never

from restartpoint.contract.entries import Entry, EntryStructure, EntryType, MessagePayload
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.queries import BranchScan, EntryScan, SessionStats, UsageScan
from restartpoint.contract.registers import NAMESPACES, Namespace, Register, RegisterKey
from restartpoint.contract.usage import UsageRow, add_usage, zero_usage
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterDelete, RegisterSet, Transaction
from restartpoint.errors import InvalidQuery, UnknownEntry
from restartpoint.storage.limit import checked_limit

__all__ = ["SessionData"]

V = TypeVar("V")
Row = TypeVar("Row", Entry, UsageRow)

_by_seq = attrgetter("seq")


class SessionData:
    """The live state of one session and nothing else: values as they were handed in, no log, no history."""

    def __init__(self, metadata: SessionMetadata) -> None:
        self.metadata = metadata
        self.next_seq = 1
        self._entries: dict[str, Entry] = {}
        self._entries_by_seq: list[Entry] = []
        self._usage_ids: set[str] = set()
        self._usage_by_seq: list[UsageRow] = []
        self._registers: dict[str, dict[str, Register[Any]]] = {name: {} for name in NAMESPACES}
        self._keys: dict[str, list[str]] = {name: [] for name in NAMESPACES}
        self._message_count = 0
        self._usage_total = zero_usage()

    # --- lookups of admission ---------------------------------------------------------------------------------

    def is_entry(self, id: str) -> bool:
        """Whether an entry has that id."""
        return id in self._entries

    def is_taken(self, id: str) -> bool:
        """Whether an entry or a usage row has that id."""
        return id in self._entries or id in self._usage_ids

    def register_seq(self, namespace: str, key: str) -> int | None:
        """The sequence number of a register, or None."""
        register = self._registers[namespace].get(key)
        return None if register is None else register.seq

    # --- changes ------------------------------------------------------------------------------------------------

    def apply(self, tx: Transaction, timestamp: int) -> None:
        """Apply an admitted transaction under the next sequence numbers."""
        seq = self.next_seq
        for write in tx.writes:
            if type(write) is RegisterSet:
                self.set_register(write.namespace, write.key, write.value, seq)
            elif type(write) is InsertEntry:
                entry = write.entry
                self.add_entry(
                    Entry(
                        id=entry.id,
                        parent_id=entry.parent_id,
                        seq=seq,
                        timestamp=timestamp,
                        payload=entry.payload,
                    )
                )
            elif type(write) is InsertUsage:
                row = write.row
                self.add_usage(
                    UsageRow(
                        id=row.id,
                        seq=seq,
                        usage=row.usage,
                        adjustment=row.adjustment,
                        entry_id=row.entry_id,
                        details=row.details,
                    )
                )
            elif type(write) is RegisterDelete:
                self.delete_register(write.namespace.name, write.key)
            else:
                assert_never(write)
            seq += 1
        self.next_seq = seq

    def add_entry(self, entry: Entry) -> None:
        """Add an entry whose sequence number is above all others."""
        self._entries[entry.id] = entry
        self._entries_by_seq.append(entry)
        if type(entry.payload) is MessagePayload:
            self._message_count += 1

    def add_usage(self, row: UsageRow) -> None:
        """Add a ledger row whose sequence number is above all others; the total is summed in that order."""
        self._usage_ids.add(row.id)
        self._usage_by_seq.append(row)
        self._usage_total = add_usage(self._usage_total, row.usage)

    def set_register(self, namespace: Namespace[Any], key: str, value: object, seq: int) -> None:
        """Set a register to a value that was written under ``seq``."""
        name = namespace.name
        registers = self._registers[name]
        if key not in registers:
            insort(self._keys[name], key)
        registers[key] = Register(namespace=namespace, key=key, value=value, seq=seq)

    def delete_register(self, namespace: str, key: str) -> None:
        """Delete a register; an absent key changes nothing."""
        if self._registers[namespace].pop(key, None) is not None:
            keys = self._keys[namespace]
            del keys[bisect_left(keys, key)]

    # --- queries ------------------------------------------------------------------------------------------------

    def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist among ``ids``, by id."""
        entries = self._entries
        return {key: entries[key] for key in ids if key in entries}

    def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        """The register, or None."""
        return self._registers[namespace.name].get(key)

    def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        """The registers in the order of ``keys``, None where there is none."""
        return [self._registers[namespace.name].get(key) for namespace, key in keys]

    def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        """The registers whose key starts with the prefix, ascending by key."""
        keys, registers = self._keys[namespace.name], self._registers[namespace.name]
        found: list[Register[V]] = []
        for key in islice(keys, bisect_left(keys, key_prefix), None):
            if not key.startswith(key_prefix):
                break
            found.append(registers[key])
        return found

    def scan_branch(self, query: BranchScan) -> list[Entry]:
        """The entries that a branch scan selects; walks no further towards the root than the answer needs."""
        limit = checked_limit(query.limit)
        path = self._path(query.start)
        if limit == 0:
            return []
        return _newest_first(path, query) if query.order == "newestFirst" else _oldest_first(path, query)

    def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        """The same without payloads."""
        return [
            EntryStructure(
                id=entry.id,
                parent_id=entry.parent_id,
                seq=entry.seq,
                timestamp=entry.timestamp,
                type=entry.type,
                custom_type=entry.custom_type,
            )
            for entry in self.scan_branch(query)
        ]

    def scan_entries(self, query: EntryScan) -> list[Entry]:
        """The entries that an inventory selects, by sequence."""
        limit, wanted = checked_limit(query.limit), _filter(query.type, query.custom_type)
        rows = _range(self._entries_by_seq, query.from_seq, query.to_seq, query.order == "desc")
        return list(islice((entry for entry in rows if wanted(entry)), limit))

    def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        """The ledger rows that a scan selects, by sequence."""
        limit = checked_limit(query.limit)
        return list(islice(_range(self._usage_by_seq, query.from_seq, query.to_seq, query.order == "desc"), limit))

    def get_stats(self) -> SessionStats:
        """Message count and ledger total."""
        return SessionStats(message_count=self._message_count, usage=self._usage_total)

    def _path(self, start: str | None) -> Iterator[Entry]:
        """The entries from ``start`` to the root, as they are asked for."""
        if start is None:
            raise InvalidQuery("a branch scan of a storage needs a start; a session view fills in its lane's leaf")
        if start not in self._entries:
            raise UnknownEntry(start)
        return self._walk(start)

    def _walk(self, start: str) -> Iterator[Entry]:
        at: str | None = start
        while at is not None:
            entry = self._entries[at]
            yield entry
            at = entry.parent_id


def _filter(type_: EntryType | None, custom_type: str | None) -> Callable[[Entry], bool]:
    """Whether an entry passes; a custom type alone implies custom entries."""

    def passes(entry: Entry) -> bool:
        return (type_ is None or entry.type is type_) and (custom_type is None or entry.custom_type == custom_type)

    return passes


def _stops(query: BranchScan) -> Callable[[Entry], bool]:
    """Whether the scan ends at an entry; the first match of either condition counts."""
    stop_type, stop_id = query.stop_at_type, query.stop_at_id

    def stops(entry: Entry) -> bool:
        return entry.id == stop_id or (stop_type is not None and entry.type is stop_type)

    return stops


def _newest_first(path: Iterator[Entry], query: BranchScan) -> list[Entry]:
    wanted, stops, limit = _filter(query.type, query.custom_type), _stops(query), query.limit
    below = None if query.cursor is None else query.cursor.seq
    found: list[Entry] = []
    for entry in path:
        if (below is None or entry.seq < below) and wanted(entry):
            found.append(entry)
            if len(found) == limit:
                break
        if stops(entry):
            break
    return found


def _oldest_first(path: Iterator[Entry], query: BranchScan) -> list[Entry]:
    """Walking from the newest, each stop that is met hides everything newer; the one nearest the root wins."""
    wanted, stops = _filter(query.type, query.custom_type), _stops(query)
    above = 0 if query.cursor is None else query.cursor.seq
    never_stops = query.stop_at_type is None and query.stop_at_id is None
    found: list[Entry] = []
    for entry in path:
        if never_stops and entry.seq <= above:
            break
        if stops(entry):
            found.clear()
        if entry.seq > above and wanted(entry):
            found.append(entry)
    found.reverse()
    return found if query.limit is None else found[: query.limit]


def _range(rows: list[Row], from_seq: int | None, to_seq: int | None, descending: bool) -> Iterator[Row]:
    """The rows within both bounds, inclusive, as they are asked for."""
    first = 0 if from_seq is None else bisect_left(rows, from_seq, key=_by_seq)
    last = len(rows) if to_seq is None else bisect_right(rows, to_seq, key=_by_seq)
    positions = range(last - 1, first - 1, -1) if descending else range(first, last)
    return (rows[position] for position in positions)
