"""The demo's child is killed with SIGKILL around every commit; whatever it left, another process finishes the run."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import anyio
import msgspec
import pytest

from restartpoint.cli.demonstration.checks import checks
from restartpoint.cli.demonstration.commits import CommitRecord, read_recorded
from restartpoint.cli.demonstration.recovery import all_commits, finish_the_run, look
from restartpoint.cli.demonstration.scene import Backend, Stage
from restartpoint.cli.inspection import Inspection
from restartpoint.contract import encode_json

ROOT = Path(__file__).resolve().parents[3]
MORE_THAN_A_RUN_HAS = 40
COMMITS_OF_A_RUN = 14
BACKENDS = ["jsonl", "sqlite"]


class Zygote:
    """Starts and kills children on demand."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def ended(self, folder: Path, backend: str, kill_at: str) -> str:
        """How a child that was to die there ended."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{folder}\t{backend}\t{kill_at}\n")
        self._process.stdin.flush()
        return self._process.stdout.readline().strip()


@pytest.fixture(scope="module")
def zygote() -> Iterator[Zygote]:
    command = [sys.executable, "-m", "tests.harness.cli.zygote"]
    with subprocess.Popen(command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        yield Zygote(process)
        assert process.stdin is not None
        process.stdin.close()


async def finished_coherently(stage: Stage, backend: Backend) -> list[str]:
    """What speaks against the session after another process has finished the run."""
    await finish_the_run(stage, backend)
    final = await look(stage, backend)
    assert final is not None
    return [f"{check.claim}: {check.objection}" for check in checks(final, stage.effects()) if not check.holds]


def registers_after(commits: list[CommitRecord]) -> dict[tuple[str, str], Any]:
    """What the registers hold after these commits, and nothing more."""
    held: dict[tuple[str, str], Any] = {}
    for write in (write for commit in commits for write in commit.writes if write["kind"] == "register"):
        cell = (str(write["namespace"]), str(write["key"]))
        if write["op"] == "set":
            held[cell] = write["value"]
        else:
            held.pop(cell, None)
    return held


def registers_in(found: Inspection | None) -> dict[tuple[str, str], Any]:
    registers = () if found is None else found.registers
    return {
        (register.namespace.name, register.key): msgspec.json.decode(encode_json(register.value))
        for register in registers
    }


@pytest.fixture
def whole_run(zygote: Zygote, tmp_path: Path, backend: str) -> list[CommitRecord]:
    """The commits of a run that nobody kills; the counted clock makes every run the same."""
    stage = Stage(tmp_path / "whole")
    stage.folder.mkdir()
    assert zygote.ended(stage.folder, backend, str(MORE_THAN_A_RUN_HAS)) == "exit 0"
    return read_recorded(stage.commits)


@pytest.mark.timeout(120)
@pytest.mark.covers("ST-0.1-01", "ST-0.4-06", "ST-0.5-03", "ST-0.3-10")
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("suffix", ["-", "+", ""], ids=["before", "after", "told"])
def test_a_kill_around_any_commit_leaves_whole_commits_and_the_run_is_finished_without_repeating_the_unsafe_tool(
    zygote: Zygote, whole_run: list[CommitRecord], tmp_path: Path, backend: str, suffix: str
) -> None:
    name, objections = cast("Backend", backend), []
    for commit in range(1, len(whole_run) + 1):
        stage = Stage(tmp_path / str(commit))
        stage.folder.mkdir()
        assert zygote.ended(stage.folder, backend, f"{commit}{suffix}") == f"signal {signal.SIGKILL}"
        survived = commit - 1 if suffix == "-" else commit
        found = anyio.run(look, stage, name)
        assert registers_in(found) == registers_after(whole_run[:survived])
        objections += [f"{commit}{suffix}: {text}" for text in anyio.run(finished_coherently, stage, name)]
        assert sum(record.process == 1 for record in all_commits(stage, name, found)) == survived
    assert objections == []


@pytest.mark.covers("ST-1.7-19")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_commit_that_a_process_was_told_of_outlives_its_kill(
    zygote: Zygote, whole_run: list[CommitRecord], tmp_path: Path, backend: str
) -> None:
    assert zygote.ended(tmp_path, backend, "7") == f"signal {signal.SIGKILL}"
    found = anyio.run(look, Stage(tmp_path), cast("Backend", backend))
    assert read_recorded(Stage(tmp_path).commits) == whole_run[:7]
    assert registers_in(found) == registers_after(whole_run[:7])


def test_a_run_has_many_commits_to_be_killed_at(zygote: Zygote, tmp_path: Path) -> None:
    assert zygote.ended(tmp_path, "jsonl", str(MORE_THAN_A_RUN_HAS)) == "exit 0"
    assert len(read_recorded(Stage(tmp_path).commits)) == COMMITS_OF_A_RUN
