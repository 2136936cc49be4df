"""Lanes side by side, and which snapshot of the settings a step takes (§4.3, §5.1)."""

import pytest

from restartpoint import RunCompleted
from restartpoint.contract import (
    UNSET,
    BeforeRequest,
    BeforeRequestResult,
    BeforeRun,
    BeforeRunResult,
    BeforeTool,
    BeforeToolDecision,
    JsonObject,
    Model,
    ToolContext,
    ToolResult,
    TransformContext,
    TransformContextResult,
    text_block,
    user_message,
)
from restartpoint.providers import SCRIPTED_MODEL, ScriptedCall, asks, says
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of

OTHER = Model(provider="scripted", model_id="other", api="scripted", context_window=1000, max_tokens=100)


@pytest.mark.covers("RT-4.1-01", "RT-4.3-01", "RT-4.3-08")
async def test_two_lanes_run_side_by_side_over_one_session(place: Place, log: Log) -> None:
    main_tool, side_tool = Tool(name="save", log=log, hold=True), Tool(name="load", log=log)

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        main_tool.release()
        return ToolResult(content=[text_block("loaded")])

    side_tool.work = work
    stage = Stage(place, [], [main_tool, side_tool], log=log)
    async with stage.open() as harness:
        side = await harness.create_lane("side", None)
        script = {"a": asks(ScriptedCall(name="save")), "b": asks(ScriptedCall(name="load"))}
        stage.models._script = type(stage.models._script)(
            prompts={text: [asked, says("done")] for text, asked in script.items()}
        )
        async with calling(harness.prompt("a")) as first:
            await main_tool.started.wait()
            second = await side.prompt("b")
            outcome = await first.result()
        assert isinstance(outcome, RunCompleted)
        assert isinstance(second, RunCompleted)
        assert await harness.get_leaf_id() == outcome.leaf_id != second.leaf_id == await side.get_leaf_id()
        mine = [entry.id for entry in await harness.session.find_entries_on_branch()]
        theirs = [entry.id for entry in await side.session.find_entries_on_branch()]
    assert len(mine) == len(theirs) == 4
    assert not set(mine) & set(theirs)


