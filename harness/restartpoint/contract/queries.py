"""Queries over a session: branch scans, inventories, ledger reads and statistics (§1.5, §2.5)."""

from __future__ import annotations

from typing import Literal

import msgspec

from restartpoint.contract.entries import EntryType
from restartpoint.contract.usage import Usage

__all__ = ["BranchScan", "EntryCursor", "EntryQuery", "EntryScan", "SessionStats", "UsageScan"]


class EntryCursor(msgspec.Struct, frozen=True):
    """An exclusive position in sequence order."""

    seq: int


class BranchScan(msgspec.Struct, frozen=True, kw_only=True):
    """The path from ``start`` to the root: order, stop inclusively at the first match, filter, cursor, limit.

    ``start`` is required at the storage layer; a session view defaults it to its lane's leaf.
    """

    start: str | None = None
    stop_at_type: EntryType | None = None
    stop_at_id: str | None = None
    type: EntryType | None = None
    custom_type: str | None = None
    order: Literal["newestFirst", "oldestFirst"] = "newestFirst"
    limit: int | None = None
    cursor: EntryCursor | None = None


class EntryScan(msgspec.Struct, frozen=True, kw_only=True):
    """All entries of the session by sequence; both bounds are inclusive."""

    type: EntryType | None = None
    custom_type: str | None = None
    from_seq: int | None = None
    to_seq: int | None = None
    order: Literal["asc", "desc"] = "asc"
    limit: int | None = None


class UsageScan(msgspec.Struct, frozen=True, kw_only=True):
    """Ledger rows by sequence; both bounds are inclusive. A consumer continues from its last seq + 1."""

    from_seq: int | None = None
    to_seq: int | None = None
    order: Literal["asc", "desc"] = "asc"
    limit: int | None = None


class EntryQuery(msgspec.Struct, frozen=True, kw_only=True):
    """A session-wide entry query of a session view: filter, exclusive cursor, limit; newest first by default."""

    type: EntryType | None = None
    custom_type: str | None = None
    order: Literal["asc", "desc"] = "desc"
    limit: int | None = None
    cursor: EntryCursor | None = None


class SessionStats(msgspec.Struct, frozen=True, kw_only=True):
    """Message entries (no other kind) and the sum of the ledger in sequence order."""

    message_count: int
    usage: Usage
