"""What an implementation may commit next from a durable state (§3.12, §4.5, §4.6).

The answer is names of transitions, in the order in which the procedure considers them. It holds every name of the
table that can follow, whether or not the transition itself is modelled. Public calls (a prompt, queued input, abort,
configuration) and the session's own commits may come at any time and are not in it. Standalone compactions and
navigations are not covered yet.
"""

from restartpoint_reference.shapes import UNSET
from restartpoint_reference.transitions.frame import NotThis, View
from restartpoint_reference.transitions.tools import is_truncated, next_to_settle
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CancelRequested,
    Checkpoint,
    CompactionPhase,
    CompletedCall,
    Deciding,
    DeferredPhase,
    DeferredSuspended,
    FailureDrain,
    Generating,
    Generation,
    GenerationPending,
    GenerationReady,
    GenerationRetryWait,
    Inbox,
    MayFinish,
    NeedAssistant,
    PendingCall,
    PlannedCall,
    RunState,
    SummaryPending,
    SummaryReady,
    SummaryRetryWait,
    ToolBatch,
    ToolCall,
    ToolExecution,
    ToolsPhase,
)

Names = tuple[str, ...]

SETTLEMENTS: Names = (
    "settle_tool_calls", "settle_retryable", "settle_overflow", "settle_unpreparable_overflow", "settle_deferred",
    "settle_invalid_deferred", "settle_stop", "settle_failure",
)  # fmt: skip
"""The settlements of a live request under running control; its classification chooses one (§3.7)."""

COMPLETIONS: Names = ("complete_terminating_batch", "complete_batch")
"""The settlement of the last open call, whatever its kind (§3.8)."""


def next_steps(view: View, *, orphaned: bool = False) -> Names:
    """The transitions that the run's procedure may commit next; empty when it is idle, suspended or no run.

    ``orphaned`` says that the process which made the current state is gone, so that no effect which it shows as
    pending can still settle by itself (§4.5).
    """
    try:
        run = view.run
    except NotThis:
        return ()
    if isinstance(run.control, CancelRequested):
        return _cancelled(run, view, orphaned=orphaned)
    match run.phase:
        case Checkpoint():
            return _checkpoint(run.phase, run.inbox)
        case AssistantPhase(generation=generation):
            return _generation(generation, orphaned=orphaned)
        case ToolsPhase(batch=batch):
            return (*_intents(run, view, batch), *_settlement(view, batch, orphaned=orphaned))
        case DeferredPhase(deferred=DeferredSuspended()):
            return ("intend_poll",)
        case DeferredPhase():
            live = ("settle_poll_pending", "settle_poll_mismatch", "settle_poll_tool_calls", "settle_poll_ready")
            return ("replace_unknown_poll",) if orphaned else (*live, "settle_poll_failure")
        case FailureDrain():
            return _failure(run.inbox)
        case CompactionPhase():
            return _compaction(run.phase, orphaned=orphaned)


def _generation(generation: Generation, *, orphaned: bool) -> Names:
    """A request is intended, settles, and is recovered when nobody waits for it any more (§3.7, §4.5)."""
    match generation:
        case GenerationReady():
            return ("intend_assistant",)
        case GenerationRetryWait():
            return ("end_retry_wait",)
        case GenerationPending():
            attempts_remain = generation.attempt < generation.context.retry_policy.max_attempts
            recovery = "recover_assistant" if attempts_remain else "recover_exhausted_assistant"
            return (recovery,) if orphaned else SETTLEMENTS


def _compaction(phase: CompactionPhase, *, orphaned: bool) -> Names:
    """A compaction inside a run decides once, then generates its summary by attempts (§3.9)."""
    match phase.structural:
        case Deciding():
            decline = "decline_threshold" if phase.reason == "threshold" else "decline_overflow"
            return (decline, "publish_hook_compaction_in_run", "start_summary")
        case Generating(generation=SummaryReady()):
            return ("intend_summary",)
        case Generating(generation=SummaryRetryWait()):
            return ("end_summary_retry_wait",)
        case Generating(generation=SummaryPending() as pending):
            if orphaned:
                remain = pending.attempt < pending.context.retry_policy.max_attempts
                return ("recover_summary",) if remain else ("recover_exhausted_summary",)
            if pending.request is not UNSET:
                return ("settle_summary_request",)
            return ("intend_summary_request", "retry_summary", "fail_structural_in_run", "publish_compaction_in_run")
    raise NotThis("a structural decision that is neither deciding nor generating")


