"""One storage under check, the time it reads, the faults it meets, and what it must hold by now."""

from __future__ import annotations

from types import TracebackType
from typing import Protocol, Self

from restartpoint.contract import (
    CommitResult,
    EntryDraft,
    EntryPayload,
    Expectation,
    InsertEntry,
    InsertUsage,
    SessionMetadata,
    Transaction,
    Usage,
    UsageDraft,
    Write,
)  # fmt: skip
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import Storage
from restartpoint_oracle.conformance.claims import same_json
from restartpoint_oracle.conformance.storage.expected import Expected
from restartpoint_oracle.content import content_of_storage
from restartpoint_oracle.doubles import ManualClock, RaisingFaults
from restartpoint_oracle.samples import FIRST_TRANSACTION, METADATA

__all__ = ["StorageBench", "StorageFactory", "entry", "usage_row"]


class StorageFactory(Protocol):
    """What the author of a backend supplies: one place that holds at most one session.

    The storage must read ``clock`` once per commit and tell ``faults`` of ``commit.before_write`` directly before its
    one durable write and of ``commit.after_write`` directly after it.
    """

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        """A fresh session in this place that holds the initial transaction."""
        ...

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        """The session of this place, whose former storage was closed."""
        ...


class StorageBench:
    """A fresh session of the factory's place; an async context manager that closes it at the end."""

    def __init__(self, factory: StorageFactory) -> None:
        self._factory = factory
        self.clock = ManualClock()
        self.faults = RaisingFaults()
        self.expected = Expected()
        self._storage: Storage | None = None

    @property
    def storage(self) -> Storage:
        """The open storage."""
        assert self._storage is not None, "use `async with`"
        return self._storage

    async def __aenter__(self) -> Self:
        self._storage = await self._factory.create(METADATA, FIRST_TRANSACTION, clock=self.clock, faults=self.faults)
        self.expected.apply(FIRST_TRANSACTION, CommitResult(first_seq=1, seqs=(1, 2), timestamp=self.clock.now_ms()))
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.storage.close()

    async def reopen(self) -> Storage:
        """The same session in a new storage, after this one was closed."""
        await self.storage.close()
        self._storage = await self._factory.reopen(clock=self.clock, faults=self.faults)
        return self._storage

    async def commit(self, *writes: Write, expectations: tuple[Expectation, ...] = ()) -> CommitResult:
        """Commit a transaction that must succeed, one millisecond later, and expect what it writes."""
        self.clock.advance()
        tx = Transaction(writes, expectations)
        result = await self.storage.commit(tx)
        self.expected.apply(tx, result)
        return result

    async def holds_exactly_what_was_committed(self, about: str = "the stored state") -> None:
        """Every entry, register, ledger row and statistic is as committed, and nothing else is there."""
        same_json(await content_of_storage(self.storage), self.expected.snapshot(), about)


def entry(id: str, parent_id: str | None, payload: EntryPayload) -> InsertEntry:
    """The write of one entry."""
    return InsertEntry(EntryDraft(id=id, parent_id=parent_id, payload=payload))


def usage_row(id: str, usage: Usage, *, adjustment: bool = False) -> InsertUsage:
    """The write of one ledger row."""
    return InsertUsage(UsageDraft(id=id, usage=usage, adjustment=adjustment))
