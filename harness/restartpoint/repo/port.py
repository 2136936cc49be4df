"""What every repository offers: create, open, list, delete, and one open owner per session id (§2.8)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AsyncExitStack, contextmanager
from types import TracebackType
from typing import Self, TypeAlias

import msgspec

from restartpoint.contract import STORAGE_VERSION, SessionMetadata, check_readable, or_unset
from restartpoint.errors import Closed, SessionExists, SessionOpen
from restartpoint.repo.names import check_session_id
from restartpoint.seams import Clock, FaultPoints, IdGenerator, NoFaults, SystemClock
from restartpoint.session import Session, SessionReader
from restartpoint.storage import Storage

__all__ = ["Listing", "ReadOnlySession", "SessionRef", "SessionRepository", "Unreadable", "id_of"]

SessionRef: TypeAlias = str | SessionMetadata
"""A session id, or metadata of which only the id counts: the rest may be stale."""


class Unreadable(msgspec.Struct, frozen=True, kw_only=True):
    """A file that looks like a session and is none; ``reason`` says why."""

    path: str
    reason: str


class Listing(msgspec.Struct, frozen=True, kw_only=True):
    """The sessions of a repository by ascending id, and the files that could not be read."""

    sessions: tuple[SessionMetadata, ...]
    unreadable: tuple[Unreadable, ...] = ()


class ReadOnlySession(SessionReader):
    """A session opened for reading only: it claims nothing, writes nothing, and may be open elsewhere (§2.8)."""

    async def close(self) -> None:
        """Release what reading holds; later reads raise ``StorageClosed``."""
        await self._storage.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


class SessionRepository(ABC):
    """Sessions of one place. A session is open at most once at a time in a repository; close it to open it again.

    ``async with`` closes the repository, and with it every session that is still open.
    """

    def __init__(
        self, *, clock: Clock | None = None, ids: IdGenerator | None = None, faults: FaultPoints | None = None
    ) -> None:
        self._clock: Clock = SystemClock() if clock is None else clock
        self._ids = IdGenerator(self._clock) if ids is None else ids
        self._faults: FaultPoints = NoFaults() if faults is None else faults
        self._open: dict[str, Session | None] = {}  # None while the session is being created, opened or deleted
        self._closed = False

    async def create(
        self, *, id: str | None = None, cwd: str | None = None, parent_session_id: str | None = None
    ) -> Session:
        """A new session, open: lane main at the root, without a configuration. The id is a UUIDv7 by default.

        Raises:
            InvalidSessionId: the id cannot become a file name.
            InvalidOptions: ``cwd`` or ``parent_session_id`` is not text.
            SessionExists: a session of that id exists.
        """
        session_id = self._ids.next() if id is None else id
        check_session_id(session_id)
        metadata = SessionMetadata(
            id=session_id,
            created_at=self._clock.now_ms(),
            storage_version=STORAGE_VERSION,
            cwd=or_unset(cwd),
            parent_session_id=or_unset(parent_session_id),
        )
        check_readable("session", metadata)
        if session_id in self._open:
            raise SessionExists(session_id)
        with self._claim(session_id):
            return await self._session(await self._create(metadata))

    async def open(self, ref: SessionRef) -> Session:
        """The session, open for writing.

        Raises:
            SessionNotFound: there is no session of that id.
            SessionOpen: this repository has it open.
            StorageInUse: another repository or process has it open.
            UnsupportedStorageVersion: a newer program wrote it.
            CorruptFile: it cannot be read; the file is left as it is.
        """
        session_id = id_of(ref)
        with self._claim(session_id):
            return await self._session(await self._open_storage(session_id))

    async def open_read_only(self, ref: SessionRef) -> ReadOnlySession:
        """A reader that takes no lock or lease and never writes; the session may be open elsewhere.

        Raises:
            SessionNotFound, UnsupportedStorageVersion, CorruptFile: as ``open``.
        """
        session_id = id_of(ref)
        self._assert_open()
        return ReadOnlySession(await self._open_for_reading(session_id))

    async def delete(self, ref: SessionRef) -> None:
        """Remove a session for good.

        Raises:
            SessionNotFound: there is no session of that id.
            SessionOpen: this repository has it open; close it first.
            StorageInUse: another repository or process has it open.
        """
        session_id = id_of(ref)
        with self._claim(session_id):
            await self._delete(session_id)

    @abstractmethod
    async def list(self) -> Listing:
        """Every session by ascending id, from headers only, and separately what could not be read."""

    async def close(self) -> None:
        """Close every open session, the others too when one fails; later calls raise ``Closed``."""
        self._closed = True
        async with AsyncExitStack() as closing:
            for session in self._open.values():
                if session is not None:
                    closing.push_async_callback(session.close)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # --- what a backend supplies --------------------------------------------------------------------------------

    @abstractmethod
    async def _create(self, metadata: SessionMetadata) -> Storage:
        """A new storage that holds the first transaction; raises ``SessionExists``."""

    @abstractmethod
    async def _open_storage(self, session_id: str) -> Storage:
        """The storage open for writing; raises what ``open`` lists, except ``SessionOpen``."""

    @abstractmethod
    async def _open_for_reading(self, session_id: str) -> Storage:
        """The storage open for reading, without any claim; raises what ``open_read_only`` lists."""

    @abstractmethod
    async def _delete(self, session_id: str) -> None:
        """Remove the session; raises ``SessionNotFound`` or ``StorageInUse``."""

    # --- one open owner per id ----------------------------------------------------------------------------------

    @contextmanager
    def _claim(self, session_id: str) -> Iterator[None]:
        """Hold the id until the block ends; a block that opened the session leaves it held until the close."""
        self._assert_open()
        if session_id in self._open:
            raise SessionOpen(session_id)
        self._open[session_id] = None
        try:
            yield
        finally:
            if self._open[session_id] is None:
                del self._open[session_id]

    async def _session(self, storage: Storage) -> Session:
        session_id = storage.metadata.id
        if self._closed:
            await storage.close()
            self._assert_open()

        def forget() -> None:
            del self._open[session_id]

        session = Session(storage, ids=self._ids, clock=self._clock, on_close=forget)
        self._open[session_id] = session
        return session

    def _assert_open(self) -> None:
        if self._closed:
            raise Closed("the repository")


def id_of(ref: SessionRef) -> str:
    """The id, checked; of metadata nothing else counts.

    Raises:
        InvalidSessionId: the id cannot become a file name, or it is neither an id nor metadata.
    """
    session_id = ref.id if isinstance(ref, SessionMetadata) else ref
    check_session_id(session_id)
    return session_id
