"""Manual drive: which steps park and what they say, that nothing happens meanwhile, the same end (§4.2)."""

from collections.abc import Callable
from pathlib import Path

import pytest

from restartpoint import ActionInfo, AgentHarness, HarnessClosed
from restartpoint.contract import LANE_STATE as LANE_STATE_REGISTER
from restartpoint.contract import UNSET, LaneState, encode_json, zero_usage
from restartpoint.errors import Closed
from restartpoint.providers import ScriptedCall, asks, says
from restartpoint.session import MAIN_LANE
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, details_of, park_at, release_all
from tests.harness.runtime.places import BACKENDS, MemoryPlace, Place, dump
from tests.harness.runtime.scenarios import SCENARIOS, Scenario, saved_by
from tests.harness.runtime.stage import Stage, stage_of

MakeStage = Callable[[Scenario], Stage]


DETAILS: dict[str, set[str]] = {
    "before_run": {"runId"},
    "before_resume": {"operationKind"},
    "before_run_end": {"triggerEntryId"},
    "transform_context": {"stepId", "attempt"},
    "before_request": {"step", "stepId", "attempt"},
    "before_payload": {"step", "stepId", "attempt"},
    "after_response": {"step", "stepId", "attempt", "responseEntryId"},
    "before_tool": {"turnId", "toolCallId", "toolName"},
    "after_tool": {"turnId", "toolCallId", "toolName"},
    "assistant_request": {"stepId", "attempt"},
    "tool_execute": {"turnId", "toolCallId", "toolName", "replayed"},
    "commit_run_end_follow_up": {"triggerEntryId"},
    "commit_assistant_ready": {"triggerEntryId"},
    "commit_assistant_intent": {"stepId", "attempt"},
    "commit_assistant_settlement": {"stepId", "attempt", "responseEntryId"},
    "commit_assistant_recovery": {"stepId", "attempt", "outcome"},
    "commit_tool_intent": {"turnId", "toolCallId", "toolName", "replay"},
    "commit_tool_result": {"turnId", "toolCallId", "toolName", "outcome", "isLast"},
    "commit_run_finish": {"outcome"},
}
"""The fields that a step of each kind always has; ``runCompletion`` joins a completed finish."""


def check_details(info: ActionInfo) -> None:
    """Exactly the fields of the catalogue, and nothing but ids, names, counts and words (§4.2)."""
    details = details_of(info)
    expected = DETAILS[info.kind]
    if info.kind == "commit_run_finish" and details["outcome"] == "completed":
        expected = expected | {"runCompletion"}
    assert details.keys() == expected, info.kind
    assert all(isinstance(value, str | int) for value in details.values()), info.kind
    assert encode_json(details)


@pytest.mark.covers("RT-4.2-06", "TIER-C-02", "RT-4.2-05", "RT-4.2-14")
async def test_each_step_parks_once_with_its_details_and_nothing_happens_meanwhile(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options, drive="manual") as harness, calling(harness.prompt("go")) as run:

        async def still() -> tuple[list[str], bytes]:
            return [*log.told], await dump(stage.session._storage)

        seen: list[ActionInfo] = []
        while (parked := await harness.peek_action()) is not None:
            check_details(parked)
            before = await still()
            assert await harness.peek_action() == parked
            assert await still() == before
            assert await harness.execute_action() == parked
            seen.append(parked)
        outcome = await run.result()
    assert [info.kind for info in seen] == scenario.actions
    assert type(outcome).__name__ == scenario.outcome
    assert sorted(log.lines) == sorted(["seed_main", *scenario.lines])
    if not scenario.overlapping:
        assert log.lines == ["seed_main", *scenario.lines]


@pytest.mark.covers("TIER-X-02", "TEST-R1-01", "RT-5.1-21", "RT-4.2-02")
@pytest.mark.parametrize("kind", ["jsonl", "sqlite"])
async def test_both_drives_leave_the_same_bytes(scenario: Scenario, kind: str, tmp_path: Path) -> None:
    contents = []
    for drive in ("automatic", "manual"):
        folder = tmp_path / drive
        folder.mkdir()
        stage = stage_of(scenario, BACKENDS[kind](folder), Log())
        async with stage.open(**scenario.options, drive=drive) as harness, calling(harness.prompt("go")) as run:
            await harness.run_to_completion()
            await run.result()
        contents.append(stage.place.content())
    assert contents[0] == contents[1]


