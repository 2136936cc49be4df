"""One prompt with one tool call through the scripted provider, at several lengths of history (§2.5, live context)."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from ci.bench.figures import Row, figure
from ci.bench.filling import BACKENDS, fill, repository
from restartpoint import AgentHarness, HarnessOptions
from restartpoint.providers import SCRIPTED_MODEL, Script, ScriptedCall, ScriptedModels, asks, says
from restartpoint.tools import tool

ROUND = 10
"""Prompts per sample: so few that some samples are spared by whatever else the machine does."""


@tool
async def note(text: str) -> str:
    """Give the text back."""
    return text


def run(*, quick: bool) -> Iterator[Row]:
    """Prompts per second on each backend, and for JSONL a bare loop that writes the bytes of the same prompts."""
    for history in (0, 1_000) if quick else (0, 1_000, 10_000):
        for backend in BACKENDS:
            yield from anyio.run(_measure, backend, history, 15 if quick else 35)


async def _measure(backend: str, history: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        session = await repository(backend, Path(folder)).create()
        await fill(session, history)
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
