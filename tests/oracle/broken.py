"""Backends that each break one clause, to show that the suite finds it. All are the Memory backend with one mistake."""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from anyio.lowlevel import checkpoint

from restartpoint.contract import (
    BranchScan,
    CommitResult,
    CustomPayload,
    Entry,
    EntryScan,
    Namespace,
    Register,
    RegisterDelete,
    RegisterSet,
    SessionMetadata,
    SessionStats,
    Transaction,
    UsageRow,
    UsageScan,
    zero_usage,
)
from restartpoint.errors import (
    CommitRefused,
    InvalidJson,
    StaleExpectation,
    StorageCorruption,
    StorageFault,
    UnknownEntry,
)
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import MemoryStorage, SessionData, Storage
from restartpoint.storage.admission import admit

__all__ = ["BROKEN", "BrokenPlace"]


class BrokenPlace:
    """A place of a broken backend."""

    name = "broken"

    def __init__(self, storage: type[MemoryStorage], data: type[SessionData] = SessionData) -> None:
        self._storage, self._data = storage, data
        self._held: SessionData | None = None

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        held = self._data(metadata)
        held.apply(initial, clock.now_ms())
        self._held = held
        return self._storage.attach(held, clock=clock, faults=faults)

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        assert self._held is not None
        return self._storage.attach(self._held, clock=clock, faults=faults)

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        return await self.reopen(clock=clock, faults=faults)


