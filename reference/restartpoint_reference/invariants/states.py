"""What is true of what a current operation state says and names (§3.3)."""

from collections.abc import Callable, Iterator
from typing import Final

from restartpoint_reference.scope import Scope
from restartpoint_reference.shapes import UNSET, Unset
from restartpoint_reference.transitions.frame import View
from restartpoint_reference.transitions.tools import is_truncated, step_id
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.messages import role, source_calls
from restartpoint_reference.vocabulary.registers import (
    NavigationIntent,
    RunIntent,
)
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    Checkpoint,
    CompactionPhase,
    CompactionState,
    CompletedCall,
    DeferredPending,
    DeferredPhase,
    FailureDrain,
    Generating,
    GenerationPending,
    NavigationState,
    PendingCall,
    ResponseProvenance,
    RunPhase,
    RunState,
    SummaryPending,
    SummaryPhase,
    ToolsPhase,
)


def named_entries_exist(scope: Scope) -> Iterator[str]:
    """Every committed entry that op.meta or op.state names exists and is of the type that it is named for (§3.3)."""
    for view in scope.operations:
        for what, key in _named_entries(view):
            entry = scope.state.entries.get(key)
            if entry is None:
                yield f"{what} of {view.operation_id} names {key}, which does not exist"
            elif what in _RESPONSES and role(entry.message or {}) != "assistant":
                yield f"{what} of {view.operation_id} names {key}, which is no response"
            elif what == "promptEntryIds" and entry.message is None:
                yield f"{what} of {view.operation_id} names {key}, which is no message"


_RESPONSES: Final = ("latestAssistantEntryId", "assistantEntryId", "sourceEntryId", "provenance.entryId")
"""What a run names its responses by; any entry may be a leaf, a source, a target or a trigger."""


def named_registers_exist(scope: Scope) -> Iterator[str]:
    """Pending calls have their arguments and structural work its preparation (§3.3)."""
    for view in scope.operations:
        for namespace, key in _named_registers(view):
            if scope.state.register(namespace, key) is None:
                yield f"{namespace}/{key} does not exist"


def reserved_ids_are_free(scope: Scope) -> Iterator[str]:
    """An id that is reserved for content to come holds nothing yet and is reserved once (§9.1, 15)."""
    waiting = scope.state.namespaces[Namespace.PENDING_ENTRY]
    for view in scope.reserving:
        reserved = [*_reserved(view)]
        for key in reserved:
            if key in scope.state.entries or key in scope.state.usage:
                yield f"{key} is reserved by {view.operation_id} and exists"
            if key in waiting:
                yield f"{key} is reserved by {view.operation_id} and queued"
        if len(set(reserved)) < len(reserved):
            yield f"{view.operation_id} reserves an id twice"


def structural_work_fits(scope: Scope) -> Iterator[str]:
    """A summary's context is that of the work it is for, which an operation of its own does at its source (§3.3)."""
    for view in scope.operations:
        held, source = view.operation_state, view.operation.source_leaf_id
        expected: tuple[str, str | Unset]
        if not isinstance(held, RunState) and view.leaf != source:
            yield f"{view.operation_id} is at {view.leaf}, away from its source {source}"
        match held:
            case RunState(phase=CompactionPhase(reason=reason, structural=structural)):
                expected = ("compaction", reason)
            case CompactionState(structural=structural):
                expected = ("compaction", "manual")
            case NavigationState(phase=SummaryPhase(structural=structural)):
                expected = ("branch_summary", UNSET)
            case _:
                continue
        if isinstance(structural, Generating):
            generation = structural.generation
            context = generation.context
            if (context.task_id, context.kind, context.reason) != (structural.task_id, *expected):
                yield f"the summary context of {view.operation_id} is that of other work"
            for key in generation.usage_ids if isinstance(generation, SummaryPending) else ():
                if key not in scope.state.usage:
                    yield f"{view.operation_id} counts the usage {key}, which is not in the ledger"


def batches_are_complete(scope: Scope) -> Iterator[str]:
    """A batch lists exactly its response's calls, ascending, under unique result ids (§3.3)."""
    for view in scope.operations:
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        calls = view.batch.calls
        response = scope.state.entries.get(view.batch.assistant_entry_id)
        source = [] if response is None else [call.source_index for call in source_calls(response.message or {})]
        if [call.source_index for call in calls] != source:
            yield f"the calls of {view.operation_id} are not those at {source}"
        if len({call.result_entry_id for call in calls}) < len(calls):
            yield f"two calls of {view.operation_id} share a result id"
        if all(isinstance(call, CompletedCall) for call in calls):
            yield f"the batch of {view.operation_id} is complete and still open"


