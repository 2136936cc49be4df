"""Sessions in memory, which live as long as their repository (§1.7, §2.8)."""

from __future__ import annotations

from restartpoint.contract import SessionMetadata
from restartpoint.errors import SessionExists, SessionNotFound
from restartpoint.repo.port import Listing, SessionRepository
from restartpoint.seams import Clock, FaultPoints, IdGenerator
from restartpoint.session import first_transaction
from restartpoint.storage import MemoryStorage, SessionData, Storage

__all__ = ["MemoryRepository"]


class MemoryRepository(SessionRepository):
    """Keeps the maps of every session, so that a closed one can be opened again in this process."""

    def __init__(
        self, *, clock: Clock | None = None, ids: IdGenerator | None = None, faults: FaultPoints | None = None
    ) -> None:
        super().__init__(clock=clock, ids=ids, faults=faults)
        self._sessions: dict[str, SessionData] = {}

    async def list(self) -> Listing:
        """Every session by ascending id."""
        self._assert_open()
        return Listing(sessions=tuple(data.metadata for _, data in sorted(self._sessions.items())))

    async def _create(self, metadata: SessionMetadata) -> Storage:
        if metadata.id in self._sessions:
            raise SessionExists(metadata.id)
        storage = await MemoryStorage.create(metadata, first_transaction(), clock=self._clock, faults=self._faults)
        self._sessions[metadata.id] = storage.data
        return storage

    async def _open_storage(self, session_id: str) -> Storage:
        if session_id not in self._sessions:
            raise SessionNotFound(session_id)
        return MemoryStorage.attach(self._sessions[session_id], clock=self._clock, faults=self._faults)

    async def _open_for_reading(self, session_id: str) -> Storage:
        return await self._open_storage(session_id)

    async def _delete(self, session_id: str) -> None:
        if session_id not in self._sessions:
            raise SessionNotFound(session_id)
        del self._sessions[session_id]