class AppliesWhatIsLegal(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        try:
            return await super().commit(tx)
        except StorageCorruption:
            await super().commit(Transaction(tx.writes[:1]))
            raise


class RefusalsUseANumber(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        try:
            return await super().commit(tx)
        except CommitRefused:
            self.data.next_seq += 1
            raise


class OneNumberPerTransaction(SessionData):
    def set_register(self, namespace: Namespace[Any], key: str, value: object, seq: int) -> None:
        super().set_register(namespace, key, value, self.next_seq)


class DeletesFirst(SessionData):
    def apply(self, tx: Transaction, timestamp: int) -> None:
        ordered = sorted(tx.writes, key=lambda write: not isinstance(write, RegisterDelete))
        super().apply(Transaction(tuple(ordered)), timestamp)


class RowsHaveTheirOwnIds(SessionData):
    def is_taken(self, id: str) -> bool:
        return self.is_entry(id)


class RowsAreParents(SessionData):
    def is_entry(self, id: str) -> bool:
        return self.is_taken(id) if id.startswith("u-") else super().is_entry(id)


class DeletesLeaveNull(SessionData):
    def delete_register(self, namespace: str, key: str) -> None:
        if self.register_seq(namespace, key) is not None:
            held = self._registers[namespace][key]
            self._registers[namespace][key] = msgspec.structs.replace(held, value=None)


class IgnoresExpectations(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        return await super().commit(Transaction(tx.writes))


class NamesTheLastExpectation(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        try:
            return await super().commit(tx)
        except StaleExpectation:
            return await super().commit(Transaction(tx.writes, tx.expectations[::-1]))


class Interleaves(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        data, first = self._open_data(), self.data.next_seq
        admit(tx, register_seq=data.register_seq, is_taken=data.is_taken, is_entry=data.is_entry)
        await checkpoint()
        data.apply(tx, self._clock.now_ms())
        return CommitResult(
            first_seq=first, seqs=tuple(range(first, first + len(tx.writes))), timestamp=self._clock.now_ms()
        )


class GoesOnAfterAFault(MemoryStorage):
    def _poison(self, error: BaseException) -> None:
        """Forgets it."""


class AnotherFaultEachTime(MemoryStorage):
    def _assert_writable(self) -> None:
        if self._fault is not None:
            raise StorageFault(str(self._fault))


class PrefixIsAPattern(SessionData):
    def list_registers(self, namespace: Namespace[Any], key_prefix: str = "") -> list[Register[Any]]:
        everything = super().list_registers(namespace)
        plain = key_prefix.rstrip("%")
        return [one for one in everything if one.key.lower().startswith(plain.lower())]


class OrdersByUtf16(SessionData):
    def list_registers(self, namespace: Namespace[Any], key_prefix: str = "") -> list[Register[Any]]:
        return sorted(super().list_registers(namespace, key_prefix), key=lambda one: one.key.encode("utf-16-be"))


class LimitsBeforeItFilters(SessionData):
    def scan_entries(self, query: EntryScan) -> list[Entry]:
        rows = super().scan_entries(msgspec.structs.replace(query, type=None, custom_type=None))
        return [one for one in rows if query.type in (None, one.type) and query.custom_type in (None, one.custom_type)]


class BoundsAreExclusive(SessionData):
    def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        return [row for row in super().scan_usage(query) if row.seq != query.to_seq]


class StopsAtTheNewest(SessionData):
    def scan_branch(self, query: BranchScan) -> list[Entry]:
        found = super().scan_branch(msgspec.structs.replace(query, order="newestFirst"))
        return found if query.order == "newestFirst" else found[::-1]


class CursorsAreInclusive(SessionData):
    def scan_branch(self, query: BranchScan) -> list[Entry]:
        if query.cursor is None or query.order == "oldestFirst":
            return super().scan_branch(query)
        moved = msgspec.structs.replace(query.cursor, seq=query.cursor.seq + 1)
        return super().scan_branch(msgspec.structs.replace(query, cursor=moved))


class NothingFromNowhere(SessionData):
    def scan_branch(self, query: BranchScan) -> list[Entry]:
        try:
            return super().scan_branch(query)
        except UnknownEntry:
            return []


class CountsEveryEntry(SessionData):
    def get_stats(self) -> SessionStats:
        return msgspec.structs.replace(super().get_stats(), message_count=len(self.scan_entries(EntryScan())))


class SumsExactly(SessionData):
    """``math.fsum`` is better than the specified sum, and another one."""

    def get_stats(self) -> SessionStats:
        stats, rows = super().get_stats(), self.scan_usage(UsageScan())
        costs: list[Any] = [row.usage.get("cost", {}) for row in rows]
        cost: dict[str, Any] = {
            key: math.fsum(one.get(key, 0) for one in costs if isinstance(one, dict)) for key in self._cost_keys()
        }
        return msgspec.structs.replace(stats, usage={**stats.usage, "cost": cost})

    def _cost_keys(self) -> Sequence[str]:
        zero: Any = zero_usage()["cost"]
        return list(zero)


class ReadsAfterClose(MemoryStorage):
    async def get_stats(self) -> SessionStats:
        return self.data.get_stats()


class ClosesOnce(MemoryStorage):
    async def close(self) -> None:
        self._open_data()
        await super().close()


class NullIsAbsent(SessionData):
    def add_entry(self, entry: Entry) -> None:
        if isinstance(entry.payload, CustomPayload) and entry.payload.data is None:
            entry = msgspec.structs.replace(entry, payload=CustomPayload(custom_type=entry.payload.custom_type))
        super().add_entry(entry)


class WholeFloatsBecomeIntegers(SessionData):
    def set_register(self, namespace: Namespace[Any], key: str, value: Any, seq: int) -> None:
        kept = int(value) if isinstance(value, float) and value.is_integer() else value
        super().set_register(namespace, key, kept, seq)


class UnknownFieldsGo(SessionData):
    def add_entry(self, entry: Entry) -> None:
        payload = msgspec.structs.replace(entry.payload, extra={})
        super().add_entry(msgspec.structs.replace(entry, payload=payload))


class KeysAreSorted(SessionData):
    def set_register(self, namespace: Namespace[Any], key: str, value: Any, seq: int) -> None:
        super().set_register(namespace, key, dict(sorted(value.items())) if type(value) is dict else value, seq)


class TakesAnything(MemoryStorage):
    async def commit(self, tx: Transaction) -> CommitResult:
        try:
            return await super().commit(tx)
        except InvalidJson:
            plain = tuple(write for write in tx.writes if not isinstance(write, RegisterSet) or write.key != "k")
            return await super().commit(Transaction(plain))


BROKEN: tuple[tuple[str, type[MemoryStorage], type[SessionData]], ...] = (
    ("test_p01", AppliesWhatIsLegal, SessionData),
    ("test_p01_p07", RefusalsUseANumber, SessionData),
    ("test_p02", MemoryStorage, OneNumberPerTransaction),
    ("test_p03", MemoryStorage, DeletesFirst),
    ("test_p04", MemoryStorage, RowsHaveTheirOwnIds),
    ("test_p01_p07", MemoryStorage, RowsAreParents),
    ("test_p06", MemoryStorage, DeletesLeaveNull),
    ("test_p08", IgnoresExpectations, SessionData),
    ("test_p08", NamesTheLastExpectation, SessionData),
    ("test_p09", Interleaves, SessionData),
    ("test_p10", GoesOnAfterAFault, SessionData),
    ("test_p10", AnotherFaultEachTime, SessionData),
    ("test_p11", MemoryStorage, PrefixIsAPattern),
    ("test_p11", MemoryStorage, OrdersByUtf16),
    ("test_p12", MemoryStorage, LimitsBeforeItFilters),
    ("test_p12", MemoryStorage, BoundsAreExclusive),
    ("test_p12", MemoryStorage, StopsAtTheNewest),
    ("test_p12", MemoryStorage, CursorsAreInclusive),
    ("test_p12", MemoryStorage, NothingFromNowhere),
    ("test_p13", MemoryStorage, CountsEveryEntry),
    ("test_p13", MemoryStorage, SumsExactly),
    ("test_p14", ReadsAfterClose, SessionData),
    ("test_p14", ClosesOnce, SessionData),
    ("test_p15", MemoryStorage, NullIsAbsent),
    ("test_p15", MemoryStorage, WholeFloatsBecomeIntegers),
    ("test_p15", MemoryStorage, UnknownFieldsGo),
    ("test_p15", MemoryStorage, KeysAreSorted),
    ("test_p16", TakesAnything, SessionData),
)
"""The clause that finds the mistake, as the beginning of its checks' names, and the backend that makes it."""
