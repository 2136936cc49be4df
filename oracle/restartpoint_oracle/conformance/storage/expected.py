"""What a storage must hold and answer, computed naively from the transactions that it accepted.

This is no model: it trusts that the transactions were legal, and evaluates every query over all rows.
"""

from __future__ import annotations

from collections.abc import Callable

from restartpoint.contract import (
    NAMESPACES,
    BranchScan,
    CommitResult,
    EntryScan,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    Transaction,
    UsageScan,
)  # fmt: skip
from restartpoint_oracle.wire import Json, JsonObject, commit_json

__all__ = ["Expected", "ledger_sum", "naive_branch", "naive_entries", "naive_usage"]

_COUNTS = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
_COSTS = ("input", "output", "cacheRead", "cacheWrite", "total")


class Expected:
    """The rows of a session by sequence number, as JSON."""

    def __init__(self) -> None:
        self.entries: list[JsonObject] = []
        self.usage: list[JsonObject] = []
        self.registers: dict[tuple[str, str], JsonObject] = {}

    def apply(self, tx: Transaction, result: CommitResult) -> None:
        """Add what an accepted transaction wrote."""
        for write, element in zip(tx.writes, commit_json(tx, result), strict=True):
            assert isinstance(element, dict)
            body = {key: value for key, value in element.items() if key not in ("kind", "op")}
            match write:
                case InsertEntry():
                    self.entries.append(body)
                case InsertUsage():
                    self.usage.append(body)
                case RegisterSet(namespace=namespace, key=key):
                    placed = {"namespace": namespace.name, "key": key, "value": body["value"], "seq": body["seq"]}
                    self.registers[namespace.name, key] = placed
                case RegisterDelete(namespace=namespace, key=key):
                    self.registers.pop((namespace.name, key), None)

    def snapshot(self) -> JsonObject:
        """All of it, in the shape of ``content_of_storage``."""
        order = list(NAMESPACES)
        keys = sorted(self.registers, key=lambda address: (order.index(address[0]), address[1]))
        messages = sum(found["type"] == "message" for found in self.entries)
        return {
            "entries": list[Json](self.entries),
            "registers": [self.registers[key] for key in keys],
            "usage": list[Json](self.usage),
            "stats": {"messageCount": messages, "usage": ledger_sum(self.usage)},
        }

    def listed(self, namespace: str, prefix: str) -> list[Json]:
        """The registers of a namespace under a prefix, by code points of the key."""
        found = [key for name, key in self.registers if name == namespace and key.startswith(prefix)]
        return [self.registers[namespace, key] for key in sorted(found)]


def ledger_sum(rows: list[JsonObject]) -> JsonObject:
    """The left-to-right sum of the rows from zero; whatever is no number counts as zero."""
    counts: dict[str, float] = dict.fromkeys(_COUNTS, 0)
    costs: dict[str, float] = dict.fromkeys(_COSTS, 0)
    for row in rows:
        used = row["usage"]
        assert isinstance(used, dict)
        cost = used.get("cost")
        for key in _COUNTS:
            counts[key] += _number(used.get(key))
        for key in _COSTS:
            costs[key] += _number(cost.get(key)) if isinstance(cost, dict) else 0
    return {**counts, "cost": {**costs}}


def _number(value: Json) -> float:
    return value if isinstance(value, int | float) and not isinstance(value, bool) else 0


def naive_branch(entries: list[JsonObject], query: BranchScan) -> list[Json]:
    """A branch scan, word by word: path, order, inclusive stop, filter, exclusive cursor, limit (§2.5)."""
    by_id = {str(found["id"]): found for found in entries}
    path: list[JsonObject] = []
    at: Json = query.start
    while at is not None:
        path.append(by_id[str(at)])
        at = path[-1]["parentId"]
    newest_first = query.order == "newestFirst"
    kept: list[JsonObject] = []
    for found in path if newest_first else reversed(path):
        kept.append(found)
        if found["id"] == query.stop_at_id or found["type"] == query.stop_at_type:
            break
    kept = list(filter(_selects(query), kept))
    if query.cursor is not None:
        position = query.cursor.seq
        kept = [found for found in kept if (_seq(found) < position if newest_first else _seq(found) > position)]
    return list[Json](kept if query.limit is None else kept[: query.limit])


def naive_entries(entries: list[JsonObject], query: EntryScan) -> list[Json]:
    """An inventory: filter, inclusive bounds, order, limit (§1.5)."""
    return _ranged(list(filter(_selects(query), entries)), query)


def naive_usage(rows: list[JsonObject], query: UsageScan) -> list[Json]:
    """A ledger read: inclusive bounds, order, limit (§1.5)."""
    return _ranged(rows, query)


def _selects(query: BranchScan | EntryScan) -> Callable[[JsonObject], bool]:
    def selects(found: JsonObject) -> bool:
        wrong_type = query.type is not None and found["type"] != query.type
        return not wrong_type and (query.custom_type is None or found.get("customType") == query.custom_type)

    return selects


def _ranged(rows: list[JsonObject], query: EntryScan | UsageScan) -> list[Json]:
    kept = [
        row
        for row in rows
        if (query.from_seq is None or _seq(row) >= query.from_seq)
        and (query.to_seq is None or _seq(row) <= query.to_seq)
    ]
    kept.sort(key=_seq, reverse=query.order == "desc")
    return list[Json](kept if query.limit is None else kept[: query.limit])


def _seq(row: JsonObject) -> int:
    found = row["seq"]
    assert isinstance(found, int)
    return found
