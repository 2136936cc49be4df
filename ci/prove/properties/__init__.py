"""Every property, by the room of the model that it speaks of."""

from collections.abc import Mapping
from types import ModuleType
from typing import Final

from ci.prove.contract import Property
from ci.prove.properties import arithmetic, classification, endings, handles, leaf, queues, rows, storage, tools, values

__all__ = ["PROPERTIES"]

_ROOMS: Final[tuple[ModuleType, ...]] = (
    arithmetic, classification, handles, values, storage, rows, queues, tools, endings, leaf,
)  # fmt: skip

PROPERTIES: Final[Mapping[str, Property]] = {
    found.name: found for room in _ROOMS for found in vars(room).values() if isinstance(found, Property)
}
"""The properties by name, in the order in which they are declared."""
