"""Commits and opens of the backends that keep the session in memory, beside a bare loop over the same bytes (§1.7)."""

from __future__ import annotations

import os
import tempfile
import time
from collections import deque
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import anyio
import msgspec

from ci.bench.figures import Row, figure
from restartpoint.contract import (
    LANE_LEAF,
    LANE_STATE,
    OP_STATE,
    AssistantPhase,
    CompactionSettings,
    EntryDraft,
    GenerationContext,
    GenerationEffectPending,
    Inbox,
    InsertEntry,
    LaneConfiguration,
    LaneState,
    MessagePayload,
    ModelIdentity,
    NormalizedRetryPolicy,
    RegisterSet,
    Running,
    RunSettings,
    RunState,
    SessionMetadata,
    Transaction,
    user_message,
    write_to_wire,
)
from restartpoint.seams import IdGenerator, SystemClock
from restartpoint.storage import JsonlStorage, MemoryStorage
from restartpoint.storage.jsonl.lines import encode_line
from restartpoint.storage.resident import ResidentStorage

__all__ = ["run", "transactions"]

METADATA = SessionMetadata(id="bench", created_at=0)
BOUNDS = {"written": "one write of the same bytes", "encoded": "the same values encoded and written"}


def transactions(count: int) -> list[Transaction]:
    """Commits of one small message entry and three registers, as an acceptance or a settlement makes them."""
    ids, parent, made = IdGenerator(), None, []
    configuration = LaneConfiguration(
        model=ModelIdentity(provider="scripted", model_id="one"),
        thinking_level="off",
        active_tool_names=["read", "write"],
    )
    settings = RunSettings(
        compaction=CompactionSettings(), steering_mode="all", follow_up_mode="all", tool_execution="parallel"
    )
    operation_id = ids.next()
    for number in range(count):
        entry_id = ids.next()
        context = GenerationContext(
            step_id=ids.next(),
            trigger_entry_id=entry_id,
            configuration=configuration,
            stream_options={"maxTokens": 4096},
            retry_policy=NormalizedRetryPolicy(max_attempts=4, base_delay_ms=2000),
            overflow_recovery_used=False,
        )
        pending = GenerationEffectPending(
            context=context,
            attempt=1,
            response_entry_id=ids.next(),
            usage_id=ids.next(),
            intended_output_limit=4096,
            context_window=200_000,
        )
        state = RunState(
            control=Running(),
            settings=settings,
            phase=AssistantPhase(generation=pending),
            inbox=Inbox(steer=[], follow_up=[], writes=[]),
            latest_assistant_entry_id=parent,
        )
        message = user_message(f"what changed in the sign-in flow since week {number}?", 1_700_000_000_000 + number)
        writes = (
            InsertEntry(EntryDraft(id=entry_id, parent_id=parent, payload=MessagePayload(message=message))),
            RegisterSet(LANE_LEAF, "main", entry_id),
            RegisterSet(OP_STATE, operation_id, state),
            RegisterSet(LANE_STATE, "main", LaneState(current_operation_id=operation_id, pending_next_run=[])),
        )
        made.append(Transaction(writes))
        parent = entry_id
    return made


async def _commit_all(storage: ResidentStorage, work: list[Transaction]) -> float:
    start = time.perf_counter()
    for tx in work:
        await storage.commit(tx)
    return time.perf_counter() - start


async def _write_all(descriptor: int, lines: list[bytes]) -> float:
    """The bound of a loop that has the bytes: each line with one write on a descriptor that stays open."""
    start = time.perf_counter()
    for line in lines:
        os.write(descriptor, line)
    return time.perf_counter() - start


async def _encode_and_write_all(descriptor: int, wires: list[list[dict[str, object]]]) -> float:
    """The bound of a loop that makes the bytes: the same values, numbered already, through the encoder and written."""
    encode = msgspec.json.Encoder().encode
    start = time.perf_counter()
    for wire in wires:
        os.write(descriptor, encode(wire) + b"\n")
    return time.perf_counter() - start


BATCH = 25
"""Commits that are made at once and then timed, so that their values are as warm as those of a live session."""


async def _rates(folder: Path, batches: int, rounds: int) -> dict[str, list[float]]:
    """What each batch reached per second, of both bounds and both backends; each of the four begins as often."""
    found: dict[str, list[float]] = {"written": [], "encoded": [], "jsonl": [], "memory": []}
    order, clock = deque(found), SystemClock()
    for number in range(rounds):
        descriptor = os.open(folder / f"bound{number}", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        jsonl = await JsonlStorage.create(folder / f"{number}.jsonl", METADATA, transactions(1)[0], clock=clock)
        memory = await MemoryStorage.create(METADATA, transactions(1)[0], clock=clock)
        for _ in range(batches):
            work = transactions(BATCH)
            wires = [[write_to_wire(write, 5, 1_700_000_000_000) for write in tx.writes] for tx in work]
            lines = [encode_line(tx.writes, 5, 1_700_000_000_000) for tx in work]
            runs = {
                "written": partial(_write_all, descriptor, lines),
                "encoded": partial(_encode_and_write_all, descriptor, wires),
                "jsonl": partial(_commit_all, jsonl, work),
                "memory": partial(_commit_all, memory, work),
            }
            for name in order:
                found[name].append(BATCH / await runs[name]())
            order.rotate()
        await jsonl.close()
        os.close(descriptor)
    return found


async def _opening(folder: Path, entries: int, rounds: int) -> list[float]:
    path, clock = folder / f"open{entries}.jsonl", SystemClock()
    first, *work = transactions(entries)
    storage = await JsonlStorage.create(path, METADATA, first, clock=clock)
    await _commit_all(storage, work)
    await storage.close()
    samples = []
    for _ in range(rounds):
        start = time.perf_counter()
        storage = await JsonlStorage.open(path, clock=clock)
        samples.append((time.perf_counter() - start) * 1000)
        await storage.close()
    return samples


def run(*, quick: bool = False) -> Iterator[Row]:
    """Commits per second, both bounds and the share of each, and milliseconds to open a file of many entries."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        rates = anyio.run(_rates, folder, 40 if quick else 200, 2 if quick else 7)
        for name, what in BOUNDS.items():
            yield figure(f"bound: {what}", "jsonl", 0, rates[name], "writes/s")
        for backend in ("jsonl", "memory"):
            yield figure("commit: one message entry, three registers", backend, 0, rates[backend], "commits/s")
        for name, what in BOUNDS.items():
            # Batch by batch: what ran at the same moment had the same machine.
            shares = [commit / bound for commit, bound in zip(rates["jsonl"], rates[name], strict=True)]
            yield figure(f"share of the bound: {what}", "jsonl", 0, shares, "of 1")
        for entries in (1000,) if quick else (1000, 10_000):
            yield figure("open", "jsonl", entries, anyio.run(_opening, folder, entries, 3), "ms")
