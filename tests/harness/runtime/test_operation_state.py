"""The forms of a run's durable state, read back as JSON from every commit of every scenario (§3.2)."""

from pathlib import Path
from typing import Any, get_args

import pytest
from msgspec.structs import replace

from restartpoint import HarnessClosed
from restartpoint.contract import (
    OP_STATE,
    AssistantPhase,
    BeforeRequest,
    BeforeRequestResult,
    JsonObject,
    NormalizedRetryPolicy,
    OperationState,
    RunPhase,
    StreamOptions,
)
from restartpoint.providers import ScriptedCall, asks, says
from tests.harness.runtime.commits import as_json, phases, written
from tests.harness.runtime.crash import change_state, open_state
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling, park_at
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.scenarios import Scenario
from tests.harness.runtime.stage import Stage, stage_of

CHECKPOINT = {"kind", "continuation", "triggerEntryId"}
CONTINUATIONS = {"need_assistant": {"kind", "overflowRecoveryUsed"}, "may_finish": {"kind", "includeFinalAssistant"}}


@pytest.fixture
def backend() -> str:
    """The forms are the codec's; that each backend keeps them is what its own tests say."""
    return "memory"


async def played(scenario: Scenario, tmp_path: Path, log: Log) -> Stage:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
    return stage


def tags(union: Any, field: str = "kind") -> set[str]:
    return {str(one.__struct_config__.tag) for one in get_args(union) if one.__struct_config__.tag_field == field}


