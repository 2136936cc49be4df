"""Commits judged per second at the end of a long session, and what a judge costs the harness that it judges (§9.3).

The clock of the wall also counts what else the machine does; that of the process counts the judge alone.
"""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator

import anyio

from ci.bench.figures import Row, figure
from ci.bench.long_session import Tail, long_session
from restartpoint import AgentHarness, HarnessOptions
from restartpoint.providers import SCRIPTED_MODEL, Script, ScriptedCall, ScriptedModels, asks, says
from restartpoint.repo import MemoryRepository
from restartpoint.tools import tool
from restartpoint_oracle import Judge, JudgedRepository

LAST = 1_000
"""Commits that are judged per sample."""
ROUND = 10
"""Prompts per sample."""


@tool
async def note(text: str) -> str:
    """Give the text back."""
    return text


def run(*, quick: bool) -> Iterator[Row]:
    """Commits judged per second, and a harness with a judge beside one without."""
    rounds = 5 if quick else 15
    for history in (2 * LAST, 5_000) if quick else (2 * LAST, 5_000, 50_000):
        tail = long_session(history, LAST)
        samples = [_per_second(tail) for _ in range(rounds)]
        yield figure("judge", "model", history, [wall for wall, _ in samples], "commits/s")
        yield figure("judge, its own time", "model", history, [own for _, own in samples], "commits/s")
    yield from anyio.run(_overhead, 2 * rounds)


def _per_second(tail: Tail) -> tuple[float, float]:
    """By the clock of the wall, and by that of the process."""
    judge = Judge(tail.before)
    for commit in tail.lead:
        judge.judge(commit.elements, commit.seqs, commit.timestamp)
    gc.collect()
    wall, own = time.perf_counter(), time.process_time()
    for commit in tail.commits:
        judge.judge(commit.elements, commit.seqs, commit.timestamp)
    wall, own = time.perf_counter() - wall, time.process_time() - own
    return len(tail.commits) / wall, len(tail.commits) / own


async def _overhead(rounds: int) -> list[Row]:
    """Both harnesses take turns, so that whatever else the machine does slows both."""
    judged = JudgedRepository(MemoryRepository())
    async with (
        AgentHarness.open(await MemoryRepository().create(), _options(rounds)) as free,
        AgentHarness.open(await judged.create(), _options(rounds)) as held,
    ):
        pairs = [(await _seconds(free), await _seconds(held)) for _ in range(rounds)]
    judged.verify()
    return [
        figure("prompt unjudged", "memory", 0, [ROUND / one for one, _ in pairs], "prompts/s"),
        figure("prompt judged", "memory", 0, [ROUND / other for _, other in pairs], "prompts/s"),
        figure("prompt judged : unjudged", "memory", 0, [other / one for one, other in pairs], "times as long"),
    ]


def _options(rounds: int) -> HarnessOptions:
    answers = [asks(ScriptedCall(name="note", arguments={"text": "x"})), says("done")]
    models = ScriptedModels(Script(steps=[*answers] * (ROUND * rounds), order="arrival"), keep_requests=False)
    return HarnessOptions(models=models, model=SCRIPTED_MODEL, tools=[note])


async def _seconds(harness: AgentHarness) -> float:
    started = time.perf_counter()
    for _ in range(ROUND):
        await harness.prompt("go")
    return time.perf_counter() - started
