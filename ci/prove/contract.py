"""What is proved: a named property of one function of the model, and a faulty twin of that function."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Concatenate, TypeVar

from restartpoint_reference import Transition
from restartpoint_reference.transitions.frame import Inputs, View, Writes

__all__ = ["Given", "Property", "faulty", "proves"]

S = TypeVar("S")

Given = Callable[..., bool]
"""A precondition over the property's symbolic arguments, by their names."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Property:
    """A claim about one function of the model: ``holds(subject, ...)`` for every value of its other arguments.

    ``symbolic`` and ``fixed`` say for which values it is proved. The twin is a faulty version of the subject, for which
    the same property must be refuted. A ``quick`` property is decided in a few seconds and is part of the tests.
    """

    name: str
    function: str
    section: str
    claim: str
    symbolic: str
    fixed: str
    fault: str
    quick: bool
    given: Given | None
    holds: Callable[..., bool]
    subject: object
    twin: object


def proves(
    subject: S,
    *,
    section: str,
    twin: S,
    symbolic: str,
    fixed: str = "nothing",
    given: Given | None = None,
    quick: bool = False,
) -> Callable[[Callable[Concatenate[S, ...], bool]], Property]:
    """Declare a function from the subject and symbolic arguments to a verdict as a property of the subject."""

    def declare(holds: Callable[Concatenate[S, ...], bool]) -> Property:
        return Property(
            name=holds.__name__,
            function=_name(subject),
            section=section,
            claim=_first_line(holds),
            symbolic=symbolic,
            fixed=fixed,
            fault=_first_line(twin),
            quick=quick,
            given=given,
            holds=holds,
            subject=subject,
            twin=twin,
        )

    return declare


def faulty(transition: Transition, build: Callable[[View, Inputs], Writes]) -> Transition:
    """The transition with the same guards and other writes; what is wrong with them is the first line of ``build``."""
    return replace(transition, build=build, summary=_first_line(build))


def _name(subject: object) -> str:
    if isinstance(subject, Transition):
        return f"{subject.name} ({subject.id})"
    module = str(getattr(subject, "__module__", "")).removeprefix("restartpoint_reference.")
    return f"{module}.{getattr(subject, '__qualname__', '')}"


def _first_line(subject: object) -> str:
    words = subject.summary if isinstance(subject, Transition) else subject.__doc__
    return (words or "").strip().splitlines()[0].rstrip(".")
