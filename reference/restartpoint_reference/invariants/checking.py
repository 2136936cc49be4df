"""Asks every invariant about a whole state, or about what one commit touched (§9.1)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from restartpoint_reference.invariants.combinations import OF_COMBINATIONS
from restartpoint_reference.invariants.commits import CHANGES
from restartpoint_reference.invariants.registers import OF_REGISTERS
from restartpoint_reference.invariants.rows import OF_ROWS
from restartpoint_reference.invariants.states import OF_STATES
from restartpoint_reference.scope import Scope, touched, whole
from restartpoint_reference.store import Delta, State
from restartpoint_reference.transitions.frame import View


@dataclass(frozen=True, kw_only=True)
class Broken:
    """An invariant that a state breaks: its name, its section with the number in §9.1, and where."""

    name: str
    section: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')}: {self.reason} (§{self.section})"


@dataclass(frozen=True, kw_only=True)
class Invariant:
    """A named predicate over what a check looks at."""

    name: str
    section: str
    find: Callable[[Scope], Iterator[str]]


def check(state: State) -> tuple[Broken, ...]:
    """Everything that the state breaks; empty for a sound state. Costs the size of the session."""
    return _broken(whole(state))


def check_commit(state: State, delta: Delta) -> tuple[Broken, ...]:
    """What a commit and the state after it break, when the state before it was sound; costs what the commit touched."""
    rules = ((section, rule.__name__, rule(delta)) for section, rule in CHANGES)
    changed = (Broken(name=name, section=section, reason=reason) for section, name, found in rules for reason in found)
    return (*changed, *_broken(touched(state, delta)))


def _broken(scope: Scope) -> tuple[Broken, ...]:
    return tuple(
        Broken(name=invariant.name, section=invariant.section, reason=reason)
        for invariant in INVARIANTS
        for reason in invariant.find(scope)
    )


def operations(state: State) -> tuple[View, ...]:
    """A view of every open operation whose registers can be read."""
    return whole(state).operations


INVARIANTS: Final[tuple[Invariant, ...]] = tuple(
    Invariant(name=find.__name__, section=section, find=find)
    for section, find in (*OF_ROWS, *OF_REGISTERS, *OF_STATES, *OF_COMBINATIONS)
)
"""Every invariant that one durable state can break."""
