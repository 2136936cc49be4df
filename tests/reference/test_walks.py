"""Every transition is taken, and each commit is explained back to its own name and inputs."""

from collections.abc import Callable

import pytest

from restartpoint_reference import (
    TRANSITIONS,
    UNSET,
    Commit,
    JsonObject,
    Namespace,
    Refusal,
    SetRegister,
    Write,
    apply,
    explain,
)
from restartpoint_reference.transitions.acceptance import AcceptRun
from restartpoint_reference.transitions.session import Configuration
from restartpoint_reference.transitions.settlement import Response, SettleToolCalls
from restartpoint_reference.transitions.tools import IntendTool
from restartpoint_reference.vocabulary.entries import InsertEntry
from restartpoint_reference.vocabulary.states import Replay
from tests.reference.walk import Walk, as_elements, assistant, text, uid, usage
from tests.reference.walks import SCENARIOS, runs
from tests.reference.walks.runs import C1, C2, R1, R2, RUN


def test_the_scenarios_take_every_transition() -> None:
    assert {name for scenario in SCENARIOS for name in scenario().names} == set(TRANSITIONS)


@pytest.mark.parametrize("transition", TRANSITIONS.values(), ids=lambda transition: transition.name)
def test_a_transition_is_registered_with_section_phase_guards_and_summary(transition: object) -> None:
    found = TRANSITIONS[getattr(transition, "name", "")]
    assert found.summary.endswith(".")
    assert found.section[0].isdigit()
    assert found.phases
    assert all(guard.isidentifier() for guard in found.guards)


def test_the_worked_example_makes_the_listed_writes_in_order() -> None:
    walk = runs.plain_run()
    assert walk.names == [
        "create_session", "seed_main", "accept_run", "start_generation", "intend_assistant", "settle_tool_calls",
        "intend_tool", "complete_batch", "start_generation", "intend_assistant", "settle_stop", "finish_run",
    ]  # fmt: skip
    written = [[_short(write) for write in step.commit.writes] for step in walk.steps]
    assert written[2] == ["entry", "entry", "lane.leaf", "op.meta", "op.state", "lane.state"]
    assert written[5] == ["entry", "lane.leaf", "usage", "op.state"]
    assert written[6] == ["op.tool_args", "op.state"]
    assert written[7] == ["entry", "lane.leaf", "-op.tool_args", "op.state"]
    assert written[11] == ["-op.meta", "-op.state", "lane.lastResult", "lane.state"]


def _short(write: Write) -> str:
    json = write.to_json()
    kind = json["kind"]
    if kind != "register":
        return str(kind)
    return f"-{json['namespace']}" if json["op"] == "delete" else str(json["namespace"])


def test_a_finished_run_leaves_only_the_conversation_the_ledger_and_lane_registers() -> None:
    state = runs.plain_run().state
    for namespace in (Namespace.OP_META, Namespace.OP_STATE, Namespace.OP_TOOL_ARGS, Namespace.PENDING_ENTRY):
        assert state.keys(namespace) == []
    assert state.value(Namespace.LANE_LAST_RESULT, "main") == {
        "operationId": RUN, "kind": "run", "leafId": R2, "finalAssistantEntryId": R2, "outcome": "completed",
        "runCompletion": "assistant",
    }  # fmt: skip
    assert len(state.usage) == 2


def test_a_batch_that_terminates_ends_the_run_without_a_final_assistant() -> None:
    walk = runs.parallel_tools()
    result = walk.state.value(Namespace.LANE_LAST_RESULT, "main")
    assert isinstance(result, dict)
    assert result["runCompletion"] == "terminated_tools"
    assert result["leafId"] == C2
    assert "finalAssistantEntryId" not in result
    state = walk.steps[-1].before.value(Namespace.OP_STATE, RUN)
    assert isinstance(state, dict)
    assert state["phase"] == {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": False},
        "triggerEntryId": C2,
    }


