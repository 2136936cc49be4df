"""What each durable state of a run holds, ids and followers included (§3.2, §3.6-§3.8, §3.13)."""

from typing import Any

import pytest

from restartpoint import RunCompleted, RunFailed
from restartpoint.contract import (
    LANE_LAST_RESULT,
    OP_STATE,
    OP_TOOL_ARGS,
    InsertEntry,
    InsertUsage,
    JsonObject,
    LaneLastResult,
    RegisterSet,
    encode_json,
    zero_usage,
)
from restartpoint.providers import SCRIPTED_MODEL, ScriptedCall, asks, says
from restartpoint.seams import timestamp_of
from restartpoint_oracle.wire import read_json
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS, spent
from tests.harness.runtime.stage import Stage, stage_of

CONFIGURATION: JsonObject = {
    "model": {"provider": SCRIPTED_MODEL.provider, "modelId": SCRIPTED_MODEL.model_id},
    "thinkingLevel": "off",
    "activeToolNames": ["save"],
}
RUNNING: JsonObject = {"status": "running"}
EMPTY: JsonObject = {"steer": [], "followUp": [], "writes": []}
SETTINGS: JsonObject = {
    "compaction": {"enabled": False, "reserveTokens": 16384, "keepRecentTokens": 20000},
    "steeringMode": "one-at-a-time",
    "followUpMode": "one-at-a-time",
    "toolExecution": "parallel",
}


async def states(stage: Stage, **options: Any) -> list[dict[str, Any]]:
    """Every op.state that the scenario's run writes, as JSON in order."""
    async with stage.open(**options) as harness:
        await harness.prompt("go")
    return [read(write.value) for tx in stage.court.commits for write in tx.writes if is_state(write)]  # type: ignore[union-attr]


def is_state(write: object) -> bool:
    return isinstance(write, RegisterSet) and write.namespace is OP_STATE


def read(value: object) -> dict[str, Any]:
    found = read_json(encode_json(value))
    assert isinstance(found, dict)
    return found


def inserted(stage: Stage) -> list[str]:
    return [write.entry.id for tx in stage.court.commits for write in tx.writes if isinstance(write, InsertEntry)]


@pytest.mark.covers("RT-3.2-05", "RT-3.2-07", "RT-3.2-10", "AMB-01")
async def test_the_states_of_a_run_without_tools(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], [Tool(name="save", log=log)], log=log)
    accepted, ready, pending, settled = await states(stage, stream_options={"maxTokens": 77})
    prompt, response = inserted(stage)
    base = {"kind": "run", "control": RUNNING, "settings": SETTINGS, "inbox": EMPTY}
    context = {
        "stepId": ready["phase"]["generation"]["context"]["stepId"],
        "triggerEntryId": prompt,
        "configuration": CONFIGURATION,
        "streamOptions": {"maxTokens": 77},
        "retryPolicy": {"maxAttempts": 1, "baseDelayMs": 2000},
        "overflowRecoveryUsed": False,
    }
    assert accepted == {
        **base,
        "phase": {
            "kind": "checkpoint",
            "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
            "triggerEntryId": prompt,
            "skipInboxOnce": True,
        },
        "latestAssistantEntryId": None,
    }
    assert ready == {
        **base,
        "phase": {"kind": "assistant", "generation": {"status": "ready", "context": context, "nextAttempt": 1}},
        "latestAssistantEntryId": None,
    }
    assert pending == {
        **base,
        "phase": {
            "kind": "assistant",
            "generation": {
                "status": "effect_pending",
                "context": context,
                "attempt": 1,
                "responseEntryId": response,
                "usageId": pending["phase"]["generation"]["usageId"],
                "intendedOutputLimit": 77,
                "contextWindow": SCRIPTED_MODEL.context_window,
            },
        },
        "latestAssistantEntryId": None,
    }
    assert settled == {
        **base,
        "phase": {
            "kind": "checkpoint",
            "continuation": {"kind": "may_finish", "includeFinalAssistant": True},
            "triggerEntryId": response,
        },
        "latestAssistantEntryId": response,
    }


