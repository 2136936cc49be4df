"""What ends another harness, or asks Python to exit, inside this harness's providers, tools and hooks (§4.8, §5.7)."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, cast

import pytest

from restartpoint import (
    AgentHarness,
    HarnessClosed,
    HarnessFault,
    HarnessOptions,
    MemoryRepository,
    RunCompleted,
    RunFailed,
)
from restartpoint.contract import AgentMessage, FaultEvent, JsonObject, ToolContext, ToolResult
from restartpoint.errors import InvariantBroken
from restartpoint.providers import SCRIPTED_MODEL, ScriptedCall, ScriptedModels, asks, says
from restartpoint.seams import ThreadWork
from restartpoint.tools import tool
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.stage import Stage


async def closed_harness() -> AgentHarness:
    options = HarnessOptions(models=ScriptedModels([says("x")]), model=SCRIPTED_MODEL)
    async with AgentHarness.open(await MemoryRepository().create(), options) as harness:
        return harness


async def ask_a_closed_harness() -> None:
    await (await closed_harness()).wait_for_idle()


async def fault() -> None:
    raise HarnessFault("the nested harness stopped")


async def broken() -> None:
    raise InvariantBroken("the nested harness is broken")


async def leave() -> None:
    raise SystemExit(3)


ENDS: dict[str, tuple[Callable[[], Awaitable[None]], str]] = {
    "a closed harness": (ask_a_closed_harness, "HarnessClosed: the harness was closed"),
    "a faulted harness": (fault, "HarnessFault: the nested harness stopped"),
    "a broken harness": (broken, "InvariantBroken: the nested harness is broken"),
    "sys.exit": (leave, "SystemExit: 3"),
}
ends = pytest.mark.parametrize("end, text", ENDS.values(), ids=ENDS)


@ends
async def test_in_a_provider_it_is_a_response_that_failed(
    end: Callable[[], Awaitable[None]], text: str, place: Place, log: Log
) -> None:
    stage = Stage(place, [says("done")], log=log)
    vendor, request = cast("Any", stage.models), stage.models.request

    async def nested(*given: Any) -> AgentMessage:
        vendor.request = request
        await end()
        raise AssertionError("unreachable")

    async with stage.open() as harness:
        vendor.request = nested
        outcome = await harness.prompt("go")
        assert isinstance(outcome, RunFailed)
        assert outcome.error.message.startswith(text)
        assert isinstance(await harness.prompt("again"), RunCompleted)
    assert "fault" not in log.told


@ends
async def test_in_a_tool_it_is_its_error_result(
    end: Callable[[], Awaitable[None]], text: str, place: Place, log: Log
) -> None:
    async def nested(_: JsonObject, __: ToolContext) -> ToolResult:
        await end()
        raise AssertionError("unreachable")

    stage = Stage(
        place, [asks(ScriptedCall(name="save")), says("done")], [Tool(name="save", log=log, work=nested)], log=log
    )
    async with stage.open() as harness:
        assert isinstance(await harness.prompt("go"), RunCompleted)
    assert text in (await stage.messages())[2]


async def test_a_tool_on_a_thread_that_exits_has_an_error_result(place: Place, log: Log) -> None:
    @tool
    def leaves() -> str:
        """Leave."""
        raise SystemExit(3)

    stage = Stage(place, [asks(ScriptedCall(name="leaves")), says("done")], [leaves], log=log)
    async with stage.open(blocking=ThreadWork()) as harness:
        assert isinstance(await harness.prompt("go"), RunCompleted)
    assert "SystemExit: 3" in (await stage.messages())[2]


@ends
async def test_in_a_hook_it_is_the_failure_of_its_handler(
    end: Callable[[], Awaitable[None]], text: str, place: Place, log: Log
) -> None:
    stage = Stage(place, [says("done")], log=log)
    async with stage.open() as harness:

        async def handler(_: object) -> None:
            await end()

        harness.hooks.on("before_request", handler)
        assert isinstance(await harness.prompt("go"), RunCompleted)
    assert "handler_error" in log.told


@ends
async def test_in_computation_of_the_application_it_is_a_fault(
    end: Callable[[], Awaitable[None]], text: str, place: Place, log: Log
) -> None:
    async def nested(_: object) -> str:
        await end()
        return "prompt"

    stage = Stage(place, [says("done")], log=log)
    faults: list[FaultEvent] = []
    async with stage.open(system_prompt=nested) as harness:
        harness.events.on(FaultEvent, faults.append)
        with pytest.raises(HarnessFault) as raised:
            await harness.prompt("go")
        with pytest.raises(HarnessFault) as later:
            await harness.get_leaf_id()
    assert f"{type(raised.value.__cause__).__name__}: {raised.value.__cause__}".startswith(text)
    assert later.value is raised.value
    assert len(faults) == 1


async def test_what_ends_this_harness_while_a_provider_waits_is_not_a_response(place: Place, log: Log) -> None:
    stage = Stage(place, [says("unheard")], log=log)
    async with stage.open() as harness:

        async def closing(*given: Any) -> AgentMessage:
            await harness.close()
            raise AssertionError("unreachable")

        cast("Any", stage.models).request = closing
        with pytest.raises(HarnessClosed):
            await harness.prompt("go")
    assert stage.names[-1] == "intend_assistant"


@pytest.mark.parametrize("kind", [SystemExit, KeyboardInterrupt])
@pytest.mark.parametrize("anyio_backend", ["asyncio", "trio"])
async def test_a_block_that_asks_python_to_exit_closes_the_harness_and_says_only_that(
    kind: type[BaseException], tmp_path: Path, log: Log
) -> None:
    stage = Stage(MemoryPlace(tmp_path), [says("done")], log=log)
    opened: list[AgentHarness] = []

    async def block() -> None:
        async with stage.open() as harness:
            opened.append(harness)
            await harness.prompt("go")
            raise kind(3)

    with pytest.raises(kind) as left:
        await block()
    assert left.value.args == (3,)
    with pytest.raises(HarnessClosed):
        await opened[0].get_leaf_id()


async def test_a_listener_that_exits_is_reported_and_skipped(place: Place, log: Log) -> None:
    stage = Stage(place, [says("done")], log=log)

    def quits(_: object) -> None:
        raise SystemExit(3)

    async def quits_later(_: object) -> None:
        raise SystemExit(4)

    async with stage.open() as harness:
        harness.events.on("run_start", quits)
        harness.events.on("run_start", quits_later)
        assert isinstance(await harness.prompt("go"), RunCompleted)
        await harness.events.idle()
    assert log.told.count("handler_error") == 2
