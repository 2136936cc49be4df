"""Which statements a session takes, in which order, and by which plan SQLite answers them."""

import itertools
import re
import sqlite3
from pathlib import Path
from typing import Literal

import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_LEAF,
    BranchScan,
    EntryCursor,
    EntryScan,
    EntryType,
    RegisterDelete,
    RegisterSet,
    UsageScan,
    sum_usage,
)
from restartpoint.errors import DuplicateId, MissingParent, StorageCorruption
from restartpoint.storage import Durability
from restartpoint.storage.sqlite import InlineHop, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, Connections, created, opened, raw, rows
from tests.harness.storage.stage import INITIAL, METADATA, PAYLOADS, HeldClock, entry, said, say, tx, usage

FIRST_WORDS = re.compile(r"(BEGIN\b.*|COMMIT|ROLLBACK)", re.IGNORECASE)


def borders(statements: list[str]) -> list[str]:
    return [statement for statement in statements if FIRST_WORDS.match(statement)]


@pytest.mark.covers("ST-1.7-47", "ST-1.7-49", "ST-1.7-71")
async def test_a_commit_is_one_immediate_transaction_however_much_it_writes(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock) as storage:
        connections.take()
        await storage.commit(
            tx(
                say("e1", None, "a"),
                say("e2", "e1", "b"),
                say("e3", "e1", "c"),
                usage("u1"),
                RegisterSet(LANE_LEAF, "main", "e3"),
                RegisterDelete(FACT_CUSTOM, "nothing"),
            )
        )
        taken = connections.take()
    assert borders(taken) == ["BEGIN IMMEDIATE", "COMMIT"]
    assert taken[0] == "BEGIN IMMEDIATE"
    assert taken[-1] == "COMMIT"


