"""What a response leads to, and how its calls are cleared, run and recorded (§3.7, §3.8)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import anyio
import pytest

from restartpoint import AgentHarness, RunCompleted
from restartpoint.contract import (
    LANE_CONFIG,
    OP_STATE,
    OP_TOOL_ARGS,
    AfterToolPatch,
    BeforeTool,
    BeforeToolDecision,
    JsonObject,
    MessagePayload,
    ToolBlock,
    ToolContext,
    ToolResult,
)
from restartpoint.providers import ScriptedCall, Step, asks, says
from tests.harness.runtime.commits import as_json, commit_named, inserted, phases, written
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, details_of, park_at
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.scenarios import SCENARIOS, spent
from tests.harness.runtime.stage import Stage

SAVE, LOAD, READ = (ScriptedCall(name=name, arguments={"of": name}) for name in ("save", "load", "read"))


def three(log: Log, **of_load: Any) -> list[Tool]:
    return [Tool(name="save", log=log), Tool(name="load", log=log, **of_load), Tool(name="read", log=log)]


async def prompted(stage: Stage, **options: Any) -> AgentHarness:
    async with stage.open(**options) as harness:
        await harness.prompt("go")
    return harness


# --- the start of a step ----------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.7-T11", "RT-4.3-07", "RT-5.1-26")
@pytest.mark.parametrize("set_first", [True, False])
async def test_a_step_captures_the_configuration_of_its_start_and_keeps_it(
    set_first: bool, place: Place, log: Log
) -> None:
    """The thinking level is set right before the step's start, or right after it and before its request."""
    stage = Stage(place, [asks(SAVE), says("done")], [Tool(name="save", log=log)], log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        await park_at(harness, "commit_assistant_ready")
        if set_first:
            await harness.set_thinking_level("high")
            await harness.set_stream_options({"maxTokens": 9})
        await park_at(harness, "commit_assistant_intent")
        if not set_first:
            await harness.set_thinking_level("high")
            await harness.set_stream_options({"maxTokens": 9})
        await harness.run_to_completion()
    assert stage.writes[stage.names.index("start_generation")] == ["set op.state/O"]
    states = written(stage, OP_STATE)
    assert [state["phase"].get("skipInboxOnce") for state in states[:2]] == [True, None]
    first, later = (asked.request for asked in stage.models.requests)
    assert (first.thinking_level, later.thinking_level) == ("high" if set_first else "off", "high")
    assert later.stream_options == {"maxTokens": 9}
    assert first.stream_options == ({"maxTokens": 9} if set_first else {})
    assert [config["thinkingLevel"] for config in written(stage, LANE_CONFIG)] == ["off", "high"]


# --- what follows a response ------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.7-03", "RT-3.7-T17")
async def test_results_are_reserved_at_settlement_as_followers_of_the_response(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(SAVE, LOAD), says("done")], three(log), log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        await park_at(harness, "commit_assistant_settlement")
        response = phases(stage, "assistant")[-1]["generation"]["responseEntryId"]
        stage.clock.now += 60_000
        await harness.run_to_completion()
    batch = phases(stage, "tools")[0]["batch"]
    assert stage.writes[stage.names.index("settle_tool_calls")] == [
        "entry", "set lane.leaf/main", "usage", "set op.state/O",
    ]  # fmt: skip
    assert [call["status"] for call in batch["calls"]] == ["planned", "planned"]
    assert batch["assistantEntryId"] == response
    followers = [call["resultEntryId"] for call in batch["calls"]]
    assert {one.replace("-", "")[:12] for one in followers} == {response.replace("-", "")[:12]}
    assert len({response, *followers}) == 3


@pytest.mark.covers("RT-3.7-18", "RT-3.7-T33", "RT-5.7-20")
async def test_calls_of_a_response_at_its_limit_are_answered_and_never_run_even_after_a_crash(
    place: Place, log: Log
) -> None:
    scenario = SCENARIOS["genuine length with calls"]
    kept = await prefixes(scenario, place)
    (half,) = [one for one in kept if one.name == "refuse_truncated_tool"]
    stage = next_life(half, scenario.steps, scenario.tools(log), log=log)
    async with stage.open() as harness:
        for hook in ("before_tool", "after_tool"):
            harness.hooks.on(hook, lambda event: log.note("hook"))
        assert isinstance(await harness.resume(), RunCompleted)
    assert await stage.messages() == scenario.messages
    assert [line for line in [*half.lines, *log.lines] if line.startswith(("tool", "hook"))] == []
    assert stage.names[0] == "complete_batch"
    assert stage.writes[0] == ["entry", "set lane.leaf/main", "set op.state/O"]
    results = [inserted(commit_named(half.stage, "refuse_truncated_tool")), inserted(stage.court.commits[0])]
    for (entry,) in results:
        assert isinstance(entry.payload, MessagePayload)
        assert entry.payload.message["isError"] is True
        assert "output limit" in str(entry.payload.message["content"])


# --- the end of a batch -----------------------------------------------------------------------------------------


def ending(log: Log, *terminate: bool) -> list[Tool]:
    return [Tool(name=name, log=log, terminate=one) for name, one in zip(("save", "load"), terminate, strict=True)]


@pytest.mark.covers("RT-3.8-01", "RT-3.8-T34", "RT-3.2-16", "RT-3.8-03")
async def test_a_batch_whose_calls_all_terminate_ends_the_run_in_the_commit_of_its_last_result(
    place: Place, log: Log
) -> None:
    stage = Stage(place, [asks(SAVE, LOAD)], ending(log, True, True), log=log)
    ends: list[JsonObject] = []
    async with stage.open() as harness:
        harness.events.on("run_end", lambda event: ends.append(as_json(event)))
        outcome = await harness.prompt("go")
    assert stage.names[-3:] == ["settle_tool", "complete_terminating_batch", "finish_terminated_tools"]
    (last,) = inserted(commit_named(stage, "complete_terminating_batch"))
    assert phases(stage, "checkpoint")[-1] == {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": False},
        "triggerEntryId": last.id,
    }
    assert isinstance(outcome, RunCompleted)
    assert (outcome.leaf_id, outcome.final_entry_id, outcome.final_message) == (last.id, None, None)
    assert not {"finalEntryId", "finalMessage"} & ends[0].keys()


@pytest.mark.covers("RT-3.8-02", "RT-3.8-09")
@pytest.mark.parametrize("terminate", [(True, False), (False, True), (False, False)])
async def test_a_batch_that_not_every_call_terminates_asks_the_model_again(
    terminate: tuple[bool, bool], place: Place, log: Log
) -> None:
    stage = Stage(place, [asks(SAVE, LOAD), says("done")], ending(log, *terminate), log=log)
    await prompted(stage)
    (first,), (last,) = (inserted(commit_named(stage, name)) for name in ("settle_tool", "complete_batch"))
    checkpoint = phases(stage, "checkpoint")[1]
    assert checkpoint == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": last.id,
    }
    for entry, terminates in zip((first, last), terminate, strict=True):
        assert isinstance(entry.payload, MessagePayload)
        assert entry.payload.terminate is terminates
        assert "terminate" not in entry.payload.message


