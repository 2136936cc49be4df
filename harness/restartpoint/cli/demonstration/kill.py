"""Where the demo's child dies: inside an effect, or at a commit."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable
from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract import CommitResult, Transaction
from restartpoint.seams import FaultPoint

__all__ = ["KillAt", "KillingFaults", "Place", "die", "parse_kill_at"]

Place: TypeAlias = Literal["tool", "request", "before", "after", "told"]
"""Inside the unsafe tool or the first request; or before a commit is written, after it, or after it was told."""

_COMMIT = re.compile(r"([1-9][0-9]{0,5})([+-]?)")


class KillAt(msgspec.Struct, frozen=True):
    """A place to die; ``commit`` counts from 1, the creation of the session."""

    place: Place
    commit: int = 0

    def __str__(self) -> str:
        match self.place:
            case "tool":
                return "in the middle of the unsafe tool"
            case "request":
                return "while the model was answering"
            case "before":
                return f"just before commit {self.commit} was written"
            case "after":
                return f"after commit {self.commit} was written and before anyone was told"
            case "told":
                return f"right after commit {self.commit}"


def parse_kill_at(text: str) -> KillAt:
    """The place that ``tool``, ``request``, ``N``, ``N-`` or ``N+`` names; anything else raises ``ValueError``."""
    if text == "tool":
        return KillAt("tool")
    if text == "request":
        return KillAt("request")
    found = _COMMIT.fullmatch(text)
    if found is None:
        raise ValueError(f"{text!r} is neither tool nor request nor a commit such as 3, 3- or 3+")
    place: Place = "before" if found[2] == "-" else "after" if found[2] == "+" else "told"
    return KillAt(place, int(found[1]))


def die() -> None:
    """End this process as ``kill -9`` does; nothing in it can react."""
    os.kill(os.getpid(), signal.SIGKILL)


class KillingFaults:
    """Fault points that count commits and kill at the chosen one. The creation of a session counts as commit 1."""

    def __init__(self, kill: KillAt, kill_process: Callable[[], None] = die) -> None:
        self._kill = kill
        self._kill_process = kill_process
        self._written = 0
        self._told = 0
        self._armed = False

    def creating(self) -> None:
        """The session is about to be created."""
        self._at("before", 1)

    def created(self) -> None:
        """The session was created, and nobody was told yet."""
        self._written = 1
        self._at("after", 1)

    def announced(self) -> None:
        """Whoever created the session was told; from now on every commit counts."""
        self._told = 1
        self._at("told", 1)
        self._armed = True

    def reach(self, point: FaultPoint) -> None:
        """Called by the storage around each write."""
        if not self._armed:
            return
        if point == "commit.before_write":
            self._at("before", self._written + 1)
        else:
            self._written += 1
            self._at("after", self._written)

    def told(self, lane: str, transaction: Transaction, result: CommitResult) -> None:
        """Called by the session after each commit."""
        del lane, transaction, result
        self._told += 1
        self._at("told", self._told)

    def _at(self, place: Place, commit: int) -> None:
        if self._kill == KillAt(place, commit):
            self._kill_process()
