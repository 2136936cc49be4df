"""The task of a run: recovery once at activation, then one procedure after another until it ends (§4.1, §4.5)."""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

from restartpoint.contract import (
    AssistantPhase,
    CancelRequested,
    CheckpointPhase,
    CompactionPhase,
    DeferredPhase,
    DeferredSuspended,
    FailureDrainPhase,
    RunDeferred,
    RunOutcome,
    ToolsPhase,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.runtime.procedures.activation import recover_at_activation
from restartpoint.runtime.procedures.assistant import generate
from restartpoint.runtime.procedures.checkpoint import drain_failure, pass_checkpoint
from restartpoint.runtime.procedures.tools import run_batch
from restartpoint.runtime.transitions import Current
from restartpoint.runtime.work import Work

__all__ = ["Activation", "run_operation"]

Activation: TypeAlias = Literal["fresh", "resume"]


async def run_operation(work: Work, activation: Activation) -> RunOutcome:
    """The outcome of the run, once it ended or suspended."""
    current = await work.load()
    orphans = activation == "resume"
    if orphans:
        current = await recover_at_activation(work, current)
    while True:
        after = await _next_procedure(work, current, orphans=orphans)
        if not isinstance(after, Current):
            return after
        current, orphans = after, False


async def _next_procedure(work: Work, current: Current, *, orphans: bool) -> Current | RunOutcome:
    if isinstance(current.state.control, CancelRequested):
        raise InvariantBroken(f"run {work.operation_id} is cancelled; resume() must refuse it in this version")
    match current.state.phase:
        case CheckpointPhase() as checkpoint:
            return await pass_checkpoint(work, current, checkpoint)
        case AssistantPhase(generation=generation):
            return await generate(work, current, generation, resumed=orphans)
        case ToolsPhase(batch=batch):
            return await run_batch(work, current, batch, orphans=orphans)
        case FailureDrainPhase() as drain:
            return await drain_failure(work, drain)
        case DeferredPhase(deferred=DeferredSuspended(source_entry_id=source)):
            return await _deferred(work, source)
        case DeferredPhase() | CompactionPhase():
            raise InvariantBroken(f"run {work.operation_id} stands in a phase that this version does not run")
        case _ as unreachable:
            assert_never(unreachable)


async def _deferred(work: Work, source_entry_id: str) -> RunDeferred:
    handle = (await work.message(source_entry_id)).get("deferred")
    return RunDeferred(
        run_id=work.operation_id,
        leaf_id=source_entry_id,
        final_entry_id=source_entry_id,
        deferred=handle if isinstance(handle, dict) else {},
    )
