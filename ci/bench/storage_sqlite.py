"""Commits and opens of the SQLite backend, beside a bare loop that runs the same statements (§1.7, §2.6)."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio
import msgspec

from ci.bench.figures import Row, figure
from ci.bench.storage_jsonl import transactions
from restartpoint.contract import (
    BranchScan,
    CompactionPayload,
    EntryDraft,
    EntryType,
    InsertEntry,
    MessagePayload,
    RegisterSet,
    SessionMetadata,
    Transaction,
)
from restartpoint.seams import IdGenerator, SystemClock
from restartpoint.storage import SqliteStorage
from restartpoint.storage.sqlite import Hop, InlineHop
from restartpoint.storage.sqlite.schema import SCHEMA

__all__ = ["run"]

METADATA = SessionMetadata(id="bench", created_at=0)
BATCH = 100
"""Commits per sample."""


def run(*, quick: bool = False) -> Iterator[Row]:
    """Commits per second with the share of the bound, and milliseconds to open and to scan to a compaction."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = anyio.run(_rates, folder, 500 if quick else 5000, 3 if quick else 7)
        bound = figure("bound: the same statements in a bare loop", "sqlite", 0, rates["bound"], "commits/s")
        yield bound
        for what, backend in (("one hop", "sqlite"), ("in place", "sqlite inline")):
            row = figure(f"commit: one message entry, three registers ({what})", backend, 0, rates[what], "commits/s")
            yield {**row, "share_of_bound": round(float(row["median"]) / float(bound["median"]), 3)}
        for entries in (1000, 5000) if quick else (1000, 10_000, 50_000):
            opened, scanned = anyio.run(_opening, folder, entries, 3 if quick else 9)
            yield figure("open", "sqlite", entries, opened, "ms")
            yield figure("scan of 100 entries to the compaction", "sqlite", entries, scanned, "ms")


async def _rates(folder: Path, commits: int, rounds: int) -> dict[str, list[float]]:
    found: dict[str, list[float]] = {"bound": [], "one hop": [], "in place": []}
    for number in range(rounds):
        first, *work = transactions(commits + 1)
        found["bound"].extend(_bare_loop(folder / f"bound{number}", [first, *work]))
        hops: dict[str, Hop | None] = {"one hop": None, "in place": InlineHop()}
        for what, hop in hops.items():
            path = folder / f"{what}{number}.sqlite"
            storage = await SqliteStorage.create(path, METADATA, first, clock=SystemClock(), hop=hop)
            for at in range(0, commits, BATCH):
                start = time.perf_counter()
                for tx in work[at : at + BATCH]:
                    await storage.commit(tx)
                found[what].append(BATCH / (time.perf_counter() - start))
            await storage.close()
    return found


def _bare_loop(path: Path, work: list[Transaction]) -> list[float]:
    """Every statement that such a commit takes, its values ready; nothing is encoded, decided or carried anywhere."""
    connection = sqlite3.connect(path, isolation_level=None, cached_statements=256)
    try:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        for statement in SCHEMA:
            connection.execute(statement)
        connection.execute("INSERT INTO session VALUES (0, NULL, 1, '{}', 0, '{}', 1)")
        connection.execute("INSERT INTO writer_lease VALUES ('owner', 1, 0)")
        first, *ready = [_parameters(tx, 1 + 4 * number) for number, tx in enumerate(work)]
        connection.execute("INSERT INTO branch_meta VALUES (?, ?, ?, NULL, NULL)", ("branch", first[0][0], 1))
        samples = []
        for at in range(0, len(ready), BATCH):
            start = time.perf_counter()
            for entry, registers in ready[at : at + BATCH]:
                _bare_commit(connection, entry, registers)
            samples.append(BATCH / (time.perf_counter() - start))
        return samples
    finally:
        connection.close()


_EntryValues = tuple[str, str | None, int, str, None, int, str]
_RegisterValues = tuple[str, str, int, str]


def _parameters(tx: Transaction, seq: int) -> tuple[_EntryValues, list[_RegisterValues]]:
    """The columns of the one entry and of the registers."""
    encode = msgspec.json.encode
    insert, *sets = tx.writes
    assert isinstance(insert, InsertEntry)
    assert isinstance(insert.entry.payload, MessagePayload)
    payload = encode({"message": insert.entry.payload.message}).decode()
    registers = [
        (write.namespace.name, write.key, seq + 1 + at, encode(write.value).decode())
        for at, write in enumerate(sets)
        if isinstance(write, RegisterSet)
    ]
    return (insert.entry.id, insert.entry.parent_id, seq, "message", None, 0, payload), registers


def _bare_commit(connection: sqlite3.Connection, entry: _EntryValues, registers: list[_RegisterValues]) -> None:
    execute, (entry_id, _, seq, *_) = connection.execute, entry
    execute("BEGIN IMMEDIATE")
    execute("UPDATE writer_lease SET expires_at_ms = ? WHERE owner_id = ? AND fence = ?", (seq, "owner", 1))
    execute(
        "SELECT 1 FROM entries WHERE id = ? UNION ALL SELECT 1 FROM usage_ledger WHERE id = ?", (entry_id, entry_id)
    ).fetchone()
    execute("INSERT INTO entries VALUES (?, ?, ?, ?, ?, ?, ?)", entry)
    execute("UPDATE branch_meta SET tip_entry_id = ?, tip_seq = ? WHERE branch_id = ?", (entry_id, seq, "branch"))
    execute("INSERT INTO branch_entries VALUES (?, ?, ?, ?)", ("branch", entry_id, seq, "message"))
    for values in registers:
        execute(
            """INSERT INTO registers VALUES (?, ?, ?, ?)
            ON CONFLICT (namespace, key) DO UPDATE SET seq = excluded.seq, value = excluded.value""",
            values,
        )
    execute("UPDATE session SET next_seq = ?, message_count = ?", (seq + 4, seq // 4 + 2))
    execute("COMMIT")


async def _opening(folder: Path, entries: int, rounds: int) -> tuple[list[float], list[float]]:
    """Milliseconds to open, and to read the last hundred entries, which follow a compaction."""
    path, clock, ids = folder / f"open{entries}.sqlite", SystemClock(), IdGenerator()
    leaf, *work = transactions(entries)
    storage = await SqliteStorage.create(path, METADATA, leaf, clock=clock)
    for tx in work[:-100]:
        await storage.commit(tx)
    compaction = ids.next()
    summary = CompactionPayload(summary="so far", retained_tail=[], tokens_before=1, from_hook=False)
    parent = _entry_of(work[-101]).id
    await storage.commit(Transaction((InsertEntry(EntryDraft(id=compaction, parent_id=parent, payload=summary)),)))
    parent = compaction
    for tx in work[-100:]:
        draft = msgspec.structs.replace(_entry_of(tx), parent_id=parent)
        await storage.commit(Transaction((InsertEntry(draft),)))
        parent = draft.id
    await storage.close()
    opened, scanned = [], []
    query = BranchScan(start=parent, stop_at_type=EntryType.COMPACTION)
    for _ in range(rounds):
        start = time.perf_counter()
        storage = await SqliteStorage.open(path, clock=clock)
        opened.append((time.perf_counter() - start) * 1000)
        start = time.perf_counter()
        assert len(await storage.scan_branch(query)) == 101
        scanned.append((time.perf_counter() - start) * 1000)
        await storage.close()
    return opened, scanned


def _entry_of(tx: Transaction) -> EntryDraft:
    (insert, *_) = tx.writes
    assert isinstance(insert, InsertEntry)
    return insert.entry
