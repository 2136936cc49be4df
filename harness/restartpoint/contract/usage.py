"""Token and cost usage: plain JSON as providers report it, its sum, and the ledger rows (§1.6)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeGuard

import msgspec

from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType

__all__ = ["Usage", "UsageDraft", "UsageRow", "add_usage", "sum_usage", "usage_objection", "zero_usage"]

Usage = JsonObject

_COUNTS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
_COSTS = ("input", "output", "cacheRead", "cacheWrite", "total")


class UsageDraft(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ledger row before commit: ``adjustment`` is true only for caller-supplied reconciliations."""

    id: str
    usage: Usage
    adjustment: bool = False
    entry_id: str | UnsetType = UNSET
    details: JsonValue | UnsetType = UNSET


class UsageRow(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A ledger row as committed. Never changed, never deleted."""

    id: str
    seq: int
    usage: Usage
    adjustment: bool = False
    entry_id: str | UnsetType = UNSET
    details: JsonValue | UnsetType = UNSET


def zero_usage() -> Usage:
    """Usage with every count and cost at zero, in the order of the specification's fields."""
    return {
        "input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 0,
        "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
    }  # fmt: skip


def add_usage(total: Usage, usage: Usage) -> Usage:
    """The sum of two usages over the known counts and costs; an absent or non-numeric part counts as zero."""
    cost, extra = _object(total.get("cost")), _object(usage.get("cost"))
    summed: JsonObject = {key: _number(total.get(key)) + _number(usage.get(key)) for key in _COUNTS}
    summed["cost"] = {key: _number(cost.get(key)) + _number(extra.get(key)) for key in _COSTS}
    return summed


def sum_usage(usages: Iterable[Usage]) -> Usage:
    """The left-to-right sum from zero; rows must come in sequence order, since float addition is not associative."""
    total = zero_usage()
    for usage in usages:
        total = add_usage(total, usage)
    return total


def usage_objection(usage: object) -> str | None:
    """Why a caller's usage cannot be added up, or None: what it gives of the known counts and costs are numbers."""
    if not isinstance(usage, dict):
        return f"usage is {type(usage).__name__}, not an object"
    cost = usage.get("cost", {})
    if not isinstance(cost, dict):
        return f"usage.cost is {type(cost).__name__}, not an object"
    for where, given, known in (("usage", usage, _COUNTS), ("usage.cost", cost, _COSTS)):
        for key in known:
            if key in given and not _is_number(given[key]):
                return f"{where}.{key} is {type(given[key]).__name__}, not a number"
    return None


def _is_number(value: object) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, dict) else {}


def _number(value: JsonValue) -> int | float:
    return value if _is_number(value) else 0