def test_stray_tool_arguments_die_in_the_terminal_transaction() -> None:
    walk = runs.plain_run()
    step = walk.steps[-1]
    stray = f"{RUN}:elsewhere:4"
    planted = walk.steps[6].commit.writes[0]
    applied = apply(step.before, [_moved(planted, stray)], timestamp=1)
    assert isinstance(applied, tuple)
    commit = TRANSITIONS["finish_run"](applied[0], "main", step.inputs)
    assert f"delete op.tool_args/{stray}" in [_address(write) for write in _writes(commit)]


def _writes(commit: Commit | Refusal) -> tuple[Write, ...]:
    assert isinstance(commit, Commit)
    return commit.writes


def _moved(write: Write, key: str) -> SetRegister:
    assert isinstance(write, SetRegister)
    return SetRegister(namespace=write.namespace, key=key, value=write.value)


def _address(write: Write) -> str:
    json = write.to_json()
    return f"{json.get('op')} {json.get('namespace')}/{json.get('key')}"


def test_an_interrupted_call_settles_under_its_reserved_id() -> None:
    walk = runs.crash_mid_tool()
    step = next(step for step in walk.steps if step.commit.name == "interrupt_tool")
    assert C1 not in step.before.entries
    insert = step.commit.writes[0]
    assert isinstance(insert, InsertEntry)
    assert insert.entry.id == C1
    assert walk.state.entries[C1].message == insert.entry.message


@pytest.mark.covers("RT-3.7-01")
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_settlement_commits_response_usage_and_decision_together(scenario: Callable[[], Walk]) -> None:
    for step in scenario().steps:
        inserted = [write.entry for write in step.commit.writes if isinstance(write, InsertEntry)]
        copied = step.commit.name in ("fork_into", "import_v3")
        responses = [one for one in inserted if (one.message or {}).get("role") == "assistant" and not copied]
        for response in responses:
            written = [_short(write) for write in step.commit.writes]
            assert [name for name in written if name != "op.preparation"] == ["entry", "lane.leaf", "usage", "op.state"]
            row = step.commit.writes[2].to_json()
            state = step.commit.writes[-1].to_json()["value"]
            assert row["entryId"] == response.id
            assert isinstance(state, dict)
            assert state["latestAssistantEntryId"] == response.id


def test_all_attempts_of_a_step_use_the_context_captured_at_its_start() -> None:
    walk = runs.requested(attempts=3)
    other = Configuration(configuration=runs.OTHER_CONFIGURATION)
    walk.take(TRANSITIONS["configure_lane"], other)
    before = _generation(walk)
    walk.take(TRANSITIONS["recover_assistant"])
    assert _generation(walk)["context"] == before["context"]
    assert _generation(walk)["nextAttempt"] == 2


def _generation(walk: Walk) -> JsonObject:
    state = walk.state.value(Namespace.OP_STATE, RUN)
    assert state is not UNSET
    return state["phase"]["generation"]  # type: ignore[index,call-overload,return-value]


@pytest.mark.covers("RT-3.4-02")
def test_a_settlement_keeps_what_it_does_not_own() -> None:
    """Input that arrives while a request is out stays in the inbox."""
    walk = runs.requested()
    state = walk.state.value(Namespace.OP_STATE, RUN)
    assert isinstance(state, dict)
    pending: JsonObject = {"type": "message", "payload": {"role": "user", "content": "wait", "timestamp": 1}}
    steered: JsonObject = {**state, "inbox": {"steer": [uid(150, 1)], "followUp": [], "writes": []}}
    applied = apply(
        walk.state,
        [
            SetRegister(namespace=Namespace.PENDING_ENTRY, key=uid(150, 1), value=pending),
            SetRegister(namespace=Namespace.OP_STATE, key=RUN, value=steered),
        ],
        timestamp=1,
    )
    assert isinstance(applied, tuple)
    walk.state = applied[0]
    walk.take(TRANSITIONS["settle_stop"], Response(response=assistant(text("hi"))))
    after = walk.state.value(Namespace.OP_STATE, RUN)
    assert isinstance(after, dict)
    assert after["inbox"] == steered["inbox"]
    refusal = TRANSITIONS["finish_run"](walk.state, "main", walk.steps[0].inputs)
    assert getattr(refusal, "guard", "") == "inbox_is_empty"