@pytest.mark.covers("AMB-06", "RT-3.8-T34")
async def test_the_last_settlement_deletes_the_arguments_after_its_usage_and_before_its_state(
    place: Place, log: Log
) -> None:
    tools = [Tool(name=name, log=log, usage=spent(3)) for name in ("save", "load")]
    stage = Stage(place, [asks(SAVE, LOAD), says("done")], tools, log=log)
    async with stage.open() as harness:
        await harness.prompt("go")
        assert await stage.session.list_registers(OP_TOOL_ARGS) == []
    result = ["entry", "set lane.leaf/main", "usage"]
    at = stage.names.index("settle_tool")
    assert stage.writes[at] == [*result, "set op.state/O"]
    assert stage.writes[at + 1] == [
        *result, "delete op.tool_args/O:0", "delete op.tool_args/O:1", "set op.state/O",
    ]  # fmt: skip


# --- order ------------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.8-04", "RT-5.7-12")
@pytest.mark.parametrize("reason", ["the option", "one called tool"])
async def test_in_a_sequential_batch_each_call_is_recorded_before_the_next_is_looked_at(
    reason: str, place: Place, log: Log
) -> None:
    by_tool = {"execution_mode": "sequential"} if reason == "one called tool" else {}
    stage = Stage(place, [asks(SAVE, LOAD), says("done")], three(log, **by_tool)[:2], log=log)
    options = {} if by_tool else {"tool_execution": "sequential"}
    async with stage.open(**options) as harness:
        harness.hooks.on("before_tool", lambda event: log.note(f"before {event.tool_name}"))
        harness.hooks.on("after_tool", lambda event: log.note(f"after {event.tool_name}"))
        await harness.prompt("go")
    assert log.lines[6:14] == [
        "before save", "intend_tool", "tool save", "after save", "settle_tool",
        "before load", "intend_tool", "tool load",
    ]  # fmt: skip
    assert log.lines[14:16] == ["after load", "complete_batch"]


