"""What contradicts itself in a session that can be read; backends that look at every line refuse most of it earlier."""

from __future__ import annotations

from collections.abc import Sequence

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_STATE,
    Entry,
    EntryType,
    SessionStats,
    UsageRow,
    sum_usage,
)  # fmt: skip
from restartpoint.errors import SessionCorruption
from restartpoint.runtime.restore import restore
from restartpoint.session import SessionReader

__all__ = ["lane_problems", "ledger_problems", "tree_problems"]


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
        return []  # no harness was ever attached to the lane, which is no contradiction
    try:
        await restore(session, lane)
    except SessionCorruption as error:
        return [str(error)]
    return []
