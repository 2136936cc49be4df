"""Which events a run publishes, in exactly which order around its commits (§5.5)."""

import pytest

from restartpoint import AgentHarness, HarnessFault, RunFailed
from restartpoint.contract import (
    UNSET,
    ActiveToolsUpdateEvent,
    AfterResponse,
    AfterResponseResult,
    AfterToolPatch,
    EntryAddedEvent,
    HandlerErrorEvent,
    HarnessEvent,
    JsonObject,
    MessageEndEvent,
    MessagePayload,
    ModelIdentity,
    ModelUpdateEvent,
    RunEndEvent,
    SettingUpdateEvent,
    ThinkingLevelUpdateEvent,
    ToolContext,
    ToolEndEvent,
    ToolResult,
    ToolStartEvent,
    ToolUpdateEvent,
    TurnEndEvent,
    TurnStartEvent,
    UsageEvent,
    lane_of,
    text_block,
    zero_usage,
)
from restartpoint.providers import ScriptedResponse
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS, spent
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import FailingStorage

PROMPT = ["seed_main", "accept_run", "run_start", "message_start user", "message_end user", "entry_added user"]
ANSWER = [
    "start_generation", "turn_start", "intend_assistant", "request 1", "message_start assistant", "message_update",
    "message_end assistant", "settle_stop", "entry_added assistant", "usage", "turn_end",
]  # fmt: skip
CALLED = [
    "start_generation", "turn_start", "intend_assistant", "request 0", "message_start assistant",
    "message_end assistant", "settle_tool_calls", "entry_added assistant", "usage",
]  # fmt: skip
RESULT = ["message_start toolResult", "message_end toolResult"]
END = ["finish_run", "run_end completed"]


@pytest.mark.covers("RT-5.5-39", "TEST-R2-03", "RT-5.5-24", "RT-5.5-23")
async def test_a_streamed_response(place: Place, log: Log) -> None:
    stage = Stage(place, [ScriptedResponse(chunks=["he", "llo"])], log=log)
    async with stage.open() as harness:
        harness.hooks.on("after_response", lambda event: log.note("hook after_response"))
        await harness.prompt("go")
    assert log.told == [
        *PROMPT, "start_generation", "turn_start", "intend_assistant", "request 0", "message_start assistant",
        "message_update", "message_update", "hook after_response", "message_end assistant", "settle_stop",
        "entry_added assistant", "usage", "turn_end", *END,
    ]  # fmt: skip


@pytest.mark.covers("RT-5.5-42", "RT-5.5-08", "RT-5.5-14", "AMB-71")
async def test_a_run_with_one_tool(place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS["one tool"], place, log).open() as harness:
        await harness.prompt("go")
    assert log.told == [
        *PROMPT, *CALLED, "intend_tool", "tool_start save", "tool save", "tool_end save", *RESULT, "complete_batch",
        "entry_added toolResult", "turn_end", *ANSWER, *END,
    ]  # fmt: skip


@pytest.mark.covers("RT-5.5-27", "RT-3.8-05", "RT-5.5-17")
async def test_two_tools_are_shown_in_the_order_of_their_calls(place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS["two tools side by side"], place, log).open() as harness:
        await harness.prompt("go")
    assert [line for line in log.told if not line.startswith("tool ")] == [
        *PROMPT, *CALLED, "intend_tool", "tool_start save", "intend_tool", "tool_start load", "tool_end save", *RESULT,
        "settle_tool", "entry_added toolResult", "tool_end load", *RESULT, "complete_batch", "entry_added toolResult",
        "turn_end", *ANSWER, *END,
    ]  # fmt: skip


@pytest.mark.covers("RT-3.8-06", "RT-3.8-07")
async def test_a_call_that_never_runs_shows_only_its_result(place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS["blocked"], place, log).open() as harness:
        await harness.prompt("go")
    assert log.told == [
        *PROMPT, *CALLED, "hook before_tool", *RESULT, "complete_batch", "entry_added toolResult", "turn_end", *ANSWER,
        *END,
    ]  # fmt: skip


async def test_a_suspended_run_says_why_instead_of_ending(place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS["deferred"], place, log).open() as harness:
        await harness.prompt("go")
    assert log.told[-4:] == ["entry_added assistant", "usage", "turn_end", "run_suspend deferred"]


@pytest.mark.covers("RT-5.5-40", "RT-5.5-09", "RT-5.5-05")
async def test_a_synthetic_response_of_a_recovery(place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIOS["text"], place) if one.name == "intend_assistant")
    stage = next_life(prefix, [])
    async with stage.open() as harness:
        assert isinstance(await harness.resume(), RunFailed)
    assert stage.log.told == [
        "run_resume again", "turn_start again", "message_start assistant", "message_end assistant",
        "recover_exhausted_assistant", "entry_added assistant", "usage", "turn_end", "finish_failed", "run_end failed",
    ]  # fmt: skip


