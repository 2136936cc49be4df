"""Walks that together take every transition of the model, one room per part of it.

Each room exports ``SCENARIOS``, and ``FREE``: per transition that it takes, the places whose alteration nobody can see.
"""

from collections.abc import Callable
from typing import Final

from tests.reference.walk import Walk
from tests.reference.walks import abort, compaction, deferred, inbox, navigation, runs, sessions

_ROOMS: Final = (runs, deferred, inbox, compaction, navigation, abort, sessions)

SCENARIOS: Final[tuple[Callable[[], Walk], ...]] = tuple(scenario for room in _ROOMS for scenario in room.SCENARIOS)

FREE: Final[dict[str, set[str]]] = {
    name: set().union(*(room.FREE.get(name, set()) for room in _ROOMS))
    for name in sorted({name for room in _ROOMS for name in room.FREE})
}
"""Per transition, the places whose alteration nobody can see, because the commit could have been made so."""
