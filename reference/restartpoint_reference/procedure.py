"""What an implementation may commit next from a durable state (§3.9, §3.10, §3.12, §4.5, §4.6).

The answer is names of transitions, in the order in which the procedure considers them. Public calls (a prompt, queued
input, abort, configuration) and the session's own commits may come at any time and are not in it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from restartpoint_reference.shapes import UNSET
from restartpoint_reference.transitions.attempts import another_request_is_due
from restartpoint_reference.transitions.failure import Queue, waiting
from restartpoint_reference.transitions.frame import Nothing, NotThis, View
from restartpoint_reference.transitions.tools import is_truncated, next_to_settle
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CancelRequested,
    Checkpoint,
    CompactionPhase,
    CompactionState,
    CompletedCall,
    Deciding,
    DeferredPending,
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
    NavigationState,
    NeedAssistant,
    PendingCall,
    PlannedCall,
    Replay,
    RunState,
    StructuralDecision,
    SummaryPending,
    SummaryPhase,
    SummaryReady,
    SummaryRetryWait,
    ToolBatch,
    ToolCall,
    ToolExecution,
    ToolsPhase,
)

Names = tuple[str, ...]

SETTLEMENTS: Final[Names] = (
    "settle_tool_calls", "settle_retryable", "settle_overflow", "settle_unpreparable_overflow", "settle_deferred",
    "settle_invalid_deferred", "settle_stop", "settle_failure",
)  # fmt: skip
"""The settlements of a live request under running control; its classification chooses one (§3.7)."""

POLL_SETTLEMENTS: Final[Names] = (
    "settle_poll_pending", "settle_poll_mismatch", "settle_poll_failure", "settle_poll_tool_calls", "settle_poll_ready",
)  # fmt: skip
"""The settlements of a live poll under running control (§3.2, decision AMB-33)."""

COMPLETIONS: Final[Names] = ("complete_terminating_batch", "complete_batch")
"""The settlement of the last open call, whatever its kind (§3.8)."""


@dataclass(frozen=True, kw_only=True)
class _Endings:
    """How one kind of structural work ends (§3.9)."""

    decline: str
    publish_hook: str
    publish: str
    fail: str


_COMPACTION: Final = _Endings(
    decline="decline_structural",
    publish_hook="publish_hook_compaction",
    publish="publish_compaction",
    fail="fail_structural",
)
_NAVIGATION: Final = _Endings(
    decline="decline_structural",
    publish_hook="publish_hook_navigation",
    publish="publish_navigation",
    fail="fail_structural",
)


def _in_run(reason: str) -> _Endings:
    return _Endings(
        decline="decline_threshold" if reason == "threshold" else "decline_overflow",
        publish_hook="publish_hook_compaction_in_run",
        publish="publish_compaction_in_run",
        fail="fail_structural_in_run",
    )


def next_steps(view: View, *, orphaned: bool = False, permit: bool = True) -> Names:
    """The transitions that the operation's procedure may commit next; empty on a lane that is idle.

    ``orphaned`` says that the process which started the effect that settles next is gone, so that it cannot settle by
    itself (§4.5). Without a ``permit`` a deferred run stays as it is (T88).
    """
    try:
        held = view.operation_state
    except NotThis:
        return ()
    cancelled = isinstance(held.control, CancelRequested)
    match held:
        case RunState() if cancelled:
            return _cancelled(held, orphaned=orphaned)
        case RunState():
            return _running(held, view, orphaned=orphaned, permit=permit)
        case CompactionState(structural=structural) | NavigationState(phase=SummaryPhase(structural=structural)):
            if cancelled:
                return (*_last_usage(structural, orphaned=orphaned), "finish_aborted_structural")
            endings = _COMPACTION if isinstance(held, CompactionState) else _NAVIGATION
            return _structural(view, structural, endings, orphaned=orphaned)
        case NavigationState():
            return ("finish_aborted_structural",) if cancelled else ("navigate",)


def variants(view: View, lost: frozenset[str] = frozenset()) -> Mapping[str, Names]:
    """Which commits of a next step may come, where one name makes several: what completes a batch and revives a run.

    The last call settles as it would in mid-batch (§4.5, §4.6), calls are cleared in source order by each process
    (§3.8), the failure drain takes the first list that has something (§3.12), and a poll of a process that is gone
    has no live response. ``lost`` are the effects whose process is gone.
    """
    held = view.operation_state
    if not isinstance(held, RunState):
        return {}
    orphaned, cancelled = pending_effect(view) in lost, isinstance(held.control, CancelRequested)
    match held.phase:
        case ToolsPhase(batch=batch):
            kinds = _cancelled_kinds(batch, orphaned=orphaned) if cancelled else _kinds(view, batch, orphaned=orphaned)
            return {**dict.fromkeys(COMPLETIONS, kinds), "intend_tool": _cleared_next(held, batch, lost)}
        case FailureDrain():
            return {"revive_from_failure": tuple(queue for queue in Queue if waiting(view, queue))[:1]}
        case DeferredPhase(deferred=DeferredPending()) if cancelled:
            return {"cancel_poll": ("synthetic",) if orphaned else ("live", "synthetic")}
        case _:
            return {}


def pending_effect(view: View) -> str | None:
    """The identity of the effect that may be under way and settles next; None when nothing is pending.

    It is the reserved id of the response or result, and for a summary the number of the attempt beside it: the same
    entry is reserved for all attempts (§3.9).
    """
    try:
        held = view.operation_state
        if isinstance(held, RunState):
            match held.phase:
                case AssistantPhase(generation=GenerationPending(response_entry_id=response_id)):
                    return response_id
                case DeferredPhase(deferred=DeferredPending(response_entry_id=response_id)):
                    return response_id
                case ToolsPhase(batch=batch):
                    call = next_to_settle(batch)
                    return call.result_entry_id if isinstance(call, PendingCall) else None
                case _:
                    pass
        match view.structural:
            case Generating(generation=SummaryPending(context=context, attempt=attempt)):
                return f"{context.result_entry_id}:{attempt}"
            case _:
                return None
    except NotThis:
        return None


def pending_effects(view: View) -> frozenset[str]:
    """The identities of all effects that may be under way: those of a batch may be several (§3.8)."""
    match view.operation_state:
        case RunState(phase=ToolsPhase(batch=batch)):
            return frozenset(call.result_entry_id for call in batch.calls if isinstance(call, PendingCall))
        case _:
            found = pending_effect(view)
            return frozenset() if found is None else frozenset({found})


# --- running control


def _running(run: RunState, view: View, *, orphaned: bool, permit: bool) -> Names:
    match run.phase:
        case Checkpoint():
            return _checkpoint(run, run.phase)
        case AssistantPhase(generation=generation):
            return _generation(run, generation, orphaned=orphaned)
        case ToolsPhase(batch=batch):
            return (
                *_intents(run, view, batch),
                *(COMPLETIONS if _is_last(batch) else _kinds(view, batch, orphaned=orphaned)),
            )
        case DeferredPhase(deferred=DeferredSuspended()):
            return ("intend_poll",) if permit else ()
        case DeferredPhase():
            if orphaned:
                return ("replace_unknown_poll",) if permit else ()
            return POLL_SETTLEMENTS
        case FailureDrain():
            return _failure(run.inbox)
        case CompactionPhase(reason=reason, structural=structural):
            return _structural(view, structural, _in_run(reason), orphaned=orphaned)


def _generation(run: RunState, generation: Generation, *, orphaned: bool) -> Names:
    """A request is intended, settles, and is recovered when nobody waits for it any more (§3.7, §4.5)."""
    match generation:
        case GenerationReady():
            return ("intend_assistant",)
        case GenerationRetryWait():
            return ("end_retry_wait",)
        case GenerationPending(context=context, attempt=attempt):
            remain = attempt < context.retry_policy.max_attempts
            if orphaned:
                return ("recover_assistant" if remain else "recover_exhausted_assistant",)
            closed = set() if remain else {"settle_retryable"}
            if context.overflow_recovery_used:
                closed |= {"settle_overflow", "settle_unpreparable_overflow"}
            elif not run.settings.compaction.enabled:
                closed |= {"settle_overflow"}
            return tuple(name for name in SETTLEMENTS if name not in closed)


def _structural(view: View, decision: StructuralDecision, endings: _Endings, *, orphaned: bool) -> Names:
    """A compaction or branch summary decides once, then generates its summary by attempts (§3.9)."""
    match decision:
        case Deciding():
            return (endings.decline, endings.publish_hook, "start_summary")
        case Generating(generation=SummaryReady()):
            return ("intend_summary",)
        case Generating(generation=SummaryRetryWait()):
            return ("end_summary_retry_wait",)
        case Generating(generation=SummaryPending() as pending):
            remain = pending.attempt < pending.context.retry_policy.max_attempts
            if orphaned:
                return ("recover_summary",) if remain else ("recover_exhausted_summary",)
            if pending.request is not UNSET:
                return ("settle_summary_request",)
            more = another_request_is_due(view, Nothing()) is None
            request: Names = ("intend_summary_request",) if more else ()
            if not pending.usage_ids:
                return (*request, endings.fail)
            return (*request, *(("retry_summary",) if remain else ()), endings.fail, endings.publish)
    raise NotThis("a structural decision that is neither deciding nor generating")


def _checkpoint(run: RunState, phase: Checkpoint) -> Names:
    """The first step of the checkpoint procedure that has something to do, and those before it that may not commit."""
    inbox = run.inbox
    if inbox.writes and not phase.skip_inbox_once:
        return ("apply_writes", "apply_projecting_writes")
    if inbox.steer and not phase.skip_inbox_once:
        return ("consume_steer",)
    checked = phase.threshold_checked_trigger_entry_id == phase.trigger_entry_id
    checks = run.settings.compaction.enabled and not checked
    threshold: Names = ("mark_threshold_checked", "begin_threshold_compaction") if checks else ()
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
    return ("intend_tool",) if not is_truncated(view) and _candidates(run, batch) else ()


def _candidates(run: RunState, batch: ToolBatch) -> tuple[PlannedCall, ...]:
    sequential = run.settings.tool_execution is ToolExecution.SEQUENTIAL
    open_calls: tuple[ToolCall, ...] = tuple(call for call in batch.calls if not isinstance(call, CompletedCall))
    return tuple(call for call in (open_calls[:1] if sequential else open_calls) if isinstance(call, PlannedCall))


def _cleared_next(run: RunState, batch: ToolBatch, lost: frozenset[str]) -> Names:
    """The places of the calls that may be cleared: none below one that the same process cleared before (§3.8)."""
    own = [call for call in batch.calls if isinstance(call, PendingCall) and call.result_entry_id not in lost]
    newest = max((call.source_index for call in own), default=-1)
    return tuple(str(call.source_index) for call in _candidates(run, batch) if call.source_index > newest)


def _is_last(batch: ToolBatch) -> bool:
    return sum(not isinstance(call, CompletedCall) for call in batch.calls) == 1


def _kinds(view: View, batch: ToolBatch, *, orphaned: bool) -> Names:
    """How the next result in source order may settle: a replay settles an orphaned call that is safe (T37)."""
    match next_to_settle(batch):
        case PlannedCall():
            return ("refuse_truncated_tool",) if is_truncated(view) else ("refuse_tool",)
        case PendingCall(replay=replay) if orphaned:
            return ("settle_tool", "interrupt_tool") if replay is Replay.SAFE else ("interrupt_tool",)
        case _:
            return ("settle_tool",)


# --- cancellation


def _cancelled(run: RunState, *, orphaned: bool) -> Names:
    """Cancellation settles the current phase, then applies the accepted writes, then ends (§4.6)."""
    rest: Names = ("apply_cancelled_writes",) if run.inbox.writes else ()
    match run.phase:
        case AssistantPhase(generation=GenerationPending()):
            return ("cancel_assistant",) if orphaned else ("settle_cancelled", "cancel_assistant")
        case ToolsPhase(batch=batch):
            return ("complete_batch",) if _is_last(batch) else _cancelled_kinds(batch, orphaned=orphaned)
        case DeferredPhase(deferred=DeferredPending()):
            return ("cancel_poll",)
        case DeferredPhase():
            return rest or ("finish_aborted_deferred",)
        case CompactionPhase(structural=structural):
            return (*_last_usage(structural, orphaned=orphaned), *(rest or ("finish_aborted_compaction_in_run",)))
        case AssistantPhase() | Checkpoint() | FailureDrain():
            return rest or ("finish_aborted_run",)


def _cancelled_kinds(batch: ToolBatch, *, orphaned: bool) -> Names:
    """How the next result settles: a replay that this process had started keeps its own result (§4.6)."""
    match next_to_settle(batch):
        case PlannedCall():
            return ("cancel_planned_tool",)
        case PendingCall(replay=Replay.NEVER) if orphaned:
            return ("interrupt_cancelled_tool",)
        case _ if orphaned:
            return ("settle_cancelled_tool", "interrupt_cancelled_tool")
        case _:
            return ("settle_cancelled_tool", "cancel_refused_tool")


def _last_usage(structural: StructuralDecision, *, orphaned: bool) -> Names:
    """A nested request that really ran still accounts for its usage; the rest of the work is discarded (§3.9, §4.6)."""
    match structural:
        case Generating(generation=SummaryPending(request=request)) if request is not UNSET and not orphaned:
            return ("settle_summary_request",)
        case _:
            return ()