def _checkpoint(phase: Checkpoint, inbox: Inbox) -> Names:
    """The first step of the checkpoint procedure that has something to do, and those before it that may not commit."""
    if inbox.writes and not phase.skip_inbox_once:
        return ("apply_writes", "apply_projecting_writes")
    if inbox.steer and not phase.skip_inbox_once:
        return ("consume_steer",)
    checked = phase.threshold_checked_trigger_entry_id == phase.trigger_entry_id
    threshold: Names = () if checked else ("mark_threshold_checked", "begin_threshold_compaction")
    match phase.continuation:
        case NeedAssistant():
            return (*threshold, "start_generation")
        case MayFinish() if inbox.follow_up:
            return (*threshold, "consume_follow_up")
        case MayFinish() if inbox.steer or inbox.writes:
            return threshold
        case MayFinish(include_final_assistant=True):
            return (*threshold, "append_run_end_follow_up", "finish_run")
        case MayFinish():
            return (*threshold, "append_run_end_follow_up", "finish_terminated_tools")


def _failure(inbox: Inbox) -> Names:
    """The failure drain takes writes, steering and follow-up in this order, and otherwise ends (§3.12)."""
    if inbox.writes:
        return ("apply_writes_in_failure", "revive_from_failure")
    return ("revive_from_failure",) if inbox.steer or inbox.follow_up else ("finish_failed",)


def _intents(run: RunState, view: View, batch: ToolBatch) -> Names:
    """Whether a planned call may be cleared: never of a truncated response, one by one in sequential mode (§3.8)."""
    if is_truncated(view):
        return ()
    sequential = run.settings.tool_execution is ToolExecution.SEQUENTIAL
    open_calls: tuple[ToolCall, ...] = tuple(call for call in batch.calls if not isinstance(call, CompletedCall))
    candidates = open_calls[:1] if sequential else open_calls
    return ("intend_tool",) if any(isinstance(call, PlannedCall) for call in candidates) else ()


def _settlement(view: View, batch: ToolBatch, *, orphaned: bool) -> Names:
    """How the next result in source order may settle: a replay settles an orphaned call that is safe (T37)."""
    last = sum(not isinstance(call, CompletedCall) for call in batch.calls) == 1
    match next_to_settle(batch):
        case PlannedCall():
            kinds: Names = ("refuse_truncated_tool",) if is_truncated(view) else ("refuse_tool",)
        case PendingCall(replay=replay) if orphaned:
            kinds = ("settle_tool", "interrupt_tool") if replay == "safe" else ("interrupt_tool",)
        case _:
            kinds = ("settle_tool",)
    return COMPLETIONS if last else kinds


def _cancelled(run: RunState, view: View, *, orphaned: bool) -> Names:
    """Cancellation settles the current phase, then applies the accepted writes, then ends (§4.6)."""
    match run.phase:
        case AssistantPhase(generation=GenerationPending()):
            return ("cancel_assistant",) if orphaned else ("settle_cancelled", "cancel_assistant")
        case ToolsPhase(batch=batch):
            if isinstance(next_to_settle(batch), PlannedCall):
                kinds: Names = ("cancel_planned_tool",)
            else:
                kinds = ("interrupt_cancelled_tool",) if orphaned else ("settle_cancelled_tool", "cancel_refused_tool")
            last = sum(not isinstance(call, CompletedCall) for call in view.batch.calls) == 1
            return ("complete_batch",) if last else kinds
        case DeferredPhase(deferred=deferred) if not isinstance(deferred, DeferredSuspended):
            return ("cancel_poll",)
        case _ if run.inbox.writes:
            return ("apply_cancelled_writes",)
        case DeferredPhase():
            return ("finish_aborted_deferred",)
        case CompactionPhase():
            return ("finish_aborted_compaction_in_run",)
        case _:
            return ("finish_aborted_run",)