def results_match_their_calls(scope: Scope) -> Iterator[str]:
    """A completed call's entry is the result of that call, and agrees on ending the run (§3.3)."""
    for view in scope.operations:
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        response = scope.state.entries.get(view.batch.assistant_entry_id)
        sources = {call.source_index: call for call in source_calls((response and response.message) or {})}
        for call in view.batch.calls:
            entry = scope.state.entries.get(call.result_entry_id)
            source = sources.get(call.source_index)
            if not isinstance(call, CompletedCall) or entry is None or source is None:
                continue
            message = entry.message or {}
            answered = (role(message), message.get("toolCallId"), message.get("toolName"))
            if answered != ("toolResult", source.id, source.name):
                yield f"entry {entry.id} is not the result of {source.name} {source.id}"
            if ("terminate" in entry.payload) != call.terminate:
                yield f"entry {entry.id} and its call disagree on ending the run"


def truncated_calls_never_start(scope: Scope) -> Iterator[str]:
    """No call of a response that was cut at its limit is pending (§3.7)."""
    for view in scope.operations:
        if isinstance(view.operation_state, RunState) and isinstance(view.run.phase, ToolsPhase):
            started = any(isinstance(call, PendingCall) for call in view.batch.calls)
            response = scope.state.entries.get(view.batch.assistant_entry_id)
            if started and response is not None and response.message is not None and is_truncated(view):
                yield f"{view.operation_id} runs a call of a truncated response"


def _named_entries(view: View) -> Iterator[tuple[str, str]]:
    operation, held = view.operation, view.operation_state
    if operation.source_leaf_id is not None:
        yield "sourceLeafId", operation.source_leaf_id
    match operation.intent:
        case RunIntent(prompt_entry_ids=prompts):
            yield from (("promptEntryIds", key) for key in prompts)
        case NavigationIntent(target_id=str() as target):
            yield "targetId", target
        case _:
            pass
    if isinstance(held, RunState):
        if held.latest_assistant_entry_id is not None:
            yield "latestAssistantEntryId", held.latest_assistant_entry_id
        yield from _phase_entries(held.phase)


def _phase_entries(phase: RunPhase) -> Iterator[tuple[str, str]]:
    match phase:
        case Checkpoint(trigger_entry_id=trigger):
            yield "triggerEntryId", trigger
            marker = phase.threshold_checked_trigger_entry_id
            if marker is not UNSET:
                yield "thresholdCheckedTriggerEntryId", marker
        case AssistantPhase(generation=generation):
            yield "context.triggerEntryId", generation.context.trigger_entry_id
        case ToolsPhase(batch=batch):
            yield "assistantEntryId", batch.assistant_entry_id
            for call in batch.calls:
                if isinstance(call, CompletedCall):
                    yield "resultEntryId", call.result_entry_id
        case CompactionPhase(resume_after=checkpoint):
            yield from _phase_entries(checkpoint)
        case DeferredPhase(deferred=deferred):
            yield "sourceEntryId", deferred.source_entry_id
        case FailureDrain(provenance=ResponseProvenance(entry_id=key)):
            yield "provenance.entryId", key
        case FailureDrain():
            pass


def _named_registers(view: View) -> Iterator[tuple[Namespace, str]]:
    match view.operation_state:
        case RunState(phase=ToolsPhase(batch=batch)):
            for call in batch.calls:
                if isinstance(call, PendingCall):
                    key = f"{view.operation_id}:{step_id(batch)}:{call.source_index}"
                    yield Namespace.OP_TOOL_ARGS, key
        case (
            RunState(phase=CompactionPhase(structural=structural))
            | CompactionState(structural=structural)
            | NavigationState(phase=SummaryPhase(structural=structural))
        ):
            yield Namespace.OP_PREPARATION, f"{view.operation_id}:{structural.task_id}"
        case _:
            pass


def _reserved(view: View) -> Iterator[str]:
    match view.operation_state:
        case RunState(
            phase=AssistantPhase(generation=GenerationPending() as pending)
            | DeferredPhase(deferred=DeferredPending() as pending)
        ):
            yield from (pending.response_entry_id, pending.usage_id)
        case RunState(phase=ToolsPhase(batch=batch)):
            yield from (call.result_entry_id for call in batch.calls if not isinstance(call, CompletedCall))
        case (
            RunState(phase=CompactionPhase(structural=Generating(generation=generation)))
            | CompactionState(structural=Generating(generation=generation))
            | NavigationState(phase=SummaryPhase(structural=Generating(generation=generation)))
        ):
            yield generation.context.result_entry_id
            if isinstance(generation, SummaryPending) and generation.request is not UNSET:
                yield generation.request.usage_id
        case _:
            pass


OF_STATES: Final[tuple[tuple[str, Callable[[Scope], Iterator[str]]], ...]] = (
    ("9.1, 20", named_entries_exist),
    ("9.1, 20", named_registers_exist),
    ("9.1, 15", reserved_ids_are_free),
    ("3.3", structural_work_fits),
    ("9.1, 20", batches_are_complete),
    ("9.1, 20", results_match_their_calls),
    ("3.7", truncated_calls_never_start),
)
"""Each with its section and number."""