def test_result_ids_that_do_not_follow_the_response_are_refused() -> None:
    walk = runs.requested()
    late = SettleToolCalls(response=runs.two_calls(), result_ids=(C1, uid(101, 12)))
    refusal = TRANSITIONS["settle_tool_calls"](walk.state, "main", late)
    assert getattr(refusal, "guard", "") == "results_follow_the_response"


@pytest.mark.covers("RT-3.7-16")
def test_an_aborted_response_under_running_control_is_no_commit_of_any_transition() -> None:
    walk = runs.requested()
    stopped = walk.fork()
    stopped.take(TRANSITIONS["settle_stop"], Response(response=assistant(text("hi"))))
    elements = as_elements(stopped.steps[0].commit, walk.state.next_seq, 1)
    elements[0]["message"]["stopReason"] = "aborted"  # type: ignore[index,call-overload]
    found = explain(walk.state, elements)
    assert "classified corrupt" in str(found)


def test_a_prompt_that_would_append_nothing_is_refused() -> None:
    walk = runs.opened()
    empty = AcceptRun(operation_id=RUN, started_at=1, captured=0, prompts=(), injected=(), settings=runs.SETTINGS)
    refusal = TRANSITIONS["accept_run"](walk.state, "main", empty)
    assert getattr(refusal, "guard", "") == "something_is_appended"


def test_a_run_is_accepted_on_an_idle_lane_only() -> None:
    walk = runs.prompted()
    refusal = TRANSITIONS["accept_run"](walk.state, "main", runs.accepted())
    assert getattr(refusal, "guard", "") == "from_phase"


def test_acceptance_places_queued_items_first_under_their_own_ids() -> None:
    walk = runs.queues_and_facts()
    step = next(step for step in walk.steps if step.commit.name == "accept_run")
    inserted = [write.entry.id for write in step.commit.writes if isinstance(write, InsertEntry)]
    assert inserted == [uid(300, 1), uid(95, 1), uid(95, 2)]
    meta = walk.state.value(Namespace.OP_META, RUN)
    assert isinstance(meta, dict)
    assert meta["intent"] == {"kind": "run", "promptEntryIds": [uid(95, 1)]}
    assert meta["sourceLeafId"] == uid(299, 3)
    lane = walk.state.value(Namespace.LANE_STATE, "main")
    assert lane == {"currentOperationId": RUN, "pendingNextRun": [uid(300, 3)]}


def test_a_sequential_batch_clears_no_call_before_the_lower_ones_are_completed() -> None:
    sequential = runs.replace_execution(runs.SETTINGS)
    walk = runs.with_tools(sequential)
    runs.clear(walk, 1)
    second = IntendTool(source_index=3, arguments={}, replay=Replay.SAFE)
    refusal = TRANSITIONS["intend_tool"](walk.state, "main", second)
    assert getattr(refusal, "guard", "") == "sequence_is_kept"


def test_no_call_of_a_truncated_response_is_cleared() -> None:
    walk = runs.with_tools(truncated=True)
    first = IntendTool(source_index=1, arguments={}, replay=Replay.SAFE)
    refusal = TRANSITIONS["intend_tool"](walk.state, "main", first)
    assert getattr(refusal, "guard", "") == "batch_is_complete"
    assert runs.truncated_tools().names[-2:] == ["refuse_truncated_tool", "complete_batch"]


def test_the_captured_policy_decides_whether_an_orphaned_request_may_be_repeated() -> None:
    walk = runs.requested(attempts=1)
    refusal = TRANSITIONS["recover_assistant"](walk.state, "main", walk.steps[0].inputs)
    assert getattr(refusal, "guard", "") == "attempts_remain"
    done = runs.orphaned_requests()
    assert done.state.usage[runs.U2].usage == usage()
    assert done.state.entries[R2].message is not None
    assert R1 not in done.state.entries