@pytest.mark.covers("RT-3.8-05", "RT-3.2-35", "RT-3.8-T31", "RT-5.7-18")
async def test_overlapping_calls_are_intended_in_source_order_and_recorded_in_source_order(
    place: Place, log: Log
) -> None:
    """The calls finish in reverse: each waits until the later one has ended."""
    tools = three(log)

    def after(later: Tool | None, own: Tool) -> None:
        async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
            if later is not None:
                await ended[later.name].wait()
            log.note(f"end {own.name}")
            ended[own.name].set()
            return ToolResult(content=[])

        own.work = work

    ended = {tool.name: anyio.Event() for tool in tools}
    for own, later in zip(tools, [*tools[1:], None], strict=True):
        after(later, own)
    stage = Stage(place, [asks(SAVE, LOAD, READ), says("done")], tools, log=log)
    async with stage.open() as harness:
        harness.hooks.on("before_tool", lambda event: log.note(f"before {event.tool_name}"))
        harness.hooks.on("after_tool", lambda event: log.note(f"after {event.tool_name}"))
        await harness.prompt("go")
    lines = log.lines[6 : log.lines.index("complete_batch") + 1]
    starts = [line for line in lines if line.startswith("before")]
    assert starts == ["before save", "before load", "before read"]
    assert lines.count("intend_tool") == 3
    assert [line for line in lines if line.startswith("end")] == ["end read", "end load", "end save"]
    assert lines[lines.index("end save") :] == [
        "end save", "after save", "settle_tool", "after load", "settle_tool", "after read", "complete_batch",
    ]  # fmt: skip
    assert [line.split()[-1] for line in (await stage.messages())[2:5]] == ["toolResult:"] * 3
    overlapping = [[call["status"] for call in phase["batch"]["calls"]] for phase in phases(stage, "tools")]
    assert ["effect_pending"] * 3 in overlapping


BLOCKS: dict[str, dict[str, Any]] = {
    "unknown tool": {"missing": True},
    "invalid arguments": {"refuses": "load"},
    "a preparation that throws": {"breaks": "boom"},
    "a block": {},
    "a hook that throws": {},
}


