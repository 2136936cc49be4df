"""The lane mutation line: one job at a time on each lane, each with at most one commit (§2.8, §4.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Protocol, TypeAlias, TypeVar

import anyio

from restartpoint.contract import CommitResult, Transaction
from restartpoint.errors import Closed, InvariantBroken, MutatorSpent
from restartpoint.session.reading import SessionReader
from restartpoint.storage import Storage

__all__ = ["CommitListener", "MutationLines", "SessionMutator", "WriteLine"]

T = TypeVar("T")
_WAITS_FOR_ITSELF = "a job on lane {!r} started another mutation of the same lane; use its mutator"

CommitListener: TypeAlias = Callable[[str, Transaction, CommitResult], None]
"""Called with the lane, the transaction and its result right after a commit; must not raise."""


class WriteLine(Protocol):
    """How the writes of a tree view get their turn on its lane."""

    async def run(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """What the job returns; it runs alone on its lane, in order of arrival."""
        ...

    async def run_at_leaf(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """The same for a job that appends at the leaf of the idle lane."""
        ...


class MutationLines:
    """The lines of all lanes of one session, and the only way from a session to its storage's ``commit``."""

    def __init__(self, storage: Storage) -> None:
        self._storage = storage
        self._lines: dict[str, anyio.Lock] = {}
        self._commits = anyio.Lock(fast_acquire=True)
        self._listeners: list[CommitListener] = []
        self._sealed = False

    async def run(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """What the job returns; it runs alone on its lane, in order of arrival.

        Raises:
            Closed: the session was closed before the job's turn came.
            InvariantBroken: the calling task holds this lane's line already, so it would wait for itself.
        """
        line = self._lines.get(lane)
        if line is None:
            line = self._lines[lane] = anyio.Lock(fast_acquire=True)
        try:
            await line.acquire()
        except RuntimeError as error:  # the lock knows its holder, and this task is it
            raise InvariantBroken(_WAITS_FOR_ITSELF.format(lane)) from error
        try:
            if self._sealed:
                raise Closed("the session")
            mutator = SessionMutator(self._storage, lane, self._commit)
            try:
                return await job(mutator)
            finally:
                mutator.expire()
        finally:
            line.release()

    async def run_at_leaf(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """The same: a session alone knows of nobody who keeps an idle lane."""
        return await self.run(lane, job)

    def assert_outside(self, lane: str) -> None:
        """Pass unless the calling task holds this lane's line.

        Raises:
            InvariantBroken: it does, so a task that writes on its behalf would wait for it.
        """
        line = self._lines.get(lane)
        owner = None if line is None else line.statistics().owner
        if owner is not None and owner.id == anyio.get_current_task().id:
            raise InvariantBroken(_WAITS_FOR_ITSELF.format(lane))

    def on_commit(self, listener: CommitListener) -> Callable[[], None]:
        """Call the listener after every commit of this session, in commit order; returns how to stop it.

        A caller that asyncio itself cancels while its commit is in flight leaves that commit unannounced.
        """
        self._listeners = [*self._listeners, listener]
        return lambda: self._forget(listener)

    def seal(self) -> None:
        """Refuse every job whose turn has not come."""
        self._sealed = True

    async def _commit(self, lane: str, tx: Transaction) -> CommitResult:
        with anyio.CancelScope(shield=True):
            if not self._listeners:
                return await self._storage.commit(tx)
            # The lock keeps the order of announcements: tasks may wake in another order than their commits ended.
            async with self._commits:
                result = await self._storage.commit(tx)
                for listener in self._listeners:
                    listener(lane, tx, result)
        return result

    def _forget(self, listener: CommitListener) -> None:
        self._listeners = [known for known in self._listeners if known is not listener]


class SessionMutator(SessionReader):
    """The reads and the single commit of one job on one lane. Valid only until its callback returns or raises.

    A callback must not keep it, call another mutation of the session, wait for idleness, or run a provider, tool,
    hook or timer: those take the same line, or hold it across work that must stay concurrent.
    """

    def __init__(
        self, storage: Storage, lane: str, commit: Callable[[str, Transaction], Awaitable[CommitResult]]
    ) -> None:
        super().__init__(storage)
        self._lane = lane
        self._commit = commit
        self._spent = False
        self._expired = False

    @property
    def lane(self) -> str:
        """The lane whose line the job holds."""
        return self._lane

    async def commit(self, tx: Transaction) -> CommitResult:
        """The result of the job's only transaction, durable now.

        Raises:
            MutatorSpent: the job has tried to commit before, even if that failed, or its callback is over.
            StorageError: as ``Storage.commit`` raises it.
        """
        self._reading()
        if self._spent:
            raise MutatorSpent("a mutator commits once; start a second mutate() for a second transition")
        self._spent = True
        return await self._commit(self._lane, tx)

    def expire(self) -> None:
        """End the mutator's life; every later use raises ``MutatorSpent``."""
        self._expired = True

    def _reading(self) -> Storage:
        if self._expired:
            raise MutatorSpent("the callback of this mutator is over; start another mutate()")
        return self._storage
