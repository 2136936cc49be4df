"""The model asked about content that is damaged beyond what it reads: it answers a refusal and raises nothing else.

Whether content is damaged the model's own readers and invariants say. What follows here is for the questions that come
before them, or that they let through, so that no file can end an audit with a traceback.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from restartpoint_reference import (
    UNSET,
    Explained,
    Json,
    Observed,
    Refused,
    State,
    Unexplained,
    Unset,
    explain,
    invariants,
)
from restartpoint_reference.explain import lane_of
from restartpoint_reference.transitions.frame import NotThis

__all__ = ["UNREADABLE", "broken", "explained", "observed", "refusing"]

UNREADABLE: Final = (NotThis, ArithmeticError, AssertionError, AttributeError, LookupError, TypeError, ValueError)
"""What damage can make the model raise."""


@contextmanager
def refusing() -> Iterator[None]:
    """Every such error inside the block becomes a ``Refused``."""
    try:
        yield
    except Refused:
        raise
    except UNREADABLE as error:
        raise Refused(f"damaged content: {type(error).__name__}: {error}") from error


def observed(elements: Json, timestamp: int | Unset = UNSET) -> Observed:
    """The commit of these elements; raises ``Refused``."""
    with refusing():
        return Observed.from_json(elements, timestamp)


def explained(state: State, commit: Observed) -> Explained | Unexplained:
    """The model's answer. To describe a commit that a guard forbids, it may have to build what cannot be built."""
    try:
        return explain(state, commit, commit.timestamp)
    except UNREADABLE as error:
        reason = f"the nearest transition cannot be built from it: {type(error).__name__}: {error}"
        return Unexplained(nearest=None, section="3", lane=lane_of(state, commit.writes), differences=(reason,))


def broken(find: Callable[[], tuple[invariants.Broken, ...]]) -> tuple[invariants.Broken, ...]:
    """What a check of invariants finds; where even that cannot be asked, that it cannot."""
    try:
        return find()
    except UNREADABLE as error:
        reason = f"{type(error).__name__}: {error}"
        return (invariants.Broken(name="the_invariants_can_be_checked", section="9.1", reason=reason),)
