"""Our backends, each in a place of its own that holds one session: created, reopened, and left by a crash."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from restartpoint.contract import SessionMetadata, Transaction
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import JsonlStorage, MemoryStorage, Storage
from restartpoint.storage.sqlite import Hop, LeaseSettings, SqliteStorage

__all__ = ["LEASE_MS", "JsonlPlace", "MemoryPlace", "Place", "SqlitePlace"]

LEASE_MS = 30_001
"""How long after the last commit of a dead owner its session can be opened."""


class Place(Protocol):
    """A ``StorageFactory`` of a conformance suite that can also lose its process."""

    @property
    def name(self) -> str:
        """The backend's name in findings."""
        ...

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        """A fresh session that holds the initial transaction."""
        ...

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        """The session, whose former storage was closed."""
        ...

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        """The session as another process finds it ``LEASE_MS`` after this one died without closing anything.

        ``torn`` (0 to 1) is how much of one more write had reached the disk, where the backend writes in pieces.
        """
        ...


class MemoryPlace:
    """Maps that outlive their storage."""

    name = "memory"

    def __init__(self) -> None:
        self._storage: MemoryStorage | None = None

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        self._storage = await MemoryStorage.create(metadata, initial, clock=clock, faults=faults)
        return self._storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        assert self._storage is not None
        self._storage = MemoryStorage.attach(self._storage.data, clock=clock, faults=faults)
        return self._storage

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        del torn  # memory is written at once
        return await self.reopen(clock=clock, faults=faults)


class JsonlPlace:
    """A session file in a folder; every crash goes on in a copy, beside the file of the dead process."""

    name = "jsonl"

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._crashes = 0
        self._storage: Storage | None = None

    @property
    def path(self) -> Path:
        """The file that is in use now."""
        return self._folder / f"session-{self._crashes}.jsonl"

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        self._storage = await JsonlStorage.create(self.path, metadata, initial, clock=clock, faults=faults)
        return self._storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        self._storage = await JsonlStorage.open(self.path, clock=clock, faults=faults)
        return self._storage

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        """What was written so far, and a part of one more line: the last one again, cut, without its newline."""
        assert self._storage is not None
        left = self.path.read_bytes()
        last = left.rstrip(b"\n").rpartition(b"\n")[2]
        await self._storage.close()
        self._crashes += 1
        self.path.write_bytes(left + last[: round(torn * len(last))])
        return await self.reopen(clock=clock, faults=faults)


class SqlitePlace:
    """A database file in a folder; every crash goes on in a copy of the database and its log.

    ``new_hop`` makes the hop of each storage (by default that of the event loop). The lease is renewed by commits only.
    """

    name = "sqlite"

    def __init__(self, folder: Path, *, new_hop: Callable[[], Hop] | None = None) -> None:
        self._folder = folder
        self._new_hop = new_hop
        self._lease = LeaseSettings(ttl_ms=LEASE_MS - 1, background=False)
        self._crashes = 0
        self._storage: Storage | None = None

    @property
    def path(self) -> Path:
        """The file that is in use now."""
        return self._folder / f"session-{self._crashes}.sqlite"

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        self._storage = await SqliteStorage.create(
            self.path, metadata, initial, clock=clock, faults=faults, lease=self._lease, hop=self._hop()
        )
        return self._storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        self._storage = await SqliteStorage.open(
            self.path, clock=clock, faults=faults, lease=self._lease, hop=self._hop()
        )
        return self._storage

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        """Database and log as they are, the log followed by a part of a frame that no commit record ends.

        The lease of the dead owner is in the copy, and expired by now.
        """
        assert self._storage is not None
        dead = self.path
        log = dead.with_name(dead.name + "-wal")
        left, frames = dead.read_bytes(), log.read_bytes() if log.exists() else b""
        await self._storage.close()
        self._crashes += 1
        self.path.write_bytes(left)
        self.path.with_name(self.path.name + "-wal").write_bytes(frames + frames[-4120:][: round(torn * 4120)])
        self._storage = await SqliteStorage.open(
            self.path, clock=clock, faults=faults, lease=self._lease, hop=self._hop()
        )
        return self._storage

    def _hop(self) -> Hop | None:
        return None if self._new_hop is None else self._new_hop()
