"""Which effects a durable state allows to start: the intents of §0.3, read from ``op.state``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, TypeAlias

from restartpoint_reference import UNSET, Namespace
from restartpoint_reference.transitions.frame import NotThis, View
from restartpoint_reference.transitions.tools import tool_args_key
from restartpoint_reference.vocabulary.messages import source_calls
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CompactionPhase,
    CompactionState,
    DeferredPending,
    DeferredPhase,
    Generating,
    GenerationPending,
    GenerationRetryWait,
    NavigationState,
    PendingCall,
    RunState,
    SummaryPending,
    SummaryPhase,
    SummaryRetryWait,
    ToolsPhase,
)

__all__ = ["EffectKind", "Intent", "intents_of"]

EffectKind: TypeAlias = Literal["provider", "tool", "hook", "timer"]


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A durable permission to start one effect: what kind, on which lane, under which reserved id.

    ``tool_call`` names the provider's call id for tools. ``projected`` says whether a request carries the context of
    the lane: summaries carry messages of their own.
    """

    kind: EffectKind
    lane: str
    id: str
    tool_call: str | None = None
    arguments: object = UNSET
    projected: bool = False


def intents_of(view: View) -> Iterator[Intent]:
    """Every effect that the lane's operation state allows to start."""
    try:
        if view.lane_state.current_operation_id is None:
            return
        held = view.operation_state
    except NotThis:
        return
    match held:
        case RunState(phase=AssistantPhase(generation=GenerationPending() as pending)):
            yield Intent(kind="provider", lane=view.lane, id=pending.response_entry_id, projected=True)
        case RunState(phase=AssistantPhase(generation=GenerationRetryWait() as wait)):
            yield Intent(kind="timer", lane=view.lane, id=f"{wait.context.step_id}:{wait.next_attempt}")
        case RunState(phase=DeferredPhase(deferred=DeferredPending() as poll)):
            yield Intent(kind="provider", lane=view.lane, id=poll.response_entry_id)
        case RunState(phase=ToolsPhase()):
            yield from _tool_intents(view)
        case RunState(phase=CompactionPhase(structural=Generating() as generating)):
            yield from _summary_intents(view, generating)
        case CompactionState(structural=Generating() as generating):
            yield from _summary_intents(view, generating)
        case NavigationState(phase=SummaryPhase(structural=Generating() as generating)):
            yield from _summary_intents(view, generating)
        case _:
            return


def _summary_intents(view: View, generating: Generating) -> Iterator[Intent]:
    match generating.generation:
        case SummaryPending(request=request) if request is not UNSET:
            yield Intent(kind="provider", lane=view.lane, id=request.usage_id)
        case SummaryRetryWait() as wait:
            yield Intent(kind="timer", lane=view.lane, id=f"{wait.context.task_id}:{wait.next_attempt}")
        case _:
            return


def _tool_intents(view: View) -> Iterator[Intent]:
    batch = view.batch
    calls = {call.source_index: call.id for call in source_calls(view.message(batch.assistant_entry_id))}
    for call in batch.calls:
        if isinstance(call, PendingCall):
            yield Intent(
                kind="tool",
                lane=view.lane,
                id=call.result_entry_id,
                tool_call=calls.get(call.source_index),
                arguments=view.state.value(Namespace.OP_TOOL_ARGS, tool_args_key(view, call.source_index)),
            )
