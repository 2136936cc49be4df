"""Rules of a run that no scenario states by itself (§3.12, §3.13, §4.3, §5.1, §5.2)."""

import pytest

from restartpoint import HarnessFault, RunCompleted
from restartpoint.contract import NAMESPACES, OP_META, UNSET
from restartpoint.errors import HarnessClosed, InvariantBroken, LaneBusy, NotBuiltYet, Rejected
from restartpoint.runtime.procedures import run_operation
from restartpoint.runtime.settings import Settings, SettingsLine
from restartpoint.runtime.work import Work
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import HANDLE, SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import FailingStorage

ACCEPT = ["entry", "set lane.leaf/main", "set op.meta/O", "set op.state/O", "set lane.state/main"]
STATE = ["set op.state/O"]
SETTLE = ["entry", "set lane.leaf/main", "usage", "set op.state/O"]
END = ["delete op.meta/O", "delete op.state/O", "set lane.lastResult/main", "set lane.state/main"]


@pytest.mark.covers("AMB-03", "AMB-05")
async def test_the_ordered_writes_of_a_whole_run_with_a_tool(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    async with stage.open() as harness:
        await harness.prompt("go")
    assert stage.writes == [
        ["set lane.config/main"], ACCEPT, STATE, STATE, SETTLE, ["set op.tool_args/O:0", "set op.state/O"],
        ["entry", "set lane.leaf/main", "delete op.tool_args/O:0", "set op.state/O"], STATE, STATE, SETTLE, END,
    ]  # fmt: skip


@pytest.mark.covers("RT-3.12-T14", "TEST-R2-01")
async def test_a_finished_run_leaves_its_final_message_and_the_lane_registers(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open() as harness:
        outcome = await harness.prompt("go")
        left = [
            f"{register.namespace.name}/{register.key}"
            for namespace in NAMESPACES.values()
            for register in await stage.session.list_registers(namespace)
        ]
    assert isinstance(outcome, RunCompleted)
    assert outcome.final_entry_id == outcome.leaf_id
    assert outcome.final_message is not None
    assert outcome.final_message["stopReason"] == "stop"
    assert sorted(left) == ["lane.config/main", "lane.lastResult/main", "lane.leaf/main", "lane.state/main"]


@pytest.mark.covers("RT-3.12-T15")
async def test_a_run_that_its_tools_ended_makes_no_further_request(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["every tool terminates"], place, log)
    async with stage.open() as harness:
        outcome = await harness.prompt("go")
        last = await harness.get_last_result()
    assert isinstance(outcome, RunCompleted)
    assert (outcome.final_entry_id, outcome.final_message) == (None, None)
    assert last is not None
    assert (last.run_completion, last.final_assistant_entry_id) == ("terminated_tools", UNSET)
    assert log.lines.count("request 0") == len(stage.models.requests) == 1


@pytest.mark.covers("RT-5.6-23", "RT-5.6-05")
async def test_before_run_end_may_run_again_at_the_boundary_that_a_resume_reaches(place: Place) -> None:
    scenario = SCENARIOS["a follow-up at the end"]
    prefix = next(one for one in await prefixes(scenario, place) if one.name == "settle_stop")
    stage = next_life(prefix, scenario.steps)
    async with stage.open() as harness:
        scenario.hooks(harness.hooks, stage.log)
        assert isinstance(await harness.resume(), RunCompleted)
    assert stage.log.lines[:2] == ["hook before_run_end", "append_run_end_follow_up"]
    assert await stage.messages() == scenario.messages


@pytest.mark.covers("RT-4.3-05")
async def test_every_change_of_the_settings_has_a_revision_of_its_own() -> None:
    line = SettingsLine(Settings())
    before = await line.change(steering_mode="all")
    async with line.held() as held:
        assert (before.revision, held.revision) == (0, 1)
        assert (before.steering_mode, held.steering_mode) == ("one-at-a-time", "all")
        assert line.current is held


@pytest.mark.covers("RT-5.2-06")
async def test_replacing_the_tools_leaves_the_active_names(place: Place, log: Log) -> None:
    async with Stage(place, [], [Tool(name="save", log=log)], log=log).open() as harness:
        await harness.set_tools([Tool(name="load", log=log)])
        assert [tool.name for tool in await harness.get_tools()] == ["load"]
        assert await harness.get_active_tools() == ["save"]


async def test_a_deferred_run_is_reported_with_its_handle(place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIOS["deferred"], place) if one.name == "settle_deferred")
    async with next_life(prefix, []).open() as harness:
        (suspended,) = harness.suspended
        with pytest.raises(NotBuiltYet):
            await harness.resume()
    assert (suspended.reason, suspended.deferred, suspended.kind) == ("deferred", HANDLE, "run")
    assert suspended.started_at == prefix.stage.clock.now


@pytest.mark.covers("RT-5.1-01")
async def test_rejections_raise_before_anything_is_written_outcomes_return_and_faults_raise(
    place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS["provider error"], place, log)
    async with stage.open() as harness:
        with pytest.raises(Rejected):
            await harness.resume()
        assert stage.names == ["seed_main"]
        assert type(await harness.prompt("go")).__name__ == "RunFailed"
    stage.wrap = lambda inner: FailingStorage(inner, fail_at=0)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault) as fault:
            await harness.prompt("go")
    assert not issubclass(HarnessFault, Rejected)
    assert not issubclass(HarnessClosed, Rejected)
    assert issubclass(LaneBusy, Rejected)
    assert fault.value.__cause__ is not None


@pytest.mark.covers("RT-5.5-04", "RT-5.5-22")
async def test_a_message_begins_and_ends_before_it_is_recorded_except_a_prompt(place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS["one tool"], place, log).open() as harness:
        await harness.prompt("go")
    told = log.told
    for role, commit in (("assistant", "settle_tool_calls"), ("toolResult", "complete_batch")):
        assert told.index(f"message_start {role}") < told.index(f"message_end {role}") < told.index(commit)
        assert told.index(commit) < told.index(f"entry_added {role}")
    assert told.index("accept_run") < told.index("message_start user") < told.index("entry_added user")


@pytest.mark.covers("RT-3.2-14", "RT-3.12-08")
async def test_tool_results_owe_an_answer_unless_every_one_ends_the_run(place: Place) -> None:
    for name, owes in (("one tool", True), ("every tool terminates", False)):
        stage = stage_of(SCENARIOS[name], place.another(), Log())
        async with stage.open() as harness:
            await harness.prompt("go")
        assert ("complete_batch" in stage.names) is owes
        assert (len(stage.models.requests) == 2) is owes


@pytest.mark.covers("RT-4.1-09")
@pytest.mark.parametrize("name", ["intend_assistant", "intend_tool"])
async def test_an_effect_that_no_task_owns_is_a_defect_outside_of_recovery(name: str, place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIOS["one tool"], place) if one.name == name)
    stage = next_life(prefix, [], [Tool(name="save", log=Log())])
    async with stage.open() as harness:
        (meta,) = await stage.session.list_registers(OP_META)
        owner = harness._owner
        work = Work(harness._services, meta.value, owner.barrier, owner.context, restored=True)
        with pytest.raises(InvariantBroken):
            await run_operation(work, "fresh")
    assert stage.log.lines == []
