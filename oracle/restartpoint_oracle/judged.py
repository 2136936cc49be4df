"""A storage and a repository whose commits are judged (see `judge`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Self

import anyio

from restartpoint.contract import CommitResult, SessionMetadata, Transaction
from restartpoint.errors import CommitRefused, StorageClosed, StorageCorruption
from restartpoint.repo import Listing, SessionRepository
from restartpoint.storage import Storage
from restartpoint_oracle.content import content_of_storage, state_of_content
from restartpoint_oracle.delegating import DelegatingStorage
from restartpoint_oracle.judge import Judge
from restartpoint_reference.store import FIRST_SEQ

__all__ = ["JudgedRepository", "JudgedStorage"]


class JudgedStorage(DelegatingStorage):
    """A ``Storage`` that passes every call on and judges each commit before its caller sees the result.

    Commits go one at a time, in the order of their calls. A caller that is cancelled gets its cancellation after the
    judge has seen the result; only cancellation that cuts through a shield leaves one unobserved, and then the judge
    goes on from what the storage holds (`Judge.unobserved`).
    """

    def __init__(self, inner: Storage, judge: Judge) -> None:
        super().__init__(inner)
        self.judge = judge
        self._turn = anyio.Lock(fast_acquire=True)
        self._unsure = False
        self._closed = False

    @classmethod
    async def over_new(cls, inner: Storage, *, finalizations_admitted: bool = False) -> Self:
        """A judged storage over a session that was just created; its first transaction is judged.

        Raises:
            JudgeViolation: no session starts like that.
        """
        content = await content_of_storage(inner)
        created_at = inner.metadata.created_at
        return cls(
            inner, Judge.of_new_session(content, timestamp=created_at, finalizations_admitted=finalizations_admitted)
        )

    @classmethod
    async def over_existing(cls, inner: Storage, *, finalizations_admitted: bool = False) -> Self:
        """A judged storage over a session that exists; the judge starts from what it holds.

        Raises:
            InvariantViolated: no sound session holds that.
        """
        judge = Judge(state_of_content(await content_of_storage(inner)), finalizations_admitted=finalizations_admitted)
        judge.check_everything("the last run of another process")
        return cls(inner, judge)

    @classmethod
    async def over(cls, inner: Storage) -> Self:
        """A judged storage over any session: one that holds nothing but its first two registers counts as new.

        What an existing one holds is taken as it is, sound or not; only its commits to come are judged.
        """
        state = state_of_content(await content_of_storage(inner))
        if not state.entries and not state.usage and state.next_seq <= FIRST_SEQ + 2:
            return await cls.over_new(inner)
        return cls(inner, Judge(state))

    async def commit(self, tx: Transaction) -> CommitResult:
        """The inner storage's result; raises what it raises, and the judge's findings."""
        async with self._turn:
            await self._become_sure()
            self._unsure = True
            with anyio.CancelScope(shield=True):
                try:
                    result = await self.inner.commit(tx)
                except (CommitRefused, StorageClosed, StorageCorruption):
                    self._unsure = False
                    raise
                self._unsure = False
            self.judge.observe(tx, result)
            return result

    async def _become_sure(self) -> None:
        if self._unsure:
            self.judge.resume_from(state_of_content(await content_of_storage(self.inner)))
            self._unsure = False

    async def close(self) -> None:
        """Hold all that the storage answers to the model once more, then close it.

        Raises:
            ContentDiffers: the storage answers something else than was committed.
        """
        if self._closed:
            return
        self._closed = True
        try:
            async with self._turn:
                await self._become_sure()
                await self.judge.compare(self.inner)
        finally:
            await self.inner.close()


class JudgedRepository(SessionRepository):
    """A repository whose sessions are judged from their first commit on; everything else is the inner repository's.

    ``judges`` holds a judge per opened session, in the order of opening. ``on_open`` is told of each.
    """

    def __init__(
        self,
        inner: SessionRepository,
        *,
        finalizations_admitted: bool = False,
        on_open: Callable[[Judge], None] | None = None,
    ) -> None:
        super().__init__(clock=inner._clock, ids=inner._ids, faults=inner._faults)
        self._inner = inner
        self._finalizations_admitted = finalizations_admitted
        self._on_open = on_open
        self.judges: list[Judge] = []

    @property
    def judge(self) -> Judge:
        """The judge of the session that was opened last."""
        return self.judges[-1]

    def verify(self) -> None:
        """Raise the first finding of any session, if there was one."""
        for judge in self.judges:
            judge.verify()

    async def list(self) -> Listing:
        """What the inner repository lists."""
        return await self._inner.list()

    async def _create(self, metadata: SessionMetadata) -> Storage:
        created = await self._inner._create(metadata)
        return self._judged(await JudgedStorage.over_new(created, finalizations_admitted=self._finalizations_admitted))

    async def _open_storage(self, session_id: str) -> Storage:
        opened = await self._inner._open_storage(session_id)
        return self._judged(
            await JudgedStorage.over_existing(opened, finalizations_admitted=self._finalizations_admitted)
        )

    async def _open_for_reading(self, session_id: str) -> Storage:
        return await self._inner._open_for_reading(session_id)

    async def _delete(self, session_id: str) -> None:
        await self._inner._delete(session_id)

    def _judged(self, storage: JudgedStorage) -> Storage:
        self.judges.append(storage.judge)
        if self._on_open is not None:
            self._on_open(storage.judge)
        return storage