@pytest.mark.covers("RT-3.2-31", "RT-3.2-32", "RT-3.2-33", "AMB-02")
async def test_the_states_of_a_batch(place: Place, log: Log) -> None:
    stage = Stage(
        place, [asks(ScriptedCall(name="save"), text="well"), says("done")], [Tool(name="save", log=log)], log=log
    )
    seen = await states(stage)
    planned, pending, done = (state["phase"] for state in seen[3:6])
    _, response, result, _ = inserted(stage)
    turn = seen[1]["phase"]["generation"]["context"]["stepId"]
    call = {"sourceIndex": 1, "resultEntryId": result}
    batch = {"assistantEntryId": response, "configuration": CONFIGURATION, "turnId": turn}
    assert planned == {"kind": "tools", "batch": {**batch, "calls": [{"status": "planned", **call}]}}
    assert pending == {
        "kind": "tools",
        "batch": {**batch, "calls": [{"status": "effect_pending", **call, "replay": "never"}]},
    }
    assert done == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": result,
    }
    assert b"arguments" not in encode_json(seen[3]) + encode_json(seen[4])


@pytest.mark.covers("RT-3.7-03", "RT-3.7-02", "AMB-09")
async def test_result_ids_follow_their_response_and_reserved_ids_become_its_rows(place: Place, log: Log) -> None:
    async def later(arguments: JsonObject, context: Any) -> Any:
        stage.clock.now += 5000
        return await Tool(name="done", log=Log()).execute(arguments, context)

    stage = Stage(
        place, [asks(ScriptedCall(name="save")), says("done")], [Tool(name="save", log=log, work=later)], log=log
    )
    seen = await states(stage)
    pending = seen[2]["phase"]["generation"]
    rows = [write.row for tx in stage.court.commits for write in tx.writes if isinstance(write, InsertUsage)]
    assert (rows[0].id, rows[0].entry_id) == (pending["usageId"], pending["responseEntryId"])
    _, response, result, answer = inserted(stage)
    assert response == pending["responseEntryId"]
    assert timestamp_of(result) == timestamp_of(response)
    assert timestamp_of(answer) == timestamp_of(response) + 5000


@pytest.mark.covers("RT-3.2-35", "RT-3.8-05", "RT-3.8-T31")
async def test_two_calls_may_be_pending_while_results_commit_in_source_order(place: Place, log: Log) -> None:
    """The second tool ends first: the first waits until the second has run."""
    stage = stage_of(SCENARIOS["two tools side by side"], place, log)
    seen = await states(stage)
    statuses = [[call["status"] for call in state["phase"]["batch"]["calls"]] for state in seen[3:7]]
    assert statuses == [
        ["planned", "planned"], ["effect_pending", "planned"], ["effect_pending", "effect_pending"],
        ["completed", "effect_pending"],
    ]  # fmt: skip
    calls = seen[3]["phase"]["batch"]["calls"]
    assert inserted(stage)[2:4] == [call["resultEntryId"] for call in calls]


@pytest.mark.covers("RT-3.8-01", "RT-3.8-09", "RT-3.2-16", "RT-3.8-T34")
async def test_a_terminating_result_says_so_and_ends_the_run_without_another_request(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["every tool terminates"], place, log)
    *_, last = await states(stage)
    result = inserted(stage)[-1]
    assert last["phase"] == {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": False},
        "triggerEntryId": result,
    }
    assert len(stage.models.requests) == 1
    entry = next(
        write.entry
        for tx in stage.court.commits
        for write in tx.writes
        if isinstance(write, InsertEntry) and write.entry.id == result
    )
    assert read(entry.payload)["terminate"] is True


@pytest.mark.covers("RT-3.8-02", "RT-3.8-T35", "AMB-16", "AMB-82")
async def test_one_result_that_does_not_terminate_keeps_the_run_going(place: Place, log: Log) -> None:
    tools = [Tool(name="save", log=log, terminate=True), Tool(name="load", log=log)]
    stage = Stage(place, [asks(ScriptedCall(name="save"), ScriptedCall(name="load")), says("done")], tools, log=log)
    seen = await states(stage)
    done = seen[7]["phase"]
    assert done["continuation"] == {"kind": "need_assistant", "overflowRecoveryUsed": False}
    assert "skipInboxOnce" not in done
    assert len(stage.models.requests) == 2


@pytest.mark.covers("RT-3.2-34", "RT-3.8-10", "RT-3.8-T30", "AMB-06")
async def test_arguments_are_recorded_for_every_cleared_call_and_deleted_with_the_batch(place: Place, log: Log) -> None:
    scenario = SCENARIOS["replaced arguments"]
    stage = stage_of(scenario, place, log)
    seen = await states(stage)
    turn = seen[1]["phase"]["generation"]["context"]["stepId"]
    (recorded,) = [
        write
        for tx in stage.court.commits
        for write in tx.writes
        if isinstance(write, RegisterSet) and write.namespace is OP_TOOL_ARGS
    ]
    assert recorded.key.split(":")[1:] == [turn, "0"]
    assert recorded.value == {"path": "b"}
    at = stage.names.index("complete_batch")
    assert stage.writes[at] == ["entry", "set lane.leaf/main", "delete op.tool_args/O:0", "set op.state/O"]


