"""A crash at any commit, and the recovery: what continues, what is settled as unknown, what never runs twice (§4.5)."""

from dataclasses import replace as vary
from pathlib import Path

import pytest
from msgspec.structs import replace

from restartpoint import MissingIdentitySuspension, RunCompleted, RunFailed
from restartpoint.contract import (
    OP_STATE,
    OP_TOOL_ARGS,
    UNSET,
    AssistantPhase,
    CallEffectPending,
    CallPlanned,
    GenerationEffectPending,
    NormalizedRetryPolicy,
    OperationOutcome,
    RegisterSet,
    Replay,
    RetryPolicy,
    RunState,
    ToolsPhase,
    Transaction,
    UsageScan,
    zero_usage,
)
from restartpoint.errors import LaneBusy, MissingIdentities, NotBuiltYet, NothingToResume
from restartpoint.providers import ScriptedCall, asks, fails, says
from tests.harness.runtime.crash import Prefix, change_state, next_life, open_state, prefixes, prefixes_of_resume
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling
from tests.harness.runtime.places import BACKENDS, Place, dump
from tests.harness.runtime.scenarios import SCENARIOS, Scenario
from tests.harness.runtime.stage import Stage

INTERRUPTED = (
    "toolResult: This tool call was interrupted before its result was recorded. It may have taken effect, wholly or "
    "partly, and was not repeated. Check the state of things before calling the tool again."
)
ANSWER = ["start_generation", "intend_assistant", "request 1", "settle_stop", "finish_run"]
COMMITS = [line for line in ANSWER if line != "request 1"]


def both(log: Log, replay: Replay = "never") -> list[Tool]:
    return [Tool(name="save", log=log, replay=replay), Tool(name="load", log=log, replay=replay)]


TWO_IN_A_ROW = Scenario(
    name="two tools",
    steps=[asks(ScriptedCall(name="save"), ScriptedCall(name="load")), says("done")],
    tools=both,
    outcome="RunCompleted",
    lines=[
        "accept_run", "start_generation", "intend_assistant", "request 0", "settle_tool_calls", "intend_tool",
        "intend_tool", "tool save", "tool load", "settle_tool", "complete_batch", *ANSWER,
    ],
    actions=[],
    messages=["user: go", "assistant: save load", "toolResult: save done", "toolResult: load done", "assistant: done"],
)  # fmt: skip


async def resumed(prefix: Prefix, scenario: Scenario) -> tuple[Stage, OperationOutcome]:
    log = Log()
    stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
    async with stage.open(**scenario.options) as harness:
        (suspended,) = harness.suspended
        assert (suspended.reason, suspended.missing) == ("crash", UNSET)
        outcome = await harness.resume()
        assert outcome.run_id == suspended.operation_id
    return stage, outcome


@pytest.mark.covers("RT-4.5-07", "RT-4.5-08", "RT-4.5-10", "TIER-A-01")
async def test_one_tool_from_every_committed_prefix(place: Place) -> None:
    scenario = SCENARIOS["one tool"]
    expected: dict[str, tuple[list[str], list[str], str]] = {}
    lines, messages = scenario.lines, scenario.messages
    for position, name in enumerate(lines):
        if not name.startswith(("request", "tool")):
            key = f"{name} {lines[:position].count(name)}"
            expected[key] = (lines[position + 1 :], messages, "RunCompleted")
    failed = ["recover_exhausted_assistant", "finish_failed"]
    expected["intend_assistant 0"] = (failed, ["user: go", "assistant: "], "RunFailed")
    expected["intend_assistant 1"] = (failed, [*messages[:3], "assistant: "], "RunFailed")
    interrupted = [*messages[:2], INTERRUPTED, "assistant: done"]
    expected["intend_tool 0"] = (["complete_batch", *ANSWER], interrupted, "RunCompleted")
    seen: list[str] = []
    for prefix in (await prefixes(scenario, place))[1:-1]:
        key = f"{prefix.name} {seen.count(prefix.name)}"
        seen.append(prefix.name)
        stage, outcome = await resumed(prefix, scenario)
        assert (stage.log.lines, await stage.messages(), type(outcome).__name__) == expected[key], key
        assert prefix.lines.count("tool save") + stage.log.count("tool save") <= 1
    assert len(seen) == len(expected) - 1