@pytest.mark.covers("RT-3.8-06", "RT-3.8-07", "RT-3.8-T32", "RT-5.7-18")
@pytest.mark.parametrize("reason", BLOCKS)
async def test_a_refused_call_in_the_middle_waits_for_the_one_before_it_and_never_has_arguments(
    reason: str, place: Place, log: Log
) -> None:
    facts = dict(BLOCKS[reason])
    missing = facts.pop("missing", False)
    tools = [tool for tool in three(log, **facts) if not (missing and tool.name == "load")]
    tools[0].hold = True
    stage = Stage(place, [asks(SAVE, LOAD, READ), says("done")], tools, log=log)
    async with stage.open() as harness:
        if reason in ("a block", "a hook that throws"):
            harness.hooks.on("before_tool", refusing(reason))
        async with calling(harness.prompt("go")):
            await tools[0].started.wait()
            await tools[-1].started.wait()
            assert stage.names[-1] == "intend_tool"
            keys = [register.key for register in await stage.session.list_registers(OP_TOOL_ARGS)]
            tools[0].release()
    assert [key.rpartition(":")[2] for key in keys] == ["0", "2"]
    assert log.count("tool load") == 0
    assert stage.names[-7:-3] == ["settle_tool", "refuse_tool", "complete_batch", "start_generation"]
    texts = await stage.messages()
    assert (texts[2], texts[4]) == ("toolResult: save done", "toolResult: read done")
    assert not any(told.startswith(("tool_start load", "tool_end load")) for told in log.told)
    assert stage.writes[stage.names.index("refuse_tool")] == ["entry", "set lane.leaf/main", "set op.state/O"]


def refusing(reason: str) -> Callable[[BeforeTool], BeforeToolDecision | None]:
    def handler(event: BeforeTool) -> BeforeToolDecision | None:
        if event.tool_name != "load":
            return None
        if reason == "a hook that throws":
            raise RuntimeError("boom")
        return BeforeToolDecision(block=ToolBlock(reason="not today"))

    return handler


# --- application context ----------------------------------------------------------------------------------------


@pytest.mark.covers("RT-5.7-17")
async def test_the_tool_context_is_evaluated_once_per_batch_for_all_its_calls(place: Place, log: Log) -> None:
    asked: list[object] = []

    def context() -> object:
        asked.append(object())
        return asked[-1]

    tools = three(log)
    steps: list[Step] = [asks(SAVE, LOAD), asks(READ), says("done")]
    stage = Stage(place, steps, tools, log=log)
    await prompted(stage, tool_context=context)
    given = [tool.contexts[0].application for tool in tools]
    assert len(asked) == 2
    assert given[0] is given[1] is asked[0]
    assert given[2] is asked[1]


@pytest.mark.covers("RT-5.7-17")
async def test_a_tool_that_is_unregistered_during_the_batch_still_runs_as_it_was_bound(place: Place, log: Log) -> None:
    tools = three(log)[:2]
    stage = Stage(place, [asks(SAVE, LOAD), says("done")], tools, log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        parked = await park_at(harness, "commit_tool_intent")
        assert details_of(parked)["toolName"] == "save"
        await harness.set_tools([])
        await park_at(harness, "commit_tool_result", skip=1)
        await harness.set_tools(tools)
        await harness.run_to_completion()
    assert [line for line in log.lines if line.startswith("tool")] == ["tool save", "tool load"]


@pytest.mark.covers("RT-5.7-12", "RT-3.8-09")
async def test_a_call_goes_through_its_phases_in_order(tmp_path: Path, log: Log) -> None:
    class Preparing(Tool):
        def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
            self.log.note(f"prepare {arguments}")
            return arguments

    stage = Stage(MemoryPlace(tmp_path), [asks(SAVE)], [Preparing(name="save", log=log)], log=log)
    async with stage.open() as harness:
        harness.hooks.on("before_tool", lambda event: log.note("before_tool"))

        def after(event: object) -> AfterToolPatch:
            log.note("after_tool")
            return AfterToolPatch(terminate=True, usage=spent(4))

        harness.hooks.on("after_tool", after)
        await harness.prompt("go")
    assert log.lines[6:-1] == [
        "prepare {'of': 'save'}", "before_tool", "intend_tool", "tool save", "after_tool", "complete_terminating_batch",
    ]  # fmt: skip
    assert stage.writes[-2] == [
        "entry", "set lane.leaf/main", "usage", "delete op.tool_args/O:0", "set op.state/O",
    ]  # fmt: skip
