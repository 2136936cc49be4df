"""A batch of calls, write by write: intents, results in source order, and its completion (§3.2, §3.8, §4.5)."""

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import JsonObject, Namespace, Progress, View, next_steps
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.states import Replay
from tests.reference.requirements.writes import written
from tests.reference.walk import Walk, result, uid, usage
from tests.reference.walks import inbox, runs
from tests.reference.walks.inbox import S1
from tests.reference.walks.runs import C1, C2, RUN, SETTINGS, STEP

N = Namespace
UNKNOWN = "This tool call was interrupted before its result was recorded."
DONE = ToolResult(message=result("t1", "remove"))
LAST = ToolResult(message=result("t2", "read"))
BLOCKED = ToolResult(message=result("t1", "remove", "blocked", error=True))
SPENT = ToolResult(message=result("t2", "read"), usage_id=uid(101, 5), usage=usage(input=3))
ENDS = (
    ToolResult(message=result("t1", "remove"), terminate=True),
    ToolResult(message=result("t2", "read"), terminate=True),
)


def started(*indices: int, sequential: bool = False) -> Walk:
    """A batch of two whose calls at these indices were cleared, in this order."""
    walk = runs.with_tools(runs.replace_execution(SETTINGS) if sequential else SETTINGS)
    for index in indices:
        runs.clear(walk, index)
    return walk


def calls(walk: Walk) -> list[JsonObject]:
    return [call.to_json() for call in View(walk.state, "main").batch.calls]


def phase(walk: Walk) -> JsonObject:
    return View(walk.state, "main").run.phase.to_json()


@pytest.mark.covers("RT-3.8-T30", "RT-3.2-34", "RT-3.2-33", "RT-3.2-32")
@pytest.mark.parametrize("replay", Replay)
def test_the_intent_of_a_call_stores_its_arguments_beside_the_state(replay: Replay) -> None:
    walk = runs.with_tools()
    runs.clear(walk, 1, replay)
    assert written(walk.steps[-1].commit) == ["op.tool_args", "op.state"]
    assert walk.state.keys(N.OP_TOOL_ARGS) == [f"{RUN}:{STEP}:1"]
    assert walk.state.value(N.OP_TOOL_ARGS, f"{RUN}:{STEP}:1") == {"path": "/1"}
    assert calls(walk) == [
        {"status": "effect_pending", "sourceIndex": 1, "resultEntryId": C1, "replay": replay.value},
        {"status": "planned", "sourceIndex": 3, "resultEntryId": C2},
    ]
    assert "path" not in str(walk.state.value(N.OP_STATE, RUN))


@pytest.mark.covers("RT-3.8-T31", "RT-3.2-35")
def test_overlapping_calls_settle_in_source_order_whichever_is_done_first() -> None:
    walk = started(1, 3)
    assert [call["status"] for call in calls(walk)] == ["effect_pending", "effect_pending"]
    refusal = T["settle_tool"](walk.state, "main", LAST)
    assert getattr(refusal, "guard", "") == "result_answers_the_call"
    assert written(walk.take(T["settle_tool"], DONE)) == ["entry", "lane.leaf", "op.state"]
    assert calls(walk)[0] == {"status": "completed", "sourceIndex": 1, "resultEntryId": C1, "terminate": False}
    walk.take(T["complete_batch"], LAST)
    assert walk.state.entries[C2].parent_id == C1
    assert walk.state.entries[C1].seq < walk.state.entries[C2].seq


@pytest.mark.covers("RT-3.8-04")
def test_a_sequential_batch_clears_a_call_when_the_one_before_it_has_its_result() -> None:
    walk = started(1, sequential=True)
    assert "intend_tool" not in next_steps(View(walk.state, "main"))
    with pytest.raises(AssertionError, match="sequence_is_kept"):
        runs.clear(walk.fork(), 3)
    walk.take(T["settle_tool"], DONE)
    assert "intend_tool" in Progress.of(walk.state).due("main")
    runs.clear(walk, 3)


@pytest.mark.covers("RT-3.8-T32", "RT-3.8-06", "RT-3.8-07")
def test_a_call_that_may_not_run_gets_a_result_in_its_place_and_no_arguments() -> None:
    walk = runs.with_tools()
    assert written(walk.take(T["refuse_tool"], BLOCKED)) == ["entry", "lane.leaf", "op.state"]
    assert walk.state.keys(N.OP_TOOL_ARGS) == []
    assert calls(walk)[0] == {"status": "completed", "sourceIndex": 1, "resultEntryId": C1, "terminate": False}
    running = started(1)
    later = ToolResult(message=result("t2", "read", "unknown tool", error=True))
    assert getattr(T["refuse_tool"](running.state, "main", later), "guard", "") == "result_answers_the_call"
    running.take(T["settle_tool"], DONE)
    running.take(T["complete_batch"], later)
    assert running.state.entries[C2].parent_id == C1


