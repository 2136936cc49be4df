"""What a test holds instead of time, chance and faults, so that one run can be repeated exactly."""

from __future__ import annotations

from collections.abc import Callable

from restartpoint.seams import FaultPoint, IdGenerator

__all__ = ["ManualClock", "RaisingFaults", "counted_bytes", "counted_ids"]


class ManualClock:
    """Stands still until it is moved; Unix milliseconds."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now = now_ms

    def now_ms(self) -> int:
        """The time it was set to."""
        return self._now

    def advance(self, by_ms: int = 1) -> None:
        """Move on by so many milliseconds."""
        self._now += by_ms


class RaisingFaults:
    """Raises once, at the point that was armed; passes every other point and counts them."""

    def __init__(self) -> None:
        self._armed: tuple[FaultPoint, BaseException] | None = None
        self.reached: list[FaultPoint] = []

    def arm(self, point: FaultPoint, error: BaseException) -> None:
        """Raise ``error`` when ``point`` is reached next."""
        self._armed = point, error

    def reach(self, point: FaultPoint) -> None:
        """Return, or raise the armed error."""
        self.reached.append(point)
        if self._armed is not None and self._armed[0] == point:
            error, self._armed = self._armed[1], None
            raise error


def counted_bytes() -> Callable[[int], bytes]:
    """Chance that is none: 0, 1, 2, ... as big-endian bytes."""
    drawn = 0

    def draw(size: int) -> bytes:
        nonlocal drawn
        drawn += 1
        return drawn.to_bytes(size, "big")

    return draw


def counted_ids(clock: ManualClock) -> IdGenerator:
    """Identifiers that are the same in every run."""
    return IdGenerator(clock, counted_bytes())
