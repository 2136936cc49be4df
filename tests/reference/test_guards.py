"""What forbids a step: each guard refuses, by its name, a commit that is right but for one thing (§3.4)."""

from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from itertools import pairwise

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import (
    UNSET,
    Commit,
    DeleteRegister,
    InsertUsage,
    Json,
    JsonObject,
    Namespace,
    Refusal,
    SetRegister,
    State,
    Unexplained,
    View,
    apply,
    explain,
)
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, RetrySummary
from restartpoint_reference.transitions.cancellation import Abort
from restartpoint_reference.transitions.copies import ForkInto
from restartpoint_reference.transitions.facts import SESSION_ID, SetFact
from restartpoint_reference.transitions.finalization import Finalize
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.generation import Reservation, StartGeneration, SyntheticFailure
from restartpoint_reference.transitions.publication import HookSummary
from restartpoint_reference.transitions.queues import QueuedMessage
from restartpoint_reference.transitions.session import Configuration, CreateLane
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import INTERRUPTED, ToolResult
from restartpoint_reference.vocabulary.registers import OperationKind, Outcome
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.walk import NOTHING, Step, Walk, assistant, result, text, uid, usage, user
from tests.reference.walks import SCENARIOS, compaction, deferred, runs, sessions
from tests.reference.walks.runs import C1, CONFIGURATION, R1, RUN

UNDER_CANCELLATION = frozenset({
    "settle_cancelled", "cancel_assistant", "complete_batch", "cancel_planned_tool", "cancel_refused_tool",
    "settle_cancelled_tool", "interrupt_cancelled_tool", "cancel_poll", "finish_aborted_deferred",
    "settle_summary_request", "finish_aborted_structural", "finish_aborted_compaction_in_run",
    "apply_cancelled_writes", "finish_aborted_run",
})  # fmt: skip
"""The steps of a cancelled operation, and the two that settle what was begun whatever the control."""
PUBLIC_WHILE_RUNNING = frozenset({"enqueue_steer", "enqueue_follow_up", "abort_run", "abort_structural"})
"""Calls from outside that a cancelled operation takes no more of."""


@cache
def walked() -> Mapping[str, tuple[Step, ...]]:
    """Every step of the walks, by the name of its transition."""
    found: dict[str, list[Step]] = {name: [] for name in T}
    for scenario in SCENARIOS:
        for step in scenario().steps:
            found[step.commit.name].append(step)
    return {name: tuple(steps) for name, steps in found.items()}


def steps(name: str) -> tuple[Step, ...]:
    """Every step of the walks that is this transition."""
    return walked()[name]


def guard_of(state: State, name: str, inputs: Inputs, lane: str | None = "main") -> str:
    """The guard that refuses; empty when nothing does."""
    answer = T[name](state, lane, inputs)
    return answer.guard if isinstance(answer, Refusal) else ""


def after(state: State, *writes: SetRegister | InsertUsage) -> State:
    applied = apply(state, writes, timestamp=1)
    assert isinstance(applied, tuple), applied
    return applied[0]


# --- control


NEEDS_RUNNING = tuple(
    name
    for name, found in T.items()
    if name in PUBLIC_WHILE_RUNNING or not (found.public or name in UNDER_CANCELLATION)
)


@pytest.mark.parametrize("name", NEEDS_RUNNING)
def test_a_cancelled_operation_takes_no_step_of_a_running_one(name: str) -> None:
    for step in steps(name):
        lane = step.commit.lane or ""
        kind = "abort_run" if View(step.before, lane).operation.kind is OperationKind.RUN else "abort_structural"
        marker = T[kind](step.before, lane, Abort(requested_at=999))
        assert isinstance(marker, Commit), marker
        cancelled = apply(step.before, marker.writes, timestamp=999)
        assert isinstance(cancelled, tuple)
        assert guard_of(cancelled[0], name, step.inputs, lane) == "control_is_running"


# --- batches

COMPLETIONS = ("complete_batch", "complete_terminating_batch")
MID_BATCH = ("settle_tool", "refuse_tool", "refuse_truncated_tool", "interrupt_tool")


@pytest.mark.parametrize("kind", MID_BATCH)
def test_the_last_result_completes_the_batch_and_no_step_within_it_takes_it(kind: str) -> None:
    for step in [step for name in COMPLETIONS for step in steps(name) if step.commit.detail == kind]:
        assert guard_of(step.before, kind, step.inputs) == "more_calls_are_open"
        other = next(name for name in COMPLETIONS if name != step.commit.name)
        assert guard_of(step.before, other, step.inputs) in ("some_result_continues", "every_result_terminates")


