"""An open operation in words: where it stands, which ids it reserved, and what ``resume()`` will do (§3.2, §4.5)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import assert_never

import msgspec

from restartpoint.contract import (
    AssistantPhase,
    CallCompleted,
    CallEffectPending,
    CallPlanned,
    CancelRequested,
    CheckpointPhase,
    CompactionPhase,
    CompactionState,
    Deferred,
    DeferredEffectPending,
    DeferredPhase,
    DeferredSuspended,
    FailureDrainPhase,
    Generation,
    GenerationEffectPending,
    GenerationReady,
    GenerationRetryWait,
    MayFinish,
    NavigationState,
    NeedAssistant,
    OperationState,
    RunPhase,
    RunState,
    StructuralDecision,
    SummaryEffectPending,
    ToolCall,
    ToolsPhase,
    UnsetType,
)

__all__ = ["Reserved", "Standing", "standing_of"]


class Reserved(msgspec.Struct, frozen=True):
    """An id that was minted before its content exists, and what will be written under it."""

    id: str
    purpose: str


class Standing(msgspec.Struct, frozen=True, kw_only=True):
    """Where an operation stands: the phase in words, the ids that it reserved, the next steps of ``resume()``."""

    phase: str
    reserved: tuple[Reserved, ...] = ()
    resume: tuple[str, ...]


def standing_of(state: OperationState, tool_names: Mapping[int, str]) -> Standing:
    """The standing of an open operation; ``tool_names`` are those of its tool batch, by source position."""
    match state:
        case RunState():
            standing = _run(state.phase, tool_names)
        case CompactionState(structural=structural):
            standing = _structural("a compaction", structural)
        case NavigationState(phase=phase) if isinstance(phase.structural, StructuralDecision):
            standing = _structural("a summary of the branch that is left", phase.structural)
        case NavigationState():
            standing = Standing(phase="ready to move the leaf", resume=("move the leaf and finish",))
        case _:
            assert_never(state)
    if isinstance(state.control, CancelRequested):
        cancelled = "start no more work, give what was begun a result, and end the operation as aborted"
        return msgspec.structs.replace(standing, phase=f"cancelled while {standing.phase}", resume=(cancelled,))
    return standing


def _run(phase: RunPhase, tool_names: Mapping[int, str]) -> Standing:
    match phase:
        case CheckpointPhase():
            return _checkpoint(phase)
        case AssistantPhase(generation=generation):
            return _generation(generation)
        case ToolsPhase(batch=batch):
            return _tools(batch.calls, tool_names)
        case CompactionPhase(structural=structural, reason=reason):
            return _structural(f"a compaction ({reason})", structural)
        case DeferredPhase(deferred=deferred):
            return _deferred(deferred)
        case FailureDrainPhase(error=error):
            return Standing(
                phase=f"failed: {error.message}", resume=("take queued input and go on, or end the run as failed",)
            )
        case _:
            assert_never(phase)


def _checkpoint(phase: CheckpointPhase) -> Standing:
    match phase.continuation:
        case NeedAssistant():
            return Standing(phase="at a checkpoint, an answer of the model is owed", resume=("ask the model",))
        case MayFinish():
            return Standing(phase="at a checkpoint, nothing is owed", resume=("take queued input, or finish the run",))
        case _:
            assert_never(phase.continuation)


def _generation(generation: Generation) -> Standing:
    most = generation.context.retry_policy.max_attempts
    match generation:
        case GenerationReady(next_attempt=attempt):
            return Standing(phase=f"about to ask the model, attempt {attempt} of {most}", resume=("ask the model",))
        case GenerationEffectPending(attempt=attempt):
            again = f"start attempt {attempt + 1} of {most}; the first answer may have been billed"
            fail = "record an error under the reserved ids and end the run as failed: no attempt is left"
            return Standing(
                phase=f"the model was asked (attempt {attempt} of {most}), whether it answered is unknown",
                reserved=_response_ids(generation.response_entry_id, generation.usage_id),
                resume=(again if attempt < most else fail,),
            )
        case GenerationRetryWait(next_attempt=attempt, not_before=not_before):
            return Standing(
                phase=f"waiting until {not_before} ms for attempt {attempt} of {most}: {generation.error_message}",
                resume=(f"wait for the rest, then start attempt {attempt}",),
            )
        case _:
            assert_never(generation)


def _response_ids(response_entry_id: str, usage_id: str) -> tuple[Reserved, ...]:
    return Reserved(response_entry_id, "the response"), Reserved(usage_id, "its ledger row")


def _deferred(deferred: Deferred) -> Standing:
    match deferred:
        case DeferredSuspended(poll=poll):
            done = "1 poll" if poll == 1 else f"{poll} polls"
            return Standing(phase=f"waiting for a deferred response, {done} done", resume=("fetch the response once",))
        case DeferredEffectPending(poll=poll):
            return Standing(
                phase=f"poll {poll} of a deferred response was sent, its outcome is unknown",
                reserved=_response_ids(deferred.response_entry_id, deferred.usage_id),
                resume=("fetch the response once more under new ids",),
            )
        case _:
            assert_never(deferred)


def _tools(calls: list[ToolCall], names: Mapping[int, str]) -> Standing:
    done = sum(isinstance(call, CallCompleted) for call in calls)
    parts, reserved, resume = [], [], []
    for call in calls:
        name = names.get(call.source_index, "an unknown tool")
        if not isinstance(call, CallCompleted):
            reserved.append(Reserved(call.result_entry_id, f"the result of {name}"))
        match call:
            case CallPlanned():
                parts.append(f"{name} is planned")
                resume.append(f"run {name}")
            case CallEffectPending(replay="never"):
                parts.append(f"{name} was started and must not be repeated")
                resume.append(f"record that {name} was interrupted, without running it again")
            case CallEffectPending():
                parts.append(f"{name} was started and may be repeated")
                resume.append(f"run {name} again with the recorded arguments, if it is still declared safe")
            case CallCompleted():
                parts.append(f"{name} is done")
            case _:
                assert_never(call)
    return Standing(
        phase=f"running tools, {done} of {len(calls)} results recorded: {'; '.join(parts)}",
        reserved=tuple(reserved),
        resume=(*resume, "go on with what follows the results"),
    )


def _structural(what: str, decision: StructuralDecision) -> Standing:
    generation = decision.generation
    if isinstance(generation, UnsetType):
        return Standing(phase=f"deciding about {what}", resume=("run the decision hooks",))
    summary = Reserved(generation.context.result_entry_id, "the summary")
    if isinstance(generation, SummaryEffectPending):
        request = generation.request
        reserved = (summary,) if isinstance(request, UnsetType) else (summary, Reserved(request.usage_id, "a request"))
        return Standing(
            phase=f"summarizing for {what}, attempt {generation.attempt} is of unknown outcome",
            reserved=reserved,
            resume=("start another attempt, or fail when none is left",),
        )
    return Standing(
        phase=f"about to summarize for {what}, attempt {generation.next_attempt}",
        reserved=(summary,),
        resume=("ask the model for the summary",),
    )