@pytest.mark.covers("RT-4.3-07", "RACE-06a", "RACE-06b", "RT-5.1-26")
@pytest.mark.parametrize("when, used", [("commit_assistant_ready", "other"), ("commit_assistant_intent", "scripted-1")])
async def test_a_step_uses_the_model_that_was_set_when_it_started(when: str, used: str, place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    stage.models.register(OTHER)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        await park_at(harness, when)
        await harness.set_model(OTHER)
        await harness.set_stream_options({"maxTokens": 9})
        await harness.run_to_completion()
    (request,) = stage.models.requests
    assert request.model.model_id == used
    assert request.request.max_tokens == (9 if used == "other" else SCRIPTED_MODEL.max_tokens)


@pytest.mark.covers("RT-3.2-06")
async def test_a_run_keeps_the_settings_that_it_was_accepted_with(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        await park_at(harness, "commit_tool_intent")
        await harness.set_steering_mode("all")
        await harness.run_to_completion()
        assert await harness.get_steering_mode() == "all"
    assert "unexplained" not in stage.names


@pytest.mark.covers("RT-4.3-08")
async def test_a_tool_may_change_settings_and_read_its_lane(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], log=log)

    async def work(arguments: JsonObject, context: ToolContext) -> ToolResult:
        await harness.set_thinking_level("low")
        await harness.set_steering_mode("all")
        await stage.session.set_name("named by a tool")
        return ToolResult(content=[text_block(str(await harness.get_leaf_id() is not None))])

    stage.tools = [Tool(name="save", log=log, work=work)]
    async with stage.open() as harness:
        assert isinstance(await harness.prompt("go"), RunCompleted)
    assert [request.request.thinking_level for request in stage.models.requests] == ["off", "low"]
    assert (await stage.messages())[2] == "toolResult: True"


@pytest.mark.covers("TEST-R4-01")
async def test_a_tool_gets_the_context_of_the_application(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log)
    stage = Stage(place, [asks(ScriptedCall(name="save", id="c1")), says("done")], [tool], log=log)
    async with stage.open(tool_context=lambda: {"user": "ann"}) as harness:
        await harness.prompt("go")
    (context,) = tool.contexts
    assert (context.application, context.tool_call_id) == ({"user": "ann"}, "c1")


# --- hooks ------------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-5.6-01", "RT-5.6-03", "RT-5.6-12", "RT-3.2-28")
async def test_request_patches_chain_and_leave_the_captured_options_alone(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    seen: list[BeforeRequest] = []

    def first(event: BeforeRequest) -> BeforeRequestResult:
        seen.append(event)
        return BeforeRequestResult(stream_options={"maxTokens": 11, "headers": {"a": "1"}})

    def second(event: BeforeRequest) -> BeforeRequestResult:
        seen.append(event)
        return BeforeRequestResult(stream_options={"headers": {"b": "2"}, "temperature": UNSET})

    async with stage.open(stream_options={"temperature": 1}) as harness:
        harness.hooks.on("before_request", first)
        harness.hooks.on("before_request", second)
        await harness.prompt("go")
    sent = [request.request for request in stage.models.requests]
    assert [request.stream_options for request in sent] == [{"maxTokens": 11, "headers": {"a": "1", "b": "2"}}] * 2
    assert [request.max_tokens for request in sent] == [11, 11]
    base: JsonObject = {"temperature": 1}
    assert [event.stream_options for event in seen] == [
        base, {**base, "maxTokens": 11, "headers": {"a": "1"}}, base, {**base, "maxTokens": 11, "headers": {"a": "1"}},
    ]  # fmt: skip
    assert {(event.lane, event.step, event.attempt) for event in seen} == {("main", "assistant", 1)}


@pytest.mark.covers("RT-5.6-11")
async def test_a_transformed_context_is_sent_and_never_stored(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    stage.unprojected = "a hook of the test replaces the context"

    def add(event: TransformContext) -> TransformContextResult:
        return TransformContextResult(messages=[*event.messages, user_message("psst", 1)])

    async with stage.open() as harness:
        harness.hooks.on("transform_context", add)
        harness.hooks.on("transform_context", add)
        await harness.prompt("go")
    (request,) = stage.models.requests
    assert [message["content"] for message in request.request.messages][1:] == [[text_block("psst")]] * 2
    assert await stage.messages() == SCENARIOS["text"].messages


@pytest.mark.covers("RT-5.6-16", "TEST-R4-02")
async def test_argument_replacements_chain_and_the_first_block_is_final(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    seen: list[JsonObject] = []

    def replaces(event: BeforeTool) -> BeforeToolDecision:
        seen.append(event.args)
        return BeforeToolDecision(args={"path": f"{event.args['path']}!"})

    async with stage.open() as harness:
        harness.hooks.on("before_tool", replaces)
        harness.hooks.on("before_tool", replaces)
        await harness.prompt("go")
    assert seen == [{"path": "a"}, {"path": "a!"}]
    assert stage.tools[0].seen == [{"path": "a!!"}]  # type: ignore[attr-defined]


@pytest.mark.covers("RT-5.6-08", "RT-5.6-02")
async def test_before_run_handlers_see_what_the_ones_before_them_added(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    seen: list[tuple[int, str]] = []

    def handler(event: BeforeRun) -> BeforeRunResult:
        seen.append((len(event.prompt), event.system_prompt))
        return BeforeRunResult(messages=[user_message("more", 1)], system_prompt=f"{event.system_prompt}+")

    async with stage.open(system_prompt="base") as harness:
        for name in ("a", "b"):
            harness.hooks.on("before_run", handler, id=name)
        await harness.prompt("go")
    assert seen == [(1, "base"), (2, "base+")]
    assert stage.models.requests[0].request.system_prompt == "base++"
    assert await stage.messages() == ["user: go", "user: more", "user: more", "assistant: hello"]


@pytest.mark.covers("RT-5.6-10", "RT-3.12-T13")
async def test_a_follow_up_is_placed_with_the_state_that_answers_it(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["a follow-up at the end"], place, log)
    async with stage.open() as harness:
        await harness.prompt("go")
    at = stage.names.index("append_run_end_follow_up")
    assert stage.writes[at] == ["entry", "set lane.leaf/main", "set op.state/O"]
    assert stage.names.count("finish_run") == 1
