"""What in a session file follows from the three stores, and what others see of a commit (§0.3, §1.7, §2.1)."""

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_LEAF,
    OP_TOOL_ARGS,
    BranchScan,
    EntryScan,
    EntryType,
    RegisterSet,
    UsageScan,
    sum_usage,
)
from restartpoint.storage.sqlite import InlineHop
from restartpoint.storage.sqlite.branches import append
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import SqlitePlace
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import stage_of
from tests.harness.storage.sqlite.stage import Connections, created, opened, raw, rows
from tests.harness.storage.stage import PAYLOADS, HeldClock, entry, say, tx, usage

INDEX = ("branch_entries", "branch_meta")


@pytest.fixture
async def wide(path: Path, clock: HeldClock) -> Path:
    """A session of several segments, with entries of each type and a ledger."""
    async with created(path, clock, hop=InlineHop()) as storage:
        parent: str | None = None
        for number in range(60):
            payload = PAYLOADS[(0, 3, 6)[number % 3]]
            await storage.commit(tx(entry(f"e{number}", parent, payload), usage(f"u{number}", 0.1 * number)))
            parent = f"e{max(0, number - 4)}" if number % 7 == 6 else f"e{number}"
    return path


@pytest.mark.covers("ST-0.3-05")
async def test_the_branch_index_and_the_statistics_are_rebuilt_from_the_stores_as_they_were(
    wide: Path, clock: HeldClock
) -> None:
    maintained = {table: sorted(rows(wide, f"SELECT * FROM {table}")) for table in INDEX}
    with raw(wide) as connection:
        for table in INDEX:
            connection.execute(f"DELETE FROM {table}")
        stored = "SELECT id, parent_id, seq, type FROM entries ORDER BY seq"
        for entry_id, parent_id, seq, entry_type in connection.execute(stored).fetchall():
            append(connection, entry_id, parent_id, seq, entry_type, {})
    assert {table: sorted(rows(wide, f"SELECT * FROM {table}")) for table in INDEX} == maintained
    ((count, total),) = rows(wide, "SELECT message_count, usage_payload FROM session")
    async with opened(wide, clock) as storage:
        entries = await storage.scan_entries(EntryScan(type=EntryType.MESSAGE))
        ledger = await storage.scan_usage(UsageScan(order="asc"))
    assert (count, json.loads(total)) == (len(entries), sum_usage(row.usage for row in ledger))
    assert len(maintained["branch_meta"]) > 3


@pytest.mark.covers("ST-2.1-06")
async def test_no_payload_is_read_to_index_or_to_select_a_branch(wide: Path, clock: HeldClock) -> None:
    async with opened(wide, clock, hop=InlineHop()) as storage:
        queries = [
            BranchScan(start="e59"),
            BranchScan(start="e59", stop_at_type=EntryType.COMPACTION, custom_type="note"),
        ]
        before = [await storage.scan_branch_structure(query) for query in queries]
    with raw(wide) as connection:
        connection.execute("UPDATE entries SET payload = 'no JSON'")
    async with opened(wide, clock, hop=InlineHop()) as storage:
        assert [await storage.scan_branch_structure(query) for query in queries] == before
        await storage.commit(tx(say("tip", "e59", "a"), say("side", "e10", "b")))
        (found, *_) = await storage.scan_branch_structure(BranchScan(start="side"))
        assert (found.id, found.parent_id) == ("side", "e10")


@pytest.mark.covers("ST-0.3-02")
async def test_entries_are_read_from_one_table_that_holds_placement_and_payload(
    wide: Path, clock: HeldClock, connections: Connections
) -> None:
    names = {name for (name,) in rows(wide, "SELECT name FROM sqlite_master WHERE type = 'table'")}
    assert not {name for name in names if "value" in name or "content" in name or "payload" in name}
    async with opened(wide, clock, hop=InlineHop()) as storage:
        connections.take()
        assert len(await storage.get_entries(["e1", "e2"])) == 2
        (sql,) = connections.take()
    assert [name for name in names if f" {name}" in sql] == ["entries"]
    assert "JOIN" not in sql.upper()


@pytest.mark.covers("ST-1.5-05")
async def test_a_prefix_is_a_range_of_the_key_and_its_characters_mean_themselves(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    keys = ["a%b", "axb", "a_b", "a*b", "a?b", "a[b", "ab"]
    async with created(path, clock, initial=tx(*(RegisterSet(FACT_CUSTOM, key, key) for key in keys))):
        pass
    async with opened(path, clock, read_only=True, hop=InlineHop()) as storage:
        connections.take()
        for prefix in ("a%", "a_", "a*", "a?", "a["):
            found = await storage.list_registers(FACT_CUSTOM, prefix)
            assert [one.key for one in found] == [f"{prefix}b"]
        selects = [sql for sql in connections.take() if sql.startswith("SELECT")]
        assert await storage.list_registers(OP_TOOL_ARGS, "a") == []
        plans = [connections.last.execute(f"EXPLAIN QUERY PLAN {sql}").fetchall() for sql in selects]
    assert len(plans) == 5
    for ((*_, step),) in plans:
        assert step.startswith("SEARCH")
        assert "(namespace=? AND key>? AND key<?)" in step


@pytest.mark.covers("ST-1.7-53")
async def test_another_connection_sees_none_or_all_of_a_commit(path: Path, clock: HeldClock) -> None:
    """It looks before every statement of the writer."""
    seen: list[tuple[int, ...]] = []
    tables = ("entries", "usage_ledger", "registers", "branch_entries")

    def look(_: str) -> None:
        counts = " UNION ALL ".join(f"SELECT count(*) FROM {table}" for table in tables)
        seen.append(tuple(count for (count,) in reader.execute(counts)))

    async with created(path, clock, hop=InlineHop()) as storage:
        with raw(path) as reader:
            look("")
            connection = writing_connection(storage)
            connection.set_trace_callback(look)
            await storage.commit(
                tx(
                    say("e1", None, "a"),
                    say("e2", "e1", "b"),
                    usage("u1"),
                    RegisterSet(FACT_CUSTOM, "k", 1),
                    RegisterSet(LANE_LEAF, "main", "e2"),
                )
            )
            connection.set_trace_callback(None)
            during = list(seen)
            look("")
    before = during[0]
    assert len(during) > 5
    assert set(during) == {before}
    assert seen[-1] == (before[0] + 2, before[1] + 1, before[2] + 1, before[3] + 2)


def writing_connection(storage: Any) -> sqlite3.Connection:
    found = [value for value in vars(storage._session).values() if isinstance(value, sqlite3.Connection)]
    assert len(found) == 1
    return found[0]


@pytest.mark.covers("ST-0.6-06")
@pytest.mark.parametrize("name", ["one tool", "provider error", "deferred"])
async def test_a_run_and_its_end_take_no_statement_that_removes_or_changes_a_row(
    name: str, tmp_path: Path, connections: Connections
) -> None:
    stage = stage_of(SCENARIOS[name], SqlitePlace(tmp_path), Log())
    async with stage.open() as harness:
        await harness.prompt("go")
    taken = [sql.strip().upper() for sql in connections.take()]
    changing = [sql for sql in taken if sql.startswith(("DELETE", "UPDATE", "REPLACE"))]
    assert changing
    assert [sql for sql in changing if "USAGE_LEDGER" in sql or " ENTRIES" in sql] == []
