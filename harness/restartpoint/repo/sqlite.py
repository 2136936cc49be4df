"""Sessions as SQLite files of one folder (§1.7, §2.8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from os import PathLike
from pathlib import Path
from typing import TypeVar

from restartpoint.contract import SessionMetadata
from restartpoint.repo.files import FileRepository
from restartpoint.seams import Clock, FaultPoints, IdGenerator
from restartpoint.session import first_transaction
from restartpoint.storage import Durability, LeaseSettings, SqliteStorage, Storage
from restartpoint.storage.sqlite import Hop, default_hop

__all__ = ["SqliteRepository"]

T = TypeVar("T")


class SqliteRepository(FileRepository):
    """Each session is ``<id>.sqlite``, with ``-wal`` and ``-shm`` beside it while it is open.

    ``durability`` says what a resolved commit survives: "process" its end, "power" also the loss of power. ``lease``
    says for how long an open session is claimed against other writers, also after its process died; ``hop`` makes
    the way to the thread of each connection.
    """

    suffix = ".sqlite"

    def __init__(
        self,
        root: str | PathLike[str],
        *,
        durability: Durability = "process",
        lease: LeaseSettings | None = None,
        hop: Callable[[], Hop] = default_hop,
        clock: Clock | None = None,
        ids: IdGenerator | None = None,
        faults: FaultPoints | None = None,
    ) -> None:
        super().__init__(root, clock=clock, ids=ids, faults=faults)
        self._durability: Durability = durability
        self._lease = LeaseSettings() if lease is None else lease
        self._hop = hop

    async def _create_file(self, path: Path, metadata: SessionMetadata) -> Storage:
        return await SqliteStorage.create(
            path,
            metadata,
            first_transaction(),
            clock=self._clock,
            durability=self._durability,
            faults=self._faults,
            lease=self._lease,
            hop=self._hop(),
        )

    async def _open_file(self, path: Path, *, read_only: bool) -> Storage:
        return await SqliteStorage.open(
            path,
            clock=self._clock,
            durability=self._durability,
            faults=self._faults,
            read_only=read_only,
            lease=self._lease,
            hop=self._hop(),
        )

    async def _read_metadata(self, path: Path) -> SessionMetadata:
        return await self._once(lambda hop: SqliteStorage.read_metadata(path, hop=hop))

    async def _delete_file(self, path: Path) -> None:
        await self._once(lambda hop: SqliteStorage.delete(path, clock=self._clock, hop=hop))

    async def _once(self, call: Callable[[Hop], Awaitable[T]]) -> T:
        """One call on a hop of its own."""
        hop = self._hop()
        try:
            return await call(hop)
        finally:
            await hop.close()
