"""How the machine chooses: few, plain strategies that are made once, since making them costs more than drawing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar

from hypothesis import strategies as st

from restartpoint.contract import MAX_SAFE_INTEGER

__all__ = ["JSON_VALUES", "Choose"]

T = TypeVar("T")

_INDEX = st.integers(0, 119)
_NUMBER = st.integers(0, 1000)

JSON_VALUES: tuple[Any, ...] = (
    None, True, 0, 1, 1.0, -0.0, 0.1, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, 1e300, "", "text",
    "\u2028 \u0000 \U0001f600", [], {}, [[], {}], {"z": 1, "a": [1.0, None]},
    {"": {"\u2028": [True]}}, [None, "null", False],
)  # fmt: skip
"""What stands in the free parts of rows; the suite has many more."""


class Choose:
    """Choices within one composite strategy. The first of the offered is the simplest."""

    def __init__(self, draw: st.DrawFn) -> None:
        self._draw = draw

    def of(self, offered: Sequence[T]) -> T:
        """One of the offered."""
        return offered[self._draw(_INDEX) % len(offered)]

    def flag(self) -> bool:
        """Yes or no."""
        return self._draw(_INDEX) % 2 == 1

    def number(self, most: int) -> int:
        """From 0 to ``most``, both included."""
        return self._draw(_NUMBER) % (most + 1)

    def json(self) -> Any:
        """A JSON value."""
        return self.of(JSON_VALUES)
