"""Close is a controlled crash; a failed commit or broken computation stops the whole harness (§4.7, §4.8, §4.3)."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from restartpoint import AgentHarness, HarnessClosed, HarnessFault
from restartpoint.contract import LANE_LEAF as LEAF
from restartpoint.contract import (
    OP_STATE,
    AssistantPhase,
    CustomPayload,
    EntryDraft,
    FaultEvent,
    GenerationEffectPending,
    InsertEntry,
    RegisterSet,
    Transaction,
    zero_usage,
)
from restartpoint.errors import Closed
from restartpoint.providers import ScriptedCall, ScriptedResponse, asks, says
from tests.harness.runtime.crash import next_life, open_state, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import MemoryPlace, Place, dump
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import FailingStorage

STALLS = ScriptedResponse(text="slow", stall="stream", name="slow")


async def content_after(stage: Stage) -> bytes:
    storage = await stage.storage()
    try:
        return await dump(storage)
    finally:
        await storage.close()


# --- close ------------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-4.7-04", "RACE-14a", "RT-4.7-01", "RT-4.8-05")
async def test_close_during_a_request_abandons_it_and_leaves_the_intent(place: Place, log: Log) -> None:
    stage = Stage(place, [STALLS], log=log)
    async with stage.open() as harness, calling(harness.prompt("go")) as run:
        await stage.models.reached("slow")
        before = await dump(stage.session._storage)
        await harness.close()
        with pytest.raises(HarnessClosed):
            await run.result()
        assert stage.models.requests[0].signal.aborted
    assert await content_after(stage) == before
    assert log.lines[-1] == "request 0"
    async with next_life_of(stage).open() as harness:
        phase = (await open_state(harness)).phase
    assert isinstance(phase, AssistantPhase)
    assert isinstance(phase.generation, GenerationEffectPending)


def next_life_of(stage: Stage, *tools: Tool) -> Stage:
    return stage.after_crash(stage.place, [], list(tools), log=Log())


@pytest.mark.covers("RT-4.7-06", "RT-4.7-02")
async def test_a_response_that_ends_aborted_because_of_close_is_not_committed(place: Place, log: Log) -> None:
    stage = Stage(place, [STALLS], log=log)
    async with stage.open() as harness:
        async with calling(harness.prompt("go")) as run:
            await stage.models.reached("slow")
            await harness.close()
        assert isinstance(run.error, HarnessClosed)
    assert stage.names == ["seed_main", "accept_run", "start_generation", "intend_assistant"]


@pytest.mark.covers("RT-4.7-04", "RT-4.1-16")
async def test_close_during_a_tool_abandons_its_result(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness, calling(harness.prompt("go")) as run:
        await tool.started.wait()
        before = await dump(stage.session._storage)
        await harness.close()
        with pytest.raises(HarnessClosed):
            await run.result()
        assert tool.contexts[0].signal.aborted
        assert harness._owner.active is None
    assert await content_after(stage) == before


@pytest.mark.covers("RT-4.7-03", "RACE-14b")
async def test_close_waits_for_a_commit_that_was_admitted_before_it(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    failing: list[FailingStorage] = []
    stage.wrap = wrapping(failing, hold_at=4)
    async with stage.open() as harness, calling(harness.prompt("go")) as run:
        await failing[0].held.wait()
        async with calling(harness.close()) as closing:
            await anyio.lowlevel.checkpoint()
            assert not closing.ended
            failing[0].let_go.set()
            await closing.result()
        with pytest.raises(HarnessClosed):
            await run.result()
    assert stage.names[-1] == "settle_stop"
    assert await stage.messages() == ["user: go", "assistant: hello"]


def wrapping(made: list[FailingStorage], **facts: int) -> Callable[[Any], Any]:
    def wrap(inner: Any) -> FailingStorage:
        made.append(FailingStorage(inner, **facts))
        return made[-1]

    return wrap


Call = Callable[[AgentHarness], Awaitable[object]]
CALLS: dict[str, Call] = {
    "prompt": lambda harness: harness.prompt("more"),
    "resume": lambda harness: harness.resume(),
    "record_usage": lambda harness: harness.record_usage(zero_usage()),
    "create_lane": lambda harness: harness.create_lane("side", None),
    "set_thinking_level": lambda harness: harness.set_thinking_level("high"),
    "set_active_tools": lambda harness: harness.set_active_tools([]),
    "set_tools": lambda harness: harness.set_tools([]),
    "set_stream_options": lambda harness: harness.set_stream_options({}),
    "wait_for_idle": lambda harness: harness.wait_for_idle(),
}
REJECTING = {"prompt", "resume", "record_usage", "create_lane"}
"""The calls whose rejections are values in the specification: after a close they say that nothing was accepted."""


@pytest.mark.covers("RT-4.8-05", "RT-4.8-06")
@pytest.mark.parametrize("name", CALLS)
async def test_calls_after_a_close_are_refused(name: str, tmp_path: Path, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], MemoryPlace(tmp_path), log)
    async with stage.open() as harness:
        await harness.prompt("go")
        await harness.close()
        with pytest.raises(Closed if name in REJECTING else HarnessClosed):
            await CALLS[name](harness)
    assert log.lines[-1] == "finish_run"


async def test_close_twice_and_side_by_side_is_close_once(place: Place, log: Log) -> None:
    async with Stage(place, [], log=log).open() as harness:
        async with calling(harness.close()) as first, calling(harness.close()) as second:
            await first.result()
            await second.result()
        await harness.close()


# --- faults -----------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-4.8-01", "RT-4.8-04", "RT-5.5-15", "RT-5.5-03")
@pytest.mark.parametrize("number", range(1, 10))
async def test_a_failed_commit_stops_the_harness_and_keeps_what_was_committed(
    number: int, place: Place, log: Log
) -> None:
    scenario = SCENARIOS["one tool"]
    stage = stage_of(scenario, place, log)
    failing: list[FailingStorage] = []
    stage.wrap = wrapping(failing, fail_at=number)
    faults: list[FaultEvent] = []
    async with stage.open() as harness:
        harness.events.on(FaultEvent, faults.append)
        with pytest.raises(HarnessFault) as fault:
            await harness.prompt("go")
        assert str(fault.value.__cause__) == "the disk is gone"
        with pytest.raises(HarnessFault):
            await harness.prompt("again")
        assert failing[0].commits == number + 1
    commits = [line for line in ["seed_main", *scenario.lines] if not line.startswith(("request", "tool"))]
    assert stage.names == commits[:number]
    assert [(fault.code, fault.message) for fault in faults] == [("StorageFault", "the disk is gone")]
    assert log.told[-1] == "fault"
    again = next_life_of(stage, Tool(name="save", log=Log()))
    again.models = stage.models
    async with again.open() as harness:
        assert len(harness.suspended) == (0 if number == 1 else 1)


@pytest.mark.covers("RT-4.8-02", "RT-4.8-01")
@pytest.mark.parametrize("name", CALLS)
async def test_every_later_call_gets_the_fault(name: str, tmp_path: Path, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], MemoryPlace(tmp_path), log)
    stage.wrap = wrapping([], fail_at=2)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
        with pytest.raises(HarnessFault):
            await CALLS[name](harness)


@pytest.mark.covers("RT-4.8-01")
async def test_a_fault_of_one_lane_stops_the_others(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save"))], [tool], log=log)
    failing: list[FailingStorage] = []
    stage.wrap = wrapping(failing, fail_at=7)
    async with stage.open() as harness:
        side = await harness.create_lane("side", None)
        async with calling(side.prompt("go")) as other:
            await tool.started.wait()
            with pytest.raises(HarnessFault):
                await harness.set_thinking_level("high")
            with pytest.raises(HarnessFault):
                await other.result()
        assert tool.contexts[0].signal.aborted


async def failing_computation(*_: object) -> Any:
    raise RuntimeError("computation failed")


@pytest.mark.covers("RT-4.8-08")
@pytest.mark.parametrize("option", ["system_prompt", "tool_context", "to_provider_messages"])
async def test_a_failure_in_computation_of_the_application_is_a_fault(option: str, place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    async with stage.open(**{option: failing_computation}) as harness:
        with pytest.raises(HarnessFault) as fault:
            await harness.prompt("go")
    assert str(fault.value.__cause__) == "computation failed"
    assert "settle_failure" not in stage.names
    assert log.told[-1] == "fault"


@pytest.mark.covers("RT-4.8-08")
async def test_a_failure_in_an_entry_projector_is_a_fault(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open():
        pass
    storage = await stage.storage()
    entry = EntryDraft(id="note", parent_id=None, payload=CustomPayload(custom_type="note"))
    await storage.commit(Transaction((InsertEntry(entry), RegisterSet(LEAF, "main", "note"))))
    await storage.close()
    async with stage.open(entry_projectors={"note": failing_computation}) as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
    assert log.lines[-1] == "intend_assistant"


@pytest.mark.covers("RT-4.8-09", "RT-4.8-07")
@pytest.mark.parametrize("name", ["broken preparation of arguments", "a tool raises", "provider raises"])
async def test_failures_of_tools_and_providers_stay_in_their_run(name: str, place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS[name], place, log)
    async with stage.open() as harness:
        outcome = await harness.prompt("go")
        assert type(outcome).__name__ == SCENARIOS[name].outcome
        side = await harness.create_lane("side", None)
        assert type(await side.prompt("go")).__name__ == SCENARIOS[name].outcome
    assert "fault" not in log.told


@pytest.mark.covers("RT-3.4-05")
async def test_a_state_that_changed_under_its_task_is_a_fault(place: Place, log: Log) -> None:
    """An intent of another request appears while this one's settlement is parked."""
    stage = stage_of(SCENARIOS["text"], place, log)
    stage.unjudged = "the test itself commits what no transition makes"
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "commit_assistant_settlement")
        (register,) = await stage.session.list_registers(OP_STATE)
        await park_at(harness, "commit_assistant_settlement")
        prefix = (await prefixes(SCENARIOS["text"], place.another()))[2]
        async with next_life(prefix, []).open() as other:
            ready = await open_state(other)
        storage = stage.session._storage
        await storage.commit(Transaction((RegisterSet(OP_STATE, register.key, ready),)))
        await harness.run_to_completion()
        with pytest.raises(HarnessFault):
            await run.result()
    assert stage.names[-1] == "intend_assistant"


