"""An open session: one storage, its lanes' views, and the lane mutation line (§2.8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self, TypeVar

import anyio

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    LaneConfiguration,
    LaneState,
    RegisterSet,
    Transaction,
    check_readable,
)  # fmt: skip
from restartpoint.errors import InvalidLane, LaneExists, UnknownTarget
from restartpoint.seams import Clock, IdGenerator
from restartpoint.session.line import CommitListener, MutationLines, SessionMutator, WriteLine
from restartpoint.session.reading import SessionReader
from restartpoint.session.tree import MAIN_LANE, SessionTree
from restartpoint.storage import Storage

__all__ = ["MAX_LANE_NAME", "Session", "check_lane_name", "first_transaction"]

T = TypeVar("T")

MAX_LANE_NAME = 256
"""The greatest number of characters in a lane's name."""


def check_lane_name(name: str) -> None:
    """Return when the name may be a lane's name for ever.

    Raises:
        InvalidLane: it is empty, longer than 256 characters, or holds a control character or a lone surrogate.
    """
    if not isinstance(name, str):
        raise InvalidLane(repr(name), "a lane's name is text")
    if not 1 <= len(name) <= MAX_LANE_NAME:
        raise InvalidLane(name[:MAX_LANE_NAME], f"a lane's name has 1 to {MAX_LANE_NAME} characters")
    try:
        name.encode()
    except UnicodeEncodeError as error:
        raise InvalidLane(ascii(name), "a lane's name has no lone surrogates") from error
    if any(character < " " for character in name):
        raise InvalidLane(name, "a lane's name has no control characters")


def first_transaction() -> Transaction:
    """S01: what a new session holds, a main lane at the root without a configuration."""
    empty = LaneState(current_operation_id=None, pending_next_run=[])
    return Transaction((RegisterSet(LANE_LEAF, MAIN_LANE, None), RegisterSet(LANE_STATE, MAIN_LANE, empty)))


class Session(SessionTree, SessionReader):
    """One open session; itself the tree view of lane ``main``.

    Reads go straight to the storage at any time. Every write goes through the mutation line of a lane.
    """

    def __init__(
        self, storage: Storage, *, ids: IdGenerator, clock: Clock, on_close: Callable[[], None] | None = None
    ) -> None:
        SessionReader.__init__(self, storage)
        self._lines = MutationLines(storage)
        SessionTree.__init__(self, storage, self._lines, ids, MAIN_LANE)
        self._clock = clock
        self._on_close = on_close
        self._closing = anyio.Lock()
        self._closed = False

    @property
    def ids(self) -> IdGenerator:
        """Mints every id of this session (§1.2)."""
        return self._ids

    @property
    def clock(self) -> Clock:
        """Reads the time for this session."""
        return self._clock

    def view(self, lane: str, line: WriteLine | None = None) -> SessionTree:
        """The tree as that lane sees it; an unknown lane raises ``InvalidLane`` at its first use.

        ``line``: the way of its writes, by default the session's own.
        """
        return SessionTree(self._storage, self._lines if line is None else line, self._ids, lane)

    async def mutate(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """What the job returns; it reads, decides and commits at most once, alone on its lane (§4.3).

        Jobs of one lane run in order of arrival, jobs of different lanes side by side.

        Raises:
            Closed: the session was closed before the job's turn came.
            InvariantBroken: the job of this task on this lane called ``mutate`` again.
        """
        return await self._lines.run(lane, job)

    def assert_outside(self, lane: str) -> None:
        """Pass unless the calling task is inside a job on this lane; a task that it waits for must not write there.

        Raises:
            InvariantBroken: it is.
        """
        self._lines.assert_outside(lane)

    def on_commit(self, listener: CommitListener) -> Callable[[], None]:
        """Call the listener synchronously after every commit, in commit order; returns how to stop it."""
        return self._lines.on_commit(listener)

    async def create_lane(self, name: str, at: str | None, configuration: LaneConfiguration) -> SessionTree:
        """The view of a new lane whose leaf is ``at`` (None: the root), with exactly that configuration (§2.3).

        Raises:
            InvalidLane: the name is not allowed.
            LaneExists: a lane of that name exists.
            UnknownTarget: no entry has the id ``at``.
            InvalidOptions: the configuration has a value that is not allowed.
        """
        check_lane_name(name)
        check_readable("lane configuration", configuration)

        async def job(mutator: SessionMutator) -> None:
            keys = ((LANE_CONFIG, name), (LANE_LEAF, name), (LANE_STATE, name))
            if any(register is not None for register in await mutator.get_registers(keys)):
                raise LaneExists(name)
            if at is not None and at not in await mutator.get_entries([at]):
                raise UnknownTarget(at)
            empty = LaneState(current_operation_id=None, pending_next_run=[])
            writes = (
                RegisterSet(LANE_CONFIG, name, configuration),
                RegisterSet(LANE_LEAF, name, at),
                RegisterSet(LANE_STATE, name, empty),
            )
            await mutator.commit(Transaction(writes))

        await self._lines.run(name, job)
        return self.view(name)

    async def close(self) -> None:
        """Refuse new work, finish admitted commits, release the storage; a second call waits for the first."""
        self._lines.seal()
        with anyio.CancelScope(shield=True):
            async with self._closing:
                if self._closed:
                    return
                try:
                    await self._storage.close()
                finally:
                    self._closed = True
                    if self._on_close is not None:
                        self._on_close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()