def test_an_interruption_may_be_the_last_result() -> None:
    walk = runs.with_tools()
    runs.clear(walk, 1)
    runs.clear(walk, 3)
    walk.take(T["settle_tool"], ToolResult(message=result("t1", "remove")))
    last = ToolResult(message=result("t2", "read", INTERRUPTED, error=True))
    assert guard_of(walk.state, "interrupt_tool", last) == "more_calls_are_open"
    assert walk.take(T["complete_batch"], last).detail == "interrupt_tool"


@pytest.mark.parametrize("name", MID_BATCH)
def test_a_batch_with_open_calls_is_not_completed(name: str) -> None:
    for step in steps(name):
        for completion in COMPLETIONS:
            assert guard_of(step.before, completion, step.inputs) == "call_is_last"


# --- settlements


def test_only_a_response_with_calls_plans_a_batch() -> None:
    answer = SettleToolCalls(response=assistant(text("hi")), result_ids=())
    assert guard_of(runs.requested().state, "settle_tool_calls", answer) == "response_is_classified_so"


@pytest.mark.parametrize("ids", [(C1,), (C1, C1), (C1, uid(101, 12)), (C1, uid(100, 12), uid(100, 13))])
def test_every_call_has_one_result_id_of_its_own(ids: tuple[str, ...]) -> None:
    inputs = SettleToolCalls(response=runs.two_calls(), result_ids=ids)
    assert guard_of(runs.requested().state, "settle_tool_calls", inputs) == "results_follow_the_response"


def test_results_follow_the_response_and_not_its_ledger_row() -> None:
    walk = runs.prompted()
    runs.request(walk, runs.STEP, R1, uid(170, 2))
    of_the_row = SettleToolCalls(response=runs.two_calls(), result_ids=(uid(170, 11), uid(170, 12)))
    assert guard_of(walk.state, "settle_tool_calls", of_the_row) == "results_follow_the_response"
    walk.take(T["settle_tool_calls"], replace(of_the_row, result_ids=(C1, runs.C2)))


def test_a_retry_may_start_when_its_delay_has_just_passed() -> None:
    walk = runs.requested()
    failure = SettleRetryable(response=assistant(stop="error", error="overloaded"), not_before=49)
    assert guard_of(walk.state, "settle_retryable", failure) == "delay_is_kept"
    walk.take(T["settle_retryable"], replace(failure, not_before=50))


def test_a_summary_may_be_retried_when_its_delay_has_just_passed() -> None:
    walk = compaction.requested(
        compaction.generating(compaction.asked(runs.plain_run(), compaction.cut(2))), uid(620, 1)
    )
    failure = RetrySummary(error_message="overloaded", not_before=49)
    assert guard_of(walk.state, "retry_summary", failure) == "summary_delay_is_kept"
    walk.take(T["retry_summary"], replace(failure, not_before=50))


def test_a_valid_handle_is_no_invalid_one() -> None:
    response = {**assistant(stop="error", error="no"), "deferred": deferred.HANDLE}
    failure = SettleFailure(response=response, error_message="no")
    assert guard_of(runs.requested().state, "settle_invalid_deferred", failure) == "handle_is_invalid"


def test_an_overflow_prepares_under_a_new_task_only() -> None:
    step = steps("settle_overflow")[0]
    key = f"{RUN}:{getattr(step.inputs, 'task_id', '')}"
    taken = after(step.before, SetRegister(namespace=Namespace.OP_PREPARATION, key=key, value={}))
    assert guard_of(taken, "settle_overflow", step.inputs) == "task_is_new"


def test_a_cancelled_response_without_an_api_or_a_time_is_unreadable() -> None:
    step = steps("settle_cancelled")[0]
    assert isinstance(step.inputs, Response)
    for missing in ("api", "timestamp"):
        response = {key: value for key, value in step.inputs.response.items() if key != missing}
        assert guard_of(step.before, "settle_cancelled", Response(response=response)) == "state_is_readable"


def test_an_orphaned_request_fails_with_a_reason() -> None:
    step = steps("recover_exhausted_assistant")[0]
    assert isinstance(step.inputs, SyntheticFailure)
    assert guard_of(step.before, "recover_exhausted_assistant", replace(step.inputs, reason="")) == "reason_is_given"


# --- boundaries of a run


