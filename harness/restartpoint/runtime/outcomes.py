"""Outcomes as callers see them, built from the register that the terminal transaction wrote (§3.13, §5.1)."""

from __future__ import annotations

from restartpoint.contract import (
    UNSET,
    AgentMessage,
    LaneLastResult,
    MessagePayload,
    RunAborted,
    RunCompleted,
    RunFailed,
    RunOutcome,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.session import SessionReader

__all__ = ["run_outcome"]


async def run_outcome(reader: SessionReader, result: LaneLastResult) -> RunOutcome:
    """The outcome of an ended run, with its final assistant message when the register names one."""
    if result.leaf_id is None:
        raise InvariantBroken(f"run {result.operation_id} ended without a leaf")
    final_id = None if result.final_assistant_entry_id is UNSET else result.final_assistant_entry_id
    final = None if final_id is None else await _message(reader, final_id)
    match result.outcome:
        case "completed":
            return RunCompleted(
                run_id=result.operation_id, leaf_id=result.leaf_id, final_entry_id=final_id, final_message=final
            )
        case "aborted":
            return RunAborted(
                run_id=result.operation_id, leaf_id=result.leaf_id, final_entry_id=final_id, final_message=final
            )
        case "failed" if result.error is not UNSET:
            return RunFailed(
                run_id=result.operation_id,
                leaf_id=result.leaf_id,
                final_entry_id=final_id,
                final_message=final,
                error=result.error,
            )
        case _:
            raise InvariantBroken(f"run {result.operation_id} cannot end {result.outcome}")


async def _message(reader: SessionReader, entry_id: str) -> AgentMessage:
    entry = (await reader.get_entries([entry_id])).get(entry_id)
    if entry is None or not isinstance(entry.payload, MessagePayload):
        raise InvariantBroken(f"entry {entry_id} should be a message and is not there")
    return entry.payload.message