@pytest.mark.covers("RT-5.5-05", "RT-5.5-09")
async def test_an_interrupted_call_is_shown_again_and_nothing_that_exists_already(place: Place) -> None:
    scenario = SCENARIOS["one tool"]
    prefix = next(one for one in await prefixes(scenario, place) if one.name == "intend_tool")
    stage = next_life(prefix, scenario.steps, scenario.tools(Log()))
    async with stage.open() as harness:
        await harness.resume()
    assert stage.log.told == [
        "run_resume again", "turn_start again", "tool_start save again", "tool_end save again", *RESULT,
        "complete_batch", "entry_added toolResult", "turn_end", *ANSWER, *END,
    ]  # fmt: skip


async def test_a_step_that_is_taken_up_again_shows_its_turn_again(place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIOS["text"], place) if one.name == "start_generation")
    stage = next_life(prefix, SCENARIOS["text"].steps)
    async with stage.open() as harness:
        await harness.resume()
    assert stage.log.told[:3] == ["run_resume again", "turn_start again", "intend_assistant"]


# --- what they hold ---------------------------------------------------------------------------------------------


def keep(harness: AgentHarness, *types: type[HarnessEvent]) -> list[HarnessEvent]:
    kept: list[HarnessEvent] = []
    for kind in types:
        harness.events.on(kind, kept.append)
    return kept


@pytest.mark.covers("RT-5.5-18", "RT-5.5-28", "RT-5.5-38", "RT-5.5-06")
async def test_turns_entries_and_usage_hold_what_was_committed(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["every tool terminates"], place, log)
    async with stage.open() as harness:
        turns = keep(harness, TurnStartEvent, TurnEndEvent)
        entries = keep(harness, EntryAddedEvent)
        usage = keep(harness, UsageEvent)
        await harness.prompt("go")
        stored = {entry.id: entry for entry in await stage.session.find_entries()}
        stats = await stage.session.get_stats()
    start, end = turns
    assert isinstance(start, TurnStartEvent)
    assert isinstance(end, TurnEndEvent)
    assert start.turn_id == end.turn_id
    assert [result["toolCallId"] for result in end.tool_results] == ["call_0_0"]
    added = [event.entry for event in entries if isinstance(event, EntryAddedEvent)]
    assert [stored[entry.id] for entry in added] == added
    assert len(added) == len(stored)
    rows = [event for event in usage if isinstance(event, UsageEvent)]
    assert [lane_of(event) for event in usage] == [None, None]
    assert rows[0].row.seq < rows[1].row.seq
    assert rows[1].totals == stats.usage
    assert rows[1].row.usage == spent(3)


@pytest.mark.covers("RT-5.5-25", "RT-5.5-26", "RT-5.6-17", "RT-5.5-27")
async def test_tool_events_hold_effective_arguments_updates_and_the_patched_result(place: Place, log: Log) -> None:
    late: list[ToolContext] = []

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        context.update(ToolResult(content=[text_block("half")]))
        late.append(context)
        return ToolResult(content=[text_block("whole")], details={"a": 1})

    scenario = SCENARIOS["replaced arguments"]
    stage = Stage(place, scenario.steps, [Tool(name="save", log=log, work=work)], log=log)
    async with stage.open() as harness:
        scenario.hooks(harness.hooks, log)
        harness.hooks.on("after_tool", lambda event: AfterToolPatch(content=[text_block("patched")], is_error=True))
        seen = keep(harness, ToolStartEvent, ToolUpdateEvent, ToolEndEvent)
        await harness.prompt("go")
        late[0].update(ToolResult(content=[text_block("late")]))
    start, update, end = seen
    assert isinstance(start, ToolStartEvent)
    assert isinstance(update, ToolUpdateEvent)
    assert isinstance(end, ToolEndEvent)
    assert start.args == {"path": "b"}
    assert update.partial_result.content == [text_block("half")]
    assert (end.result.content, end.result.details, end.is_error) == ([text_block("patched")], {"a": 1}, True)
    assert (await stage.messages())[2] == "toolResult: patched"


@pytest.mark.covers("RT-5.5-41", "RT-3.7-12")
async def test_the_entry_and_not_message_end_says_what_an_overflow_became(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["overflow by length"], place, log)
    async with stage.open() as harness:
        kept = keep(harness, MessageEndEvent, EntryAddedEvent)
        outcome = await harness.prompt("go")
    end, added = kept[-2:]
    assert isinstance(end, MessageEndEvent)
    assert isinstance(added, EntryAddedEvent)
    assert isinstance(added.entry.payload, MessagePayload)
    assert isinstance(outcome, RunFailed)
    assert end.message["stopReason"] == "length"
    assert added.entry.payload.message["stopReason"] == "error"
    assert "length" in str(added.entry.payload.message["errorMessage"])
    assert outcome.error.code == "context_overflow"


