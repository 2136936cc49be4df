"""Opening a session and its harness until it is ready to be prompted or resumed (§4.4)."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from ci.bench.figures import Row, figure
from ci.bench.filling import fill, repository
from restartpoint import AgentHarness, HarnessOptions
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels


def run(*, quick: bool) -> Iterator[Row]:
    """Milliseconds to ready; JSONL beside the time in which its file is read and split into lines."""
    for history in (0, 1_000) if quick else (0, 1_000, 10_000, 50_000):
        for backend in ("jsonl", "sqlite"):
            yield from anyio.run(_measure, backend, history, 3 if quick else 9)


async def _measure(backend: str, history: int, rounds: int) -> list[Row]:
    with tempfile.TemporaryDirectory() as folder:
        sessions = repository(backend, Path(folder))
        session = await sessions.create()
        await fill(session, history)
        await session.close()
        options = HarnessOptions(models=ScriptedModels([]), model=SCRIPTED_MODEL)
        samples = []
        for _ in range(rounds):
            started = time.perf_counter()
            session = await sessions.open(session.metadata.id)
            async with AgentHarness.open(session, options):
                samples.append(1000 * (time.perf_counter() - started))
        rows = [figure("open to ready", backend, history, samples, "ms")]
        if backend == "jsonl":
            rows.append(figure("open bound: read the lines", backend, history, _bound(folder, rounds), "ms"))
        return rows


def _bound(folder: str, rounds: int) -> list[float]:
    (file,) = Path(folder).glob("*.jsonl")
    samples = []
    for _ in range(rounds):
        started = time.perf_counter()
        file.read_bytes().split(b"\n")
        samples.append(1000 * (time.perf_counter() - started))
    return samples