@pytest.mark.covers("RT-4.5-09", "RT-4.5-T36", "RT-4.5-13", "TEST-R4-03")
async def test_two_unsafe_tools_from_every_committed_prefix(place: Place) -> None:
    scenario, messages = TWO_IN_A_ROW, TWO_IN_A_ROW.messages
    found: list[tuple[str, list[str], list[str]]] = []
    for prefix in (await prefixes(scenario, place))[4:-1]:
        stage, outcome = await resumed(prefix, scenario)
        assert isinstance(outcome, RunCompleted | RunFailed)
        ran = [line for line in stage.log.lines if line.startswith("tool")]
        assert not set(ran) & {line for line in prefix.lines if line.startswith("tool")}
        found.append((prefix.name, [*stage.names, *sorted(ran)], await stage.messages()))
    assert found[:5] == [
        (
            "settle_tool_calls",
            ["intend_tool", "intend_tool", "settle_tool", "complete_batch", *COMMITS, "tool load", "tool save"],
            messages,
        ),
        (
            "intend_tool",
            ["intend_tool", "interrupt_tool", "complete_batch", *COMMITS, "tool load"],
            [*messages[:2], INTERRUPTED, *messages[3:]],
        ),
        (
            "intend_tool",
            ["interrupt_tool", "complete_batch", *COMMITS],
            [*messages[:2], INTERRUPTED, INTERRUPTED, messages[4]],
        ),
        ("settle_tool", ["complete_batch", *COMMITS], [*messages[:3], INTERRUPTED, messages[4]]),
        ("complete_batch", COMMITS, messages),
    ]


@pytest.mark.covers("RT-4.5-T37", "RT-5.6-21", "TEST-R4-05")
async def test_safe_tools_run_again_with_their_recorded_arguments_and_without_before_tool(place: Place) -> None:
    def tools(log: Log) -> list[Tool]:
        return both(log, replay="safe")

    scenario = vary(TWO_IN_A_ROW, tools=tools)
    third = [prefix for prefix in await prefixes(scenario, place) if prefix.name == "intend_tool"][-1]
    log = Log()
    made = tools(log)
    stage = next_life(third, scenario.steps, made, log=log)
    async with stage.open() as harness:
        harness.hooks.on("before_tool", lambda event: log.note("hook before_tool"))
        harness.hooks.on("after_tool", lambda event: log.note("hook after_tool"))
        await harness.resume()
    assert sorted(log.lines[:2]) == ["tool load", "tool save"]
    assert log.lines[2:] == ["hook after_tool", "settle_tool", "hook after_tool", "complete_batch", *ANSWER]
    assert await stage.messages() == scenario.messages
    assert [tool.seen for tool in made] == [[{}], [{}]]


async def pending_call(place: Place, replay: Replay = "safe") -> tuple[Prefix, Scenario]:
    """A crash while the only call, with arguments that a hook replaced, was under way."""
    scenario = vary(SCENARIOS["replaced arguments"], tools=lambda log: [Tool(name="save", log=log, replay=replay)])
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "intend_tool"]
    return prefix, scenario


@pytest.mark.covers("RT-4.5-T37", "RT-3.2-34", "RT-3.8-T30")
async def test_a_replay_takes_the_recorded_arguments_and_not_those_of_the_message(place: Place) -> None:
    prefix, scenario = await pending_call(place)
    log = Log()
    tool = Tool(name="save", log=log, replay="safe")
    stage = next_life(prefix, scenario.steps, [tool], log=log)
    async with stage.open() as harness:
        await harness.resume()
    assert tool.seen == [{"path": "b"}]
    assert log.lines == ["tool save", "complete_batch", *ANSWER]


@pytest.mark.covers("RT-4.5-T36")
async def test_a_tool_that_is_no_longer_safe_is_not_run_again(place: Place) -> None:
    prefix, scenario = await pending_call(place)
    log = Log()
    stage = next_life(prefix, scenario.steps, [Tool(name="save", log=log, replay="never")], log=log)
    async with stage.open() as harness:
        await harness.resume()
    assert log.lines == ["complete_batch", *ANSWER]
    assert (await stage.messages())[2] == INTERRUPTED


