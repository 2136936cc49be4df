"""Writes to a small session, and what ``apply`` answers to them."""

from collections.abc import Sequence
from typing import Final, Protocol, TypeAlias

from restartpoint_reference.store import Delta, State, Violation, apply
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    EntryType,
    Expectation,
    InsertEntry,
    InsertUsage,
    Namespace,
    NewEntry,
    NewUsage,
    SetRegister,
    Write,
)
from restartpoint_reference.vocabulary.messages import zero_usage

__all__ = [
    "BASE",
    "COMMITS",
    "COMMITS_AT",
    "COMMITS_IF",
    "FACTS",
    "Answer",
    "Commits",
    "CommitsAt",
    "CommitsIf",
    "delete_fact",
    "entry",
    "set_fact",
    "usage",
]

FACTS: Final = Namespace.FACT_CUSTOM


Answer: TypeAlias = tuple[State, Delta] | Violation


class Commits(Protocol):
    """What ``apply`` answers to writes."""

    def __call__(self, state: State, writes: Sequence[Write], *, timestamp: int) -> Answer: ...


class CommitsAt(Protocol):
    """What it answers to writes that carry sequence numbers."""

    def __call__(self, state: State, writes: Sequence[Write], *, timestamp: int, seqs: Sequence[int]) -> Answer: ...


class CommitsIf(Protocol):
    """What it answers to writes under expectations."""

    def __call__(
        self, state: State, writes: Sequence[Write], *, timestamp: int, expectations: Sequence[Expectation]
    ) -> Answer: ...


COMMITS: Final[Commits] = apply
COMMITS_AT: Final[CommitsAt] = apply
COMMITS_IF: Final[CommitsIf] = apply


def entry(id: str, parent: str | None = None) -> InsertEntry:
    """The insertion of a custom entry."""
    return InsertEntry(
        entry=NewEntry(id=id, parent_id=parent, type=EntryType.CUSTOM, custom_type="note", payload={"data": id})
    )


def usage(id: str) -> InsertUsage:
    """The insertion of a ledger row without tokens."""
    return InsertUsage(row=NewUsage(id=id, adjustment=True, usage=zero_usage()))


def set_fact(key: str, value: int) -> SetRegister:
    """A fact is set."""
    return SetRegister(namespace=FACTS, key=key, value=value)


def delete_fact(key: str) -> DeleteRegister:
    """A fact is removed."""
    return DeleteRegister(namespace=FACTS, key=key)


def _committed(*writes: Write) -> State:
    answer = apply(State.empty(), writes, timestamp=1)
    assert not isinstance(answer, Violation)
    return answer[0]


BASE: Final = _committed(entry("e1"), usage("u1"), set_fact("fact", 1))
"""A session with one entry, one ledger row and one fact."""
