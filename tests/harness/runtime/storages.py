"""Storages that count what is read, or fail at a chosen commit, around a real one."""

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeVar

import anyio

from restartpoint.contract import (
    BranchScan,
    CommitResult,
    Entry,
    EntryScan,
    EntryStructure,
    Namespace,
    Register,
    RegisterKey,
    SessionStats,
    Transaction,
    UsageRow,
    UsageScan,
)
from restartpoint.errors import StorageFault
from restartpoint.storage import Storage
from restartpoint_oracle import DelegatingStorage

__all__ = ["CountingStorage", "FailingStorage"]

V = TypeVar("V")


class CountingStorage(DelegatingStorage):
    """Counts calls by name, and keeps which registers and entries were asked for."""

    def __init__(self, inner: Storage) -> None:
        super().__init__(inner)
        self.forget()

    def forget(self) -> None:
        self.calls: Counter[str] = Counter()
        self.registers: list[str] = []
        self.entries: list[list[str]] = []

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        self.calls["get_entries"] += 1
        self.entries.append([*ids])
        return await super().get_entries(ids)

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        self.calls["get_register"] += 1
        self.registers.append(f"{namespace.name}/{key}")
        return await super().get_register(namespace, key)

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        self.calls["get_registers"] += 1
        self.registers += [f"{namespace.name}/{key}" for namespace, key in keys]
        return await super().get_registers(keys)

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        self.calls[f"list_registers {namespace.name}"] += 1
        return await super().list_registers(namespace, key_prefix)

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        self.calls["scan_branch"] += 1
        return await super().scan_branch(query)

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        self.calls["scan_branch_structure"] += 1
        return await super().scan_branch_structure(query)

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        self.calls["scan_entries"] += 1
        return await super().scan_entries(query)

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        self.calls["scan_usage"] += 1
        return await super().scan_usage(query)

    async def get_stats(self) -> SessionStats:
        self.calls["get_stats"] += 1
        return await super().get_stats()


class FailingStorage(DelegatingStorage):
    """Raises a fault instead of commit number ``fail_at`` (from 0), and of every later one; nothing is written.

    ``hold_at`` makes a commit wait for ``let_go`` after ``held`` was set.
    """

    def __init__(self, inner: Storage, *, fail_at: int | None = None, hold_at: int | None = None) -> None:
        super().__init__(inner)
        self._fail_at, self._hold_at = fail_at, hold_at
        self.commits = 0
        self.held, self.let_go = anyio.Event(), anyio.Event()
        self._admitted = anyio.Lock()

    async def commit(self, tx: Transaction) -> CommitResult:
        async with self._admitted:
            return await self._commit(tx)

    async def close(self) -> None:
        async with self._admitted:
            await super().close()

    async def _commit(self, tx: Transaction) -> CommitResult:
        number = self.commits
        self.commits += 1
        if self._fail_at is not None and number >= self._fail_at:
            raise StorageFault("the disk is gone")
        if number == self._hold_at:
            self.held.set()
            await self.let_go.wait()
        return await super().commit(tx)