@pytest.mark.covers("RT-4.5-T36")
async def test_a_tool_that_was_unsafe_at_its_intent_stays_unsafe(place: Place) -> None:
    prefix, scenario = await pending_call(place, "never")
    log = Log()
    stage = next_life(prefix, scenario.steps, [Tool(name="save", log=log, replay="safe")], log=log)
    async with stage.open() as harness:
        await harness.resume()
    assert log.count("tool save") == 0
    assert (await stage.messages())[2] == INTERRUPTED


@pytest.mark.covers("TIER-A-09", "AMB-42")
async def test_a_safe_replay_needs_its_tool_and_says_which(place: Place) -> None:
    prefix, scenario = await pending_call(place)
    stage = next_life(prefix, scenario.steps)
    async with stage.open() as harness:
        (suspended,) = harness.suspended
        assert suspended.missing is not UNSET
        assert suspended.missing.tools == ("save",)
        before = await dump(stage.session._storage)
        with pytest.raises(MissingIdentities) as refused:
            await harness.resume()
        assert (refused.value.lane, refused.value.tools, refused.value.models) == ("main", ("save",), ())
        assert await dump(stage.session._storage) == before
        tool = Tool(name="save", log=stage.log, replay="safe")
        await harness.set_tools([tool])
        assert isinstance(await harness.resume(), RunCompleted)
    assert tool.seen == [{"path": "b"}]


@pytest.mark.covers("AMB-42", "RT-4.5-T36")
async def test_an_interrupted_call_needs_no_registered_tool(place: Place) -> None:
    prefix, scenario = await pending_call(place, "never")
    stage = next_life(prefix, scenario.steps)
    async with stage.open() as harness:
        assert harness.suspended[0].missing is UNSET
        assert isinstance(await harness.resume(), RunCompleted)
    assert (await stage.messages())[2] == INTERRUPTED


async def test_orphans_are_settled_before_a_missing_tool_stops_the_calls_after_them(place: Place) -> None:
    """The first call was under way when the process died; the second needs a tool that is gone."""
    prefix = next(one for one in await prefixes(TWO_IN_A_ROW, place) if one.name == "intend_tool")
    stage = next_life(prefix, TWO_IN_A_ROW.steps)
    async with stage.open() as harness:
        assert harness.suspended[0].missing is UNSET
        outcome = await harness.resume()
        assert isinstance(outcome, MissingIdentitySuspension)
        assert outcome.tools == ("save", "load")
        assert outcome.leaf_id == await harness.get_leaf_id()
        assert stage.log.lines == ["interrupt_tool"]
        with pytest.raises(MissingIdentities):
            await harness.resume()
        await harness.set_tools(both(stage.log))
        assert isinstance(await harness.resume(), RunCompleted)
    assert await stage.messages() == [*TWO_IN_A_ROW.messages[:2], INTERRUPTED, *TWO_IN_A_ROW.messages[3:]]


async def test_a_safe_replay_needs_no_other_tool_than_its_own(place: Place) -> None:
    scenario = vary(TWO_IN_A_ROW, tools=lambda log: both(log, "safe"))
    prefix = [one for one in await prefixes(scenario, place) if one.name == "intend_tool"][1]
    stage = next_life(prefix, scenario.steps)
    stage.tools = [Tool(name="save", log=stage.log, replay="safe")]
    async with stage.open() as harness:
        outcome = await harness.resume()
        assert isinstance(outcome, MissingIdentitySuspension)
        assert outcome.tools == ("load",)
    assert stage.log.lines == ["tool save", "settle_tool"]


async def test_truncated_calls_need_no_tool(place: Place) -> None:
    scenario = SCENARIOS["genuine length with calls"]
    prefix = next(one for one in await prefixes(scenario, place) if one.name == "settle_tool_calls")
    stage = next_life(prefix, scenario.steps)
    async with stage.open() as harness:
        assert harness.suspended[0].missing is UNSET
        assert isinstance(await harness.resume(), RunCompleted)
    assert await stage.messages() == scenario.messages


