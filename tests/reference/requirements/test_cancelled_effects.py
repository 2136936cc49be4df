"""What was under way when an operation was cancelled: every effect settles once, and nothing starts (§3.7, §4.6)."""

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Commit, JsonObject, Namespace, Progress, View, next_steps
from restartpoint_reference.transitions.generation import SyntheticResponse
from restartpoint_reference.transitions.settlement import Response, SettleRetryable
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.states import CancelRequested, Replay
from tests.reference.requirements.writes import written
from tests.reference.walk import NOTHING, Walk, assistant, call, result, text, uid, usage
from tests.reference.walks import SCENARIOS, abort, runs
from tests.reference.walks.abort import NOT_RUN, UNKNOWN, refuse
from tests.reference.walks.runs import C1, C2, R1, RUN, U1

STARTS = frozenset({
    "start_generation", "intend_assistant", "end_retry_wait", "recover_assistant", "intend_tool", "intend_poll",
    "replace_unknown_poll", "start_summary", "intend_summary", "intend_summary_request", "end_summary_retry_wait",
    "recover_summary", "begin_threshold_compaction", "settle_overflow", "settle_tool_calls", "settle_poll_tool_calls",
    "settle_retryable", "retry_summary",
})  # fmt: skip
"""The steps after which a request, a tool, a decision hook or a retry would follow."""

SETTLED = ["entry", "lane.leaf", "usage", "op.state"]


def held(walk: Walk) -> JsonObject:
    state = walk.state.value(Namespace.OP_STATE, RUN)
    assert isinstance(state, dict)
    return state


def cancelled_checkpoint(before: JsonObject) -> JsonObject:
    """The state after the response of a cancelled request is settled: all else stays as it was."""
    phase: JsonObject = {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": True},
        "triggerEntryId": R1,
    }
    return {**before, "phase": phase, "latestAssistantEntryId": R1}


@pytest.mark.covers("RT-3.7-T25", "RT-3.7-20")
def test_a_response_cut_by_an_abort_keeps_its_words_and_usage_and_plans_no_tool() -> None:
    """The stream was stopped in the middle of its second call."""
    walk = abort.abort(runs.requested())
    before = held(walk)
    half = assistant(text("look"), call("t1", "remove"), stop="aborted", error="aborted; it was a tool call")
    commit = walk.take(T["settle_cancelled"], Response(response=half))
    assert written(commit) == SETTLED
    assert walk.state.entries[R1].message == half
    assert walk.state.value(Namespace.LANE_LEAF, "main") == R1
    assert (walk.state.usage[U1].entry_id, walk.state.usage[U1].usage) == (R1, half["usage"])
    assert held(walk) == cancelled_checkpoint(before)
    assert next_steps(View(walk.state, "main")) == ("finish_aborted_run",)


@pytest.mark.covers("RT-4.6-T29")
@pytest.mark.parametrize("reopened", [False, True])
def test_a_request_without_a_response_settles_as_aborted_whether_it_was_refused_or_its_process_is_gone(
    reopened: bool,
) -> None:
    walk = abort.abort(runs.requested())
    due = Progress.of(walk.state).due("main") if reopened else next_steps(View(walk.state, "main"))
    assert "cancel_assistant" in due
    assert ("settle_cancelled" in due) is not reopened
    before = held(walk)
    commit = walk.take(T["cancel_assistant"], SyntheticResponse(api="scripted", timestamp=7, reason="aborted"))
    assert written(commit) == SETTLED
    message = walk.state.entries[R1].message
    assert message is not None
    assert (message["content"], message["stopReason"], message["errorMessage"]) == ([], "aborted", "aborted")
    assert walk.state.usage[U1].usage == usage()
    assert held(walk) == cancelled_checkpoint(before)


def calls(walk: Walk) -> list[JsonObject]:
    phase = held(walk)["phase"]
    assert isinstance(phase, dict)
    batch = phase["batch"]
    assert isinstance(batch, dict)
    assert isinstance(batch["calls"], list)
    return [one for one in batch["calls"] if isinstance(one, dict)]