@pytest.mark.covers("RT-3.2-08", "RT-3.2-09", "RT-3.2-12", "AMB-47")
@pytest.mark.parametrize(
    "name, code",
    [
        ("provider error", "provider_error"),
        ("retryable error at the cap", "retries_exhausted"),
        ("overflow by error", "context_overflow"),
        ("overflow by length", "context_overflow"),
        ("deferred without an id", "deferred_handle_invalid"),
    ],
)
async def test_a_failed_run_drains_with_its_error_and_the_response_it_came_from(
    name: str, code: str, place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS[name], place, log)
    *_, drain = await states(stage)
    response = inserted(stage)[-1]
    assert drain["phase"]["kind"] == "failure_drain"
    assert drain["phase"]["provenance"] == {"kind": "response", "entryId": response}
    error = drain["phase"]["error"]
    assert error["code"] == code
    assert error["message"]
    assert error["details"] == {"entryId": response, "attempt": 1}
    assert drain["latestAssistantEntryId"] == response


@pytest.mark.covers("RT-3.2-15", "RT-3.7-10", "AMB-26", "RT-3.7-T23")
@pytest.mark.parametrize("name", ["text", "genuine length", "a call is asked for but none is there"])
async def test_a_finished_turn_may_finish_the_run(name: str, place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS[name], place, log)
    *_, settled = await states(stage)
    assert settled["phase"] == {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": True},
        "triggerEntryId": inserted(stage)[-1],
    }


@pytest.mark.covers("RT-3.7-18", "RT-3.7-T33", "RT-3.7-09", "TIER-A-06")
async def test_genuine_length_plans_every_call_and_runs_none(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["genuine length with calls"], place, log)
    seen = await states(stage)
    assert [call["status"] for call in seen[3]["phase"]["batch"]["calls"]] == ["planned", "planned"]
    assert not any(line.startswith("tool") for line in log.lines)
    assert len(stage.models.requests) == 2


@pytest.mark.covers("RT-3.13-01", "RT-3.13-02", "RT-3.13-03", "RT-3.13-11")
@pytest.mark.parametrize(
    "name, expected",
    [
        ("text", {"outcome": "completed", "runCompletion": "assistant"}),
        ("every tool terminates", {"outcome": "completed", "runCompletion": "terminated_tools"}),
        ("provider error", {"outcome": "failed"}),
    ],
)
async def test_the_last_result_of_each_ending(name: str, expected: JsonObject, place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS[name], place, log)
    async with stage.open() as harness:
        outcome = await harness.prompt("go")
        last = await harness.get_last_result()
        register = await stage.session.get_register(LANE_LAST_RESULT, "main")
    assert register is not None
    assert last == register.value
    assert isinstance(outcome, RunCompleted | RunFailed)
    assert isinstance(last, LaneLastResult)
    written = read(last)
    if outcome.final_entry_id is not None:
        expected = {**expected, "finalAssistantEntryId": outcome.final_entry_id}
    if isinstance(outcome, RunFailed):
        expected = {**expected, "error": read(outcome.error)}
    base = {"operationId": outcome.run_id, "kind": "run", "leafId": outcome.leaf_id}
    assert written == {**base, **expected}


@pytest.mark.covers("RT-3.13-04", "AMB-48", "RT-3.12-T76")
async def test_a_failed_run_names_its_failed_response_as_the_newest(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["provider error"], place, log)
    async with stage.open() as harness:
        harness.hooks.on("before_run_end", lambda event: log.note("hook before_run_end"))
        outcome = await harness.prompt("go")
    assert isinstance(outcome, RunFailed)
    assert outcome.final_entry_id == inserted(stage)[-1] == outcome.leaf_id
    assert "hook before_run_end" not in log.lines
    assert len(stage.models.requests) == 1


@pytest.mark.covers("RT-3.7-T24", "RT-3.7-T17", "TEST-R2-02")
async def test_reported_usage_is_billed_whatever_became_of_the_response(place: Place, log: Log) -> None:
    totals = {}
    for name in ("overflow by length", "every tool terminates", "provider raises"):
        stage = stage_of(SCENARIOS[name], place.another(), Log())
        async with stage.open() as harness:
            await harness.prompt("go")
            totals[name] = (await stage.session.get_stats()).usage["output"]
    assert totals["overflow by length"] == spent(5)["output"]
    assert totals["provider raises"] == zero_usage()["output"]
    assert totals["every tool terminates"] == 13