@pytest.mark.covers("RT-4.5-13", "AMB-41")
async def test_an_earlier_planned_call_commits_before_a_later_interrupted_one(place: Place) -> None:
    """The first call was refused but its result was still waiting for its turn when the process died."""
    scenario = vary(TWO_IN_A_ROW, tools=lambda log: [Tool(name="load", log=log)])
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "intend_tool"]
    log = Log()
    stage = next_life(prefix, scenario.steps, [Tool(name="load", log=log)], log=log)
    async with stage.open() as harness:
        phase = (await open_state(harness)).phase
        assert isinstance(phase, ToolsPhase)
        assert [type(call) for call in phase.batch.calls] == [CallPlanned, CallEffectPending]
        await harness.resume()
    assert log.lines == ["refuse_tool", "complete_batch", *ANSWER]
    assert (await stage.messages())[2:4] == ["toolResult: There is no tool named 'save'.", INTERRUPTED]


# --- assistant requests -----------------------------------------------------------------------------------------


async def with_attempts(place: Place, attempts: int) -> Prefix:
    """A crash during the first request of a step that may be tried that often."""
    (prefix,) = [one for one in await prefixes(SCENARIOS["text"], place) if one.name == "intend_assistant"]
    stage = next_life(prefix, [])
    async with stage.open() as harness:
        state = await open_state(harness)
    assert isinstance(state.phase, AssistantPhase)
    pending = state.phase.generation
    assert isinstance(pending, GenerationEffectPending)
    policy = NormalizedRetryPolicy(max_attempts=attempts, base_delay_ms=1)
    again = replace(pending, context=replace(pending.context, retry_policy=policy))
    await change_state(stage, replace(state, phase=AssistantPhase(generation=again)))
    return prefix


@pytest.mark.covers("RT-4.5-T27", "TIER-A-03", "RT-3.2-26")
async def test_below_the_cap_a_later_attempt_follows_at_once(place: Place) -> None:
    stage = next_life(await with_attempts(place, 3), [says("hello")])
    async with stage.open() as harness:
        before = await open_state(harness)
        assert isinstance(before.phase, AssistantPhase)
        states = watch_states(stage)
        assert isinstance(await harness.resume(), RunCompleted)
    assert stage.log.lines == ["recover_assistant", "intend_assistant", "request 0", "settle_stop", "finish_run"]
    assert stage.writes[0] == ["set op.state/O"]
    ready, pending = (state.phase for state in states[:2])
    assert isinstance(ready, AssistantPhase)
    assert isinstance(pending, AssistantPhase)
    assert isinstance(pending.generation, GenerationEffectPending)
    assert ready.generation.context == pending.generation.context == before.phase.generation.context
    assert pending.generation.attempt == 2
    assert await stage.messages() == ["user: go", "assistant: hello"]


def watch_states(stage: Stage) -> list[RunState]:
    """Every later state of a run, as it is written."""
    states: list[RunState] = []
    stage.session.on_commit(
        lambda lane, tx, result: states.extend(
            write.value
            for write in tx.writes
            if getattr(write, "namespace", None) is OP_STATE and hasattr(write, "value")
        )
    )
    return states


@pytest.mark.covers("RT-4.5-T28", "RT-4.5-12", "RT-3.2-13", "ST-1.2-06")
async def test_at_the_cap_the_run_fails_under_the_reserved_ids(place: Place) -> None:
    stage = next_life(await with_attempts(place, 1), [says("never asked")])
    async with stage.open() as harness:
        before = await open_state(harness)
        assert isinstance(before.phase, AssistantPhase)
        pending = before.phase.generation
        assert isinstance(pending, GenerationEffectPending)
        await harness.set_retry_policy(RetryPolicy(enabled=False, max_retries=9))
        outcome = await harness.resume()
        rows = await stage.session.scan_usage(UsageScan())
    assert stage.log.lines == ["recover_exhausted_assistant", "finish_failed"]
    assert isinstance(outcome, RunFailed)
    assert outcome.error.code == "unknown_outcome"
    assert outcome.final_entry_id == pending.response_entry_id
    assert outcome.final_message is not None
    assert (outcome.final_message["stopReason"], outcome.final_message["content"]) == ("error", [])
    assert [(row.id, row.usage, row.entry_id) for row in rows] == [
        (pending.usage_id, zero_usage(), pending.response_entry_id)
    ]


