"""How many rows a query may ask for, the same on every backend (§1.5)."""

from __future__ import annotations

from restartpoint.contract.json import MAX_SAFE_INTEGER
from restartpoint.errors import InvalidQuery

__all__ = ["checked_limit"]


def checked_limit(limit: int | None) -> int | None:
    """The limit, None for none.

    Raises:
        InvalidQuery: it is no whole number, negative, or above what any backend counts to.
    """
    if limit is not None and (type(limit) is not int or not 0 <= limit <= MAX_SAFE_INTEGER):
        raise InvalidQuery(f"a limit is a whole number from 0 to 2**53 - 1, or None for no limit, not {limit!r}")
    return limit
