"""A step that one name has in several forms is in turn only in the form that is due (§3.8, §3.12, §4.5, §4.6)."""

import pytest

from restartpoint_reference import TRANSITIONS, JsonObject, Misstep, Progress
from restartpoint_reference.transitions.checkpoint import Drain
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleToolCalls
from restartpoint_reference.transitions.tools import INTERRUPTED, IntendTool, ToolResult
from restartpoint_reference.vocabulary.states import Replay
from tests.reference.test_progress import followed, going_on, made
from tests.reference.walk import Walk, assistant, call, result, text, uid, usage
from tests.reference.walks import abort, deferred, inbox, runs

DONE = ToolResult(message=result("t1", "remove"))
LOST = ToolResult(message=result("t1", "remove", INTERRUPTED, error=True))


def the_only_call(replay: Replay = Replay.NEVER) -> Walk:
    """A batch of one call that may be under way."""
    walk = runs.requested()
    plan = SettleToolCalls(response=assistant(call("t1", "remove"), stop="toolUse"), result_ids=(runs.C1,))
    walk.take(TRANSITIONS["settle_tool_calls"], plan)
    runs.clear(walk, 0, replay)
    return walk


def judged(walk: Walk, progress: Progress, name: str, inputs: Inputs) -> Misstep | Progress:
    return progress.after(*made(walk.state, name, inputs))


@pytest.mark.parametrize("cancelled", [False, True])
@pytest.mark.parametrize("replay", list(Replay))
def test_the_last_call_settles_by_whoever_could_know_its_outcome(replay: Replay, cancelled: bool) -> None:
    """A live process has the call's own result; of a lost one only a safe call may have been run again (§4.5)."""
    walk = the_only_call(replay)
    if cancelled:
        abort.abort(walk)
    live = followed(walk)
    lost = live.attached(walk.state)
    unseen = Progress.of(walk.state, restarts_are_seen=False)
    assert isinstance(judged(walk, live, "complete_batch", DONE), Progress)
    assert isinstance(judged(walk, live, "complete_batch", LOST), Misstep)
    assert isinstance(judged(walk, lost, "complete_batch", LOST), Progress)
    assert isinstance(judged(walk, lost, "complete_batch", DONE), Progress if replay is Replay.SAFE else Misstep)
    for inputs in (DONE, LOST):
        assert isinstance(judged(walk, unseen, "complete_batch", inputs), Progress)


def test_a_real_result_of_a_lost_call_says_what_is_due() -> None:
    walk = the_only_call()
    misstep = judged(walk, followed(walk).attached(walk.state), "complete_batch", DONE)
    assert str(misstep) == (
        "complete_batch on lane main came out of turn (§3.8): the process that started the effect is gone: "
        "complete_terminating_batch or complete_batch (interrupt_tool) is due"
    )


def cleared(index: int) -> IntendTool:
    return IntendTool(source_index=index, arguments={}, replay=Replay.NEVER)


def test_a_process_clears_its_calls_in_source_order() -> None:
    walk = runs.with_tools()
    runs.clear(walk, 3)
    misstep = judged(walk, followed(walk), "intend_tool", cleared(1))
    assert isinstance(misstep, Misstep)
    assert misstep.missing == ("refuse_tool",)
    assert isinstance(judged(walk, followed(walk).attached(walk.state), "intend_tool", cleared(1)), Progress)
    assert isinstance(
        judged(walk, Progress.of(walk.state, restarts_are_seen=False), "intend_tool", cleared(1)), Progress
    )


def queued_before_the_failure() -> Walk:
    """A run that failed while every list of its inbox had something."""
    walk = runs.requested()
    inbox.follow_up(walk, inbox.F1)
    inbox.steer(walk, inbox.S1)
    inbox.write_message(walk, inbox.W1)
    refused = assistant(stop="error", error="invalid api key")
    walk.take(TRANSITIONS["settle_failure"], SettleFailure(response=refused, error_message="invalid api key"))
    return walk


@pytest.mark.parametrize("queue", list(Queue))
def test_a_failed_run_takes_writes_then_steering_then_follow_up(queue: Queue) -> None:
    walk = queued_before_the_failure()
    answer = judged(walk, followed(walk), "revive_from_failure", Revival(queue=queue, count=1))
    assert isinstance(answer, Progress if queue is Queue.WRITES else Misstep)


