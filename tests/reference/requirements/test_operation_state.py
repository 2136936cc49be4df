"""What operation and lane state hold across aborts, drains, retries and restarts (§3.2, §3.3, §3.6)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, JsonObject, Namespace, Progress, View
from restartpoint_reference.transitions.compaction import SettleOverflow
from restartpoint_reference.transitions.publication import HookSummary, Summary
from restartpoint_reference.transitions.queues import QueuedMessage
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleRetryable
from restartpoint_reference.vocabulary.states import AssistantPhase, FailureDrain, ResponseProvenance
from tests.reference.walk import NOTHING, Walk, assistant, text, uid, user
from tests.reference.walks import abort, compaction, inbox, navigation, runs
from tests.reference.walks.abort import ABORT
from tests.reference.walks.inbox import F1, ONE_BY_ONE, S1, S2

LATER, R3, U3 = uid(430, 1), uid(250, 1), uid(250, 2)
TOO_LONG = assistant(stop="error", error="context window exceeded", output=3)


def steered() -> Walk:
    walk = inbox.answered()
    inbox.steer(walk, S1)
    inbox.follow_up(walk, F1)
    return walk


def control(walk: Walk) -> Json:
    held = walk.state.value(Namespace.OP_STATE, View(walk.state, "main").operation_id)
    assert isinstance(held, dict)
    return held["control"]


@pytest.mark.covers("RT-3.2-04")
@pytest.mark.parametrize(
    "lead, marker, steer, follow_up",
    [
        (steered, "abort_run", [S1], [F1]),
        (runs.requested, "abort_run", [], []),
        (abort.compacting, "abort_structural", [], []),
        (abort.navigating, "abort_structural", [], []),
    ],
)
def test_control_is_running_until_an_abort_says_when_and_what_it_drained(
    lead: Callable[[], Walk], marker: str, steer: list[Json], follow_up: list[Json]
) -> None:
    walk = lead()
    assert control(walk) == {"status": "running"}
    walk.take(T[marker], ABORT)
    assert control(walk) == {
        "status": "cancel_requested", "requestedAt": 4000, "drainedSteer": steer, "drainedFollowUp": follow_up
    }  # fmt: skip


@pytest.mark.covers("RT-3.2-19")
def test_a_process_that_opens_the_session_after_a_drain_generates_before_it_drains_again() -> None:
    """The first of two items entered the tree and the process is gone: the flag is all that the next one has."""
    walk = inbox.owing(ONE_BY_ONE)
    inbox.steer(walk, S1, S2)
    walk.take(T["consume_steer"])
    due = ("mark_threshold_checked", "begin_threshold_compaction", "start_generation")
    assert Progress.of(walk.state).due("main") == due
    assert getattr(T["consume_steer"](walk.state, "main", NOTHING), "guard", "") == "inbox_is_not_skipped"
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    assert (S1 in walk.state.entries, S2 in walk.state.entries) == (True, False)
    walk.take(T["settle_stop"], Response(response=assistant(text("as you wish"))))
    assert Progress.of(walk.state).due("main") == ("consume_steer",)


def recovery_is_spent(walk: Walk) -> bool:
    """What the generation under way says of an earlier overflow."""
    match View(walk.state, "main").run.phase:
        case AssistantPhase(generation=generation):
            return generation.context.overflow_recovery_used
    raise AssertionError("no generation is under way")


@pytest.mark.covers("RT-3.2-22")
def test_a_spent_recovery_is_remembered_by_every_later_attempt() -> None:
    walk = compaction.requested(compaction.generating(compaction.overflowed()), uid(620, 1))
    walk.take(T["publish_compaction_in_run"], Summary(summary="a question"))
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    walk.take(T["recover_assistant"])
    assert recovery_is_spent(walk)
    runs.intend(walk, R3, U3)
    overloaded = SettleRetryable(response=assistant(stop="error", error="overloaded"), not_before=5000)
    walk.take(T["settle_retryable"], overloaded)
    walk.take(T["end_retry_wait"])
    runs.intend(walk, uid(260, 1), uid(260, 2))
    assert recovery_is_spent(walk)
    again = SettleOverflow(task_id=compaction.SECOND_TASK, cut=compaction.cut(1), response=TOO_LONG, cut_short=False)
    assert getattr(T["settle_overflow"](walk.state, "main", again), "guard", "") == "is_a_first_overflow"
    walk.take(T["settle_failure"], SettleFailure(response=TOO_LONG, error_message="too long"))
    phase = View(walk.state, "main").run.phase
    assert isinstance(phase, FailureDrain)
    assert phase.provenance == ResponseProvenance(entry_id=uid(260, 1))


def waiting_for_the_next_run(walk: Walk) -> Walk:
    walk.take(T["enqueue_next_run"], QueuedMessage(id=LATER, message=user("next time")))
    return walk


def summarizing(walk: Walk) -> Walk:
    return navigation.summarizing(walk, navigation.ASKED, 0)


def ended_by_a_hook(walk: Walk) -> Walk:
    walk.take(T["publish_hook_compaction"], HookSummary(entry_id=compaction.RESULT, summary="a question"))
    return walk


@pytest.mark.covers("RT-3.6-01", "AMB-04")
@pytest.mark.parametrize(
    "accept",
    [
        lambda walk: compaction.asked(walk, compaction.cut(2)),
        lambda walk: ended_by_a_hook(compaction.asked(walk, compaction.cut(2))),
        lambda walk: navigation.moving(walk, None),
        summarizing,
    ],
)
def test_whatever_an_operation_writes_of_its_lane_the_input_for_the_next_run_stays(
    accept: Callable[[Walk], Walk],
) -> None:
    walk = accept(waiting_for_the_next_run(runs.plain_run()))
    lane = walk.state.value(Namespace.LANE_STATE, "main")
    assert isinstance(lane, dict)
    assert lane["pendingNextRun"] == [LATER]
    said: JsonObject = {"type": "message", "payload": user("next time")}
    assert walk.state.value(Namespace.PENDING_ENTRY, LATER) == said
