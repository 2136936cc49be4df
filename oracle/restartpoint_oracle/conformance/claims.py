"""How a check says what must hold. Each claim raises ``ClauseBroken`` with what was expected and what was found."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Generic, TypeVar

from restartpoint_oracle.errors import ClauseBroken
from restartpoint_oracle.wire import Json, json_text
from restartpoint_reference.shapes import differences

__all__ = ["Raised", "equal", "holds", "raises", "same_json"]

E = TypeVar("E", bound=BaseException)


@dataclass
class Raised(Generic[E]):
    """What a block raised; set when the block has ended."""

    _error: E | None = None

    @property
    def error(self) -> E:
        """The exception."""
        if self._error is None:
            raise ClauseBroken("the block has not ended")
        return self._error


def holds(condition: bool, claim: str) -> None:
    """The claim is true."""
    if not condition:
        raise ClauseBroken(f"does not hold: {claim}")


def equal(found: object, expected: object, about: str) -> None:
    """Both are equal as Python values."""
    if found != expected:
        raise ClauseBroken(f"{about}: expected {expected!r}, found {found!r}")


def same_json(found: Json, expected: Json, about: str, *, ordered: bool = True) -> None:
    """Both are the same JSON: 1 is not 1.0, absent is not null; the order of keys counts unless told otherwise."""
    if json_text(found) == json_text(expected):
        return
    lines = differences(expected, found)
    if lines:
        raise ClauseBroken("\n  - ".join((f"{about}: not the same JSON", *lines[:20])))
    if ordered:
        raise ClauseBroken(f"{about}: the same values, but the keys of an object changed their order")


@contextmanager
def raises(kind: type[E], about: str) -> Iterator[Raised[E]]:
    """The block raises this kind; an exception of another kind passes through."""
    raised: Raised[E] = Raised()
    try:
        yield raised
    except kind as error:
        raised._error = error
        return
    raise ClauseBroken(f"{about}: expected {kind.__name__}, but nothing was raised")