@pytest.mark.covers("RT-3.8-T34", "RT-3.8-01", "RT-3.2-16", "RT-3.8-09")
def test_results_that_all_ask_to_end_the_run_let_it_finish_without_a_last_word() -> None:
    walk = started(1, 3)
    walk.take(T["settle_tool"], ENDS[0])
    commit = walk.take(T["complete_terminating_batch"], ENDS[1])
    assert written(commit) == ["entry", "lane.leaf", "-op.tool_args", "-op.tool_args", "op.state"]
    assert phase(walk) == {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": False},
        "triggerEntryId": C2,
    }
    for one in (C1, C2):
        assert walk.state.entries[one].payload["terminate"] is True
        assert "terminate" not in (walk.state.entries[one].message or {})
    assert "terminate" not in started_and_settled().state.entries[C1].payload


def started_and_settled() -> Walk:
    walk = started(1, 3)
    walk.take(T["settle_tool"], DONE)
    return walk


@pytest.mark.covers("RT-3.8-T35", "RT-3.8-02", "AMB-06", "RT-3.12-08")
@pytest.mark.parametrize("first", [DONE, ENDS[0]])
def test_the_last_result_of_a_batch_deletes_its_arguments_and_owes_a_turn(first: ToolResult) -> None:
    walk = started(1, 3)
    walk.take(T["settle_tool"], first)
    commit = walk.take(T["complete_batch"], SPENT)
    assert written(commit) == ["entry", "lane.leaf", "usage", "-op.tool_args", "-op.tool_args", "op.state"]
    keys = [write.to_json()["key"] for write in commit.writes[3:5]]
    assert keys == [f"{RUN}:{STEP}:1", f"{RUN}:{STEP}:3"]
    assert phase(walk) == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": C2,
    }


@pytest.mark.covers("AMB-16")
def test_steering_enters_between_the_results_of_a_batch_and_the_next_request() -> None:
    walk = started(1, 3)
    inbox.steer(walk, S1)
    walk.take(T["settle_tool"], DONE)
    walk.take(T["complete_batch"], LAST)
    assert next_steps(View(walk.state, "main")) == ("consume_steer",)
    walk.take(T["consume_steer"])
    assert walk.state.entries[S1].parent_id == C2


@pytest.mark.covers("RT-3.12-T15", "RT-3.13-03")
def test_a_run_that_its_tools_ended_has_their_results_as_its_last_entries() -> None:
    walk = runs.parallel_tools()
    assert walk.state.value(N.LANE_LAST_RESULT, "main") == {
        "operationId": RUN, "kind": "run", "leafId": C2, "outcome": "completed", "runCompletion": "terminated_tools"
    }  # fmt: skip
    assert View(walk.state, "main").leaf == C2
    requests = [name for name in walk.names if name == "intend_assistant"]
    assert len(requests) == 1


@pytest.mark.covers("RT-3.12-T14", "RT-3.13-02")
def test_a_run_that_the_model_ended_names_its_last_answer() -> None:
    walk = inbox.answered()
    walk.take(T["finish_run"])
    assert walk.state.value(N.LANE_LAST_RESULT, "main") == {
        "operationId": RUN, "kind": "run", "leafId": runs.R1, "finalAssistantEntryId": runs.R1,
        "outcome": "completed", "runCompletion": "assistant",
    }  # fmt: skip
    left = [(space, key) for space, held in walk.state.namespaces.items() for key in held]
    assert {space for space, _ in left} == {N.LANE_CONFIG, N.LANE_LEAF, N.LANE_STATE, N.LANE_LAST_RESULT}


@pytest.mark.covers("RT-4.5-13", "AMB-41")
def test_orphaned_calls_of_a_batch_are_settled_behind_the_planned_one_before_them() -> None:
    """The first call was refused in the process that is gone, which left no trace of it."""
    walk = started(3)
    assert set(Progress.of(walk.state).due("main")) == {"intend_tool", "refuse_tool"}
    late = ToolResult(message=result("t2", "read", UNKNOWN, error=True))
    assert getattr(T["interrupt_tool"](walk.state, "main", late), "guard", "") == "result_answers_the_call"
    walk.take(T["refuse_tool"], BLOCKED)
    commit = walk.take(T["complete_batch"], late)
    assert commit.detail == "interrupt_tool"
    assert walk.state.entries[C2].message == late.message
    assert walk.state.entries[C2].parent_id == C1