def test_where_the_run_may_finish_no_turn_is_owed() -> None:
    walk = runs.requested()
    walk.take(T["settle_stop"], Response(response=assistant(text("hi"))))
    policy = RetryPolicy(max_attempts=1, base_delay_ms=1)
    start = StartGeneration(step_id=uid(300, 1), stream_options={}, retry_policy=policy)
    assert guard_of(walk.state, "start_generation", start) == "turn_is_owed"


def test_a_run_that_tools_ended_does_not_finish_over_its_inbox() -> None:
    step = steps("finish_terminated_tools")[0]
    walk = Walk(state=step.before)
    walk.take(T["enqueue_steer"], QueuedMessage(id=uid(950, 1), message=user("wait")))
    assert guard_of(walk.state, "finish_terminated_tools", NOTHING) == "inbox_is_empty"


def test_an_operation_id_is_used_once() -> None:
    opened = runs.opened().state
    taken = after(opened, SetRegister(namespace=Namespace.OP_META, key=RUN, value={}))
    assert guard_of(taken, "accept_run", runs.accepted()) == "operation_is_new"
    assert guard_of(runs.plain_run().state, "accept_run", runs.accepted()) == "operation_is_new"


def test_a_lane_without_configuration_accepts_nothing() -> None:
    bare = apply(runs.opened().state, [DeleteRegister(namespace=Namespace.LANE_CONFIG, key="main")], timestamp=1)
    assert isinstance(bare, tuple)
    assert guard_of(bare[0], "accept_run", runs.accepted()) == "lane_is_configured"


def test_a_run_that_failed_may_still_be_aborted_from_outside() -> None:
    step = steps("finish_failed")[0]
    assert guard_of(step.before, "finalize_externally", Finalize(outcome=Outcome.ABORTED)) == ""


# --- polls


def test_a_poll_is_repeated_under_ids_that_name_nothing() -> None:
    walk = deferred.polled()
    taken = Reservation(response_entry_id=R1, usage_id=deferred.V2)
    assert guard_of(walk.state, "replace_unknown_poll", taken) == "reserved_ids_are_new"


def test_what_a_cancelled_poll_reports_was_said_live() -> None:
    step = steps("cancel_poll")[0]
    assert isinstance(step.inputs, Response)
    silent: JsonObject = {**step.inputs.response, "content": [], "usage": usage(input=1)}
    spoken: JsonObject = {**silent, "content": [text("half")], "usage": usage()}
    prescribed: JsonObject = {**spoken, "content": []}
    untimed: JsonObject = {**prescribed, "timestamp": "5"}
    for response, detail in ((silent, "live"), (spoken, "live"), (prescribed, "synthetic"), (untimed, "live")):
        commit = T["cancel_poll"](step.before, "main", Response(response=response))
        assert isinstance(commit, Commit)
        assert commit.detail == detail


# --- structural work


def test_a_hook_that_reports_usage_names_its_row() -> None:
    walk = compaction.asked(compaction.with_notes(), compaction.cut(2, 0, compaction.NOTES, compaction.LAST_NOTE))
    whole = HookSummary(entry_id=compaction.RESULT, summary="greetings", usage_id=uid(1, 1), usage=compaction.spent(3))
    assert guard_of(walk.state, "publish_hook_compaction", whole) == ""
    for half in (replace(whole, usage=UNSET), replace(whole, usage_id=UNSET)):
        assert guard_of(walk.state, "publish_hook_compaction", half) == "hook_usage_is_whole"


@pytest.mark.parametrize("name", ["publish_compaction", "publish_compaction_in_run", "publish_navigation"])
def test_nothing_is_published_while_a_request_of_the_attempt_is_open(name: str) -> None:
    found = 0
    for scenario in SCENARIOS:
        for settled, published in pairwise(scenario().steps):
            if (settled.commit.name, published.commit.name) == ("settle_summary_request", name):
                assert guard_of(settled.before, name, published.inputs) == "no_request_is_open"
                found += 1
    assert found


# --- sessions, lanes, facts


@pytest.mark.parametrize(
    "name, refused",
    [("", True), ("a", False), ("x" * 255, False), ("x" * 256, False), ("x" * 257, True), ("a\x1f", True),
     ("a b", False), ("a\x20", False), ("a\x21", False)],
)  # fmt: skip
def test_a_lane_has_a_name_of_limited_length_without_control_characters(name: str, refused: bool) -> None:
    guard = "lane_name_is_legal" if refused else ""
    assert (
        guard_of(runs.opened().state, "create_lane", CreateLane(configuration=CONFIGURATION, anchor=None), name)
        == guard
    )
    assert guard_of(State.empty(), "ensure_strand", Configuration(configuration=CONFIGURATION), name) == guard


