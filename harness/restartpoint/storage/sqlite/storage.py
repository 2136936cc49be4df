"""The SQLite backend: one database file per session, one hop to its thread per call (§1.7)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import anyio

from restartpoint.contract.entries import Entry, EntryStructure
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.queries import BranchScan, EntryScan, SessionStats, UsageScan
from restartpoint.contract.registers import Namespace, Register, RegisterKey
from restartpoint.contract.usage import UsageRow
from restartpoint.contract.writes import CommitResult, Transaction
from restartpoint.errors import CommitRefused, StorageClosed, StorageCorruption
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints, NoFaults
from restartpoint.seams.ids import IdGenerator
from restartpoint.storage.jsonl.files import Durability
from restartpoint.storage.sqlite.hop import Hop, default_hop
from restartpoint.storage.sqlite.lease import LeaseSettings
from restartpoint.storage.sqlite.queries import Queries
from restartpoint.storage.sqlite.recent import MOST_REGISTERS, Recent
from restartpoint.storage.sqlite.session import SqliteSession, delete_file, read_metadata

__all__ = ["SqliteStorage"]

R = TypeVar("R")
V = TypeVar("V")


class SqliteStorage:
    """A ``Storage`` in one database file.

    A call is one piece of work for the hop, which runs it to its end in order, so that cancelling the caller neither
    opens a gap inside a commit nor leaves one undecided: what was handed over will be written (P9).
    """

    def __init__(self, session: SqliteSession, hop: Hop, *, claimed: bool) -> None:
        self._session = session
        self._hop = hop
        self._recent = Recent() if claimed else None
        self._handed_over = 0  # commits; counted by the caller's thread only
        self._done = 0  # of those; counted by the connection's thread only
        self._sealed = False
        self._released = anyio.Event()

    @classmethod
    async def create(
        cls,
        path: Path,
        metadata: SessionMetadata,
        initial: Transaction,
        *,
        clock: Clock,
        durability: Durability = "process",
        faults: FaultPoints | None = None,
        lease: LeaseSettings | None = None,
        hop: Hop | None = None,
        ids: IdGenerator | None = None,
    ) -> SqliteStorage:
        """A new session, published whole with its initial transaction, open and claimed.

        Raises:
            SessionExists: the path is taken.
            StorageError: the file cannot be written, or what ``commit`` raises; there is no session then.
        """
        owner_id, settings = _owner(clock, ids), LeaseSettings() if lease is None else lease
        session = SqliteSession(path, clock=clock, durability=durability, faults=_faults(faults))
        return await cls._opened(session, hop, partial(session.create, metadata, initial, owner_id, settings))

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        durability: Durability = "process",
        faults: FaultPoints | None = None,
        read_only: bool = False,
        lease: LeaseSettings | None = None,
        hop: Hop | None = None,
        ids: IdGenerator | None = None,
    ) -> SqliteStorage:
        """An existing session. ``read_only`` takes no claim and never writes; the session may be open elsewhere.

        Raises:
            SessionNotFound: there is nothing at the path.
            LeaseHeld: another writer has it open.
            CorruptFile: the file cannot be read, or is no session.
            UnsupportedStorageVersion: a newer program wrote it.
        """
        session = SqliteSession(path, clock=clock, durability=durability, faults=_faults(faults))
        if read_only:
            return await cls._opened(session, hop, session.open_for_reading, claimed=False)
        settings = LeaseSettings() if lease is None else lease
        return await cls._opened(session, hop, partial(session.open_for_writing, _owner(clock, ids), settings))

    @staticmethod
    async def read_metadata(path: Path, *, hop: Hop | None = None) -> SessionMetadata:
        """The identity of a session, without a claim; raises what ``open`` raises."""
        return await _once(hop, partial(read_metadata, path))

    @staticmethod
    async def delete(path: Path, *, clock: Clock, hop: Hop | None = None, ids: IdGenerator | None = None) -> None:
        """Remove a session that nobody has open for writing.

        Raises:
            SessionNotFound: there is nothing at the path.
            LeaseHeld: another writer has it open.
        """
        await _once(hop, partial(delete_file, path, owner_id=_owner(clock, ids), settings=LeaseSettings(), clock=clock))

    @property
    def metadata(self) -> SessionMetadata:
        return self._session.metadata

    async def commit(self, tx: Transaction) -> CommitResult:
        if self._sealed:
            raise StorageClosed
        self._handed_over += 1
        return await self._hop.run(partial(self._commit, tx))

    async def renew_lease(self) -> None:
        """Extend the claim now, for those who switched the thread off.

        Raises:
            LeaseLost: another writer took the session over.
        """
        await self._run(self._session.renew_lease)

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        recent = self._settled()
        known = None if recent is None else recent.entries(ids)
        return await self._read(lambda queries: queries.get_entries(ids)) if known is None else known

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        (register,) = await self.get_registers([(namespace, key)])
        return register

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        recent = self._settled()
        known = None if recent is None else recent.registers(keys)
        return await self._read(partial(self._read_registers, keys)) if known is None else known

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        recent = self._settled()
        known = None if recent is None else recent.listed(namespace, key_prefix)
        return await self._read(partial(self._list_registers, namespace, key_prefix)) if known is None else known

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        return await self._read(lambda queries: queries.scan_branch(query))

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        return await self._read(lambda queries: queries.scan_branch_structure(query))

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        return await self._read(lambda queries: queries.scan_entries(query))

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        return await self._read(lambda queries: queries.scan_usage(query))

    async def get_stats(self) -> SessionStats:
        return await self._read(Queries.get_stats)

    async def close(self) -> None:
        if self._sealed:
            await self._released.wait()
            return
        self._sealed = True
        try:
            await _release(self._session, self._hop)
        finally:
            self._released.set()

    def _settled(self) -> Recent | None:
        """What is known without asking the file, unless a commit is on its way, which a read must not overtake."""
        if self._sealed:
            raise StorageClosed
        return self._recent if self._handed_over == self._done else None

    def _commit(self, tx: Transaction) -> CommitResult:
        """Runs on the connection's thread."""
        recent = self._recent
        try:
            result = self._session.commit(tx)
        except (CommitRefused, StorageCorruption):
            raise
        except BaseException:
            if recent is not None:
                recent.distrust()
            raise
        else:
            if recent is not None:
                recent.note_commit(tx, result)
            return result
        finally:
            self._done += 1

    def _read_registers(self, keys: Sequence[RegisterKey], queries: Queries) -> list[Register[Any] | None]:
        """Runs on the connection's thread."""
        found = queries.get_registers(keys)
        if self._recent is not None:
            self._recent.note_registers(found)
        return found

    def _list_registers(self, namespace: Namespace[V], key_prefix: str, queries: Queries) -> list[Register[V]]:
        """Runs on the connection's thread."""
        if self._recent is not None and self._recent.may_know(namespace.name):
            self._recent.note_namespace(namespace.name, queries.list_registers(namespace, limit=MOST_REGISTERS + 1))
            known = self._recent.listed(namespace, key_prefix)
            if known is not None:
                return known
        return queries.list_registers(namespace, key_prefix)

    @classmethod
    async def _opened(
        cls, session: SqliteSession, hop: Hop | None, opening: Callable[[], None], *, claimed: bool = True
    ) -> SqliteStorage:
        hop = default_hop() if hop is None else hop
        try:
            await hop.run(opening)
        except BaseException:
            # A cancelled caller will not hear of it, but the session is opened all the same: give it up again.
            await _release(session, hop)
            raise
        return cls(session, hop, claimed=claimed)

    async def _read(self, query: Callable[[Queries], R]) -> R:
        return await self._run(partial(self._session.read, query))

    async def _run(self, work: Callable[[], R]) -> R:
        if self._sealed:
            raise StorageClosed
        return await self._hop.run(work)


async def _release(session: SqliteSession, hop: Hop) -> None:
    """Close the session after everything that was handed over, then the hop. A cancelled caller waits for that too."""
    with anyio.CancelScope(shield=True):
        try:
            await hop.run(session.close)
        finally:
            await hop.close()


async def _once(hop: Hop | None, work: Callable[[], R]) -> R:
    """One piece of work on a hop of its own, or on the given one."""
    if hop is not None:
        return await hop.run(work)
    hop = default_hop()
    try:
        return await hop.run(work)
    finally:
        await hop.close()


def _owner(clock: Clock, ids: IdGenerator | None) -> str:
    """A name that no other open of any session has."""
    return (IdGenerator(clock) if ids is None else ids).next()


def _faults(faults: FaultPoints | None) -> FaultPoints:
    return NoFaults() if faults is None else faults
