"""Operations that are aborted wherever they are, and some that are ended from outside."""

from collections.abc import Callable

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, SettleSummaryRequest
from restartpoint_reference.transitions.cancellation import Abort
from restartpoint_reference.transitions.finalization import Finalize
from restartpoint_reference.transitions.generation import SyntheticResponse
from restartpoint_reference.transitions.queues import QueuedId, QueuedMessage
from restartpoint_reference.transitions.settlement import Response, SettleRetryable
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.registers import ErrorCode, OperationError, Outcome, RunCompletion
from restartpoint_reference.vocabulary.states import Replay
from tests.reference.walk import Walk, assistant, result, text, uid, usage, user
from tests.reference.walks import compaction, inbox, navigation, runs
from tests.reference.walks.inbox import F1, S1, S2, W1, W2, W3
from tests.reference.walks.places import MESSAGE, RESPONSE, RESULT, USAGE, WORDS

ABORT = Abort(requested_at=4000)
NOT_RUN, UNKNOWN = "This tool call was not executed: aborted.", "This tool call was interrupted."


def abort(walk: Walk) -> Walk:
    """The run, cancelled."""
    walk.take(T["abort_run"], ABORT)
    return walk


def refuse(id: str, name: str, words: str = NOT_RUN) -> ToolResult:
    """A synthetic result of a call."""
    return ToolResult(message=result(id, name, words, error=True))


def drained_run() -> Walk:
    """Messages are drained, deferred writes are placed in order, also those that come or go after the abort."""
    walk = inbox.answered()
    inbox.steer(walk, S1, S2)
    inbox.follow_up(walk, F1)
    inbox.write_message(walk, W1)
    abort(walk)
    inbox.write_note(walk, W2)
    inbox.write_note(walk, W3)
    walk.take(T["cancel_queued"], QueuedId(id=W2))
    walk.take(T["enqueue_next_run"], QueuedMessage(id=uid(430, 1), message=user("next time")))
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_run"])
    return walk


def before_the_first_request() -> Walk:
    """A run that is aborted before it did anything has no assistant."""
    walk = abort(runs.prompted())
    walk.take(T["finish_aborted_run"])
    return walk


def received() -> Walk:
    """The response of a request that had started is kept, with its usage."""
    walk = abort(runs.requested())
    walk.take(T["settle_cancelled"], Response(response=assistant(text("half"), stop="aborted", error="was stop")))
    walk.take(T["finish_aborted_run"])
    return walk


def not_received() -> Walk:
    """A request without a response is settled without content and usage."""
    walk = abort(runs.requested())
    walk.take(T["cancel_assistant"], SyntheticResponse(api="scripted", timestamp=7, reason="aborted"))
    walk.take(T["finish_aborted_run"])
    return walk


def ready() -> Walk:
    """A request that was prepared is not intended."""
    walk = runs.requested()
    walk.take(T["recover_assistant"])
    inbox.write_note(walk, W1)
    abort(walk)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_run"])
    return walk


def waiting_for_a_retry() -> Walk:
    """The wait for another attempt is not waited for."""
    walk = runs.requested()
    overloaded = assistant(stop="error", error="overloaded")
    walk.take(T["settle_retryable"], SettleRetryable(response=overloaded, not_before=5000))
    inbox.write_note(walk, W1)
    abort(walk)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_run"])
    return walk


def failing() -> Walk:
    """A failed run that is aborted is aborted."""
    walk = inbox.failing()
    inbox.write_message(walk, W1)
    abort(walk)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_run"])
    return walk


def planned_calls() -> Walk:
    """No call of the batch starts any more."""
    walk = abort(runs.with_tools())
    walk.take(T["cancel_planned_tool"], refuse("t1", "remove"))
    walk.take(T["complete_batch"], refuse("t2", "read"))
    walk.take(T["finish_aborted_run"])
    return walk


def cleared() -> Walk:
    """A run whose two calls may have started."""
    walk = runs.with_tools()
    runs.clear(walk, 1, Replay.SAFE)
    runs.clear(walk, 3)
    return abort(walk)


def started_calls() -> Walk:
    """Calls that had started keep their own results, which end nothing."""
    walk = cleared()
    settled = ToolResult(message=result("t1", "remove"), usage_id=uid(101, 4), usage=usage(input=2))
    walk.take(T["settle_cancelled_tool"], settled)
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read", "no such file", error=True)))
    inbox.write_note(walk, W1)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_run"])
    return walk