def test_a_strand_is_seeded_where_no_register_of_it_lies() -> None:
    strand = Configuration(configuration=CONFIGURATION)
    for namespace, value in ((Namespace.LANE_LEAF, None), (Namespace.LANE_CONFIG, CONFIGURATION.to_json())):
        held = after(State.empty(), SetRegister(namespace=namespace, key="side", value=value))
        assert guard_of(held, "ensure_strand", strand, "side") == "lane_has_no_register"


def test_a_session_is_created_once_with_main() -> None:
    assert guard_of(State.empty(), "create_session", NOTHING, "side") == "lane_is_main"
    strand = Walk(lane="side")
    strand.take(T["ensure_strand"], Configuration(configuration=CONFIGURATION))
    assert guard_of(strand.state, "create_session", NOTHING) == "session_is_new"


def test_only_main_is_seeded_and_only_once() -> None:
    again = Configuration(configuration=CONFIGURATION)
    walk = runs.opened()
    assert guard_of(walk.state, "seed_main", again) == "lane_is_unconfigured"
    side = Walk(state=walk.state, lane="side")
    side.take(T["create_lane"], CreateLane(configuration=CONFIGURATION, anchor=None))
    assert guard_of(side.state, "seed_main", again, "side") == "lane_is_main"


def test_what_waits_for_the_next_run_is_input_under_a_new_id() -> None:
    walk = runs.opened()
    answer = QueuedMessage(id=uid(950, 1), message=result("t1", "read"))
    assert guard_of(walk.state, "enqueue_next_run", answer) == "message_is_input"
    walk.take(T["enqueue_next_run"], replace(answer, message=user("hi")))
    assert guard_of(walk.state, "enqueue_next_run", replace(answer, message=user("again"))) == "id_is_new"


def test_a_label_and_a_custom_fact_may_have_the_same_key() -> None:
    custom = SetFact(namespace=Namespace.FACT_CUSTOM, key=sessions.E2, value=1)
    fork = ForkInto(entries=sessions.BRANCH, facts=(sessions.LABEL, custom), lanes=(sessions.MAIN,))
    assert guard_of(State.empty(), "fork_into", fork, None) == ""
    assert guard_of(State.empty(), "fork_into", replace(fork, facts=(custom, custom)), None) == "facts_may_be_copied"


@pytest.mark.parametrize("value", [5, None])
def test_a_session_id_is_text(value: Json) -> None:
    element: Json = {
        "kind": "register", "op": "set", "namespace": "fact.custom", "key": SESSION_ID, "value": value, "seq": 1,
    }  # fmt: skip
    assert isinstance(explain(State.empty(), [element]), Unexplained)


# --- what cannot be read


def test_queued_content_of_another_shape_is_named_and_never_placed() -> None:
    walk = runs.opened()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=uid(950, 1), message=user("hi")))
    broken = after(walk.state, SetRegister(namespace=Namespace.PENDING_ENTRY, key=uid(950, 1), value={"type": "x"}))
    assert guard_of(broken, "accept_run", runs.accepted(captured=1)) == "state_is_readable"


def test_a_preparation_of_another_shape_is_named_and_never_used() -> None:
    walk = compaction.generating(compaction.asked(runs.plain_run(), compaction.cut(2)))
    key = f"{compaction.COMPACTION}:{compaction.TASK}"
    broken = after(walk.state, SetRegister(namespace=Namespace.OP_PREPARATION, key=key, value={}))
    request = IntendSummaryRequest(usage_id=uid(990, 1))
    assert guard_of(broken, "intend_summary_request", request) == "state_is_readable"


# --- the ledger


def test_only_the_caller_and_an_import_adjust_the_ledger() -> None:
    """Every transition that writes a row is seen; the walks are made anew, so that mutants of all of them meet this."""
    kinds: dict[bool, set[str]] = {True: set(), False: set()}
    for step in [step for scenario in SCENARIOS for step in scenario().steps]:
        for write in step.commit.writes:
            if isinstance(write, InsertUsage):
                kinds[write.row.adjustment].add(step.commit.name)
    assert kinds[True] == {"record_usage", "import_v3"}
    assert {"settle_stop", "settle_tool", "settle_summary_request"} <= kinds[False]
    assert not kinds[True] & kinds[False]
