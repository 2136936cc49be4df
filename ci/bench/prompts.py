"""One prompt with one tool call through the scripted provider, at several lengths of history (§2.5, live context)."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from ci.bench.figures import Row, figure
from restartpoint import AgentHarness, HarnessOptions, JsonlRepository, MemoryRepository
from restartpoint.contract import (
    LANE_LEAF,
    EntryDraft,
    InsertEntry,
    JsonObject,
    MessagePayload,
    RegisterSet,
    Transaction,
    Write,
    user_message,
)
from restartpoint.providers import SCRIPTED_MODEL, Script, ScriptedCall, ScriptedModels, asks, says
from restartpoint.repo import SessionRepository, SqliteRepository
from restartpoint.session import MAIN_LANE, Session, SessionMutator
from restartpoint.tools import tool

ROUND = 50
"""Prompts per sample."""


@tool
async def note(text: str) -> str:
    """Give the text back."""
    return text


def run(*, quick: bool) -> Iterator[Row]:
    """Prompts per second on each backend, and for JSONL a bare loop that writes the bytes of the same prompts."""
    for history in (0, 1_000) if quick else (0, 1_000, 10_000):
        for backend in ("memory", "jsonl", "sqlite"):
            yield from anyio.run(_measure, backend, history, 3 if quick else 7)


async def _measure(backend: str, history: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        session = await _repository(backend, Path(folder)).create()
        await _fill(session, history)
        prompts = ROUND * rounds + 1
        answers = [asks(ScriptedCall(name="note", arguments={"text": "x"})), says("done")]
        models = ScriptedModels(Script(steps=[*answers] * prompts, order="arrival"), keep_requests=False)
        options = HarnessOptions(models=models, model=SCRIPTED_MODEL, tools=[note])
        async with AgentHarness.open(session, options) as harness:
            await harness.prompt("warm up")
            written = _length(folder)
            samples = [await _sample(harness) for _ in range(rounds)]
        rows = [figure("prompt", backend, history, samples, "prompts/s")]
        if backend == "jsonl":
            rows.append(
                figure("prompt bound: same bytes", backend, history, _bound(folder, written, rounds), "prompts/s")
            )
        return rows


def _repository(backend: str, folder: Path) -> SessionRepository:
    if backend == "memory":
        return MemoryRepository()
    return JsonlRepository(folder) if backend == "jsonl" else SqliteRepository(folder)


async def _fill(session: Session, history: int) -> None:
    """Messages in commits of a hundred, half of them the user's."""
    for start in range(0, history, 100):

        async def job(mutator: SessionMutator, start: int = start) -> None:
            leaf = await mutator.get_register(LANE_LEAF, MAIN_LANE)
            parent = None if leaf is None else leaf.value
            writes: list[Write] = []
            for number in range(start, min(start + 100, history)):
                draft = EntryDraft(
                    id=session.ids.next(), parent_id=parent, payload=MessagePayload(message=_filler(number))
                )
                writes.append(InsertEntry(draft))
                parent = draft.id
            await mutator.commit(Transaction((*writes, RegisterSet(LANE_LEAF, MAIN_LANE, parent))))

        await session.mutate(MAIN_LANE, job)


def _filler(number: int) -> JsonObject:
    if number % 2 == 0:
        return user_message(f"question {number}", number)
    return {"role": "assistant", "content": [{"type": "text", "text": "answer"}], "stopReason": "stop", "usage": {}}


async def _sample(harness: AgentHarness) -> float:
    started = time.perf_counter()
    for _ in range(ROUND):
        await harness.prompt("go")
    return ROUND / (time.perf_counter() - started)


def _length(folder: str) -> int:
    return sum(path.stat().st_size for path in Path(folder).glob("*.jsonl"))


def _bound(folder: str, written: int, rounds: int) -> list[float]:
    """The lines that the measured prompts wrote, written again by a loop that does nothing else."""
    (file,) = Path(folder).glob("*.jsonl")
    lines = file.read_bytes()[written:].splitlines(keepends=True)
    descriptor = os.open(Path(folder) / "bound", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        for line in lines:
            os.write(descriptor, line)
        samples.append(ROUND * rounds / (time.perf_counter() - started))
    os.close(descriptor)
    return samples