def refused_calls() -> Walk:
    """A call that was intended and never started is aborted."""
    walk = cleared()
    walk.take(T["cancel_refused_tool"], refuse("t1", "remove"))
    walk.take(T["complete_batch"], refuse("t2", "read"))
    return walk


def orphaned_calls() -> Walk:
    """A call whose process is gone is interrupted, also where it might have been run again."""
    walk = cleared()
    walk.take(T["interrupt_cancelled_tool"], refuse("t1", "remove", UNKNOWN))
    walk.take(T["complete_batch"], refuse("t2", "read", UNKNOWN))
    return walk


def suspended() -> Walk:
    """A run that waits for a deferred response is not polled again."""
    walk = abort(runs.deferred_run())
    inbox.write_note(walk, W1)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_deferred"])
    return walk


def compacting_run() -> Walk:
    """A compaction inside the run is discarded."""
    walk = abort(compaction.at_threshold())
    inbox.write_note(walk, W1)
    walk.take(T["apply_cancelled_writes"])
    walk.take(T["finish_aborted_compaction_in_run"])
    return walk


def summarizing_run() -> Walk:
    """So is one whose summary is being generated; what a live request cost is kept (decision AMB-44)."""
    walk = compaction.generating(compaction.at_threshold())
    walk.take(T["intend_summary_request"], IntendSummaryRequest(usage_id=uid(620, 1)))
    abort(walk)
    walk.take(T["settle_summary_request"], SettleSummaryRequest(usage=usage(input=5)))
    walk.take(T["finish_aborted_compaction_in_run"])
    return walk


def compacting() -> Walk:
    """A compaction by itself that is deciding."""
    return compaction.asked(runs.plain_run(), compaction.cut(2))


def navigating() -> Walk:
    """A navigation that is about to move the leaf."""
    return navigation.moving(runs.plain_run(), None)


def discarded_compaction() -> Walk:
    """A compaction by itself is discarded."""
    walk = compaction.generating(compacting())
    walk.take(T["abort_structural"], ABORT)
    walk.take(T["finish_aborted_structural"])
    return walk


def stopped_navigation() -> Walk:
    """A navigation that is aborted moves nothing."""
    walk = navigating()
    walk.take(T["abort_structural"], ABORT)
    walk.take(T["finish_aborted_structural"])
    return walk


def ended_from_outside() -> Walk:
    """A run that still calls tools is ended, with all that it owned."""
    walk = runs.with_tools()
    runs.clear(walk, 1)
    inbox.steer(walk, S1)
    inbox.write_note(walk, W1)
    walk.take(T["finalize_externally"], Finalize(outcome=Outcome.ABORTED))
    return walk


def failed_from_outside() -> Walk:
    """A suspended run is declared failed."""
    walk = runs.deferred_run()
    error = OperationError(code=ErrorCode.DEFERRED_FAILED, message="given up", details={"n": 1})
    walk.take(T["finalize_externally"], Finalize(outcome=Outcome.FAILED, error=error))
    return walk


def completed_from_outside() -> Walk:
    """A suspended run is declared complete."""
    walk = runs.deferred_run()
    inputs = Finalize(outcome=Outcome.COMPLETED, run_completion=RunCompletion.ASSISTANT)
    walk.take(T["finalize_externally"], inputs)
    return walk


SCENARIOS: tuple[Callable[[], Walk], ...] = (
    drained_run, before_the_first_request, received, not_received, ready, waiting_for_a_retry, failing, planned_calls,
    started_calls, refused_calls, orphaned_calls, suspended, compacting_run, summarizing_run,
    discarded_compaction, stopped_navigation, ended_from_outside, failed_from_outside, completed_from_outside,
)  # fmt: skip

_BEGUN = WORDS - {f"{MESSAGE}.content.*.type"}

FREE: dict[str, set[str]] = {
    # When somebody asked, what a provider or tool said, and the words of a synthetic message exist once.
    "abort_run": {"op.state.value.control.requestedAt"},
    "abort_structural": {"op.state.value.control.requestedAt"},
    "settle_cancelled": RESPONSE | WORDS | {f"{MESSAGE}.errorMessage"},
    "cancel_assistant": {f"{MESSAGE}.{name}" for name in ("api", "timestamp", "errorMessage")},
    "cancel_planned_tool": WORDS,
    "cancel_refused_tool": _BEGUN,
    "interrupt_cancelled_tool": _BEGUN,
    "settle_cancelled_tool": RESULT | USAGE | {"usage.id"},
    "finalize_externally": {f"lane.lastResult.value.error.{name}" for name in ("message", "details", "details.n")},
}