@pytest.mark.covers("RT-4.6-T38")
def test_a_planned_call_of_a_cancelled_batch_gets_an_error_in_source_order_and_never_runs() -> None:
    walk = abort.abort(runs.with_tools())
    for index in (1, 3):
        with pytest.raises(AssertionError, match="control_is_running"):
            runs.clear(walk.fork(), index)
    commit = walk.take(T["cancel_planned_tool"], refuse("t1", "remove"))
    assert written(commit) == ["entry", "lane.leaf", "op.state"]
    assert walk.state.entries[C1].message == result("t1", "remove", NOT_RUN, error=True)
    assert walk.state.value(Namespace.LANE_LEAF, "main") == C1
    assert calls(walk)[0] == {"status": "completed", "sourceIndex": 1, "resultEntryId": C1, "terminate": False}
    walk.take(T["complete_batch"], refuse("t2", "read"))
    assert walk.state.keys(Namespace.OP_TOOL_ARGS) == []
    assert next_steps(View(walk.state, "main")) == ("finish_aborted_run",)


@pytest.mark.covers("RT-4.6-T39")
def test_every_call_that_had_started_is_committed_with_its_own_result_before_the_run_ends() -> None:
    walk = abort.cleared()
    own = ToolResult(message=result("t1", "remove"), usage_id=uid(101, 4), usage=usage(input=2))
    commit = walk.take(T["settle_cancelled_tool"], own)
    assert written(commit) == SETTLED
    assert walk.state.entries[C1].to_json()["message"] == result("t1", "remove")
    assert "terminate" not in walk.state.entries[C1].to_json()
    assert walk.state.usage[uid(101, 4)].entry_id == C1
    assert calls(walk)[0] == {"status": "completed", "sourceIndex": 1, "resultEntryId": C1, "terminate": False}
    assert next_steps(View(walk.state, "main")) == ("complete_batch",)
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read")))
    assert {C1, C2} <= set(walk.state.entries)
    assert next_steps(View(walk.state, "main")) == ("finish_aborted_run",)


@pytest.mark.parametrize("replay", Replay)
def test_an_orphaned_call_is_interrupted_whatever_it_declares(replay: Replay) -> None:
    walk = runs.with_tools()
    runs.clear(walk, 1, replay)
    abort.abort(walk)
    assert "interrupt_cancelled_tool" in Progress.of(walk.state).due("main")
    walk.take(T["interrupt_cancelled_tool"], refuse("t1", "remove", UNKNOWN))
    assert walk.state.entries[C1].message == result("t1", "remove", UNKNOWN, error=True)


def test_nothing_starts_in_a_cancelled_operation() -> None:
    """No state of any walk that is cancelled asks for a step that starts something, or would take it."""
    walks = [walk() for walk in SCENARIOS]
    inputs = {step.commit.name: step.inputs for walk in walks for step in walk.steps}
    views = [View(step.before, "main") for walk in walks for step in walk.steps if walk.lane == "main"]
    cancelled = [view for view in views if view.phase not in ("no lane", "idle") and is_cancelled(view)]
    assert len(cancelled) > len(SCENARIOS) // 4
    for view in cancelled:
        for orphaned in (False, True):
            assert STARTS.isdisjoint(next_steps(view, orphaned=orphaned))
        assert not [name for name in STARTS if isinstance(T[name].commit(view, inputs[name]), Commit)]


def is_cancelled(view: View) -> bool:
    return isinstance(view.operation_state.control, CancelRequested)


def test_a_wait_for_a_retry_ends_or_is_cancelled_by_whichever_commits_first() -> None:
    """Either way the same request is not made again once the abort is durable (T26; the timer is a runtime's)."""
    failed = SettleRetryable(response=assistant(stop="error", error="overloaded"), not_before=5000)
    first, second = runs.requested(), runs.requested()
    first.take(T["settle_retryable"], failed)
    second.take(T["settle_retryable"], failed)
    assert written(first.take(T["end_retry_wait"])) == ["op.state"]
    assert View(first.state, "main").ready.next_attempt == 2
    abort.abort(first)
    abort.abort(second)
    assert getattr(T["end_retry_wait"](second.state, "main", NOTHING), "guard", "") == "control_is_running"
    for walk in (first, second):
        assert Progress.of(walk.state).due("main") == ("finish_aborted_run",)