async def test_a_commit_asks_only_whether_its_ids_are_free(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e0")):
        pass
    async with opened(path, clock) as storage:
        await storage.commit(tx(say("e1", "e0", "a"), usage("u1")))
        connections.take()
        await storage.commit(tx(say("e2", "e1", "b"), usage("u2"), RegisterSet(LANE_LEAF, "main", "e2")))
        taken = connections.take()
    assert [text.split(" WHERE ")[0] for text in taken if text.startswith("SELECT")] == ["SELECT 1 FROM entries"] * 2
    assert len(taken) == 11


async def test_after_a_refusal_a_commit_continues_what_is_stored(path: Path, clock: HeldClock) -> None:
    """The last refusal comes in the middle of the writes, when an entry was written and a tip moved already."""
    async with created(path, clock, initial=tx(say("e0", None, "a"), say("e1", "e0", "b"))) as storage:
        await storage.commit(tx(say("e2", "e1", "c"), usage("u1")))
        with pytest.raises(DuplicateId):
            await storage.commit(tx(say("x", "e2", "d"), usage("u1")))
        with raw(path) as damaging:
            damaging.execute("DELETE FROM branch_entries WHERE entry_id = 'e0'")
        with pytest.raises(StorageCorruption, match="index lacks"):
            await storage.commit(tx(say("x", "e2", "d"), usage("u2"), say("y", "e0", "e")))
        with pytest.raises(MissingParent):
            await storage.commit(tx(say("z", "x", "f")))
        assert (await storage.commit(tx(say("e3", "e2", "g"), usage("u2")))).seqs == (5, 6)
        assert [entry.id for entry in await storage.scan_branch(BranchScan(start="e3", limit=3))] == ["e3", "e2", "e1"]
        stats = await storage.get_stats()
        assert stats.message_count == 4
        assert stats.usage == sum_usage([row.usage for row in await storage.scan_usage(UsageScan())])
    assert rows(path, "SELECT count(*) FROM branch_meta") == [(1,)]


async def test_a_refusal_rolls_back(path: Path, clock: HeldClock, connections: Connections) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        connections.take()
        with pytest.raises(DuplicateId):
            await storage.commit(tx(say("e1", None, "again")))
        assert borders(connections.take()) == ["BEGIN IMMEDIATE", "ROLLBACK"]


@pytest.mark.covers("ST-1.7-48", "ST-2.6-12", "ST-1.1-08", "ST-1.1-16")
async def test_entries_and_ledger_rows_are_only_ever_inserted_and_segments_only_ever_grow(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock) as storage:
        for number, parent in enumerate([None, "e0", "e1", "e0", "e1", "e4"]):
            await storage.commit(tx(say(f"e{number}", parent, "a"), usage(f"u{number}")))
        await storage.renew_lease()
        await storage.scan_branch(BranchScan(start="e5"))
    changing = re.compile(r"\s*(UPDATE|DELETE|REPLACE|INSERT OR)", re.IGNORECASE)
    changes = [text for text in connections.take() if changing.match(text)]
    changed = {re.split(r"\s+", text.strip().replace("DELETE FROM", "DELETE"))[1] for text in changes}
    assert changed == {"session", "branch_meta", "writer_lease"}


async def test_a_deferred_transaction_opens_only_where_nothing_can_be_written(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        await storage.scan_branch(BranchScan(start="e1"))
    assert {statement for statement in borders(connections.take()) if statement.startswith("BEGIN")} == {
        "BEGIN IMMEDIATE"
    }
    async with opened(path, clock, read_only=True) as storage:
        await storage.scan_branch(BranchScan(start="e1"))
    taken = connections.take()
    assert borders(taken) == ["BEGIN", "ROLLBACK"]
    assert "PRAGMA query_only = ON" in taken


@pytest.mark.parametrize("durability, level", [("process", 1), ("power", 2)])
async def test_the_promise_decides_how_sqlite_synchronizes(
    path: Path, clock: HeldClock, connections: Connections, durability: Durability, level: int
) -> None:
    storage = await SqliteStorage.create(
        path, METADATA, INITIAL, clock=clock, durability=durability, lease=BY_HAND, hop=InlineHop()
    )
    try:
        assert connections.last.execute("PRAGMA synchronous").fetchone() == (level,)
        assert connections.last.execute("PRAGMA journal_mode").fetchone() == ("wal",)
        assert connections.last.execute("PRAGMA busy_timeout").fetchone() == (5_000,)
        assert connections.last.isolation_level is None
    finally:
        await storage.close()


# --- plans


def plan(connection: sqlite3.Connection, sql: str) -> list[str]:
    return [row[3] for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}")]


@pytest.fixture
async def wide(path: Path, clock: HeldClock) -> Path:
    """A session of several segments, with entries of each type."""
    async with created(path, clock, hop=InlineHop()) as storage:
        parent: str | None = None
        for number in range(60):
            payload = PAYLOADS[(0, 3, 6)[number % 3]]
            await storage.commit(tx(entry(f"e{number}", parent, payload), usage(f"u{number}")))
            parent = f"e{max(0, number - 4)}" if number % 7 == 6 else f"e{number}"
    return path


ORDERS: tuple[Literal["newestFirst", "oldestFirst"], ...] = ("newestFirst", "oldestFirst")
QUERIES = [
    BranchScan(
        start="e59", order=order, type=type_, custom_type=custom_type, limit=limit, stop_at_type=stop, cursor=cursor
    )
    for order, type_, custom_type, limit, stop, cursor in itertools.product(
        ORDERS,
        (None, EntryType.MESSAGE, EntryType.CUSTOM),
        (None, "note"),
        (None, 3),
        (None, EntryType.COMPACTION),
        (None, EntryCursor(40)),
    )
    if not (type_ is EntryType.MESSAGE and custom_type)
]


@pytest.mark.covers("ST-1.7-54", "ST-1.7-55", "ST-1.7-56", "ST-1.7-59")
async def test_every_branch_scan_searches_the_segment_index_and_then_entries_by_id(
    wide: Path, clock: HeldClock, connections: Connections
) -> None:
    async with opened(wide, clock, hop=InlineHop()) as storage:
        for query in QUERIES:
            connections.take()
            await storage.scan_branch(query)
            scans = [sql for sql in connections.take() if "CROSS JOIN entries" in sql]
            assert scans
            for sql in scans:
                first, second = plan(connections.last, sql)
                by_type = query.type is not None or query.custom_type is not None
                index = "ix_be_type (branch_id=? AND entry_type=?" if by_type else "ix_be_seq (branch_id=?"
                assert first.startswith(f"SEARCH b USING COVERING INDEX {index} AND entry_seq>?")
                assert second == "SEARCH e USING PRIMARY KEY (id=?)"


@pytest.mark.covers("ST-1.7-40", "ST-1.7-41", "ST-1.7-42", "ST-2.6-11")
async def test_no_read_scans_a_table_or_sorts_or_walks_parents(
    wide: Path, clock: HeldClock, connections: Connections
) -> None:
    async with opened(wide, clock, hop=InlineHop()) as storage:
        connections.take()
        for query in QUERIES:
            await storage.scan_branch(query)
            await storage.scan_branch_structure(query)
        await storage.scan_branch(BranchScan(start="e59", stop_at_id="e1"))
        for order in ("asc", "desc"):
            await storage.scan_entries(EntryScan(from_seq=3, to_seq=30, order="asc" if order == "asc" else "desc"))
            await storage.scan_usage(UsageScan(from_seq=3, order="asc" if order == "asc" else "desc", limit=2))
        await storage.get_entries(["e1", "e2"])
        await storage.list_registers(LANE_LEAF, "ma")
        await storage.get_register(LANE_LEAF, "main")
        taken = [sql for sql in dict.fromkeys(connections.take()) if sql.startswith("SELECT")]
        steps = [step for sql in taken for step in plan(connections.last, sql)]
    assert [step for step in steps if "SCAN" in step or "TEMP B-TREE" in step] == []
    assert not any("parent_id = " in sql or "RECURSIVE" in sql for sql in taken)
    assert any("ix_be_entry (entry_id=?)" in step for step in steps)
    assert any("COVERING INDEX ix_be_type (branch_id=? AND entry_type=? AND entry_seq>?" in step for step in steps)


@pytest.mark.covers("ST-1.7-57")
async def test_structures_read_no_payload_and_entries_come_by_primary_key(
    wide: Path, clock: HeldClock, connections: Connections
) -> None:
    async with opened(wide, clock, hop=InlineHop()) as storage:
        connections.take()
        await storage.scan_branch_structure(BranchScan(start="e59"))
        assert not any("payload" in sql for sql in connections.take())
        await storage.get_entries(["e1", "e2"])
        (sql,) = connections.take()
        assert "e.id IN ('e1','e2')" in sql
        assert plan(connections.last, sql) == ["SEARCH e USING PRIMARY KEY (id=?)"]


async def test_a_tip_is_found_by_its_unique_index(wide: Path) -> None:
    with raw(wide) as connection:
        steps = plan(connection, "SELECT branch_id FROM branch_meta WHERE tip_entry_id = 'e59'")
        assert steps == ["SEARCH branch_meta USING INDEX ix_bm_tip (tip_entry_id=?)"]


async def test_a_scan_to_the_newest_compaction_reads_nothing_below_it(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, hop=InlineHop()) as storage:
        for number in range(200):
            payload = PAYLOADS[3] if number == 190 else PAYLOADS[0]
            await storage.commit(tx(entry(f"e{number}", f"e{number - 1}" if number else None, payload)))
        read = 0

        def count() -> int:
            nonlocal read
            read += 1
            return 0

        query = BranchScan(start="e199", stop_at_type=EntryType.COMPACTION)
        connections.last.set_progress_handler(count, 1)
        assert [found.id for found in await storage.scan_branch(query)] == [f"e{at}" for at in range(199, 189, -1)]
        to_the_compaction, read = read, 0
        await storage.scan_branch(BranchScan(start="e199"))
        assert to_the_compaction * 5 < read


async def test_a_file_in_another_journal_mode_is_written_in_wal_mode(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        pass
    with raw(path) as connection:
        assert connection.execute("PRAGMA journal_mode = DELETE").fetchone() == ("delete",)
    async with opened(path, clock):
        with raw(path) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == ("wal",)
