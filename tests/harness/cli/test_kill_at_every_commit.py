"""The demo's child is killed with SIGKILL around every commit; whatever it left, another process finishes the run."""

import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import anyio
import pytest

from restartpoint.cli.demonstration.checks import checks
from restartpoint.cli.demonstration.recovery import all_commits, finish_the_run, look
from restartpoint.cli.demonstration.scene import Backend, Stage

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


@pytest.mark.timeout(120)
@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("suffix", ["-", "+", ""], ids=["before", "after", "told"])
def test_no_kill_around_any_commit_breaks_the_transcript_or_repeats_the_unsafe_tool(
    zygote: Zygote, tmp_path: Path, backend: str, suffix: str
) -> None:
    name, objections, killed = cast("Backend", backend), [], 0
    for commit in range(1, MORE_THAN_A_RUN_HAS):
        stage = Stage(tmp_path / str(commit))
        stage.folder.mkdir()
        ended = zygote.ended(stage.folder, backend, f"{commit}{suffix}")
        if ended == "exit 0":
            break
        assert ended == f"signal {signal.SIGKILL}"
        killed += 1
        found = anyio.run(look, stage, name)
        objections += [f"{commit}{suffix}: {text}" for text in anyio.run(finished_coherently, stage, name)]
        made_before = sum(record.process == 1 for record in all_commits(stage, name, found))
        assert made_before == (commit - 1 if suffix == "-" else commit)
    assert objections == []
    assert killed == COMMITS_OF_A_RUN
