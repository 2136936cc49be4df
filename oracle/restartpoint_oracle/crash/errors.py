"""What a crash sweep raises."""

from __future__ import annotations

from restartpoint_oracle.errors import OracleFinding

__all__ = ["CrashShows"]


class CrashShows(OracleFinding):
    """After some crash a scenario came to something else than without it; the message lists where and how."""
