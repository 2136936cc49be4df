"""What an audit answers: findings with their places, the commits that were judged, one report per file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal, TypeAlias

__all__ = ["FileFormat", "Finding", "Kind", "NamedCommit", "Report"]

FileFormat: TypeAlias = Literal["jsonl", "sqlite", "trace"]


class Kind(StrEnum):
    """What was held to what."""

    UNEXPLAINED = "unexplained"
    """No transition of the model makes the commit (§3)."""
    RULE = "rule"
    """The commit breaks a rule of storage (§1.4)."""
    INVARIANT = "invariant"
    """The state breaks an invariant (§9.1)."""
    PROCEDURE = "procedure"
    """The transition exists, but the procedure does not take it here (§3.12)."""
    CLAIM = "claim"
    """A trace names the transition or the lane of its commit, and the model another."""
    ROWS = "rows"
    """Rows that no session can hold, or that contradict what is kept beside them (§1.7, §3.3)."""
    TEXT = "text"
    """JSON that two readers would read differently (§1.1)."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One violation. ``transition`` made the commit, or is the nearest when ``kind`` is unexplained.

    ``line`` counts from 1 and ``commit`` from 1 after what a file starts from; None where there is no such place.
    """

    kind: Kind
    section: str
    differences: tuple[str, ...]
    transition: str | None = None
    lane: str | None = None
    line: int | None = None
    commit: int | None = None
    seqs: tuple[int, ...] = ()

    def at(self, line: int | None, commit: int | None, seqs: tuple[int, ...] = ()) -> Finding:
        """The same finding with its place."""
        return replace(self, line=line, commit=commit, seqs=seqs)


@dataclass(frozen=True, kw_only=True)
class NamedCommit:
    """A judged commit and its transition; ``name`` is None when there is none, ``detail`` tells variants apart."""

    number: int
    line: int
    seqs: tuple[int, ...]
    name: str | None
    id: str | None
    section: str
    lane: str | None
    detail: str
    sound: bool


@dataclass(frozen=True, kw_only=True)
class Report:
    """The audit of one file.

    ``rows`` were taken as the state that the file starts from, or is. ``torn_bytes`` follow the last whole line; they
    are no violation. ``stopped`` says why the judge could not go on, ``unreadable`` why the file could
    not be read to its end.
    """

    path: str
    format: FileFormat | None = None
    session: str | None = None
    rows: int = 0
    commits: int = 0
    restarts: int = 0
    torn_bytes: int = 0
    transitions: Mapping[str, int]
    findings: tuple[Finding, ...] = ()
    named: tuple[NamedCommit, ...] = ()
    stopped: str | None = None
    unreadable: str | None = None

    @property
    def exit_code(self) -> int:
        """0 clean, 1 violations, 2 unreadable."""
        if self.unreadable is not None:
            return 2
        return 1 if self.findings else 0
