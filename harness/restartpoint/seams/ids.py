"""UUIDv7 identifiers whose clock and chance are injected (§1.2)."""

from __future__ import annotations

import os
from collections.abc import Callable

from restartpoint.seams.clock import Clock, SystemClock

__all__ = ["IdGenerator", "timestamp_of"]


class IdGenerator:
    """Mints UUIDv7 ids; a given timestamp mints a follower that shares its leader's 48-bit prefix."""

    def __init__(self, clock: Clock | None = None, random_bytes: Callable[[int], bytes] = os.urandom) -> None:
        self._clock: Clock = clock if clock is not None else SystemClock()
        self._random_bytes = random_bytes

    def next(self, timestamp_ms: int | None = None) -> str:
        """A new id of 36 characters, minted now or at the given Unix milliseconds."""
        at = self._clock.now_ms() if timestamp_ms is None else timestamp_ms
        chance = int.from_bytes(self._random_bytes(10), "big")
        tail = (0x7 << 76) | ((chance >> 68) << 64) | (0b10 << 62) | (chance & (2**62 - 1))
        text = f"{((at & (2**48 - 1)) << 80) | tail:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


def timestamp_of(id: str) -> int:
    """The mint time of a UUIDv7, in Unix milliseconds."""
    return int(id[:8] + id[9:13], 16)