@pytest.mark.covers("RT-4.5-T28", "RT-4.4-11")
async def test_the_synthetic_response_needs_no_registered_model(place: Place) -> None:
    stage = next_life(await with_attempts(place, 1), [])
    async with stage.open() as harness:
        model = await harness.get_model()
        assert model is not None
        stage.models.unregister(model.identity)
        assert isinstance(await harness.resume(), RunFailed)


@pytest.mark.covers("RT-4.5-T27", "TEST-R3-01")
async def test_crashes_use_the_attempts_up_to_the_cap(place: Place) -> None:
    prefix = await with_attempts(place, 3)
    for attempt in (2, 3):
        kept = await prefixes_of_resume(next_life(prefix, [says("lost")]))
        assert [one.name for one in kept[:2]] == ["recover_assistant", "intend_assistant"]
        prefix = kept[1]
        stage = next_life(prefix, [])
        async with stage.open() as harness:
            phase = (await open_state(harness)).phase
        assert isinstance(phase, AssistantPhase)
        assert isinstance(phase.generation, GenerationEffectPending)
        assert phase.generation.attempt == attempt
    stage = next_life(prefix, [says("never asked")])
    async with stage.open() as harness:
        outcome = await harness.resume()
    assert isinstance(outcome, RunFailed)
    assert stage.log.lines == ["recover_exhausted_assistant", "finish_failed"]


# --- recovery of recovery ---------------------------------------------------------------------------------------


@pytest.mark.covers("TIER-A-12", "RT-4.5-06", "RT-3.2-02", "ST-1.8-04")
@pytest.mark.parametrize(
    "mode, first",
    [
        *(("parallel", first) for first in (3, 6, 7, 8)),
        *(("sequential", first) for first in (2, 4, 5, 6, 7)),
    ],
)
async def test_a_recovery_that_crashed_and_recovered_equals_an_undisturbed_one(
    mode: str, first: int, backend: str, tmp_path: Path
) -> None:
    """Wherever the second crash leaves no new effect of unknown outcome behind."""
    scenario = vary(TWO_IN_A_ROW, options={"tool_execution": mode})
    prefix = (await prefixes(scenario, BACKENDS[backend](tmp_path)))[first]
    undisturbed, outcome = await resumed(prefix_again(prefix), scenario)
    wanted = (await undisturbed.messages(), type(outcome).__name__)
    log = Log()
    halves = await prefixes_of_resume(next_life(prefix, scenario.steps, scenario.tools(log), log=log))
    certain = [half for half in halves[:-1] if not half.name.startswith("intend_")]
    assert certain
    for half in certain:
        stage, ended = await resumed(half, scenario)
        assert (await stage.messages(), type(ended).__name__) == wanted, half.name


def prefix_again(prefix: Prefix) -> Prefix:
    return Prefix(name=prefix.name, place=prefix.place.copy(), lines=prefix.lines, stage=prefix.stage)


# --- activation itself ------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-4.5-01", "RT-4.1-18", "RT-4.4-07", "RT-5.2-01")
async def test_opening_reports_the_open_run_and_starts_nothing(place: Place) -> None:
    scenario = SCENARIOS["one tool"]
    for prefix in (await prefixes(scenario, place))[1:-1]:
        log = Log()
        stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
        async with stage.open(drive="manual") as harness:
            (suspended,) = harness.suspended
            assert (suspended.lane, suspended.kind, suspended.reason) == ("main", "run", "crash")
            assert suspended.prompt is not UNSET
            assert [message["role"] for message in suspended.prompt] == ["user"]
            assert await harness.peek_action() is None
            with pytest.raises(LaneBusy) as busy:
                await harness.prompt("another")
            assert (busy.value.operation_id, busy.value.operation_kind) == (suspended.operation_id, "run")
        assert log.lines == []


