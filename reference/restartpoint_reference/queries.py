"""The queries of storage (§1.5) and the branch scan (§2.5), answered from a State."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from restartpoint_reference.shapes import JsonObject
from restartpoint_reference.store import State
from restartpoint_reference.vocabulary.entries import Entry, EntryType, Namespace, Register, UsageRow


class UnknownStart(LookupError):
    """A branch scan started at an entry that does not exist (decision ST-2.5-12)."""


class Order(StrEnum):
    """The order of session-wide scans, by sequence number (§1.5)."""

    ASC = "asc"
    DESC = "desc"


class BranchOrder(StrEnum):
    """The order of branch scans (§2.5)."""

    NEWEST_FIRST = "newestFirst"
    OLDEST_FIRST = "oldestFirst"


@dataclass(frozen=True, kw_only=True)
class BranchScan:
    """A scan of the path from ``start`` towards the root; ``cursor`` is an exclusive sequence number (§2.5)."""

    start: str
    stop_at_type: EntryType | None = None
    stop_at_id: str | None = None
    type: EntryType | None = None
    custom_type: str | None = None
    order: BranchOrder = BranchOrder.NEWEST_FIRST
    cursor: int | None = None
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class EntryScan:
    """A session-wide inventory of entries; both bounds are inclusive (§1.5, decision ST-1.5-17)."""

    type: EntryType | None = None
    custom_type: str | None = None
    from_seq: int | None = None
    to_seq: int | None = None
    order: Order = Order.ASC
    limit: int | None = None


@dataclass(frozen=True, kw_only=True)
class UsageScan:
    """A read of the ledger; both bounds are inclusive (§1.5, decision ST-1.5-17)."""

    from_seq: int | None = None
    to_seq: int | None = None
    order: Order = Order.ASC
    limit: int | None = None


def get_entries(state: State, ids: Iterable[str]) -> dict[str, Entry]:
    """The entries of these ids; unknown ids are absent from the answer (§1.5)."""
    return {key: state.entries[key] for key in ids if key in state.entries}


def get_register(state: State, namespace: Namespace, key: str) -> Register | None:
    """The register at this address, None when there is none (§1.5)."""
    return state.register(namespace, key)


def list_registers(state: State, namespace: Namespace, key_prefix: str = "") -> list[Register]:
    """The registers whose key starts with the prefix, ascending by key in code points (§1.5)."""
    return [state.namespaces[namespace][key] for key in state.keys(namespace, key_prefix)]


def path(state: State, start: str | None) -> Iterator[Entry]:
    """The entries from ``start`` to the root, newest first; nothing when it is None (§2.2)."""
    at = start
    while at is not None:
        if at not in state.entries:
            raise UnknownStart(f"no entry {at}")
        entry = state.entries[at]
        yield entry
        at = entry.parent_id


def scan_branch(state: State, scan: BranchScan) -> list[Entry]:
    """The entries that the branch scan selects: path, order, stop, filter, cursor, limit (§2.5).

    Raises ``UnknownStart`` when there is no entry ``start``, ``ValueError`` for a limit below zero.
    """
    ordered = path(state, scan.start)
    if scan.order is BranchOrder.OLDEST_FIRST:
        ordered = reversed(list(ordered))
    kept = (entry for entry in _until(ordered, scan) if _selected(entry, scan.type, scan.custom_type))
    newest_first = scan.order is BranchOrder.NEWEST_FIRST
    beyond = (
        entry
        for entry in kept
        if scan.cursor is None or (entry.seq < scan.cursor if newest_first else entry.seq > scan.cursor)
    )
    return _limited(list(beyond), scan.limit)


def scan_branch_structure(state: State, scan: BranchScan) -> list[JsonObject]:
    """The same scan without payloads (§1.5)."""
    return [entry.structure() for entry in scan_branch(state, scan)]


def scan_entries(state: State, scan: EntryScan) -> list[Entry]:
    """The entries of the session that the scan selects, by sequence number (§1.5)."""
    kept = [entry for entry in state.entries.values() if _selected(entry, scan.type, scan.custom_type)]
    return _limited(_ordered(kept, scan), scan.limit)


def scan_usage(state: State, scan: UsageScan) -> list[UsageRow]:
    """The ledger rows that the scan selects, by sequence number (§1.5, §1.6)."""
    return _limited(_ordered(list(state.usage.values()), scan), scan.limit)


def _until(entries: Iterable[Entry], scan: BranchScan) -> Iterator[Entry]:
    for entry in entries:
        yield entry
        if entry.id == scan.stop_at_id or entry.type is scan.stop_at_type:
            return


def _selected(entry: Entry, type: EntryType | None, custom_type: str | None) -> bool:
    return (type is None or entry.type is type) and (custom_type is None or entry.custom_type == custom_type)


R = TypeVar("R", Entry, UsageRow)
X = TypeVar("X")


def _ordered(rows: Sequence[R], scan: EntryScan | UsageScan) -> list[R]:
    low = scan.from_seq if scan.from_seq is not None else 0
    kept = [row for row in rows if row.seq >= low and (scan.to_seq is None or row.seq <= scan.to_seq)]
    return sorted(kept, key=lambda row: row.seq, reverse=scan.order is Order.DESC)


def _limited(rows: list[X], limit: int | None) -> list[X]:
    if limit is not None and limit < 0:
        raise ValueError("a limit is zero or more")
    return rows if limit is None else rows[:limit]