def test_a_message_that_was_chosen_to_revive_a_run_is_taken_before_what_came_later() -> None:
    """Steering arrives after the drain chose the follow-up (decision AMB-87)."""
    walk = inbox.failing()
    inbox.follow_up(walk, inbox.F1)
    inbox.steer(walk, inbox.S1)
    for queue in (Queue.FOLLOW_UP, Queue.STEER):
        going_on(judged(walk, followed(walk), "revive_from_failure", Revival(queue=queue, count=1)))


def answers_of_a_cancelled_poll() -> tuple[JsonObject, JsonObject]:
    """What a fetch brought, and what stands for one that brought nothing."""
    brought = assistant(text("half"), stop="aborted", error="was stop")
    return brought, {**assistant(stop="aborted", error="aborted"), "usage": usage()}


def test_a_cancelled_poll_whose_process_is_gone_settles_by_the_prescribed_message() -> None:
    walk = abort.abort(deferred.polled())
    brought, nothing = answers_of_a_cancelled_poll()
    live = followed(walk)
    lost = live.attached(walk.state)
    for response in (brought, nothing):
        going_on(judged(walk, live, "cancel_poll", Response(response=response)))
    going_on(judged(walk, lost, "cancel_poll", Response(response=nothing)))
    for other in (brought, {**nothing, "model": "m-2"}, {**nothing, "provider": "other"}, {**nothing, "api": "other"}):
        assert isinstance(judged(walk, lost, "cancel_poll", Response(response=other)), Misstep)


def two_writes_waiting() -> Walk:
    """A run that may finish, with two writes that came before its answer."""
    walk = runs.requested()
    inbox.write_message(walk, inbox.W1)
    inbox.write_message(walk, inbox.W2)
    walk.take(TRANSITIONS["settle_stop"], Response(response=assistant(text("done"))))
    return walk


def test_a_drain_takes_every_write_that_waited_when_it_was_chosen() -> None:
    walk = two_writes_waiting()
    misstep = judged(walk, followed(walk), "apply_projecting_writes", Drain(count=1))
    assert isinstance(misstep, Misstep)
    assert inbox.W2 in misstep.reason
    going_on(judged(walk, followed(walk), "apply_projecting_writes", Drain(count=2)))


def test_a_write_that_arrives_after_the_choice_may_wait() -> None:
    """The drain takes what it evaluated (decision AMB-21)."""
    walk = two_writes_waiting()
    before = followed(walk)
    inbox.write_message(walk, inbox.W3)
    for progress in (followed(walk), before.reread(walk.state)):
        for count in (2, 3):
            going_on(judged(walk, progress, "apply_projecting_writes", Drain(count=count)))
        assert isinstance(judged(walk, progress, "apply_projecting_writes", Drain(count=1)), Misstep)


def test_a_choice_outlives_a_commit_whose_outcome_was_not_seen() -> None:
    """The unseen commit put input before a step that was chosen already (decision AMB-87)."""
    walk = two_writes_waiting()
    walk.take(TRANSITIONS["apply_projecting_writes"], Drain(count=2))
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    walk.take(TRANSITIONS["settle_stop"], Response(response=assistant(text("and more"))))
    inbox.follow_up(walk, inbox.F1)
    before = followed(walk)
    inbox.steer(walk, inbox.S1)
    going_on(before.reread(walk.state).after(*made(walk.state, "consume_follow_up")))
    assert isinstance(before.attached(walk.state).after(*made(walk.state, "consume_follow_up")), Misstep)


def test_a_choice_ends_with_a_step_whose_outcome_was_not_seen() -> None:
    walk = two_writes_waiting()
    before = followed(walk)
    walk.take(TRANSITIONS["apply_projecting_writes"], Drain(count=2))
    assert before.reread(walk.state).due("main") == followed(walk).due("main")
    again = before.reread(walk.state).after(
        *made(two_writes_waiting().state, "apply_projecting_writes", Drain(count=2))
    )
    assert isinstance(again, Misstep)
