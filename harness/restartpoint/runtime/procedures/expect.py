"""What a transition verifies about the reread state before it extends it (§3.4, §4.3)."""

from __future__ import annotations

from restartpoint.contract import (
    AssistantPhase,
    CallCompleted,
    GenerationEffectPending,
    GenerationReady,
    ToolBatch,
    ToolCall,
    ToolsPhase,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.runtime.transitions import Current, call_at

__all__ = ["open_call", "same_batch", "same_ready", "same_request"]


def same_ready(current: Current, ready: GenerationReady) -> GenerationReady:
    """The ready generation, when it is still the one that the procedure holds."""
    phase = current.state.phase
    if isinstance(phase, AssistantPhase) and phase.generation == ready:
        return ready
    raise InvariantBroken(f"run {current.operation_id} left attempt {ready.next_attempt} while its task stood there")


def same_request(current: Current, pending: GenerationEffectPending) -> GenerationEffectPending:
    """The pending request, when the durable one has the same reserved ids."""
    phase = current.state.phase
    if isinstance(phase, AssistantPhase) and isinstance(phase.generation, GenerationEffectPending):
        durable = phase.generation
        if (durable.response_entry_id, durable.usage_id) == (pending.response_entry_id, pending.usage_id):
            return durable
    raise InvariantBroken(f"run {current.operation_id} no longer waits for response {pending.response_entry_id}")


def same_batch(current: Current, turn_id: str) -> ToolBatch:
    """The durable batch, when it is the one of that turn."""
    phase = current.state.phase
    if isinstance(phase, ToolsPhase) and phase.batch.turn_id == turn_id:
        return phase.batch
    raise InvariantBroken(f"run {current.operation_id} no longer runs the batch of turn {turn_id}")


def open_call(batch: ToolBatch, call: ToolCall) -> ToolCall:
    """The durable call, when it is the one that the procedure holds and is still open."""
    durable = call_at(batch, call.source_index)
    if durable != call or isinstance(durable, CallCompleted):
        raise InvariantBroken(f"call {call.source_index} of turn {batch.turn_id} is no longer as its task left it")
    return durable
