"""Which inputs the world may choose for which transition."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Final

from restartpoint_reference.explore.choices.beside import BESIDE
from restartpoint_reference.explore.choices.moment import Choice, Moment
from restartpoint_reference.explore.choices.runs import RUNS
from restartpoint_reference.explore.choices.structural import STRUCTURAL
from restartpoint_reference.transitions.frame import Inputs, Nothing

CHOICES: Final[Mapping[str, Choice]] = MappingProxyType({**RUNS, **BESIDE, **STRUCTURAL})
"""Per transition, what may be chosen; those that are not here have no inputs."""

_NOTHING: Final = (Nothing(),)


def choices(name: str, at: Moment) -> Iterable[Inputs]:
    """The inputs that the world may choose for this transition now."""
    choice = CHOICES.get(name)
    return _NOTHING if choice is None else choice(at)
