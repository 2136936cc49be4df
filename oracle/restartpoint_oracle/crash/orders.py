"""What the killing process and its children tell each other: which scenario, where, and where to die."""

from __future__ import annotations

import importlib
from collections.abc import Callable

import msgspec

__all__ = ["CHRONICLE", "Order", "importable", "name_of"]

CHRONICLE = "chronicle.ndjson"
"""The file beside the session in which a process writes down what it does, line by line."""


class Order(msgspec.Struct, frozen=True, kw_only=True):
    """One child: play the scenario at the place in that folder, and die before or after that commit."""

    scenario: str
    place: str
    folder: str
    commit: int
    before: bool


def name_of(made: Callable[..., object]) -> str:
    """The name by which another process finds a function or a class.

    Raises:
        LookupError: it would not.
    """
    name = f"{made.__module__}:{made.__qualname__}"
    try:
        found = None if made.__module__ == "__main__" else importable(name)
    except (ImportError, AttributeError):
        found = None
    if found is not made:
        raise LookupError(f"{name} cannot be imported by another process; define it at the top of a module")
    return name


def importable(name: str) -> object:
    """What has that name."""
    module, _, path = name.partition(":")
    found: object = importlib.import_module(module)
    for part in path.split("."):
        found = getattr(found, part)
    return found
