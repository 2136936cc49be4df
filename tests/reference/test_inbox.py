"""What the inbox takes, what a drain takes of it, and what can still be withdrawn (§3.11, §3.12)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import JsonObject, Namespace, Refusal, View, next_steps
from restartpoint_reference.transitions.checkpoint import Drain, RunEndFollowUp
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.publication import HookSummary
from restartpoint_reference.transitions.queues import (
    DeferredWrite,
    QueuedId,
    QueuedMessage,
    Triage,
    admission_of_a_write,
    triage,
)
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.entries import InsertEntry
from restartpoint_reference.vocabulary.states import Checkpoint, NeedAssistant, RunSettings
from tests.reference.walk import NOTHING, Walk, assistant, result, text, uid, user
from tests.reference.walks import abort, compaction, inbox, runs
from tests.reference.walks.inbox import F1, F2, S1, S2, W1, W2, W3

MESSAGE = QueuedMessage(id=S1, message=user("rather this"))


def steering() -> Walk:
    """A run that may finish, with steering."""
    walk = inbox.answered()
    inbox.steer(walk, S1)
    return walk


def writing() -> Walk:
    """A run that may finish, with a note and a message to write."""
    walk = inbox.answered()
    inbox.write_note(walk, W1)
    inbox.write_message(walk, W2)
    return walk


def writing_a_failure() -> Walk:
    """A run that may finish, with a copy of a failed response to write."""
    walk = inbox.answered()
    walk.take(T["defer_write"], DeferredWrite(id=W1, message=assistant(stop="error", error="overloaded")))
    return walk


def skipping() -> Walk:
    """A run that has just consumed steering, while more input arrives."""
    walk = inbox.steered_one_by_one()
    inbox.write_note(walk, W1)
    return walk


def failing_with_input() -> Walk:
    """A failed run with everything in its inbox."""
    walk = inbox.failing()
    inbox.write_note(walk, W1)
    inbox.write_message(walk, W2)
    inbox.steer(walk, S1, S2)
    inbox.follow_up(walk, F1, F2)
    return walk


REFUSED: list[tuple[Callable[[], Walk], str, Inputs, str]] = [
    (runs.opened, "enqueue_steer", MESSAGE, "from_phase"),
    (runs.opened, "enqueue_follow_up", MESSAGE, "from_phase"),
    (runs.opened, "defer_write", DeferredWrite(id=W1, custom_type="note"), "from_phase"),
    (abort.compacting, "enqueue_steer", MESSAGE, "from_phase"),
    (abort.compacting, "defer_write", DeferredWrite(id=W1, custom_type="note"), "from_phase"),
    (steering, "enqueue_steer", MESSAGE, "id_is_new"),
    (steering, "enqueue_follow_up", MESSAGE, "id_is_new"),
    (steering, "defer_write", DeferredWrite(id=S1, custom_type="note"), "id_is_new"),
    (steering, "enqueue_steer", QueuedMessage(id=S2, message=assistant()), "message_is_input"),
    (steering, "enqueue_follow_up", QueuedMessage(id=S2, message=result("t", "read")), "message_is_input"),
    (steering, "defer_write", DeferredWrite(id=W1), "write_has_one_content"),
    (steering, "defer_write", DeferredWrite(id=W1, message=user("a"), custom_type="b"), "write_has_one_content"),
    (steering, "cancel_queued", QueuedId(id=S2), "item_is_in_the_inbox"),
    (steering, "consume_follow_up", NOTHING, "follow_up_waits"),
    (steering, "apply_writes", Drain(count=1), "writes_wait"),
    (writing, "consume_steer", NOTHING, "steering_waits"),
    (writing, "apply_writes", Drain(count=0), "writes_wait"),
    (writing, "apply_projecting_writes", Drain(count=3), "writes_wait"),
    (writing, "apply_writes", Drain(count=2), "nothing_projects"),
    (writing_a_failure, "apply_projecting_writes", Drain(count=1), "something_projects"),
    (skipping, "apply_writes", Drain(count=1), "inbox_is_not_skipped"),
    (skipping, "apply_projecting_writes", Drain(count=1), "inbox_is_not_skipped"),
    (skipping, "consume_steer", NOTHING, "inbox_is_not_skipped"),
    (inbox.steered_one_by_one, "consume_follow_up", NOTHING, "run_may_finish"),
    (failing_with_input, "apply_writes_in_failure", Drain(count=2), "nothing_projects"),
    (failing_with_input, "apply_writes_in_failure", Drain(count=3), "writes_wait"),
    (failing_with_input, "revive_from_failure", Revival(queue=Queue.WRITES, count=3), "revival_takes_its_share"),
    (failing_with_input, "revive_from_failure", Revival(queue=Queue.STEER, count=1), "revival_takes_its_share"),
    (failing_with_input, "revive_from_failure", Revival(queue=Queue.FOLLOW_UP, count=2), "revival_takes_its_share"),
    (inbox.failing, "revive_from_failure", Revival(queue=Queue.STEER, count=0), "revival_takes_its_share"),
]


@pytest.mark.parametrize("walk, name, inputs, guard", REFUSED)
def test_input_enters_and_is_drained_only_where_its_guards_hold(
    walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str
) -> None:
    answer = T[name](walk().state, "main", inputs)
    assert isinstance(answer, Refusal)
    assert answer.guard == guard


def placed(walk: Walk) -> list[str]:
    """The entries of the last commit."""
    return [write.entry.id for write in walk.steps[-1].commit.writes if isinstance(write, InsertEntry)]


@pytest.mark.covers("RT-3.12-02")
@pytest.mark.parametrize(
    "scenario, taken",
    [
        (inbox.steered_one_by_one, [S1]), (inbox.revived_by_steering, [S1, S2]),
        (inbox.followed_up, [F1]), (inbox.followed_up_at_once, [F1, F2]), (inbox.revived_by_follow_up, [F1]),
    ],
)  # fmt: skip
def test_a_drain_takes_all_or_the_oldest_by_the_captured_mode(scenario: Callable[[], Walk], taken: list[str]) -> None:
    assert placed(scenario()) == taken


@pytest.mark.covers("RT-3.12-04")
@pytest.mark.parametrize(
    "scenario",
    [
        inbox.steered_one_by_one, inbox.followed_up, inbox.written_into_the_context, inbox.projected_note,
        inbox.revived_by_a_write, inbox.revived_by_steering, inbox.revived_by_follow_up,
    ],
)  # fmt: skip
def test_whatever_enters_the_context_owes_a_turn_before_the_next_drain(scenario: Callable[[], Walk]) -> None:
    walk = scenario()
    phase = View(walk.state, "main").run.phase
    assert isinstance(phase, Checkpoint)
    assert phase.to_json() == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": placed(walk)[-1],
        "skipInboxOnce": True,
    }


@pytest.mark.covers("RT-3.12-T05", "RT-3.2-17")
def test_writes_that_are_no_context_change_nothing_but_the_tree_and_the_inbox() -> None:
    walk = compaction.overflowed()
    walk.take(T["publish_hook_compaction_in_run"], HookSummary(entry_id=compaction.RESULT, summary="a question"))
    for queued in (W1, W2, W3):
        inbox.write_note(walk, queued)
    before = View(walk.state, "main").run
    assert isinstance(before.phase, Checkpoint)
    assert before.phase.continuation == NeedAssistant(overflow_recovery_used=True)
    walk.take(T["apply_writes"], Drain(count=2))
    after = replace(before, inbox=replace(before.inbox, writes=(W3,)))
    assert View(walk.state, "main").run == after
    assert placed(walk) == [W1, W2]
    assert walk.state.keys(Namespace.PENDING_ENTRY) == [W3]
    assert View(walk.state, "main").leaf == W2


def test_a_copied_failure_enters_the_tree_without_a_turn() -> None:
    walk = writing_a_failure()
    walk.take(T["apply_writes"], Drain(count=1))
    walk.take(T["finish_run"])
    assert walk.state.entries[W1].message == assistant(stop="error", error="overloaded")


@pytest.mark.covers("RT-3.12-T74")
def test_a_write_that_is_no_context_keeps_the_failure() -> None:
    walk = inbox.failing()
    before = View(walk.state, "main").run.phase
    inbox.write_note(walk, W1)
    walk.take(T["apply_writes_in_failure"], Drain(count=1))
    assert View(walk.state, "main").run.phase == before


@pytest.mark.covers("RT-3.12-T75")
@pytest.mark.parametrize(
    "scenario, taken",
    [
        (inbox.revived_by_a_write, [W2, W3]), (inbox.revived_by_steering, [S1, S2]),
        (inbox.revived_by_follow_up, [F1]),
    ],
)  # fmt: skip
def test_writes_steering_and_follow_up_each_clear_a_failure(scenario: Callable[[], Walk], taken: list[str]) -> None:
    walk = scenario()
    assert walk.names[-1] == "revive_from_failure"
    assert placed(walk) == taken
    assert View(walk.state, "main").phase == "checkpoint"


@pytest.mark.covers("RT-3.12-T06", "AMB-22")
def test_one_message_among_the_writes_takes_all_of_them_into_a_turn() -> None:
    walk = inbox.written_into_the_context()
    assert placed(walk) == [W1, W2, W3]
    phase = View(walk.state, "main").run.phase
    assert isinstance(phase, Checkpoint)
    assert phase.trigger_entry_id == W3


@pytest.mark.covers("AMB-17", "RT-3.12-03")
def test_what_waits_behind_a_drain_waits_for_a_turn_also_after_a_restart() -> None:
    """The flag is durable: whoever reads the state next starts the turn, and drains at the boundary after it."""
    walk = inbox.owing()
    inbox.write_message(walk, W1)
    inbox.steer(walk, S1)
    walk.take(T["apply_projecting_writes"], Drain(count=1))
    assert "consume_steer" not in next_steps(View(walk.state, "main"), orphaned=True)
    assert getattr(T["consume_steer"](walk.state, "main", NOTHING), "guard", "") == "inbox_is_not_skipped"
    runs.request(walk, runs.STEP, runs.R2, runs.U2)
    assert "skipInboxOnce" not in str(walk.state.value(Namespace.OP_STATE, runs.RUN))
    walk.take(T["settle_stop"], Response(response=assistant(text("done"))))
    assert next_steps(View(walk.state, "main")) == ("consume_steer",)


@pytest.mark.covers("RT-3.11-T07")
@pytest.mark.parametrize("settings, left", [(runs.SETTINGS, ()), (inbox.ONE_BY_ONE, (S2,))])
def test_a_restart_after_one_drain_does_not_drain_again(settings: RunSettings, left: tuple[str, ...]) -> None:
    walk = inbox.owing(settings)
    inbox.steer(walk, S1, S2)
    walk.take(T["consume_steer"])
    assert View(walk.state, "main").run.inbox.steer == left
    assert "consume_steer" not in next_steps(View(walk.state, "main"), orphaned=True)


@pytest.mark.covers("RT-3.11-T12", "RT-3.12-06")
def test_follow_up_that_came_during_tools_enters_where_the_run_may_finish() -> None:
    walk = runs.with_tools()
    inbox.follow_up(walk, F1)
    walk.take(T["refuse_tool"], ToolResult(message=result("t1", "remove", "blocked", error=True)))
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read", "unknown tool", error=True)))
    assert getattr(T["consume_follow_up"](walk.state, "main", NOTHING), "guard", "") == "run_may_finish"
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    walk.take(T["settle_stop"], Response(response=assistant(text("done"))))
    walk.take(T["consume_follow_up"])
    assert placed(walk) == [F1]


@pytest.mark.covers("RT-3.12-07", "AMB-25")
@pytest.mark.parametrize("lead", [steering, writing])
def test_nothing_ends_or_extends_a_run_while_something_waits(lead: Callable[[], Walk]) -> None:
    state = lead().state
    assert {"append_run_end_follow_up", "finish_run"}.isdisjoint(next_steps(View(state, "main")))
    follow_up = RunEndFollowUp(id=F1, message=user("and then?"))
    for name, inputs in (("append_run_end_follow_up", follow_up), ("finish_run", NOTHING)):
        assert getattr(T[name](state, "main", inputs), "guard", "") == "inbox_is_empty"


@pytest.mark.covers("RT-3.11-02", "RT-3.11-T77", "RT-3.11-T78")
@pytest.mark.parametrize("name", ["enqueue_steer", "enqueue_follow_up"])
def test_messages_for_a_run_are_taken_from_a_suspended_one_and_otherwise_need_a_running_one(name: str) -> None:
    for lead in (runs.opened, abort.compacting, lambda: abort.abort(runs.prompted())):
        assert isinstance(T[name](lead().state, "main", MESSAGE), Refusal)
    walk = runs.deferred_run()
    commit = walk.take(T[name], MESSAGE)
    addresses = [(write.to_json()["namespace"], write.to_json()["key"]) for write in commit.writes]
    assert addresses == [("pending.entry", S1), ("op.state", runs.RUN)]
    assert View(walk.state, "main").phase == "deferred.suspended"


@pytest.mark.covers("RT-3.11-T80", "RT-3.11-T82")
def test_input_for_the_next_run_starts_none_and_can_be_withdrawn_under_any() -> None:
    walk = runs.opened()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=F1, message=user("later")))
    assert View(walk.state, "main").phase == "idle"
    walk = runs.prompted()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=F1, message=user("later")))
    walk.take(T["cancel_next_run"], QueuedId(id=F1))
    assert triage(View(walk.state, "main"), F1) is Triage.NOT_FOUND


@pytest.mark.covers("RT-3.11-T81", "AMB-54")
def test_whatever_waits_in_the_inbox_is_withdrawn_once() -> None:
    walk = inbox.withdrawn()
    assert View(walk.state, "main").run.inbox.to_json() == {"steer": [S2], "followUp": [], "writes": []}
    assert walk.state.keys(Namespace.PENDING_ENTRY) == [S2]
    for gone in (S1, F1, W1):
        assert isinstance(T["cancel_queued"](walk.state, "main", QueuedId(id=gone)), Refusal)
        assert triage(View(walk.state, "main"), gone) is Triage.NOT_FOUND


@pytest.mark.covers("RT-3.11-01", "RT-3.2-11")
def test_queued_content_stands_once_in_its_register_and_the_lists_hold_its_id() -> None:
    walk = inbox.answered()
    inbox.steer(walk, S1)
    inbox.follow_up(walk, F1)
    walk.take(T["defer_write"], DeferredWrite(id=W1, custom_type="mark"))
    said: JsonObject = {"type": "message", "payload": user(f"rather {S1}")}
    assert walk.state.value(Namespace.PENDING_ENTRY, S1) == said
    assert walk.state.value(Namespace.PENDING_ENTRY, W1) == {"type": "custom", "customType": "mark"}
    assert View(walk.state, "main").run.inbox.to_json() == {"steer": [S1], "followUp": [F1], "writes": [W1]}


@pytest.mark.covers("RT-3.11-04", "RT-3.11-06")
def test_a_withdrawal_is_answered_by_what_waits_then_by_what_was_placed() -> None:
    walk = steering()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=F1, message=user("later")))
    assert {triage(View(walk.state, "main"), waiting) for waiting in (S1, F1)} == {Triage.CANCELLED}
    assert triage(View(walk.state, "main"), S2) is Triage.NOT_FOUND
    other = walk.fork()
    walk.take(T["cancel_queued"], QueuedId(id=S1))
    assert triage(View(walk.state, "main"), S1) is Triage.NOT_FOUND
    other.take(T["consume_steer"])
    assert triage(View(other.state, "main"), S1) is Triage.ALREADY_CONSUMED
    assert triage(View(runs.opened().state, "main"), S1) is Triage.NOT_FOUND


def test_a_tree_write_is_placed_deferred_or_waits_by_what_is_open() -> None:
    assert admission_of_a_write(View(runs.opened().state, "main")) == "write_idle"
    assert admission_of_a_write(View(runs.deferred_run().state, "main")) == "defer_write"
    assert admission_of_a_write(View(abort.compacting().state, "main")) is None
