"""Which clauses a check performs, and how a whole suite is run without a test runner."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from typing import TypeVar

__all__ = ["Check", "checks_of", "clauses_of", "performs"]

F = TypeVar("F", bound=Callable[..., Awaitable[None]])
_MARK = "__performs__"


def performs(*clauses: str) -> Callable[[F], F]:
    """Marks a check with the clauses of the port (``P4``) and the requirement ids (``ST-1.4-12``) that it performs."""

    def mark(check: F) -> F:
        setattr(check, _MARK, clauses)
        return check

    return mark


def clauses_of(check: Callable[..., object]) -> tuple[str, ...]:
    """The clauses and requirement ids that a check performs; empty when it is none."""
    marked: tuple[str, ...] = getattr(check, _MARK, ())
    return marked


@dataclass(frozen=True, kw_only=True)
class Check:
    """One check of a suite: its name, what it performs, and the coroutine function that takes the suite's bench."""

    name: str
    clauses: tuple[str, ...]
    run: Callable[..., Awaitable[None]]


def checks_of(suite: object) -> Iterator[Check]:
    """The checks of a suite instance, by name."""
    for name in sorted(dir(type(suite))):
        found = getattr(suite, name)
        if name.startswith("test_") and callable(found):
            yield Check(name=name, clauses=clauses_of(found), run=found)
