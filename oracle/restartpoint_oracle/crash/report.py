"""What a sweep found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from restartpoint_oracle.crash.errors import CrashShows

__all__ = ["Finding", "SweepReport"]

_FINDINGS_SHOWN = 10
_DIFFERENCES_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One crash that shows. ``where`` names the boundary, ``differences`` what came of it, worded for a person."""

    where: str
    differences: tuple[str, ...]

    def __str__(self) -> str:
        shown = self.differences[:_DIFFERENCES_SHOWN]
        return "\n    - ".join((f"crash {self.where}", *shown, *_more(self.differences, shown)))


@dataclass(kw_only=True)
class SweepReport:
    """A sweep of one scenario: commit boundaries, runs, findings, and how often which allowed difference occurred."""

    scenario: str
    backend: str
    boundaries: int = 0
    runs: int = 0
    looked: int = 0
    """Torn files that were only opened and compared with a prefix of the commits."""
    findings: list[Finding] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)

    def verify(self) -> None:
        """Return when no crash shows.

        Raises:
            CrashShows: lists the crashes that do, and what differs.
        """
        if self.findings:
            head = f"{len(self.findings)} crashes of {self.scenario!r} on {self.backend} show"
            shown = self.findings[:_FINDINGS_SHOWN]
            raise CrashShows("\n  - ".join((head, *map(str, shown), *_more(self.findings, shown))))


def _more(found: Sequence[object], shown: Sequence[object]) -> Iterator[str]:
    if len(found) > len(shown):
        yield f"and {len(found) - len(shown)} more"
