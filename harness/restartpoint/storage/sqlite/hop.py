"""The one hop from the event loop to the thread of a connection, as a small port.

Whatever is handed to a hop runs to its end, in the order in which it was handed over, whether or not its caller still
waits. So a cancelled caller leaves nothing half done, and being cancelled never means that nothing was written.
"""

from __future__ import annotations

import asyncio
import sqlite3
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

import aiosqlite
import anyio
import anyio.to_thread

__all__ = ["AiosqliteHop", "Hop", "InlineHop", "ThreadHop", "default_hop"]

T = TypeVar("T")


class Hop(Protocol):
    """Runs synchronous work one at a time. One hop serves one storage."""

    async def run(self, work: Callable[[], T]) -> T:
        """The work's result; its exception is raised here. Cancelling the caller does not stop or skip the work."""
        ...

    async def close(self) -> None:
        """Return when all work that was handed over is done and the thread, if any, has ended; idempotent."""
        ...


def default_hop() -> Hop:
    """The hop of the event loop that runs now: aiosqlite's thread on asyncio, worker threads elsewhere."""
    try:
        on_asyncio = asyncio.current_task() is not None
    except RuntimeError:
        on_asyncio = False
    return AiosqliteHop() if on_asyncio else ThreadHop()


class AiosqliteHop:
    """aiosqlite's thread. Its queue is what keeps the order, and what a native cancellation cannot reach."""

    def __init__(self) -> None:
        self._thread: _AiosqliteThread | None = None
        self._starting = anyio.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        if self._thread is None:
            async with self._starting:
                if self._thread is None:
                    self._thread = await _AiosqliteThread.start()
        return await self._thread.call(work)

    async def close(self) -> None:
        if self._thread is not None:
            thread, self._thread = self._thread, None
            await thread.close()


class _AiosqliteThread(aiosqlite.Connection):
    """The only place that knows aiosqlite's private parts: the entry for calling a function, and the thread.

    aiosqlite awaits each statement; a commit needs all of its statements in one call. The thread insists on a
    connection of its own before it serves, so it gets an empty one; the session's connection is opened by the work.
    """

    @classmethod
    async def start(cls) -> _AiosqliteThread:
        """A running thread; when the caller is cancelled, none."""
        idle = sqlite3.connect(":memory:", check_same_thread=False)
        thread = cls(lambda: idle, iter_chunk_size=1)
        # A program that ends without closing must end all the same; SQLite bears being cut off anywhere.
        thread._thread.daemon = True
        try:
            _ = await thread
        except BaseException:
            idle.close()
            raise
        return thread

    async def call(self, work: Callable[[], T]) -> T:
        """The work's result. It is queued before the first suspension."""
        result: T = await self._execute(work)  # type: ignore[no-untyped-call]
        return result


class ThreadHop:
    """anyio's worker threads, for event loops where nothing but cancel scopes cancels (trio)."""

    def __init__(self) -> None:
        self._turn = anyio.Lock()
        self._one_at_a_time = threading.Lock()

    async def run(self, work: Callable[[], T]) -> T:
        def alone() -> T:
            with self._one_at_a_time:
                return work()

        with anyio.CancelScope(shield=True):
            async with self._turn:
                result = await anyio.to_thread.run_sync(alone)
        return result

    async def close(self) -> None:
        with anyio.CancelScope(shield=True):
            async with self._turn:
                pass


class InlineHop:
    """Runs the work in place, for simulation and tests."""

    async def run(self, work: Callable[[], T]) -> T:
        return work()

    async def close(self) -> None:
        """Nothing is ever pending."""
