"""The same runs on trio, and with SQLite's work on its own thread: nothing depends on the loop (§9.3)."""

from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from restartpoint import HarnessClosed, HarnessFault
from restartpoint.providers import ScriptedCall, asks, says
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling
from tests.harness.runtime.places import JsonlPlace, MemoryPlace, Place, ThreadedSqlitePlace
from tests.harness.runtime.scenarios import SCENARIOS, Scenario
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import FailingStorage

COMBINATIONS: dict[str, tuple[str, Callable[[Path], Place]]] = {
    "trio, memory": ("trio", MemoryPlace),
    "trio, jsonl": ("trio", JsonlPlace),
    "asyncio, sqlite on a thread": ("asyncio", ThreadedSqlitePlace),
    "trio, sqlite on a thread": ("trio", ThreadedSqlitePlace),
}


@pytest.fixture(params=COMBINATIONS)
def combination(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def anyio_backend(combination: str) -> str:
    return COMBINATIONS[combination][0]


@pytest.fixture
def place(combination: str, tmp_path: Path) -> Place:
    return COMBINATIONS[combination][1](tmp_path)


@pytest.mark.parametrize(
    "name", ["text", "one tool", "two tools side by side", "every tool terminates", "provider error", "deferred"]
)
async def test_a_run_is_the_same_run(name: str, place: Place, log: Log) -> None:
    scenario = SCENARIOS[name]
    stage = stage_of(scenario, place, log)
    async with stage.open(**scenario.options) as harness:
        outcome = await harness.prompt("go")
    assert type(outcome).__name__ == scenario.outcome
    assert await stage.messages() == scenario.messages
    assert order_of(log.lines) == order_of(["seed_main", *scenario.lines])


def order_of(lines: list[str]) -> tuple[list[str], list[str]]:
    """Commits and requests in order; the starts of tools apart, since their tasks are the loop's to schedule."""
    return [line for line in lines if not line.startswith("tool")], sorted(
        line for line in lines if line.startswith("tool")
    )


async def test_a_crash_after_any_commit_recovers(place: Place) -> None:
    scenario: Scenario = SCENARIOS["one tool"]
    for prefix in (await prefixes(scenario, place))[1:-1]:
        log = Log()
        stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
        async with stage.open() as harness:
            outcome = await harness.resume()
        unknown = prefix.name == "intend_assistant"
        assert type(outcome).__name__ == ("RunFailed" if unknown else "RunCompleted")
        assert prefix.lines.count("tool save") + log.count("tool save") <= 1


async def test_close_and_faults_end_what_waits(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness:
        async with calling(harness.prompt("go")) as run:
            await tool.started.wait()
            await harness.close()
        assert isinstance(run.error, HarnessClosed)
    stage.wrap = lambda inner: FailingStorage(inner, fail_at=0)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.resume()


async def test_a_cancelled_caller_detaches_from_its_run(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness:
        async with anyio.create_task_group() as group:
            group.start_soon(harness.prompt, "go")
            await tool.started.wait()
            group.cancel_scope.cancel()
        tool.release()
        await harness.wait_for_idle()
    assert log.lines[-1] == "finish_run"


async def test_manual_drive_parks_and_goes_on(place: Place, log: Log) -> None:
    scenario = SCENARIOS["one tool"]
    kinds: list[str] = []
    async with stage_of(scenario, place, log).open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        while (parked := await harness.execute_action()) is not None:
            kinds.append(parked.kind)
        assert type(await run.result()).__name__ == scenario.outcome
    assert kinds == scenario.actions
