"""Who gets a lane and what is refused before anything is written (§3.6, §5.1)."""

import pytest

from restartpoint import AgentHarness, MissingIdentitySuspension, NotBuiltYet, RunCompleted
from restartpoint.contract import (
    LANE_STATE,
    OP_META,
    PENDING_ENTRY,
    AgentMessage,
    InsertEntry,
    LaneState,
    MessagePayload,
    ModelIdentity,
    Operation,
    PendingMessage,
    PromptTemplate,
    RegisterSet,
    Resources,
    RunIntent,
    Skill,
    Transaction,
    encode_json,
    image_block,
    text_of,
    user_message,
)
from restartpoint.errors import (
    InvalidMessage,
    LaneBusy,
    MissingIdentities,
    NoActiveOperation,
    NothingToResume,
    UnknownSkill,
    UnknownTemplate,
)
from restartpoint.providers import ScriptedCall, asks, says
from restartpoint.seams import timestamp_of
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, details_of, park_at, release_all
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of


async def operation_of(stage: Stage) -> Operation:
    (register,) = await stage.session.list_registers(OP_META)
    return register.value


# --- what acceptance writes -------------------------------------------------------------------------------------


@pytest.mark.covers("RT-3.1-01", "RT-3.1-02", "RT-3.1-06", "RT-3.1-09")
async def test_the_operation_names_its_lane_source_and_prompts_and_no_more(place: Place, log: Log) -> None:
    stage = Stage(place, [says("one"), says("two")], log=log)
    async with stage.open(drive="manual") as harness:
        async with calling(harness.prompt("first")):
            first = await park_at(harness, "commit_assistant_ready")
            operation = await operation_of(stage)
            assert first is not None
            assert operation.source_leaf_id is None
            await harness.run_to_completion()
        leaf = await harness.get_leaf_id()
        async with calling(harness.prompt("second")) as run:
            await park_at(harness, "commit_assistant_ready")
            operation = await operation_of(stage)
            state = await stage.session.get_register(LANE_STATE, "main")
            await harness.run_to_completion()
        assert operation.source_leaf_id == leaf
        assert operation.started_at == stage.clock.now
        assert state is not None
        assert (await run.result()).run_id == operation.operation_id == state.value.current_operation_id
    assert isinstance(operation.intent, RunIntent)
    (prompt,) = operation.intent.prompt_entry_ids
    expected = {
        "operationId": operation.operation_id,
        "lane": "main",
        "sourceLeafId": leaf,
        "startedAt": stage.clock.now,
        "intent": {"kind": "run", "promptEntryIds": [prompt]},
    }
    assert encode_json(operation) == encode_json(expected)


@pytest.mark.covers("RT-5.6-08", "RT-3.1-02")
async def test_before_run_adds_messages_a_system_prompt_and_data_to_resume_with(place: Place, log: Log) -> None:
    scenario = SCENARIOS["before_run adds"]
    stage = stage_of(scenario, place, log)
    async with stage.open(drive="manual", system_prompt="be kind") as harness, calling(harness.prompt("go")):
        await park_at(harness, "commit_assistant_ready")
        operation = await operation_of(stage)
        await harness.run_to_completion()
    assert isinstance(operation.intent, RunIntent)
    assert operation.intent.system_prompt_override == "be brief"
    assert operation.intent.resume_data == {"memory": {"n": 1}}
    assert len(operation.intent.prompt_entry_ids) == 1
    assert stage.models.requests[0].request.system_prompt == "be brief"


async def queue_next_run(stage: Stage, ids: list[str]) -> None:
    """What next_run() will do: queued input that waits for the lane's next run."""
    storage = await stage.storage()
    writes = [RegisterSet(PENDING_ENTRY, key, PendingMessage(payload=user_message(key, 1))) for key in ids]
    state = LaneState(current_operation_id=None, pending_next_run=ids)
    await storage.commit(Transaction((*writes, RegisterSet(LANE_STATE, "main", state))))
    await storage.close()


@pytest.mark.covers("RT-3.1-07", "RT-3.6-02", "INV-15")
async def test_queued_input_comes_first_keeps_its_ids_and_is_no_prompt(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["before_run adds"], place, log)
    async with stage.open():
        pass
    await queue_next_run(stage, ["queued-1", "queued-2"])
    async with stage.open() as harness:
        assert isinstance(await harness.prompt("go"), RunCompleted)
        assert await stage.session.list_registers(PENDING_ENTRY) == []
    assert stage.writes[0] == [
        *["entry"] * 4,
        "delete pending.entry/O", "delete pending.entry/O",
        "set lane.leaf/main", "set op.meta/O", "set op.state/O", "set lane.state/main",
    ]  # fmt: skip
    placed = [write.entry for write in stage.court.commits[0].writes if isinstance(write, InsertEntry)]
    assert [entry.id for entry in placed[:2]] == ["queued-1", "queued-2"]
    meta = next(
        write.value
        for write in stage.court.commits[0].writes
        if isinstance(write, RegisterSet) and write.namespace is OP_META
    )
    assert meta.intent.prompt_entry_ids == [placed[2].id]
    texts = [text_of(entry.payload.message) for entry in placed if isinstance(entry.payload, MessagePayload)]
    assert texts == ["queued-1", "queued-2", "go", "remember"]


