"""What a check found."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Verdict"]


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """The outcome of one check; ``finding`` is None when every claim held."""

    check: str
    clauses: tuple[str, ...]
    finding: str | None

    @property
    def passed(self) -> bool:
        """Whether every claim held."""
        return self.finding is None
