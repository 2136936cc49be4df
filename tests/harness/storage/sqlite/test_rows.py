"""What is in a session file: its tables, its columns, and values exactly as they were committed."""

import json
import stat
from pathlib import Path

import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_LEAF,
    EntryScan,
    InsertEntry,
    InsertUsage,
    JsonObject,
    RegisterSet,
    SessionMetadata,
    UsageDraft,
    UsageScan,
    sum_usage,
)
from restartpoint.errors import CorruptFile
from restartpoint.storage.sqlite import InlineHop, SqliteStorage
from tests.harness.storage.sqlite.stage import BY_HAND, created, opened, raw, rows
from tests.harness.storage.stage import INITIAL, METADATA, PAYLOADS, HeldClock, custom, entry, said, say, tx, usage

TABLES = {
    "entries": [
        ("id", "TEXT", 1), ("parent_id", "TEXT", 0), ("seq", "INTEGER", 0), ("type", "TEXT", 0),
        ("custom_type", "TEXT", 0), ("timestamp", "INTEGER", 0), ("payload", "TEXT", 0),
    ],
    "registers": [("namespace", "TEXT", 1), ("key", "TEXT", 2), ("seq", "INTEGER", 0), ("value", "TEXT", 0)],
    "usage_ledger": [
        ("id", "TEXT", 1), ("seq", "INTEGER", 0), ("entry_id", "TEXT", 0), ("adjustment", "INTEGER", 0),
        ("usage", "TEXT", 0), ("details", "TEXT", 0),
    ],
    "branch_entries": [
        ("branch_id", "TEXT", 1), ("entry_id", "TEXT", 2), ("entry_seq", "INTEGER", 0), ("entry_type", "TEXT", 0),
    ],
    "branch_meta": [
        ("branch_id", "TEXT", 1), ("tip_entry_id", "TEXT", 0), ("tip_seq", "INTEGER", 0),
        ("base_branch_id", "TEXT", 0), ("base_seq", "INTEGER", 0),
    ],
    "writer_lease": [("owner_id", "TEXT", 0), ("fence", "INTEGER", 0), ("expires_at_ms", "INTEGER", 0)],
}  # fmt: skip
"""Columns with their type and their place in the primary key."""

INDEXES = {
    "ix_entry_parent": ("entries", 0, ["parent_id"]),
    "ix_entry_seq": ("entries", 0, ["seq", "type"]),
    "ix_usage_seq": ("usage_ledger", 0, ["seq"]),
    "ix_be_seq": ("branch_entries", 0, ["branch_id", "entry_seq", "entry_id", "entry_type"]),
    "ix_be_type": ("branch_entries", 0, ["branch_id", "entry_type", "entry_seq", "entry_id"]),
    "ix_be_entry": ("branch_entries", 0, ["entry_id"]),
    "ix_bm_tip": ("branch_meta", 1, ["tip_entry_id"]),
}

SESSION_COLUMNS = [
    "created_at", "parent_session_id", "storage_version", "metadata", "message_count", "usage_payload", "next_seq",
]  # fmt: skip