@pytest.mark.covers("RT-4.1-12", "RT-5.1-09")
async def test_a_run_is_resumed_once_at_a_time_and_not_after_its_end(place: Place) -> None:
    scenario = SCENARIOS["one tool"]
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "settle_tool_calls"]
    log = Log()
    tool = Tool(name="save", log=log, hold=True)
    stage = next_life(prefix, scenario.steps, [tool], log=log)
    async with stage.open() as harness, calling(harness.resume()) as first:
        await tool.started.wait()
        with pytest.raises(LaneBusy):
            await harness.resume()
        tool.release()
        await first.result()
        with pytest.raises(NothingToResume):
            await harness.resume()
    assert log.count("tool save") == 1


@pytest.mark.covers("RT-3.13-12", "RT-4.5-11", "RT-5.1-03", "RT-3.3-11")
async def test_the_result_of_a_run_can_be_read_by_a_process_that_never_ran_it(place: Place) -> None:
    prefix = (await prefixes(SCENARIOS["text"], place))[-1]
    assert prefix.name == "finish_run"
    stage = next_life(prefix, [])
    async with stage.open() as harness:
        assert harness.suspended == ()
        last = await harness.get_last_result()
        assert last is not None
        assert (last.kind, last.outcome, last.run_completion) == ("run", "completed", "assistant")
        assert last.leaf_id == last.final_assistant_entry_id == await harness.get_leaf_id()
        with pytest.raises(NothingToResume):
            await harness.resume()
    assert stage.log.lines == []


@pytest.mark.covers("RT-4.5-04", "RT-4.5-05")
async def test_after_the_prelude_the_ordinary_steps_follow(place: Place) -> None:
    scenario = SCENARIOS["one tool"]
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "complete_batch"]
    kinds: list[str] = []
    log = Log()
    stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
    async with stage.open(drive="manual") as harness, calling(harness.resume()):
        while (parked := await harness.execute_action()) is not None:
            kinds.append(parked.kind)
    assert kinds == scenario.actions[-5:]
    assert not any("recovery" in kind for kind in scenario.actions)


@pytest.mark.covers("RT-4.5-03", "RT-5.6-07", "RT-5.6-09", "RT-5.6-20")
async def test_before_resume_runs_first_and_gets_only_its_own_data(place: Place) -> None:
    scenario = SCENARIOS["before_run adds"]
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "intend_assistant"]
    stage = next_life(prefix, scenario.steps)
    heard: list[object] = []
    async with stage.open() as harness:
        scenario.hooks(harness.hooks, stage.log)
        for name in ("memory", "other"):
            harness.hooks.on("before_resume", lambda event: heard.append(event.resume_data), id=name)
        harness.hooks.on("before_resume", lambda event: stage.log.note("hook before_resume"), id="last")
        await harness.resume()
    assert heard == [{"n": 1}, UNSET]
    assert stage.log.lines == ["hook before_resume", "recover_exhausted_assistant", "finish_failed"]


@pytest.mark.covers("RT-3.13-08", "TEST-R4-04", "TIER-A-10")
async def test_the_end_deletes_argument_registers_that_a_defect_left_behind(place: Place) -> None:
    scenario = SCENARIOS["text"]
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "settle_stop"]
    stage = next_life(prefix, [])
    storage = await stage.storage()
    (register,) = await storage.list_registers(OP_STATE)
    keys = [f"{register.key}:stray:{index}" for index in (1, 0)]
    await storage.commit(Transaction(tuple(RegisterSet(OP_TOOL_ARGS, key, {}) for key in keys)))
    await storage.close()
    async with stage.open() as harness:
        await harness.resume()
        assert await stage.session.list_registers(OP_TOOL_ARGS) == []
    assert stage.writes == [
        [
            "delete op.meta/O", "delete op.state/O", "delete op.tool_args/O:0", "delete op.tool_args/O:1",
            "set lane.lastResult/main", "set lane.state/main",
        ]
    ]  # fmt: skip


async def test_a_passing_error_below_the_cap_is_recorded_before_the_unbuilt_wait_is_refused(place: Place) -> None:
    stage = next_life(await with_attempts(place, 3), [fails("429 too many requests")])
    async with stage.open() as harness:
        for _ in range(2):
            with pytest.raises(NotBuiltYet):
                await harness.resume()
        rows = await stage.session.scan_usage(UsageScan())
    assert stage.log.lines == ["recover_assistant", "intend_assistant", "request 0", "settle_retryable"]
    assert len(rows) == 1
