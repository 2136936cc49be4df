"""What can be read of a session without writing: the reader that a session, a mutator and a read-only open share."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from restartpoint.contract import (
    BranchScan,
    Entry,
    EntryScan,
    EntryStructure,
    Namespace,
    Register,
    RegisterKey,
    SessionMetadata,
    SessionStats,
    UsageRow,
    UsageScan,
)  # fmt: skip
from restartpoint.storage import Storage

__all__ = ["SessionReader"]

V = TypeVar("V")


class SessionReader:
    """Reads of one session, straight from its storage (§2.8). Values are shared, not copied: never change them."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage

    @property
    def metadata(self) -> SessionMetadata:
        """The session's identity as stored."""
        return self._reading().metadata

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist among ``ids``, by id."""
        return await self._reading().get_entries(ids)

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        """The register, or None when the key does not exist."""
        return await self._reading().get_register(namespace, key)

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        """One read of several registers, in the order of ``keys``; None where a key does not exist."""
        return await self._reading().get_registers(keys)

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        """The registers whose key starts with the prefix, ascending by key."""
        return await self._reading().list_registers(namespace, key_prefix)

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        """Entries on the path from ``query.start`` to the root (§2.5).

        Raises:
            UnknownEntry: no entry has the id ``query.start``.
        """
        return await self._reading().scan_branch(query)

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        """The same as ``scan_branch`` without payloads."""
        return await self._reading().scan_branch_structure(query)

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        """Entries of the whole session by sequence."""
        return await self._reading().scan_entries(query)

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        """Ledger rows by sequence (§1.6)."""
        return await self._reading().scan_usage(query)

    async def get_stats(self) -> SessionStats:
        """Message count and ledger total (§1.6)."""
        return await self._reading().get_stats()

    def _reading(self) -> Storage:
        """The storage, when reads are allowed now."""
        return self._storage