# --- callers ----------------------------------------------------------------------------------------------------


async def test_a_caller_that_a_scope_cancels_detaches_and_the_run_goes_on(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness:
        async with anyio.create_task_group() as group:
            group.start_soon(harness.prompt, "go")
            await tool.started.wait()
            group.cancel_scope.cancel()
        tool.release()
        await harness.wait_for_idle()
        last = await harness.get_last_result()
    assert last is not None
    assert last.outcome == "completed"
    assert await stage.messages() == ["user: go", "assistant: save", "toolResult: save done", "assistant: done"]


async def test_a_caller_that_asyncio_cancels_detaches_and_the_run_goes_on(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness:
        caller = asyncio.ensure_future(harness.prompt("go"))
        await tool.started.wait()
        caller.cancel()
        with pytest.raises(asyncio.CancelledError):
            await caller
        tool.release()
        await harness.wait_for_idle()
    assert log.lines[-1] == "finish_run"


@pytest.mark.covers("AMB-59")
async def test_a_response_that_says_aborted_unasked_is_a_fault_and_not_recorded(place: Place, log: Log) -> None:
    stage = Stage(place, [ScriptedResponse(text="x", stop_reason="aborted")], log=log)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
    assert log.lines == ["seed_main", "accept_run", "start_generation", "intend_assistant", "request 0"]
