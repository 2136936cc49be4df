"""Named points where a test may stop the process or raise, placed around the writes of every backend."""

from __future__ import annotations

from typing import Literal, Protocol, TypeAlias

__all__ = ["FaultPoint", "FaultPoints", "NoFaults"]

FaultPoint: TypeAlias = Literal["commit.before_write", "commit.after_write"]
"""Just before a transaction is written, and after it is written but before anyone is told."""


class FaultPoints(Protocol):
    """What a backend tells that it has come to a point."""

    def reach(self, point: FaultPoint) -> None:
        """Return to go on; raising or ending the process there is what a test does."""
        ...


class NoFaults:
    """Every point is passed at once."""

    def reach(self, point: FaultPoint) -> None:
        """Return."""
