"""What contradicts itself in a session that can be read; backends that look at every line refuse most of it earlier."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    Entry,
    EntryType,
    Namespace,
    SessionStats,
    UsageRow,
    sum_usage,
)  # fmt: skip
from restartpoint.errors import SessionCorruption
from restartpoint.runtime.restore import restore
from restartpoint.session import SessionReader

__all__ = ["lane_problems", "ledger_problems", "operation_problems", "tree_problems"]

_OPERATION_OWNED: tuple[Namespace[Any], ...] = (OP_META, OP_STATE, OP_TOOL_ARGS, OP_PREPARATION)


def tree_problems(entries: Sequence[Entry]) -> list[str]:
    """Entries whose parent does not come before them (§1.2)."""
    seen: set[str] = set()
    found: list[str] = []
    for entry in entries:
        if entry.parent_id is not None and entry.parent_id not in seen:
            found.append(f"entry {entry.id!r} names the parent {entry.parent_id!r}, which is not before it")
        seen.add(entry.id)
    return found


def ledger_problems(entries: Sequence[Entry], usage: Sequence[UsageRow], stats: SessionStats) -> list[str]:
    """Statistics that are not what entries and rows add up to (§1.6)."""
    messages = sum(entry.type is EntryType.MESSAGE for entry in entries)
    found: list[str] = []
    if stats.message_count != messages:
        found.append(f"the session counts {stats.message_count} messages and holds {messages}")
    if stats.usage != sum_usage(row.usage for row in usage):
        found.append("the total usage of the session is not the sum of its ledger")
    return found


async def lane_problems(session: SessionReader, lane: str) -> list[str]:
    """What the lane's registers contradict (§3.3)."""
    state, configuration = await session.get_registers([(LANE_STATE, lane), (LANE_CONFIG, lane)])
    if configuration is None and state is not None and state.value.current_operation_id is None:
        # No harness was ever attached to the lane, which is no contradiction, but `restore` would call it one.
        return await _leaf_problems(session, lane)
    try:
        await restore(session, lane)
    except SessionCorruption as error:
        return [str(error)]
    return []


async def _leaf_problems(session: SessionReader, lane: str) -> list[str]:
    leaf = await session.get_register(LANE_LEAF, lane)
    if leaf is None:
        return [f"lane {lane!r}: lane.leaf is missing"]
    if leaf.value is not None and leaf.value not in await session.get_entries([leaf.value]):
        return [f"lane {lane!r}: lane.leaf names {leaf.value!r}, which does not exist"]
    return []


async def operation_problems(session: SessionReader) -> list[str]:
    """Registers of operations that no lane has open (§3.13)."""
    states = await session.list_registers(LANE_STATE)
    current = {state.value.current_operation_id for state in states}
    return [
        f"{register.namespace.name}/{register.key} belongs to no open operation"
        for namespace in _OPERATION_OWNED
        for register in await session.list_registers(namespace)
        if register.key.partition(":")[0] not in current
    ]
