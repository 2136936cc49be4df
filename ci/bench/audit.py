"""The audit of a JSONL session of 50,000 commits made by prompts with tools: the whole file, and its last 1,000."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import anyio

from ci.bench.figures import Row, figure
from restartpoint import AgentHarness, HarnessOptions, JsonlRepository
from restartpoint.providers import SCRIPTED_MODEL, Script, ScriptedCall, ScriptedModels, asks, says
from restartpoint.tools import tool
from restartpoint_oracle.audit import SeenCommit, Standing, audit, judge
from restartpoint_oracle.audit.auditing import young_garbage_only
from restartpoint_oracle.audit.reading import Lines, read_line
from restartpoint_reference import State

LAST = 1_000
_PER_PROMPT = 10
_SAMPLE = 100


@tool
async def note(text: str) -> str:
    """Give the text back."""
    return text


def run(*, quick: bool) -> Iterator[Row]:
    """Commits judged per second: by ``audit`` over the whole file, by its steps over the last ones, and merely read."""
    length = 5_000 if quick else 50_000
    with tempfile.TemporaryDirectory() as folder:
        path = anyio.run(_session, Path(folder), length)
        started = time.perf_counter()
        report = audit(path)
        assert report.exit_code == 0, report
        yield figure(
            "audit: whole file", "jsonl", length, [report.commits / (time.perf_counter() - started)], "commits/s"
        )
        with young_garbage_only():
            yield figure("audit: last commits", "jsonl", length, _last(path), "commits/s")
        yield figure("audit bound: read the lines as JSON", "jsonl", length, _read(path, report.commits), "commits/s")


async def _session(folder: Path, length: int) -> Path:
    repository = JsonlRepository(folder)
    session = await repository.create()
    answers = [asks(ScriptedCall(name="note", arguments={"text": "x"})), says("done")]
    models = ScriptedModels(Script(steps=[*answers] * length, order="arrival"), keep_requests=False)
    options = HarnessOptions(models=models, model=SCRIPTED_MODEL, tools=[note])
    async with AgentHarness.open(session, options) as harness:
        for _ in range(length // _PER_PROMPT):
            await harness.prompt("What changed since the last release, and who reviewed it?")
    return repository.path_of(session.metadata.id)


def _last(path: Path) -> list[float]:
    """The steps of ``audit`` over the last commits, in samples."""
    with path.open("rb") as file:
        (_, _), *numbered = Lines(file)
    standing = Standing.of(State.empty())
    samples: list[float] = []
    started, first = 0.0, len(numbered) - LAST
    for at, (number, line) in enumerate(numbered):
        if at >= first and (at - first) % _SAMPLE == 0:
            if at > first:
                samples.append(_SAMPLE / (time.perf_counter() - started))
            started = time.perf_counter()
        value, _ = read_line(line, number)
        verdict = judge(standing, SeenCommit(elements=value if isinstance(value, list) else [value]))
        assert not verdict.findings
        assert verdict.after is not None
        standing = verdict.after
    return [*samples, _SAMPLE / (time.perf_counter() - started)]


def _read(path: Path, commits: int) -> list[float]:
    started = time.perf_counter()
    with path.open("rb") as file:
        for number, line in Lines(file):
            read_line(line, number)
    return [commits / (time.perf_counter() - started)]
