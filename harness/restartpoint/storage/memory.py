"""The Memory backend: the maps themselves, which live as long as somebody holds them (§1.7)."""

from __future__ import annotations

from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.writes import Transaction
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints, NoFaults
from restartpoint.storage.admission import admit, encode_values
from restartpoint.storage.ram import SessionData
from restartpoint.storage.resident import ResidentStorage

__all__ = ["MemoryStorage"]


class MemoryStorage(ResidentStorage):
    """A ``Storage`` that keeps and returns the values it was given, without copies."""

    @classmethod
    async def create(
        cls, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints | None = None
    ) -> MemoryStorage:
        """A new session that holds the initial transaction; raises what ``commit`` raises."""
        data = SessionData(metadata)
        admit(initial, register_seq=data.register_seq, is_taken=data.is_taken, is_entry=data.is_entry)
        data.apply(initial, clock.now_ms())
        return cls.attach(data, clock=clock, faults=faults)

    @classmethod
    def attach(cls, data: SessionData, *, clock: Clock, faults: FaultPoints | None = None) -> MemoryStorage:
        """A storage over maps that another storage held, as after the end of its process."""
        return cls(data, encode=encode_values, clock=clock, faults=NoFaults() if faults is None else faults)

    def _write(self, encoded: bytes) -> None:
        """Memory is written by applying the transaction to the maps."""

    def _release(self) -> None:
        """Memory holds nothing outside."""
