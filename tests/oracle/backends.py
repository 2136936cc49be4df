"""Our three backends as factories of the conformance suite, each in a place of its own."""

from pathlib import Path

from restartpoint.contract import SessionMetadata, Transaction
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import JsonlStorage, MemoryStorage, SessionData, Storage

__all__ = ["JsonlPlace", "MemoryPlace"]


class MemoryPlace:
    def __init__(self) -> None:
        self._data: SessionData | None = None

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        storage = await MemoryStorage.create(metadata, initial, clock=clock, faults=faults)
        self._data = storage.data
        return storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        assert self._data is not None
        return MemoryStorage.attach(self._data, clock=clock, faults=faults)


class JsonlPlace:
    def __init__(self, path: Path) -> None:
        self.path = path

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        return await JsonlStorage.create(self.path, metadata, initial, clock=clock, faults=faults)

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        return await JsonlStorage.open(self.path, clock=clock, faults=faults)
