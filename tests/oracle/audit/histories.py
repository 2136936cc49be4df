"""Sessions to audit: those that the runtime wrote in its scenarios, and those that the model walks through."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

import anyio

from restartpoint_oracle.audit import SeenCommit, Standing, judge
from restartpoint_reference import UNSET, Json, JsonObject, Observed, State, apply
from restartpoint_reference.progress import FINALIZATION
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import JsonlPlace
from tests.harness.runtime.scenarios import SCENARIOS, Scenario
from tests.harness.runtime.stage import stage_of
from tests.reference.walk import Step
from tests.reference.walks import SCENARIOS as WALKS

__all__ = ["HEADER", "Elements", "History", "file_of", "lines_of", "recorded", "runtime_files", "snapshot_of"]

Elements = list[Json]

HEADER: JsonObject = {"v": 4, "kind": "header", "id": "s-1", "storageVersion": 1, "createdAt": 1}


@dataclass(frozen=True, kw_only=True, eq=False)
class History:
    """A session: the state that it starts from, its commits, and what is known before each of them.

    ``is_finalized`` says that one of its operations is ended from outside.
    """

    name: str
    start: State
    commits: tuple[Elements, ...]
    is_finalized: bool = False

    @cached_property
    def standings(self) -> list[Standing]:
        """One before each commit, and one at the end; every commit is clean."""
        found = [Standing.of(self.start, finalizations_admitted=self.is_finalized)]
        for elements in self.commits:
            verdict = judge(found[-1], SeenCommit(elements=elements))
            assert verdict.after is not None, (self.name, len(found), verdict.findings)
            found.append(verdict.after)
        return found


@cache
def recorded() -> tuple[History, ...]:
    """Every scenario of the runtime, and every walk of the model."""
    return (*_of_the_runtime(), *_of_the_model())


def runtime_files(folder: Path) -> Iterator[tuple[str, Path]]:
    """The file of each scenario of the runtime, as the runtime wrote it."""
    for name, scenario in SCENARIOS.items():
        place = JsonlPlace(folder / name)
        place.path.parent.mkdir()
        anyio.run(_play, scenario, place)
        yield name, place.path


async def _play(scenario: Scenario, place: JsonlPlace) -> None:
    stage = stage_of(scenario, place, Log())
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")


def _of_the_runtime() -> Iterator[History]:
    with TemporaryDirectory() as folder:
        for name, path in runtime_files(Path(folder)):
            lines = [json.loads(line) for line in path.read_bytes().splitlines()[1:]]
            commits = tuple(line if isinstance(line, list) else [line] for line in lines)
            yield History(name=f"runtime: {name}", start=State.empty(), commits=commits)


def _of_the_model() -> Iterator[History]:
    for scenario in WALKS:
        for number, steps in enumerate(_unbroken(scenario().steps), 1):
            commits = tuple(json.loads(json.dumps(step.elements)) for step in steps)
            yield History(
                name=f"model: {scenario.__name__} {number}",
                start=steps[0].before,
                commits=commits,
                is_finalized=any(step.commit.name == FINALIZATION for step in steps),
            )


def _unbroken(steps: Sequence[Step]) -> Iterator[list[Step]]:
    """The stretches of a walk in which each step begins where the one before it ended; a walk may be put elsewhere."""
    stretch: list[Step] = []
    for step in steps:
        if stretch and _after(stretch[-1]) != step.before:
            yield stretch
            stretch = []
        stretch.append(step)
    yield stretch


def _after(step: Step) -> State:
    observed = Observed.from_json(step.elements)
    timestamp = 0 if observed.timestamp is UNSET else observed.timestamp
    applied = apply(step.before, observed.writes, timestamp=timestamp, seqs=observed.seqs)
    assert isinstance(applied, tuple)
    return applied[0]


def file_of(history: History, *, header: JsonObject = HEADER) -> bytes:
    """The session as a JSONL file, with the rows of its first state when it does not start from nothing."""
    return b"".join([*snapshot_of(history.start, header), *map(lines_of, history.commits)])


def snapshot_of(state: State, header: JsonObject = HEADER) -> list[bytes]:
    """Header and rows of a file that was rewritten at this state (§1.7)."""
    rows: list[JsonObject] = [{"kind": "entry", **entry.to_json()} for entry in state.entries.values()]
    rows += [{"kind": "usage", **row.to_json()} for row in state.usage.values()]
    for registers in state.namespaces.values():
        rows += [{"kind": "register", "op": "set", **register.to_json()} for register in registers.values()]
    if not rows:
        return [_line(header)]
    rows.sort(key=lambda row: int(str(row["seq"])))
    return [_line({**header, "nextSeq": state.next_seq}), *map(_line, rows)]


def lines_of(elements: Elements) -> bytes:
    """A commit as its line."""
    return _line(elements[0] if len(elements) == 1 else elements)


def _line(value: Json) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
