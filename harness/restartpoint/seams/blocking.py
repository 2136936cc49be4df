"""The port through which synchronous tool functions run, so that they never block the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol, TypeVar

import anyio.from_thread
import anyio.to_thread

__all__ = ["BlockingWork", "InlineWork", "ThreadWork"]

T = TypeVar("T")


class BlockingWork(Protocol):
    """Runs a blocking function to its end."""

    async def run(self, work: Callable[[], T]) -> T:
        """The function's result; its exception is raised here."""
        ...

    def call_back(self, call: Callable[[], None]) -> None:
        """Called from inside ``work``: run ``call`` where the event loop runs, and return when it has."""
        ...


class ThreadWork:
    """Runs the function on a worker thread; a cancelled caller does not wait for it."""

    async def run(self, work: Callable[[], T]) -> T:
        """The function's result; its exception is raised here."""
        return await anyio.to_thread.run_sync(work, abandon_on_cancel=True)

    def call_back(self, call: Callable[[], None]) -> None:
        """Run ``call`` on the event loop's thread."""
        anyio.from_thread.run_sync(call)


class InlineWork:
    """Runs the function in place, for simulation and tests."""

    async def run(self, work: Callable[[], T]) -> T:
        """The function's result; its exception is raised here."""
        return work()

    def call_back(self, call: Callable[[], None]) -> None:
        """Run ``call`` in place."""
        call()
