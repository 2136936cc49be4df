"""All edits of all recorded sessions, or of one commit of each transition, and what became of each."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from functools import cache

from restartpoint_oracle.audit import SeenCommit, judge
from tests.oracle.audit.edits import Outcome, edits_of, outcome_of
from tests.oracle.audit.histories import History, recorded

__all__ = ["every_outcome", "names_of", "one_of_each"]


@cache
def names_of(history: History) -> tuple[str, ...]:
    """The transition of every commit."""
    found: list[str] = []
    for standing, elements in zip(history.standings, history.commits, strict=False):
        verdict = judge(standing, SeenCommit(elements=elements))
        assert verdict.explained is not None, (history.name, len(found), verdict.findings)
        found.append(verdict.explained.name)
    return tuple(found)


def every_outcome() -> Iterator[Outcome]:
    """The outcome of every edit of every commit."""
    for history in recorded():
        standings, names = history.standings, names_of(history)
        for at in range(len(names)):
            for edit in edits_of(history, at):
                yield outcome_of(history, standings, names, edit)


def one_of_each(transitions: Collection[str]) -> Iterator[Outcome]:
    """The outcome of every edit of one commit of each of these transitions: the first one that is recorded."""
    left = set(transitions)
    for history in recorded():
        names = names_of(history)
        for at, name in enumerate(names):
            if name in left:
                left.remove(name)
                for edit in edits_of(history, at):
                    yield outcome_of(history, history.standings, names, edit)