@pytest.mark.covers("RACE-13a", "TEST-R2-05", "RT-4.7-02", "RT-4.2-04")
@pytest.mark.parametrize(
    "name, kind",
    [
        *((name, "memory") for name in ("text", "two tools side by side", "blocked", "provider error")),
        *(("one tool", kind) for kind in BACKENDS),
    ],
)
async def test_close_at_any_parked_step_leaves_the_committed_prefix_and_the_run_can_be_resumed(
    name: str, kind: str, tmp_path: Path
) -> None:
    scenario, place = SCENARIOS[name], BACKENDS[kind](tmp_path)
    for position in range(len(scenario.actions)):
        stage = stage_of(scenario, place.another(), Log())
        async with stage.open(**scenario.options, drive="manual") as harness, calling(harness.prompt("go")) as run:
            for _ in range(position):
                assert await harness.execute_action() is not None
            parked = await harness.peek_action()
            assert parked is not None
            assert parked.kind == scenario.actions[position]
            before, told = await dump(stage.session._storage), [*stage.log.lines]
            await harness.close()
            with pytest.raises(HarnessClosed):
                await run.result()
        assert stage.log.lines == told
        fresh = stage.after_crash(stage.place, scenario.steps, scenario.tools(Log()), log=Log())
        storage = await fresh.storage()
        assert await dump(storage) == before
        await storage.close()
        async with fresh.open(**scenario.options) as harness:
            outcome = await harness.resume()
        unknown = told[-1].startswith(("intend_assistant", "request"))
        assert type(outcome).__name__ == ("RunFailed" if unknown else scenario.outcome)


def one_tool(place: Place, log: Log) -> Stage:
    return stage_of(SCENARIOS["one tool"], place, log)


@pytest.mark.covers("AMB-63", "RT-5.1-19", "RT-5.1-20")
async def test_peek_waits_for_the_next_step_and_releases_nothing(place: Place, log: Log) -> None:
    async with one_tool(place, log).open(drive="manual") as harness:
        assert await harness.peek_action() is None
        assert await harness.execute_action() is None
        async with calling(harness.prompt("go")):
            first = await harness.peek_action()
            assert first is not None
            assert first.kind == "commit_assistant_ready"
            assert await harness.peek_action() == first
            assert await harness.execute_action() == first
            second = await harness.execute_action()
            assert second is not None
            assert second.kind == "commit_assistant_intent"
            await harness.run_to_completion()
        assert await harness.peek_action() is None


@pytest.mark.covers("AMB-63")
async def test_automatic_drive_has_nothing_to_peek_at(place: Place, log: Log) -> None:
    stage = Stage(
        place, [asks(ScriptedCall(name="save")), says("done")], [tool := Tool(name="save", log=log, hold=True)], log=log
    )
    async with stage.open() as harness, calling(harness.prompt("go")):
        await tool.started.wait()
        assert await harness.peek_action() is None
        assert await harness.execute_action() is None
        tool.release()


@pytest.mark.covers("RT-4.2-12", "BP-01", "RT-4.1-02")
async def test_a_before_run_hook_parks_before_anything_is_accepted(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["before_run adds"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        parked = await harness.peek_action()
        assert parked is not None
        assert parked.kind == "before_run"
        assert log.lines == ["seed_main"]
        state = await stage.session.get_register(LANE_STATE_REGISTER, MAIN_LANE)
        assert state is not None
        assert state.value == LaneState(current_operation_id=None, pending_next_run=[])
        await harness.run_to_completion()
        assert (await run.result()).run_id == details_of(parked)["runId"]


@pytest.mark.covers("RT-4.2-12")
async def test_without_a_before_run_hook_acceptance_commits_at_once(place: Place, log: Log) -> None:
    async with one_tool(place, log).open(drive="manual") as harness, calling(harness.prompt("go")):
        parked = await harness.peek_action()
        assert parked is not None
        assert parked.kind == "commit_assistant_ready"
        assert log.lines == ["seed_main", "accept_run"]
        await harness.run_to_completion()


@pytest.mark.covers("RT-3.6-09")
async def test_close_during_before_run_leaves_the_lane_idle(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["before_run adds"], place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "before_run")
        await harness.close()
        with pytest.raises(Closed):
            await run.result()
    assert log.lines == ["seed_main"]
    again = stage.after_crash(place, [], [], log=Log())
    async with again.open() as harness:
        assert harness.suspended == ()
        assert await harness.get_leaf_id() is None


@pytest.mark.covers("RT-4.2-07")
async def test_waiting_for_a_tool_that_started_is_no_breakpoint(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log, hold=True)
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], [tool], log=log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "tool_execute")
        await harness.execute_action()
        await tool.started.wait()
        async with calling(harness.peek_action()) as peeking:
            assert not peeking.ended
            tool.release()
            parked = await peeking.result()
        assert parked is not None
        assert parked.kind == "commit_tool_result"
        await harness.run_to_completion()
        await run.result()


