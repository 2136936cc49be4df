"""A storage that passes every call on: the base of storages that watch, count, fail or judge."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from restartpoint.contract import (
    BranchScan,
    CommitResult,
    Entry,
    EntryScan,
    EntryStructure,
    Namespace,
    Register,
    RegisterKey,
    SessionMetadata,
    SessionStats,
    Transaction,
    UsageRow,
    UsageScan,
)
from restartpoint.storage import Storage

__all__ = ["DelegatingStorage"]

V = TypeVar("V")


class DelegatingStorage:
    """A ``Storage`` that passes every call on to ``inner``; subclasses override what they watch."""

    def __init__(self, inner: Storage) -> None:
        self.inner = inner

    @property
    def metadata(self) -> SessionMetadata:
        return self.inner.metadata

    async def commit(self, tx: Transaction) -> CommitResult:
        return await self.inner.commit(tx)

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        return await self.inner.get_entries(ids)

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        return await self.inner.get_register(namespace, key)

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        return await self.inner.get_registers(keys)

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        return await self.inner.list_registers(namespace, key_prefix)

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        return await self.inner.scan_branch(query)

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        return await self.inner.scan_branch_structure(query)

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        return await self.inner.scan_entries(query)

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        return await self.inner.scan_usage(query)

    async def get_stats(self) -> SessionStats:
        return await self.inner.get_stats()

    async def close(self) -> None:
        await self.inner.close()
