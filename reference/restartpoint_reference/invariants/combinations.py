"""What the parts of a current operation state say of each other (§3.3): control, attempts, targets, what is owed."""

from collections.abc import Callable, Iterator
from typing import Final

from restartpoint_reference.scope import Scope
from restartpoint_reference.shapes import UNSET
from restartpoint_reference.transitions.frame import View
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.messages import StopReason
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CancelRequested,
    Checkpoint,
    CompactionPhase,
    CompactionState,
    CompletedCall,
    DeferredPhase,
    Generating,
    Generation,
    GenerationPending,
    GenerationRetryWait,
    MayFinish,
    NavigationState,
    PendingCall,
    RunState,
    SummaryPending,
    SummaryPhase,
    SummaryReady,
    SummaryRetryWait,
    ToolExecution,
    ToolsPhase,
)


def aborted_responses_stand_under_cancellation(scope: Scope) -> Iterator[str]:
    """A run whose latest response is aborted was asked to stop (§9.1, 19)."""
    for view, held in _runs(scope):
        latest = held.latest_assistant_entry_id
        aborted = latest is not None and _stop_reason(view, latest) == StopReason.ABORTED
        if aborted and not isinstance(held.control, CancelRequested):
            yield f"{view.operation_id} runs on after the aborted response {latest}"


def cancelled_runs_owe_no_input(scope: Scope) -> Iterator[str]:
    """A cancelled run lists no steering and no follow-up: abort drained both (§3.3, §3.11)."""
    for view, held in _runs(scope):
        if isinstance(held.control, CancelRequested) and (held.inbox.steer or held.inbox.follow_up):
            yield f"{view.operation_id} is cancelled and has input to consume"


def navigations_have_somewhere_to_go(scope: Scope) -> Iterator[str]:
    """A navigation leaves its source; only an entry can be labelled, only a branch summarized (§3.3, §3.6)."""
    for view in scope.operations:
        held, source = view.operation_state, view.operation.source_leaf_id
        if isinstance(held, NavigationState):
            if held.target_id == source:
                yield f"{view.operation_id} navigates to its own source"
            if held.target_id is None and held.label is not UNSET:
                yield f"{view.operation_id} labels the root"
            if held.summarize and source is None:
                yield f"{view.operation_id} summarizes the root"


def preparations_are_of_their_work(scope: Scope) -> Iterator[str]:
    """A compaction is prepared as one, a branch summary as one (§1.3, §3.3)."""
    for view in scope.operations:
        match view.operation_state:
            case RunState(phase=CompactionPhase(structural=structural)) | CompactionState(structural=structural):
                expected = "compaction"
            case NavigationState(phase=SummaryPhase(structural=structural)):
                expected = "branch_summary"
            case _:
                continue
        key = f"{view.operation_id}:{structural.task_id}"
        held = view.state.value(Namespace.OP_PREPARATION, key)
        if isinstance(held, dict) and held.get("kind") != expected:
            yield f"op.preparation/{key} is that of a {held.get('kind')}, not of a {expected}"


def attempts_are_within_their_policy(scope: Scope) -> Iterator[str]:
    """Attempts count from one to what the captured policy admits; only a later one waits (§3.2, §3.7)."""
    for view in scope.operations:
        match view.operation_state:
            case RunState(phase=AssistantPhase(generation=generation)):
                step: Generation | SummaryReady | SummaryPending | SummaryRetryWait = generation
            case (
                RunState(phase=CompactionPhase(structural=Generating(generation=summary)))
                | CompactionState(structural=Generating(generation=summary))
                | NavigationState(phase=SummaryPhase(structural=Generating(generation=summary)))
            ):
                step = summary
            case _:
                continue
        number = step.attempt if isinstance(step, GenerationPending | SummaryPending) else step.next_attempt
        least = 2 if isinstance(step, GenerationRetryWait | SummaryRetryWait) else 1
        if not least <= number <= step.context.retry_policy.max_attempts:
            yield f"{view.operation_id} is at attempt {number} of {step.context.retry_policy.max_attempts}"


def what_may_finish_has_its_response(scope: Scope) -> Iterator[str]:
    """A run that would finish with its final response has had one (§3.2, §3.12)."""
    for view, held in _runs(scope):
        match held.phase.resume_after if isinstance(held.phase, CompactionPhase) else held.phase:
            case Checkpoint(continuation=MayFinish(include_final_assistant=True)):
                if held.latest_assistant_entry_id is None:
                    yield f"{view.operation_id} may finish with a response that it never had"


def deferred_sources_are_deferred(scope: Scope) -> Iterator[str]:
    """What a run polls for is its latest response, which is deferred (§3.2, §3.3)."""
    for view, held in _runs(scope):
        if isinstance(held.phase, DeferredPhase):
            source = held.phase.deferred.source_entry_id
            if _stop_reason(view, source) != StopReason.DEFERRED:
                yield f"{view.operation_id} polls for {source}, which is not deferred"
            elif source != held.latest_assistant_entry_id:
                yield f"{view.operation_id} polls for {source}, which is not its latest response"


def calls_settle_in_source_order(scope: Scope) -> Iterator[str]:
    """Results are committed in source order, and a sequential run has one call at a time under way (§3.8)."""
    for view, held in _runs(scope):
        if isinstance(held.phase, ToolsPhase):
            calls = held.phase.batch.calls
            done = [isinstance(call, CompletedCall) for call in calls]
            if done != sorted(done, reverse=True):
                yield f"{view.operation_id} has a result behind a call without one"
            under_way = [at for at, call in enumerate(calls) if isinstance(call, PendingCall)]
            if held.settings.tool_execution is ToolExecution.SEQUENTIAL and under_way not in ([], [sum(done)]):
                yield f"{view.operation_id} is sequential, and a call is under way out of turn"


def _runs(scope: Scope) -> Iterator[tuple[View, RunState]]:
    for view in scope.operations:
        if isinstance(view.operation_state, RunState):
            yield view, view.operation_state


def _stop_reason(view: View, id: str) -> object:
    entry = view.state.entries.get(id)
    return None if entry is None or entry.message is None else entry.message.get("stopReason")


OF_COMBINATIONS: Final[tuple[tuple[str, Callable[[Scope], Iterator[str]]], ...]] = (
    ("9.1, 19", aborted_responses_stand_under_cancellation),
    ("3.3", cancelled_runs_owe_no_input),
    ("3.3", navigations_have_somewhere_to_go),
    ("3.3", preparations_are_of_their_work),
    ("3.2", attempts_are_within_their_policy),
    ("3.12", what_may_finish_has_its_response),
    ("3.2", deferred_sources_are_deferred),
    ("3.8", calls_settle_in_source_order),
)
"""Each with its section and number."""
