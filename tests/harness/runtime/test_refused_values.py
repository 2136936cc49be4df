"""What a caller may get wrong without harm: nothing that could not be read back is ever stored (§0.8, §5.1)."""

from collections.abc import Awaitable, Callable
from typing import Any, cast

import anyio
import pytest
from msgspec.structs import replace

from restartpoint import AgentHarness
from restartpoint.contract import (
    AssistantPhase,
    GenerationReady,
    GenerationRetryWait,
    JsonObject,
    ModelIdentity,
    ToolContext,
    ToolResult,
)
from restartpoint.errors import HarnessFault, InvalidMessage, InvalidOptions, NotBuiltYet, Rejected
from restartpoint.providers import ScriptedCall, asks
from tests.harness.runtime.crash import change_state, next_life, open_state, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of

WRONG: dict[str, tuple[type[Rejected], Callable[[AgentHarness], Awaitable[object]]]] = {
    "no message": (InvalidMessage, lambda harness: harness.prompt(cast("Any", None))),
    "a number as message": (InvalidMessage, lambda harness: harness.prompt(cast("Any", [5]))),
    "an unknown level": (InvalidOptions, lambda harness: harness.set_thinking_level(cast("Any", "banana"))),
    "a nameless tool": (InvalidOptions, lambda harness: harness.set_active_tools(cast("Any", [5]))),
    "a lone surrogate": (InvalidOptions, lambda harness: harness.set_active_tools(["\ud800"])),
    "a numbered vendor": (
        InvalidOptions,
        lambda harness: harness.set_model(ModelIdentity(provider=cast("Any", 5), model_id="x")),
    ),
    "an unknown mode": (InvalidOptions, lambda harness: harness.set_steering_mode(cast("Any", "some"))),
    "usage that is no object": (InvalidMessage, lambda harness: harness.record_usage(cast("Any", 5))),
    "a count that is no number": (InvalidMessage, lambda harness: harness.record_usage({"input": "12"})),
    "a count that is a truth value": (InvalidMessage, lambda harness: harness.record_usage({"output": True})),
    "a cost that is no object": (InvalidMessage, lambda harness: harness.record_usage({"cost": 3})),
    "a cost that is no number": (InvalidMessage, lambda harness: harness.record_usage({"cost": {"total": None}})),
    "a count that is not finite": (InvalidMessage, lambda harness: harness.record_usage({"input": float("nan")})),
    "usage of no entry": (InvalidMessage, lambda harness: harness.record_usage({}, entry_id=cast("Any", 5))),
}


@pytest.mark.parametrize("wrong", WRONG)
async def test_a_wrong_value_is_refused_and_the_session_opens_again(wrong: str, place: Place, log: Log) -> None:
    expected, call = WRONG[wrong]
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open() as harness:
        configured = await harness.get_configuration()
        with pytest.raises(expected):
            await call(harness)
        await harness.prompt("go")
    async with stage.open() as harness:
        assert await harness.get_configuration() == configured


async def test_options_that_could_not_be_read_back_are_refused_before_anything_is_stored(
    place: Place, log: Log
) -> None:
    stage = Stage(place, [], log=log)
    for wrong in ({"tool_execution": "some"}, {"thinking_level": "banana"}):
        with pytest.raises(InvalidOptions):
            async with stage.open(**wrong):
                pass
        await stage.session.close()
    async with stage.open():
        pass


async def test_a_cancellation_that_a_tool_lets_out_is_a_fault_and_not_silence(place: Place, log: Log) -> None:
    async def leak(_: JsonObject, __: ToolContext) -> ToolResult:
        with anyio.CancelScope() as scope:
            scope.cancel()
            try:
                await anyio.sleep_forever()
            except anyio.get_cancelled_exc_class() as error:
                kept = error
        raise kept

    stage = Stage(place, [asks(ScriptedCall(name="leak"))], [Tool(name="leak", log=log, work=leak)], log=log)
    reached = False
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
        reached = True
    assert reached


async def test_a_retry_wait_is_refused_before_anything_is_written(place: Place) -> None:
    (prefix,) = [one for one in await prefixes(SCENARIOS["text"], place) if one.name == "start_generation"]
    stage = next_life(prefix, [])
    async with stage.open() as harness:
        state = await open_state(harness)
    assert isinstance(state.phase, AssistantPhase)
    assert isinstance(state.phase.generation, GenerationReady)
    wait = GenerationRetryWait(
        context=state.phase.generation.context, next_attempt=2, not_before=5, error_message="busy"
    )
    await change_state(stage, replace(state, phase=AssistantPhase(generation=wait)))
    async with stage.open() as harness:
        with pytest.raises(NotBuiltYet):
            await harness.resume()
        assert stage.writes == []
