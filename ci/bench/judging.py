"""Commits judged per second at the end of a long session, and what a judge costs the harness that it judges (§9.3)."""

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
    """Commits judged per second, with and without the invariants, and a harness with a judge beside one without."""
    rounds = 5 if quick else 15
    for history in (2 * LAST, 5_000) if quick else (2 * LAST, 10_000, 50_000):
        tail = long_session(history, LAST)
        for what, check_invariants in (("judge", True), ("judge without invariants", False)):
            samples = [_per_second(tail, check_invariants=check_invariants) for _ in range(rounds)]
            yield figure(what, "model", history, samples, "commits/s")
    yield from anyio.run(_overhead, 2 * rounds)


def _per_second(tail: Tail, *, check_invariants: bool) -> float:
    judge = Judge(tail.before, check_invariants=check_invariants)
    for commit in tail.lead:
        judge.judge(commit.elements, commit.seqs, commit.timestamp)
    gc.collect()
    started = time.perf_counter()
    for commit in tail.commits:
        judge.judge(commit.elements, commit.seqs, commit.timestamp)
    return len(tail.commits) / (time.perf_counter() - started)


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