@pytest.mark.covers("RT-3.6-14")
async def test_an_empty_prompt_is_accepted_exactly_when_something_is_queued(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open() as harness:
        with pytest.raises(InvalidMessage):
            await harness.prompt("")
        with pytest.raises(InvalidMessage):
            await harness.prompt([])
        assert log.lines == ["seed_main"]
    await queue_next_run(stage, ["queued"])
    async with stage.open() as harness:
        assert isinstance(await harness.prompt([]), RunCompleted)
    assert await stage.messages() == ["user: queued", "assistant: hello"]


# --- refusals ---------------------------------------------------------------------------------------------------


BAD: dict[str, AgentMessage] = {
    "an assistant's message": {"role": "assistant", "content": []},
    "a tool's result": {"role": "toolResult", "content": []},
    "no role": {"content": []},
    "no JSON": {"role": "user", "content": [], "weight": float("nan")},
}


@pytest.mark.covers("RT-3.6-10", "RT-5.1-04")
@pytest.mark.parametrize("name", BAD)
async def test_a_message_that_no_caller_may_write_is_refused(name: str, place: Place, log: Log) -> None:
    async with Stage(place, [], log=log).open() as harness:
        with pytest.raises(InvalidMessage) as refused:
            await harness.prompt(BAD[name])
        assert refused.value.lane == "main"
        assert refused.value.reason
    assert log.lines == ["seed_main"]


@pytest.mark.covers("RT-3.6-13", "RT-4.4-08", "RT-5.1-31")
async def test_a_prompt_needs_its_model_and_every_active_tool(place: Place, log: Log) -> None:
    stage = Stage(place, [], [Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:
        await harness.set_active_tools(["save", "load"])
        await harness.set_model(ModelIdentity(provider="nobody", model_id="none"))
        assert await harness.get_model() is None
        with pytest.raises(MissingIdentities) as refused:
            await harness.prompt("go")
        assert (refused.value.tools, refused.value.models) == (("load",), ("nobody/none",))
        with pytest.raises(MissingIdentities):
            await harness.prompt("and again, since the reservation was released")
    assert stage.names == ["seed_main", "configure_lane", "configure_lane"]


@pytest.mark.covers("RT-3.6-03", "RT-3.6-06", "RACE-01a", "RT-3.6-16")
async def test_a_reserved_lane_is_busy_with_the_run_that_reserved_it(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["before_run adds"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        parked = await park_at(harness, "before_run")
        for call in (harness.prompt("another"), harness.resume()):
            with pytest.raises(LaneBusy) as busy:
                await call
            assert (busy.value.operation_id, busy.value.operation_kind) == (details_of(parked)["runId"], "run")
        await harness.set_thinking_level("high")
        await harness.run_to_completion()
        assert (await run.result()).run_id == details_of(parked)["runId"]
    assert stage.names[:3] == ["seed_main", "configure_lane", "accept_run"]


@pytest.mark.covers("RACE-01a", "RACE-01b")
@pytest.mark.parametrize("order", [("a", "b"), ("b", "a")])
async def test_of_two_prompts_the_one_that_was_called_first_runs(
    order: tuple[str, str], place: Place, log: Log
) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open() as harness:
        calls = {text: harness.prompt(text) for text in order}
        async with calling(calls["a"]) as a, calling(calls["b"]) as b:
            pass
    won, lost = (a, b) if order[0] == "a" else (b, a)
    assert isinstance(await won.result(), RunCompleted)
    assert isinstance(lost.error, LaneBusy)
    assert await stage.messages() == [f"user: {order[0]}", "assistant: hello"]


@pytest.mark.covers("RT-3.6-16", "INV-17", "INV-14", "RT-4.1-14")
async def test_a_running_lane_is_busy_until_its_run_was_observed_to_the_end(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("one"), says("two")], [tool], log=log)
    async with stage.open() as harness:
        async with calling(harness.prompt("go")) as run:
            await tool.started.wait()
            with pytest.raises(LaneBusy) as busy:
                await harness.prompt("another")
            assert busy.value.lane == "main"
            tool.release()
            outcome = await run.result()
        assert harness._owner.active is None
        assert outcome.run_id == busy.value.operation_id
        assert isinstance(await harness.prompt("another"), RunCompleted)
    assert stage.names.count("accept_run") == 2


async def test_an_idle_lane_has_nothing_to_resume_or_abort(place: Place, log: Log) -> None:
    async with Stage(place, [], log=log).open() as harness:
        with pytest.raises(NothingToResume) as resume:
            await harness.resume()
        with pytest.raises(NoActiveOperation) as abort:
            await harness.abort()
        assert (resume.value.lane, abort.value.lane) == ("main", "main")
        await harness.wait_for_idle()


@pytest.mark.parametrize("name", ["abort", "steer", "follow_up", "next_run", "cancel_queued", "compact", "navigate"])
async def test_what_is_not_built_says_so_and_changes_nothing(name: str, place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open() as harness, calling(harness.prompt("go")) as run:
        await tool.started.wait()
        before = [*stage.names]
        with pytest.raises(NotBuiltYet) as refused:
            await call(harness, name)
        assert refused.value.section
        assert stage.names == before
        tool.release()
        assert isinstance(await run.result(), RunCompleted)


async def call(harness: AgentHarness, name: str) -> object:
    match name:
        case "abort":
            return await harness.abort()
        case "steer":
            return await harness.steer("x")
        case "follow_up":
            return await harness.follow_up("x")
        case "next_run":
            return await harness.next_run("x")
        case "cancel_queued":
            return await harness.cancel_queued("x")
        case "compact":
            return await harness.compact()
        case _:
            return await harness.navigate_tree(None)


# --- missing identities after acceptance ------------------------------------------------------------------------


@pytest.mark.covers("TIER-A-09", "RT-5.1-27", "RT-4.1-17", "TEST-R3-03")
async def test_a_batch_whose_tool_went_missing_suspends_before_its_first_call(place: Place, log: Log) -> None:
    """Both calls are planned; nothing of the batch may start while one of the captured tools is not there."""
    save, load = Tool(name="save", log=log), Tool(name="load", log=log)
    steps = [asks(ScriptedCall(name="save"), ScriptedCall(name="load")), says("done")]
    stage = Stage(place, steps, [save, load], log=log)
    async with stage.open(drive="manual") as harness:
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "commit_assistant_settlement")
            await harness.set_tools([save])
            await harness.run_to_completion()
            outcome = await run.result()
        assert isinstance(outcome, MissingIdentitySuspension)
        assert (outcome.tools, outcome.models) == (("load",), ())
        assert outcome.leaf_id == await harness.get_leaf_id()
        assert log.told[-1] == "run_suspend missing_identities"
        assert "tool save" not in log.lines
        with pytest.raises(MissingIdentities):
            await harness.resume()
        await harness.set_tools([save, load])
        async with calling(harness.resume()) as again:
            await harness.run_to_completion()
            ended = await again.result()
        assert isinstance(ended, RunCompleted)
        assert ended.run_id == outcome.run_id
    assert "run_resume" in log.told
    assert sorted(line for line in log.lines if line.startswith("tool")) == ["tool load", "tool save"]


@pytest.mark.covers("TIER-A-09", "RT-5.1-22")
async def test_a_step_whose_model_went_missing_suspends_before_its_intent(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open(drive="manual") as harness:
        model = await harness.get_model()
        assert model is not None
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "commit_assistant_ready")
            stage.models.unregister(model.identity)
            await harness.run_to_completion()
            outcome = await run.result()
        assert isinstance(outcome, MissingIdentitySuspension)
        assert outcome.models == ("scripted/scripted-1",)
        with pytest.raises(MissingIdentities):
            await harness.resume()
        stage.models.register(model)
        async with calling(harness.resume()):
            await release_all(harness)
    assert log.lines == ["seed_main", "accept_run", "start_generation", "intend_assistant", "request 0", "settle_stop", "finish_run"]  # fmt: skip  # noqa: E501


@pytest.mark.covers("RT-4.4-11")
async def test_a_call_of_an_inactive_tool_is_answered_and_suspends_nothing(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(ScriptedCall(name="load")), says("done")], [Tool(name="load", log=log)], log=log)
    async with stage.open(active_tool_names=[]) as harness:
        assert isinstance(await harness.prompt("go"), RunCompleted)
    assert stage.models.requests[0].request.tools == ()
    assert (await stage.messages())[2] == "toolResult: There is no tool named 'load'."


# --- prompts of other shapes ------------------------------------------------------------------------------------


async def test_images_and_several_messages_are_placed_as_given(place: Place, log: Log) -> None:
    stage = Stage(place, [says("one"), says("two")], log=log)
    async with stage.open() as harness:
        await harness.prompt("look", [image_block("aGk=", "image/png")])
        await harness.prompt([user_message("a", 1), user_message("b", 2)])
        entries = await stage.session.find_entries()
    assert await stage.messages() == ["user: look ", "assistant: one", "user: a", "user: b", "assistant: two"]
    assert all(timestamp_of(entry.id) == stage.clock.now for entry in entries)


async def test_skills_and_templates_are_expanded_before_they_are_stored(place: Place, log: Log) -> None:
    resources = Resources(
        skills=(Skill(name="tidy", description="", content="Tidy up."),),
        prompt_templates=(PromptTemplate(name="greet", description="", content="Hi $1 of $@, $2"),),
    )
    stage = Stage(place, [says("one"), says("two")], log=log)
    async with stage.open(resources=resources) as harness:
        await harness.skill("tidy", "Gently.")
        await harness.prompt_from_template("greet", ["Ann"])
        with pytest.raises(UnknownSkill) as skill:
            await harness.skill("none")
        with pytest.raises(UnknownTemplate) as template:
            await harness.prompt_from_template("none")
        assert (skill.value.name, template.value.name) == ("none", "none")
    assert await stage.messages() == ["user: Tidy up.\n\nGently.", "assistant: one", "user: Hi Ann of Ann, ", "assistant: two"]  # fmt: skip  # noqa: E501
