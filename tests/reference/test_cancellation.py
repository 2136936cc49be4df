"""What an abort marks, answers, settles and ends (§3.11, §4.6), and how an operation is ended from outside (§4.9)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import (
    Explained,
    JsonObject,
    Namespace,
    Refusal,
    View,
    explain,
    next_steps,
)
from restartpoint_reference.transitions.cancellation import answer_of_abort
from restartpoint_reference.transitions.checkpoint import Drain
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.finalization import Finalize, result_of_an_ended
from restartpoint_reference.transitions.frame import Inputs, NotThis
from restartpoint_reference.transitions.generation import SyntheticResponse
from restartpoint_reference.transitions.queues import DeferredWrite, QueuedId, QueuedMessage, Triage, triage
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.entries import InsertUsage
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import (
    ErrorCode,
    LaneLastResult,
    OperationError,
    Outcome,
    RunCompletion,
)
from restartpoint_reference.vocabulary.states import EMPTY_INBOX, CancelRequested, Checkpoint, NeedAssistant, RunState
from tests.reference.walk import NOTHING, Walk, as_elements, assistant, result, text, uid, usage, user
from tests.reference.walks import SCENARIOS, abort, compaction, inbox, runs
from tests.reference.walks.abort import ABORT, refuse
from tests.reference.walks.inbox import F1, S1, S2, W1
from tests.reference.walks.planted import plant

ABORTED = assistant(stop="aborted", error="aborted by the user", output=0)
SYNTHETIC = SyntheticResponse(api="scripted", timestamp=5, reason="aborted by the user")
FAILED = OperationError(code=ErrorCode.PROVIDER_ERROR, message="no")


def cancelled(walk: Callable[[], Walk]) -> Callable[[], Walk]:
    """A walk to the cancelled run."""
    return lambda: abort.abort(walk())


def written(walk: Callable[[], Walk]) -> Callable[[], Walk]:
    """A walk to the cancelled run, where a write waits."""

    def lead() -> Walk:
        led = abort.abort(walk())
        inbox.write_note(led, W1)
        return led

    return lead


def one_call_left(*, planned: bool = False) -> Callable[[], Walk]:
    """A walk to the cancelled run whose first call has its result."""

    def lead() -> Walk:
        led = abort.abort(runs.with_tools()) if planned else abort.cleared()
        led.take(T["cancel_planned_tool" if planned else "cancel_refused_tool"], refuse("t1", "remove"))
        return led

    return lead


def aborted_compaction() -> Walk:
    """A compaction that was already asked to stop."""
    led = abort.compacting()
    led.take(T["abort_structural"], ABORT)
    return led


REFUSED: list[tuple[Callable[[], Walk], str, Inputs, str]] = [
    (runs.opened, "abort_run", ABORT, "from_phase"),
    (abort.compacting, "abort_run", ABORT, "from_phase"),
    (runs.prompted, "abort_structural", ABORT, "from_phase"),
    (cancelled(runs.prompted), "abort_run", ABORT, "control_is_running"),
    (aborted_compaction, "abort_structural", ABORT, "control_is_running"),
    (written(inbox.answered), "apply_writes", Drain(count=1), "control_is_running"),
    (written(inbox.answered), "apply_projecting_writes", Drain(count=1), "control_is_running"),
    (cancelled(inbox.answered), "consume_steer", NOTHING, "control_is_running"),
    (cancelled(inbox.answered), "consume_follow_up", NOTHING, "control_is_running"),
    (written(inbox.failing), "apply_writes_in_failure", Drain(count=1), "control_is_running"),
    (written(inbox.failing), "revive_from_failure", Revival(queue=Queue.WRITES, count=1), "control_is_running"),
    (cancelled(runs.prompted), "enqueue_steer", QueuedMessage(id=S1, message=user("a")), "control_is_running"),
    (cancelled(runs.prompted), "enqueue_follow_up", QueuedMessage(id=S1, message=user("a")), "control_is_running"),
    (runs.requested, "settle_cancelled", Response(response=ABORTED), "response_is_classified_so"),
    (cancelled(runs.requested), "settle_cancelled", Response(response=assistant(text("a"))), "response_is_aborted"),
    (cancelled(runs.requested), "settle_stop", Response(response=assistant(text("a"))), "control_is_running"),
    (runs.requested, "cancel_assistant", SYNTHETIC, "cancellation_is_requested"),
    (cancelled(runs.requested), "cancel_assistant",
     SyntheticResponse(api="scripted", timestamp=5, reason=""), "reason_is_given"),
    (runs.with_tools, "cancel_planned_tool", refuse("t1", "remove"), "cancellation_is_requested"),
    (cancelled(runs.with_tools), "refuse_tool", refuse("t1", "remove"), "control_is_running"),
    (cancelled(runs.with_tools), "cancel_planned_tool", refuse("t2", "read"), "result_answers_the_call"),
    (cancelled(runs.with_tools), "cancel_planned_tool", ToolResult(message=result("t1", "remove")),
     "result_fits_the_call"),
    (abort.cleared, "settle_cancelled_tool", ToolResult(message=result("t1", "remove"), terminate=True),
     "result_fits_the_call"),
    (abort.cleared, "settle_cancelled_tool", ToolResult(message=result("t1", "remove"), usage=usage()),
     "usage_is_whole"),
    (abort.cleared, "settle_cancelled_tool", refuse("t1", "remove"), "call_settles_so"),
    (abort.cleared, "cancel_planned_tool", refuse("t1", "remove"), "call_settles_so"),
    (abort.cleared, "cancel_refused_tool", refuse("t1", "remove", abort.UNKNOWN), "call_settles_so"),
    (abort.cleared, "interrupt_cancelled_tool", refuse("t1", "remove"), "call_settles_so"),
    (runs.with_tools, "cancel_refused_tool", refuse("t1", "remove"), "cancellation_is_requested"),
    (runs.with_tools, "settle_cancelled_tool", refuse("t1", "remove"), "cancellation_is_requested"),
    (runs.with_tools, "interrupt_cancelled_tool", refuse("t1", "remove"), "cancellation_is_requested"),
    (abort.cleared, "cancel_refused_tool", refuse("t2", "read"), "result_answers_the_call"),
    (abort.cleared, "settle_cancelled_tool", ToolResult(message=result("t2", "read")), "result_answers_the_call"),
    (abort.cleared, "interrupt_cancelled_tool", refuse("t2", "read", abort.UNKNOWN), "result_answers_the_call"),
    (one_call_left(planned=True), "cancel_planned_tool", refuse("t2", "read"), "more_calls_are_open"),
    (one_call_left(), "cancel_refused_tool", refuse("t2", "read"), "more_calls_are_open"),
    (one_call_left(), "settle_cancelled_tool", ToolResult(message=result("t2", "read")), "more_calls_are_open"),
    (one_call_left(), "interrupt_cancelled_tool", refuse("t2", "read", abort.UNKNOWN), "more_calls_are_open"),
    (one_call_left(), "complete_batch", ToolResult(message=result("t2", "read"), terminate=True),
     "result_fits_the_call"),
    (abort.cleared, "complete_batch", ToolResult(message=result("t1", "remove")), "call_is_last"),
    (one_call_left(), "complete_terminating_batch", ToolResult(message=result("t2", "read")), "control_is_running"),
    (inbox.answered, "apply_cancelled_writes", NOTHING, "cancellation_is_requested"),
    (cancelled(inbox.answered), "apply_cancelled_writes", NOTHING, "writes_are_left"),
    (written(runs.requested), "apply_cancelled_writes", NOTHING, "from_phase"),
    (written(runs.with_tools), "apply_cancelled_writes", NOTHING, "from_phase"),
    (inbox.answered, "finish_aborted_run", NOTHING, "cancellation_is_requested"),
    (written(inbox.answered), "finish_aborted_run", NOTHING, "inbox_is_empty"),
    (cancelled(runs.requested), "finish_aborted_run", NOTHING, "from_phase"),
    (cancelled(runs.with_tools), "finish_aborted_run", NOTHING, "from_phase"),
    (cancelled(inbox.answered), "finish_run", NOTHING, "control_is_running"),
    (cancelled(inbox.failing), "finish_failed", NOTHING, "control_is_running"),
    (runs.deferred_run, "finish_aborted_deferred", NOTHING, "cancellation_is_requested"),
    (written(runs.deferred_run), "finish_aborted_deferred", NOTHING, "inbox_is_empty"),
    (compaction.at_threshold, "finish_aborted_compaction_in_run", NOTHING, "cancellation_is_requested"),
    (written(compaction.at_threshold), "finish_aborted_compaction_in_run", NOTHING, "inbox_is_empty"),
    (abort.compacting, "finish_aborted_structural", NOTHING, "cancellation_is_requested"),
    (abort.navigating, "finish_aborted_structural", NOTHING, "cancellation_is_requested"),
    (runs.opened, "finalize_externally", Finalize(outcome=Outcome.ABORTED), "from_phase"),
    (runs.prompted, "finalize_externally", Finalize(outcome=Outcome.FAILED), "outcome_fits_the_operation"),
    (runs.prompted, "finalize_externally", Finalize(outcome=Outcome.COMPLETED), "outcome_fits_the_operation"),
    (runs.prompted, "finalize_externally", Finalize(outcome=Outcome.DECLINED), "outcome_fits_the_operation"),
    (abort.compacting, "finalize_externally",
     Finalize(outcome=Outcome.COMPLETED, run_completion=RunCompletion.ASSISTANT), "outcome_fits_the_operation"),
    (inbox.failing, "finalize_externally", Finalize(outcome=Outcome.FAILED, error=FAILED), "failure_keeps_its_error"),
]  # fmt: skip


@pytest.mark.parametrize("walk, name, inputs, guard", REFUSED)
def test_nothing_is_cancelled_unless_asked_and_nothing_starts_once_it_is(
    walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str
) -> None:
    answer = T[name](walk().state, "main", inputs)
    assert isinstance(answer, Refusal)
    assert answer.guard == guard


EVERYWHERE = [
    runs.prompted, inbox.answered, runs.requested, runs.with_tools, runs.deferred_run, compaction.at_threshold,
    inbox.failing,
]  # fmt: skip


@pytest.mark.covers("RT-4.6-02", "RT-3.11-T83")
@pytest.mark.parametrize("walk", EVERYWHERE)
def test_an_abort_changes_the_control_and_the_messages_that_wait_and_nothing_else(walk: Callable[[], Walk]) -> None:
    led = walk()
    inbox.steer(led, S1, S2)
    inbox.follow_up(led, F1)
    inbox.write_note(led, W1)
    before = led.state.value(Namespace.OP_STATE, runs.RUN)
    commit = led.take(T["abort_run"], ABORT)
    control: JsonObject = {
        "status": "cancel_requested", "requestedAt": 4000, "drainedSteer": [S1, S2], "drainedFollowUp": [F1]
    }  # fmt: skip
    assert isinstance(before, dict)
    after: JsonObject = {**before, "control": control, "inbox": {"steer": [], "followUp": [], "writes": [W1]}}
    assert [write.to_json()["value"] for write in commit.writes] == [after]
    assert led.state.keys(Namespace.PENDING_ENTRY) == [S1, S2, F1, W1]


@pytest.mark.covers("RT-4.6-T84")
@pytest.mark.parametrize("walk", [abort.compacting, abort.navigating])
def test_a_structural_operation_drains_nothing(walk: Callable[[], Walk]) -> None:
    led = walk()
    led.take(T["abort_structural"], ABORT)
    control = View(led.state, "main").operation_state.control
    assert control == CancelRequested(requested_at=4000, drained_steer=(), drained_follow_up=())
    answer = answer_of_abort(View(led.state, "main"))
    assert (answer.operation_id, answer.steer, answer.follow_up) == (View(led.state, "main").operation_id, (), ())


@pytest.mark.covers("RT-3.11-07", "RT-4.6-03", "RT-4.6-05")
def test_every_abort_of_an_open_run_answers_what_the_first_one_drained() -> None:
    walk = inbox.answered()
    inbox.steer(walk, S1)
    inbox.follow_up(walk, F1)
    with pytest.raises(NotThis):
        answer_of_abort(View(walk.state, "main"))
    abort.abort(walk)
    first = answer_of_abort(View(walk.state, "main"))
    assert (first.operation_id, first.steer, first.follow_up) == (
        runs.RUN, (user(f"rather {S1}"),), (user(f"then {F1}"),)
    )  # fmt: skip
    inbox.write_note(walk, W1)
    walk.take(T["apply_cancelled_writes"])
    assert answer_of_abort(View(walk.state, "main")) == first
    assert isinstance(T["abort_run"](walk.state, "main", ABORT), Refusal)
    walk.take(T["finish_aborted_run"])
    with pytest.raises(NotThis):
        answer_of_abort(View(walk.state, "main"))
    assert walk.state.keys(Namespace.PENDING_ENTRY) == []
    assert {S1, F1}.isdisjoint(walk.state.entries)


@pytest.mark.covers("RT-3.11-05")
def test_what_an_abort_drained_is_no_longer_withdrawn() -> None:
    walk = inbox.answered()
    inbox.steer(walk, S1)
    abort.abort(walk)
    assert walk.state.register(Namespace.PENDING_ENTRY, S1) is not None
    assert triage(View(walk.state, "main"), S1) is Triage.NOT_FOUND
    refusal = T["cancel_queued"](walk.state, "main", QueuedId(id=S1))
    assert getattr(refusal, "guard", "") == "item_is_in_the_inbox"


@pytest.mark.covers("RT-3.11-T79")
@pytest.mark.parametrize("walk", EVERYWHERE)
def test_a_write_is_accepted_from_a_cancelled_run_too(walk: Callable[[], Walk]) -> None:
    led = abort.abort(walk())
    led.take(T["defer_write"], DeferredWrite(id=W1, message=user("by the way")))
    assert View(led.state, "main").run.inbox.writes == (W1,)


@pytest.mark.covers("RT-3.11-09", "RT-3.12-T72", "RT-4.6-11")
@pytest.mark.parametrize(
    "walk",
    [abort.drained_run, abort.ready, abort.waiting_for_a_retry, abort.failing, abort.suspended, abort.compacting_run],
)  # fmt: skip
def test_the_writes_of_a_cancelled_run_enter_the_tree_in_order_and_owe_no_turn(walk: Callable[[], Walk]) -> None:
    steps = walk().steps
    step, end = steps[-2:]
    assert step.commit.name == "apply_cancelled_writes"
    before, after = View(step.before, "main").run, View(end.before, "main").run
    assert after == replace(before, inbox=EMPTY_INBOX)
    new = [entry for entry in end.before.entries.values() if entry.id not in step.before.entries]
    placed = [entry.id for entry in sorted(new, key=lambda entry: entry.seq)]
    assert tuple(placed) == before.inbox.writes
    parents = [end.before.entries[entry].parent_id for entry in placed]
    assert parents == [View(step.before, "main").leaf, *placed[:-1]]


@pytest.mark.covers("RT-4.6-08", "RT-4.6-09")
def test_a_started_request_keeps_its_usage_and_one_without_a_response_costs_nothing() -> None:
    assert rows(abort.received()) == [usage(input=10, output=7, totalTokens=17)]
    assert rows(abort.not_received()) == [zero_usage()]


def rows(walk: Walk) -> list[JsonObject]:
    return [write.row.usage for step in walk.steps for write in step.commit.writes if isinstance(write, InsertUsage)]


def test_a_response_that_holds_nothing_is_the_synthetic_one() -> None:
    """A provider that stopped before it said anything leaves the same entry as no provider at all."""
    walk = abort.abort(runs.requested())
    empty: JsonObject = {**ABORTED, "usage": zero_usage()}
    refusal = T["settle_cancelled"](walk.state, "main", Response(response=empty))
    assert getattr(refusal, "guard", "") == "response_was_received"
    other = walk.fork()
    walk.take(T["cancel_assistant"], SYNTHETIC)
    assert walk.state.entries[runs.R1].message == empty
    other.take(T["settle_cancelled"], Response(response={**empty, "responseId": "r-1"}))


@pytest.mark.covers("AMB-39", "AMB-40")
def test_a_cancelled_batch_leaves_a_checkpoint_that_nobody_continues() -> None:
    """The last result writes the ordinary continuation (decision AMB-39); cancellation ends the run all the same."""
    walk = abort.planned_calls()
    state = View(walk.steps[-1].before, "main").run
    assert isinstance(state.phase, Checkpoint)
    assert isinstance(state.phase.continuation, NeedAssistant)
    assert walk.steps[-2].commit.detail == "cancel_planned_tool"
    assert abort.started_calls().names[-4:] == [
        "complete_batch",
        "defer_write",
        "apply_cancelled_writes",
        "finish_aborted_run",
    ]
    details = [one().steps[-1].commit.detail for one in (abort.refused_calls, abort.orphaned_calls)]
    assert details == ["cancel_refused_tool", "interrupt_cancelled_tool"]


@pytest.mark.covers("RT-4.6-15", "RT-3.12-T73", "RT-4.6-10", "AMB-43")
@pytest.mark.parametrize("scenario", [scenario for scenario in SCENARIOS if scenario.__module__ == abort.__name__])
def test_an_aborted_end_names_the_newest_response_and_invents_none(scenario: Callable[[], Walk]) -> None:
    walk = scenario()
    step = walk.steps[-1]
    if not step.commit.name.startswith("finish_aborted"):
        return
    last = LaneLastResult.from_json(walk.state.value(Namespace.LANE_LAST_RESULT, "main"))  # type: ignore[arg-type]
    state = View(step.before, "main").operation_state
    latest = state.latest_assistant_entry_id if isinstance(state, RunState) else None
    assert last.outcome is Outcome.ABORTED
    assert (last.final_assistant_entry_id or None) == latest
    assert set(walk.state.entries) == set(step.before.entries)
    assert walk.state.value(Namespace.LANE_LEAF, "main") == step.before.value(Namespace.LANE_LEAF, "main")


# --- from outside


def test_an_end_from_outside_that_looks_like_the_ordinary_one_is_told_as_that() -> None:
    walk = inbox.answered()
    inputs = Finalize(outcome=Outcome.COMPLETED, run_completion=RunCompletion.ASSISTANT)
    commit = walk.take(T["finalize_externally"], inputs)
    told = explain(walk.steps[-1].before, as_elements(commit, walk.steps[-1].before.next_seq, 1), 1)
    assert isinstance(told, Explained)
    assert told.name == "finish_run"


def test_an_end_from_outside_takes_everything_that_the_operation_owned() -> None:
    state = abort.ended_from_outside().state
    owned = (Namespace.OP_META, Namespace.OP_STATE, Namespace.OP_TOOL_ARGS, Namespace.PENDING_ENTRY)
    assert [state.keys(namespace) for namespace in owned] == [[], [], [], []]
    assert S1 not in state.entries


@pytest.mark.covers("RT-3.13-05")
@pytest.mark.parametrize("walk", [abort.compacting, abort.navigating])
def test_structural_work_ends_from_outside_without_a_publication(walk: Callable[[], Walk]) -> None:
    led = walk()
    leaf = View(led.state, "main").leaf
    led.take(T["finalize_externally"], Finalize(outcome=Outcome.COMPLETED))
    assert View(led.state, "main").leaf == leaf
    last = led.state.value(Namespace.LANE_LAST_RESULT, "main")
    assert isinstance(last, dict)
    assert sorted(last) == ["kind", "leafId", "operationId", "outcome"]
    assert led.state.keys(Namespace.OP_PREPARATION) == []


@pytest.mark.covers("RT-4.9-04")
def test_after_a_suspended_run_was_ended_from_outside_nothing_is_left_to_resume() -> None:
    walk = abort.failed_from_outside()
    assert next_steps(View(walk.state, "main"), orphaned=True) == ()
    assert View(walk.state, "main").lane_state.current_operation_id is None


@pytest.mark.covers("RT-4.9-05", "RT-3.4-06")
def test_an_operation_ends_once_and_whoever_comes_later_finds_the_result() -> None:
    walk = abort.abort(inbox.answered())
    assert result_of_an_ended(View(walk.state, "main"), runs.RUN) is None
    walk.take(T["finish_aborted_run"])
    for late in ("finish_aborted_run", "finalize_externally", "finish_run"):
        inputs: Inputs = Finalize(outcome=Outcome.ABORTED) if late == "finalize_externally" else NOTHING
        assert getattr(T[late](walk.state, "main", inputs), "guard", "") == "from_phase"
    found = result_of_an_ended(View(walk.state, "main"), runs.RUN)
    assert found is not None
    assert (found.operation_id, found.outcome) == (runs.RUN, Outcome.ABORTED)


def test_a_result_that_another_operation_has_overwritten_is_nobodys_any_more() -> None:
    with pytest.raises(NotThis, match="no operation of lane main has ended"):
        result_of_an_ended(View(runs.opened().state, "main"), runs.RUN)
    with pytest.raises(NotThis, match="is that of"):
        result_of_an_ended(View(runs.plain_run().state, "main"), uid(1, 1))
    damaged = plant(runs.plain_run(), (Namespace.LANE_LAST_RESULT, "main", {}))
    with pytest.raises(NotThis, match=r"lane\.lastResult/main: "):
        result_of_an_ended(View(damaged.state, "main"), runs.RUN)
