"""The queue of one async listener, drained in order by one task (AMB-76)."""

from __future__ import annotations

import inspect
from collections import deque
from collections.abc import Awaitable, Callable

import anyio

from restartpoint.contract import HarnessEvent

__all__ = ["Line"]


class Line:
    """Awaits what a listener returned, one after another. At most ``limit`` wait."""

    def __init__(self, limit: int, failed: Callable[[HarnessEvent, BaseException], None]) -> None:
        self._limit, self._failed = limit, failed
        self._waiting: deque[tuple[HarnessEvent, Awaitable[None]]] = deque()
        self._wake: anyio.Event | None = None
        self._idle: anyio.Event | None = None
        self._busy = False
        self._closed = False

    def put(self, event: HarnessEvent, work: Awaitable[None], *, beyond_limit: bool = False) -> bool:
        """Queue the work, or discard it and return False when the line is full. A closed line discards in silence."""
        full = len(self._waiting) >= self._limit and not beyond_limit
        if self._closed or full:
            _discard(work)
            return self._closed
        self._waiting.append((event, work))
        if self._wake is not None:
            self._wake.set()
        return True

    async def drain(self) -> None:
        """Await the queued work until the line is closed."""
        try:
            while not self._closed:
                if self._waiting:
                    await self._next()
                else:
                    self._rest()
                    self._wake = anyio.Event()
                    await self._wake.wait()
        finally:
            self.close()

    async def idle(self) -> None:
        """Return once nothing waits and nothing is under way."""
        while self._busy or self._waiting:
            self._idle = self._idle or anyio.Event()
            await self._idle.wait()

    def close(self) -> None:
        """Discard what waits and let the draining task end."""
        self._closed = True
        while self._waiting:
            _discard(self._waiting.popleft()[1])
        if self._wake is not None:
            self._wake.set()
        self._rest()

    async def _next(self) -> None:
        event, work = self._waiting.popleft()
        self._busy = True
        try:
            await work
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a listener raises stays its own failure (§5.5)
            self._failed(event, error)
        finally:
            self._busy = False

    def _rest(self) -> None:
        if self._idle is not None:
            self._idle.set()
            self._idle = None


def _discard(work: Awaitable[None]) -> None:
    if inspect.iscoroutine(work):
        work.close()