@pytest.mark.covers("RT-4.2-11")
async def test_public_calls_go_through_while_a_step_is_parked(place: Place, log: Log) -> None:
    stage = one_tool(place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")):
        parked = await park_at(harness, "commit_assistant_intent")
        await harness.set_thinking_level("high")
        await harness.set_stream_options({"maxTokens": 5})
        await stage.session.set_name("parked")
        await harness.record_usage(zero_usage())
        await harness.create_lane("side", None)
        assert await harness.peek_action() == parked
        await harness.run_to_completion()
    assert [name for name in stage.names if name in ("configure_lane", "set_fact", "record_usage", "create_lane")] == [
        "configure_lane", "set_fact", "record_usage", "create_lane",
    ]  # fmt: skip


@pytest.mark.covers("BP-02", "BP-26", "TEST-R3-04")
async def test_the_steps_of_a_recovery(place: Place, log: Log) -> None:
    scenario = SCENARIOS["one tool"]
    stage = stage_of(scenario, place, log)
    async with stage.open(drive="manual") as harness, calling(harness.prompt("go")) as run:
        await park_at(harness, "assistant_request")
        await harness.close()
        with pytest.raises(HarnessClosed):
            await run.result()
    again = stage.after_crash(place, scenario.steps, saved_by()(log), log=Log())
    async with again.open(drive="manual") as harness:
        harness.hooks.on("before_resume", lambda event: None, id="x")
        async with calling(harness.resume()):
            seen = await release_all(harness, check_details)
    assert [info.kind for info in seen] == ["before_resume", "commit_assistant_recovery", "commit_run_finish"]
    assert details_of(seen[0]) == {"operationKind": "run"}
    assert details_of(seen[1])["outcome"] == "synthetic_error"


@pytest.mark.covers("BP-04", "BP-05", "BP-06", "BP-07")
async def test_every_request_hook_parks_in_its_place(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)

    def prepare(harness: AgentHarness) -> None:
        hooks = harness.hooks
        hooks.on("transform_context", lambda event: log.note("hook transform_context"))
        hooks.on("before_request", lambda event: log.note("hook before_request"))
        hooks.on("before_payload", lambda event: log.note("hook before_payload"))
        hooks.on("after_response", lambda event: log.note("hook after_response"))

    async with stage.open(drive="manual") as harness:
        prepare(harness)
        async with calling(harness.prompt("go")):
            seen = await release_all(harness, check_details)
    assert [info.kind for info in seen] == [
        "commit_assistant_ready", "before_request", "commit_assistant_intent", "transform_context",
        "assistant_request", "before_payload", "after_response", "commit_assistant_settlement", "commit_run_finish",
    ]  # fmt: skip
    assert log.lines == [
        "seed_main", "accept_run", "start_generation", "hook before_request", "intend_assistant",
        "hook transform_context", "request 0", "hook before_payload", "hook after_response", "settle_stop",
        "finish_run",
    ]  # fmt: skip
    assert details_of(seen[-1]) == {"outcome": "completed", "runCompletion": "assistant"}


@pytest.mark.covers("BP-08", "BP-09", "BP-15", "BP-27")
async def test_every_step_of_a_call_parks_in_its_place(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    async with stage.open(drive="manual") as harness:
        harness.hooks.on("before_tool", lambda event: None)
        harness.hooks.on("after_tool", lambda event: None)
        async with calling(harness.prompt("go")):
            seen = await release_all(harness, check_details)
    around = [info for info in seen if "toolName" in details_of(info)]
    assert [info.kind for info in around] == [
        "before_tool", "commit_tool_intent", "tool_execute", "after_tool", "commit_tool_result",
    ]  # fmt: skip
    call = {"turnId": details_of(around[0])["turnId"], "toolCallId": "call_0_0", "toolName": "save"}
    assert [details_of(info) for info in around] == [
        call,
        {**call, "replay": "never"},
        {**call, "replayed": False},
        call,
        {**call, "outcome": "executed", "isLast": True},
    ]


@pytest.mark.covers("BP-28")
@pytest.mark.parametrize(
    "name, words",
    [
        ("two tools side by side", [("executed", False), ("executed", True)]),
        ("genuine length with calls", [("truncated", False), ("truncated", True)]),
        ("blocked", [("immediate", True)]),
    ],
)
async def test_a_parked_result_says_its_kind(name: str, words: list[tuple[str, bool]], place: Place, log: Log) -> None:
    async with stage_of(SCENARIOS[name], place, log).open(drive="manual") as harness, calling(harness.prompt("go")):
        seen = await release_all(harness)
    results = [details_of(info) for info in seen if info.kind == "commit_tool_result"]
    assert [(result["outcome"], result["isLast"]) for result in results] == words


@pytest.mark.covers("AMB-64")
async def test_a_hook_without_handlers_has_no_step(place: Place, log: Log) -> None:
    async with one_tool(place, log).open(drive="manual") as harness:
        for remove in [
            harness.hooks.on("before_tool", lambda event: None),
            harness.hooks.on("after_tool", lambda event: None),
        ]:
            remove()
        async with calling(harness.prompt("go")):
            seen = await release_all(harness)
    assert [info.kind for info in seen] == SCENARIOS["one tool"].actions
    assert all(info.details is not UNSET for info in seen)