@pytest.mark.covers("RT-3.2-01", "RT-3.2-08")
async def test_there_are_three_kinds_of_state_six_phases_and_nothing_finished(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
        left = await stage.session.list_registers(OP_STATE)
    assert tags(OperationState) == {"run", "compaction", "navigation"}
    assert tags(RunPhase) == {"checkpoint", "assistant", "tools", "compaction", "deferred", "failure_drain"}
    assert len(left) == (1 if scenario.outcome == "RunDeferred" else 0)


@pytest.mark.covers("RT-3.2-05")
async def test_every_state_of_a_run_has_the_same_fields(scenario: Scenario, tmp_path: Path, log: Log) -> None:
    states = written(await played(scenario, tmp_path, log), OP_STATE)
    assert states[0]["latestAssistantEntryId"] is None
    for state in states:
        assert state.keys() == {"kind", "control", "settings", "phase", "inbox", "latestAssistantEntryId"}
        assert (state["kind"], state["control"]) == ("run", {"status": "running"})
        assert state["settings"] == states[0]["settings"]
        assert state["settings"].keys() == {"compaction", "steeringMode", "followUpMode", "toolExecution"}
        assert state["inbox"] == {"steer": [], "followUp": [], "writes": []}


@pytest.mark.covers("RT-3.2-07", "RT-3.2-10")
async def test_every_checkpoint_has_a_trigger_and_one_of_two_continuations(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = await played(scenario, tmp_path, log)
    found = phases(stage, "checkpoint")
    assert found[0].keys() == CHECKPOINT | {"skipInboxOnce"}
    for checkpoint in found:
        assert checkpoint.keys() - {"skipInboxOnce"} == CHECKPOINT
        assert checkpoint.get("skipInboxOnce", True) is True
        continuation = checkpoint["continuation"]
        assert continuation.keys() == CONTINUATIONS[continuation["kind"]]
        assert continuation.get("overflowRecoveryUsed", False) is False


@pytest.mark.covers("RT-3.2-21", "RT-3.2-23", "RT-3.2-24")
async def test_a_generation_holds_its_context_and_its_attempt(scenario: Scenario, tmp_path: Path, log: Log) -> None:
    found = [phase["generation"] for phase in phases(await played(scenario, tmp_path, log), "assistant")]
    assert [generation["status"] for generation in found[:2]] == ["ready", "effect_pending"]
    for generation in found:
        assert generation["context"].keys() == {
            "stepId", "triggerEntryId", "configuration", "streamOptions", "retryPolicy", "overflowRecoveryUsed",
        }  # fmt: skip
        if generation["status"] == "ready":
            assert generation.keys() == {"status", "context", "nextAttempt"}
        else:
            assert generation.keys() == {
                "status", "context", "attempt", "responseEntryId", "usageId", "intendedOutputLimit", "contextWindow",
            }  # fmt: skip


@pytest.mark.covers("AMB-12", "RT-3.2-33")
async def test_the_index_of_a_call_is_its_place_in_the_whole_content(place: Place, log: Log) -> None:
    call = ScriptedCall(name="save", arguments={"path": "a"})
    stage = Stage(place, [asks(call, call, text="first a text"), says("done")], [Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:
        await harness.prompt("go")
        batch = phases(stage, "tools")[0]["batch"]
        entry = (await stage.session.get_entries([batch["assistantEntryId"]]))[batch["assistantEntryId"]]
    blocks = as_json(entry.payload)["message"]["content"]
    assert [one["sourceIndex"] for one in batch["calls"]] == [1, 2]
    assert [blocks[one["sourceIndex"]]["name"] for one in batch["calls"]] == ["save", "save"]


# --- before_request and the intent ------------------------------------------------------------------------------


BASE: StreamOptions = {"maxTokens": 100, "temperature": 1}


class Counting:
    """A before_request handler that asks for one token more each time; what it was given is in ``seen``."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.seen: list[JsonObject] = []

    def __call__(self, event: BeforeRequest) -> BeforeRequestResult:
        self.log.note("hook before_request")
        self.seen.append(event.stream_options)
        return BeforeRequestResult(stream_options={"maxTokens": 10 + len(self.seen)})


@pytest.mark.covers("RT-3.2-27", "RT-3.7-T16", "RT-5.6-12", "RT-3.7-02")
async def test_the_hook_then_the_intent_with_the_composed_limits_then_the_request(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    counting = Counting(log)
    async with stage.open(stream_options=BASE, drive="manual") as harness:
        harness.hooks.on("before_request", counting)
        async with calling(harness.prompt("go")):
            await park_at(harness, "before_request")
            before = stage.ids.next()
            await park_at(harness, "assistant_request")
            pending = phases(stage, "assistant")[-1]["generation"]
            reserved = [pending["responseEntryId"], pending["usageId"]]
            assert await stage.session.get_entries(reserved) == {}
            assert "usage" not in [word for writes in stage.writes for word in writes]
            await harness.run_to_completion()
    assert log.lines == [
        "seed_main", "accept_run", "start_generation", "hook before_request", "intend_assistant", "request 0",
        "settle_stop", "finish_run",
    ]  # fmt: skip
    assert counting.seen == [BASE]
    assert before < min(reserved)
    assert stage.writes[stage.names.index("intend_assistant")] == ["set op.state/O"]
    assert (pending["intendedOutputLimit"], pending["context"]["streamOptions"]) == (11, BASE)
    assert stage.models.requests[0].request.stream_options == {**BASE, "maxTokens": 11}


@pytest.mark.covers("RT-3.2-28", "RT-3.2-27")
async def test_every_attempt_starts_again_from_the_captured_options(place: Place, log: Log) -> None:
    """The second attempt is that of a recovery; its hook gets what the first one's got."""
    stage = Stage(place, [says("hello")], log=log)
    first, second = Counting(log), Counting(log)
    async with stage.open(stream_options=BASE, drive="manual") as harness:
        harness.hooks.on("before_request", first)
        async with calling(harness.prompt("go")):
            await park_at(harness, "assistant_request")
            state = await open_state(harness)
            await harness.close()
    assert isinstance(state.phase, AssistantPhase)
    pending = state.phase.generation
    context = replace(pending.context, retry_policy=NormalizedRetryPolicy(max_attempts=2, base_delay_ms=1))
    again = stage.after_crash(place, [says("hello")], [], log=log)
    await change_state(again, replace(state, phase=AssistantPhase(generation=replace(pending, context=context))))
    async with again.open(stream_options={"maxTokens": 7}) as harness:
        harness.hooks.on("before_request", second)
        await harness.resume()
    assert first.seen == second.seen == [BASE]
    assert [phase["generation"].get("attempt") for phase in phases(again, "assistant")] == [None, 2]
    assert again.models.requests[0].request.stream_options == {**BASE, "maxTokens": 11}


@pytest.mark.covers("RT-3.2-29", "RT-5.6-05")
async def test_a_crash_before_the_intent_repeats_the_hook_from_the_base_and_nothing_else(
    place: Place, log: Log
) -> None:
    stage = Stage(place, [says("hello")], log=log)
    first, second = Counting(log), Counting(log)
    async with stage.open(stream_options=BASE, drive="manual") as harness:
        harness.hooks.on("before_request", first)
        async with calling(harness.prompt("go")) as run:
            await park_at(harness, "commit_assistant_intent")
            await harness.close()
            with pytest.raises(HarnessClosed):
                await run.result()
    again = stage.after_crash(place, [says("hello")], [], log=log)
    async with again.open(stream_options={"maxTokens": 7}) as harness:
        harness.hooks.on("before_request", second)
        await harness.resume()
    assert first.seen == second.seen == [BASE]
    assert log.lines == [
        "seed_main", "accept_run", "start_generation", "hook before_request", "hook before_request",
        "intend_assistant", "request 0", "settle_stop", "finish_run",
    ]  # fmt: skip
