"""Wall-clock time and timers as ports, so that tests hold time in their hands."""

from __future__ import annotations

import time
from typing import Protocol

import anyio

__all__ = ["Clock", "SystemClock", "SystemTimers", "Timers"]


class Clock(Protocol):
    """Reads Unix milliseconds."""

    def now_ms(self) -> int:
        """The current time in Unix milliseconds."""
        ...


class Timers(Protocol):
    """Waits for a length of time."""

    async def sleep_ms(self, delay_ms: int) -> None:
        """Return after ``delay_ms`` milliseconds; cancellable."""
        ...


class SystemClock:
    """The machine's clock."""

    def now_ms(self) -> int:
        """The current time in Unix milliseconds."""
        return time.time_ns() // 1_000_000


class SystemTimers:
    """The event loop's timers."""

    async def sleep_ms(self, delay_ms: int) -> None:
        """Return after ``delay_ms`` milliseconds; cancellable."""
        await anyio.sleep(delay_ms / 1000)