@pytest.mark.covers("ST-1.7-35", "ST-1.7-37", "ST-1.7-38", "ST-1.7-39")
async def test_the_tables_of_the_three_stores_have_the_specified_columns_and_keys(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        for table, columns in TABLES.items():
            found = [(name, kind, key) for _, name, kind, _, _, key in rows(path, f"PRAGMA table_info({table})")]
            assert found == columns, table
        for table in ("entries", "usage_ledger", "branch_entries"):
            ((sql,),) = rows(path, "SELECT sql FROM sqlite_master WHERE name = ?", table)
            assert sql.endswith("WITHOUT ROWID")


@pytest.mark.covers("ST-1.7-43", "ST-1.7-44", "ST-1.7-45")
async def test_branches_session_and_lease_have_the_specified_columns_and_rows(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        assert [row[1] for row in rows(path, "PRAGMA table_info(session)")] == SESSION_COLUMNS
        assert rows(path, "SELECT count(*) FROM session") == [(1,)]
        assert rows(path, "SELECT count(*) FROM writer_lease") == [(1,)]


@pytest.mark.covers("ST-1.7-36")
async def test_the_indexes_are_the_specified_ones(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        found = {}
        for table in TABLES:
            for _, name, unique, origin, _ in rows(path, f"PRAGMA index_list({table})"):
                if origin == "c":
                    found[name] = (table, unique, [row[2] for row in rows(path, f"PRAGMA index_info({name})")])
        assert found == INDEXES


@pytest.mark.covers("ST-1.7-46", "ST-0.6-05")
async def test_a_session_file_holds_no_other_table(path: Path, clock: HeldClock) -> None:
    async with created(path, clock):
        names = {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type NOT IN ('table', 'index')")}
        assert names == set()
        tables = {name for (name,) in rows(path, "SELECT name FROM sqlite_master WHERE type = 'table'")}
        assert tables == {*TABLES, "session"}


@pytest.mark.covers("ST-1.7-66")
async def test_the_payload_column_holds_payload_fields_only(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=tx(*INITIAL.writes, *_one_of_each())):
        stored = rows(path, "SELECT type, custom_type, payload FROM entries ORDER BY seq")
        assert [(type_, custom_type, list(json.loads(payload))) for type_, custom_type, payload in stored] == [
            ("message", None, ["message"]),
            ("message", None, ["message", "terminate"]),
            ("message", None, ["message", "origin"]),
            ("compaction", None, ["summary", "retainedTail", "tokensBefore", "fromHook"]),
            ("compaction", None, ["summary", "retainedTail", "tokensBefore", "details", "usage", "fromHook"]),
            ("branch_summary", None, ["fromId", "summary", "details", "fromHook"]),
            ("custom", "note", []),
            ("custom", "note", ["data", "later"]),
            ("custom", "note", ["data"]),
        ]


def _one_of_each() -> list[InsertEntry]:
    return [entry(f"e{number}", payload=payload) for number, payload in enumerate(PAYLOADS)]


async def test_every_shape_of_payload_comes_back_as_it_was_after_reopening(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=tx(*INITIAL.writes, *_one_of_each())):
        pass
    async with opened(path, clock) as storage:
        found = await storage.scan_entries(EntryScan())
        assert [repr(entry.payload) for entry in found] == [repr(payload) for payload in PAYLOADS]


@pytest.mark.covers("ST-1.1-17")
async def test_absent_is_sql_null_and_json_null_is_its_text(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(tx(RegisterSet(FACT_CUSTOM, "k", None), usage("u1")))
        assert rows(path, "SELECT value FROM registers WHERE key = 'k'") == [("null",)]
        assert rows(path, "SELECT entry_id, details FROM usage_ledger") == [(None, None)]
        register = await storage.get_register(FACT_CUSTOM, "k")
        assert register is not None
        assert register.value is None
        leaf = await storage.get_register(LANE_LEAF, "main")
        assert leaf is not None
        assert leaf.value is None


async def test_one_and_one_point_zero_stay_apart(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(tx(custom("e1", [1, 1.0, -0.0, 2**53 - 1, 1e300])))
        (stored,) = await storage.scan_entries(EntryScan())
        assert repr(stored.payload).count("[1, 1.0, -0.0, 9007199254740991, 1e+300]") == 1
        assert rows(path, "SELECT payload FROM entries") == [('{"data":[1,1.0,-0.0,9007199254740991,1e300]}',)]


@pytest.mark.covers("ST-1.7-68")
async def test_the_session_row_keeps_statistics_in_the_same_transaction(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(tx(say("e1", None, "hi"), custom("e2", 1), usage("u1", 0.1), usage("u2", 0.2)))
        await storage.commit(tx(usage("u3", 0.3), say("e3", "e1", "there")))
        ledger = [row.usage for row in await storage.scan_usage(UsageScan())]
        ((count, payload, next_seq),) = rows(path, "SELECT message_count, usage_payload, next_seq FROM session")
        assert (count, json.loads(payload), next_seq) == (2, sum_usage(ledger), 9)
        stats = await storage.get_stats()
        assert repr(stats.usage) == repr(sum_usage(ledger))


async def test_a_total_beyond_any_column_stays_exact(path: Path, clock: HeldClock) -> None:
    largest: JsonObject = {"input": 2**53 - 1, "cost": {"total": 1e308}}
    async with created(path, clock) as storage:
        await storage.commit(tx(*(InsertUsage(UsageDraft(id=f"u{at}", usage=largest)) for at in range(3000))))
        stats = await storage.get_stats()
        assert stats.usage["input"] == 3000 * (2**53 - 1)
        assert repr(stats.usage) == repr(sum_usage([largest] * 3000))


@pytest.mark.covers("ST-1.7-60", "ST-2.8-22")
async def test_the_metadata_column_holds_what_has_no_column_of_its_own(path: Path, clock: HeldClock) -> None:
    metadata = SessionMetadata(
        id="s1",
        created_at=5,
        cwd="/home/x",
        parent_session_id="s0",
        legacy_parent_session_path="/old",
        store_generation=3,
    )
    storage = await SqliteStorage.create(path, metadata, INITIAL, clock=clock, lease=BY_HAND)
    await storage.close()
    assert await SqliteStorage.read_metadata(path) == metadata
    assert rows(path, "SELECT created_at, parent_session_id, storage_version FROM session") == [(5, "s0", 1)]


async def test_sequence_numbers_go_on_where_they_were_after_reopening(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        first = await storage.commit(said("e1"))
    async with opened(path, clock) as storage:
        second = await storage.commit(said("e2", "e1"))
    assert second.first_seq == first.seqs[-1] + 1


@pytest.mark.covers("ST-1.5-22")
async def test_prefixes_end_where_their_last_code_point_does(path: Path, clock: HeldClock) -> None:
    keys = ["", "a", "a\ud7ff", "a\ud7ffx", "a\ue000", "a\U0010ffff", "a\U0010ffffz", "b", "\U0010ffff", "é", "%", "a_"]
    async with created(path, clock) as storage:
        await storage.commit(tx(*(RegisterSet(FACT_CUSTOM, key, 1) for key in keys)))
        for prefix in (*keys, "c"):
            found = [register.key for register in await storage.list_registers(FACT_CUSTOM, prefix)]
            assert found == sorted(key for key in keys if key.startswith(prefix)), prefix


@pytest.mark.covers("ST-1.5-21")
async def test_a_batch_of_any_size_is_answered(path: Path, clock: HeldClock) -> None:
    ids = [f"e{number}" for number in range(1203)]
    async with created(path, clock, initial=tx(*(entry(key) for key in ids)), hop=InlineHop()) as storage:
        assert set(await storage.get_entries([*ids, "nothing", *ids])) == set(ids)


async def test_text_that_no_file_can_hold_finds_nothing(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=said("e1")) as storage:
        assert await storage.get_entries(["\ud800", "e1"]) == await storage.get_entries(["e1"])
        assert await storage.get_register(FACT_CUSTOM, "\ud800") is None
        assert await storage.list_registers(FACT_CUSTOM, "\ud800") == []
        assert await storage.scan_entries(EntryScan(custom_type="\ud800")) == []


@pytest.mark.covers("ST-1.7-34")
async def test_each_session_is_one_file_for_its_owner_only(tmp_path: Path, clock: HeldClock) -> None:
    for name in ("s1", "s2"):
        storage = await SqliteStorage.create(tmp_path / f"{name}.sqlite", METADATA, INITIAL, clock=clock, lease=BY_HAND)
        await storage.commit(said("e1"))
        modes = {file.name: stat.S_IMODE(file.stat().st_mode) for file in tmp_path.glob(f"{name}*")}
        assert modes == {f"{name}.sqlite{suffix}": 0o600 for suffix in ("", "-wal", "-shm")}
        await storage.close()
    assert sorted(file.name for file in tmp_path.iterdir()) == ["s1.sqlite", "s2.sqlite"]


async def test_a_damaged_value_is_named_and_nothing_is_guessed(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=said("e1")):
        pass
    with raw(path) as connection:
        connection.execute("UPDATE registers SET value = '{' WHERE namespace = 'lane.leaf'")
        connection.execute("UPDATE entries SET payload = '[]'")
    async with opened(path, clock) as storage:
        with pytest.raises(CorruptFile, match="a stored value does not fit"):
            await storage.get_register(LANE_LEAF, "main")
        with pytest.raises(CorruptFile, match="no object"):
            await storage.get_entries(["e1"])