@pytest.mark.covers("RT-5.5-14", "RT-3.8-03", "RT-5.1-30")
@pytest.mark.parametrize(
    "name, outcome, final",
    [
        ("text", "completed", True),
        ("every tool terminates", "completed", False),
        ("provider error", "failed", True),
    ],
)
async def test_run_end_holds_the_outcome_and_both_final_fields_or_none(
    name: str, outcome: str, final: bool, place: Place, log: Log
) -> None:
    async with stage_of(SCENARIOS[name], place, log).open() as harness:
        kept = keep(harness, RunEndEvent)
        ended = await harness.prompt("go")
    (event,) = kept
    assert isinstance(event, RunEndEvent)
    assert (event.outcome, event.run_id, event.leaf_id) == (outcome, ended.run_id, ended.leaf_id)
    assert (event.final_entry_id is not UNSET) is (event.final_message is not UNSET) is final
    assert (getattr(ended, "final_entry_id", None) is not None) is final
    assert (event.error is not UNSET) is (outcome == "failed")
    assert log.told[-1] == f"run_end {outcome}"


@pytest.mark.covers("RT-5.5-02", "RT-5.5-16", "RT-5.5-01")
async def test_a_listener_can_neither_change_nor_break_a_run(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open() as harness:
        errors = keep(harness, HandlerErrorEvent)

        def spoil(event: MessageEndEvent) -> None:
            event.message["content"] = "spoiled"
            raise RuntimeError("listener")

        remove = harness.events.on(MessageEndEvent, spoil)
        await harness.prompt("go")
        remove()
    assert await stage.messages() == SCENARIOS["text"].messages
    assert [(error.kind, error.event) for error in errors if isinstance(error, HandlerErrorEvent)] == [
        ("event", "message_end")
    ] * 2


@pytest.mark.covers("RT-5.6-04", "RT-5.5-16", "RT-5.6-15")
async def test_a_hook_that_throws_or_answers_amiss_is_skipped_and_reported(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)

    def throws(event: AfterResponse) -> None:
        raise RuntimeError("hook")

    def aborts(event: AfterResponse) -> AfterResponseResult:
        return AfterResponseResult(message={**event.message, "stopReason": "aborted"})

    def shouts(event: AfterResponse) -> AfterResponseResult:
        return AfterResponseResult(message={**event.message, "content": [text_block("HELLO")]})

    async with stage.open() as harness:
        errors = keep(harness, HandlerErrorEvent)
        for handler in (throws, aborts, shouts):
            harness.hooks.on("after_response", handler)
        await harness.prompt("go")
    assert await stage.messages() == ["user: go", "assistant: HELLO"]
    assert [(error.kind, error.hook, error.lane) for error in errors if isinstance(error, HandlerErrorEvent)] == [
        ("hook", "after_response", "main")
    ] * 2


@pytest.mark.covers("RT-5.5-32", "RT-5.1-23", "RT-5.1-24", "RT-5.1-22")
async def test_every_setter_announces_its_change_after_it_holds(place: Place, log: Log) -> None:
    stage = Stage(place, [], [Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:
        kept = keep(harness, ModelUpdateEvent, ThinkingLevelUpdateEvent, ActiveToolsUpdateEvent, SettingUpdateEvent)
        model = ModelIdentity(provider="other", model_id="m")
        await harness.set_model(model)
        await harness.set_thinking_level("low")
        await harness.set_active_tools([])
        assert await harness.get_model() is None
        assert await harness.get_thinking_level() == "low"
        assert await harness.get_active_tools() == []
        await harness.set_tools([])
        await harness.set_stream_options({"maxTokens": 3})
        await harness.set_steering_mode("all")
        await harness.set_follow_up_mode("all")
        await harness.set_resources(await harness.get_resources())
        await harness.set_retry_policy(await harness.get_retry_policy())
        await harness.set_compaction_settings(await harness.get_compaction_settings())
    changes = [(getattr(event, "property", ""), lane_of(event)) for event in kept]
    assert changes == [
        ("model", "main"), ("thinkingLevel", "main"), ("activeTools", "main"), ("tools", None),
        ("streamOptions", None), ("steeringMode", None), ("followUpMode", None), ("resources", None),
        ("retryPolicy", None), ("compactionSettings", None),
    ]  # fmt: skip
    first = kept[0]
    assert isinstance(first, ModelUpdateEvent)
    assert (first.value, first.previous.provider) == (model, "scripted")


@pytest.mark.covers("RT-5.5-03")
async def test_a_commit_that_fails_announces_nothing(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    stage.wrap = lambda inner: FailingStorage(inner, fail_at=4)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
    assert log.told[-2:] == ["message_end assistant", "fault"]


async def test_recorded_usage_is_announced_with_the_totals(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        kept = keep(harness, UsageEvent)
        usage_id = await harness.record_usage({**zero_usage(), "output": 5}, details={"why": "invoice"})
    (event,) = kept
    assert isinstance(event, UsageEvent)
    assert (event.row.id, event.row.adjustment, event.totals["output"]) == (usage_id, True, 5)
    assert log.told == ["seed_main", "record_usage", "usage"]
