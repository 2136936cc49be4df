"""Restore: five point reads, one bounded batch, and the semantic checks over exactly what they name (§3.3, §4.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, assert_never

import msgspec

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    AssistantPhase,
    CallCompleted,
    CallEffectPending,
    CancelRequested,
    CheckpointPhase,
    CompactionPhase,
    CompactionState,
    DeferredPhase,
    Entry,
    FailureDrainPhase,
    LaneConfiguration,
    LaneState,
    MessagePayload,
    NavigationIntent,
    NavigationState,
    Operation,
    OperationState,
    Register,
    RegisterKey,
    ResponseProvenance,
    RunIntent,
    RunState,
    StructuralDecision,
    ToolBatch,
    ToolsPhase,
    kind_of,
    role_of,
    source_calls,
    stop_reason_of,
)  # fmt: skip
from restartpoint.errors import SessionCorruption
from restartpoint.runtime.transitions import tool_args_key
from restartpoint.session import SessionReader

__all__ = ["Restored", "named_entries", "named_registers", "restore", "structural_of"]


class Restored(msgspec.Struct, frozen=True, kw_only=True):
    """A lane's registers, checked. ``operation`` and ``state`` are None together: the lane is idle."""

    lane: str
    configuration: LaneConfiguration
    lane_state: LaneState
    leaf_id: str | None
    operation: Operation | None
    state: OperationState | None
    entries: Mapping[str, Entry]
    registers: Mapping[str, Register[Any]]
    """The named registers that exist, by ``namespace/key``."""


async def restore(reader: SessionReader, lane: str) -> Restored:
    """The lane as its registers say, without history, folding or tree walks.

    Raises:
        SessionCorruption: the registers contradict each other or name something that does not exist.
    """
    config, state, leaf = await reader.get_registers([(LANE_CONFIG, lane), (LANE_STATE, lane), (LANE_LEAF, lane)])
    if config is None or state is None or leaf is None:
        absent = [name for name, register in (("lane.config", config), ("lane.state", state), ("lane.leaf", leaf))
                  if register is None]  # fmt: skip
        raise SessionCorruption(lane, "lane registers", f"{', '.join(absent)} is missing")
    lane_state: LaneState = state.value
    operation_id = lane_state.current_operation_id
    operation, op_state = await _operation(reader, lane, operation_id)
    entry_ids = named_entries(leaf.value, operation, op_state)
    keys = named_registers(lane_state, op_state, operation_id)
    entries = await reader.get_entries(sorted(entry_ids)) if entry_ids else {}
    found = await reader.get_registers(keys) if keys else []
    registers = {
        f"{namespace.name}/{key}": register
        for (namespace, key), register in zip(keys, found, strict=True)
        if register is not None
    }
    restored = Restored(
        lane=lane,
        configuration=config.value,
        lane_state=lane_state,
        leaf_id=leaf.value,
        operation=operation,
        state=op_state,
        entries=entries,
        registers=registers,
    )
    _check_references(restored, entry_ids, keys)
    if operation is not None and op_state is not None:
        _check_operation(restored, operation, op_state)
    return restored


async def _operation(
    reader: SessionReader, lane: str, operation_id: str | None
) -> tuple[Operation | None, OperationState | None]:
    if operation_id is None:
        return None, None
    meta, state = await reader.get_registers([(OP_META, operation_id), (OP_STATE, operation_id)])
    if meta is None or state is None:
        which = "op.meta" if meta is None else "op.state"
        raise SessionCorruption(lane, "operation registers", f"{which}/{operation_id} is missing")
    return meta.value, state.value


# --- what a state names (§4.4) ----------------------------------------------------------------------------------


def named_entries(leaf_id: str | None, operation: Operation | None, state: OperationState | None) -> dict[str, str]:
    """Every committed entry id that the lane and its operation name, with what names it."""
    named: dict[str, str] = {}

    def note(id: str | None, by: str) -> None:
        if id is not None:
            named.setdefault(id, by)

    note(leaf_id, "lane.leaf")
    if operation is not None:
        note(operation.source_leaf_id, "op.meta sourceLeafId")
        match operation.intent:
            case RunIntent(prompt_entry_ids=prompts):
                for prompt in prompts:
                    note(prompt, "op.meta promptEntryIds")
            case NavigationIntent(target_id=target):
                note(target, "op.meta targetId")
            case _:
                pass
    if isinstance(state, RunState):
        note(state.latest_assistant_entry_id, "op.state latestAssistantEntryId")
        for entry_id, by in _phase_entries(state):
            note(entry_id, by)
    return named


def _phase_entries(state: RunState) -> list[tuple[str, str]]:
    match state.phase:
        case CheckpointPhase() as checkpoint:
            return _checkpoint_entries(checkpoint)
        case AssistantPhase(generation=generation):
            return [(generation.context.trigger_entry_id, "op.state triggerEntryId")]
        case ToolsPhase(batch=batch):
            done = [call.result_entry_id for call in batch.calls if isinstance(call, CallCompleted)]
            return [(batch.assistant_entry_id, "op.state assistantEntryId"),
                    *((result, "op.state resultEntryId") for result in done)]  # fmt: skip
        case CompactionPhase(resume_after=checkpoint):
            return _checkpoint_entries(checkpoint)
        case DeferredPhase(deferred=deferred):
            return [(deferred.source_entry_id, "op.state sourceEntryId")]
        case FailureDrainPhase(provenance=ResponseProvenance(entry_id=source)):
            return [(source, "op.state provenance")]
        case FailureDrainPhase():
            return []
        case _ as unreachable:
            assert_never(unreachable)


def _checkpoint_entries(checkpoint: CheckpointPhase) -> list[tuple[str, str]]:
    named = [(checkpoint.trigger_entry_id, "op.state triggerEntryId")]
    marker = checkpoint.threshold_checked_trigger_entry_id
    return [*named, (marker, "op.state thresholdCheckedTriggerEntryId")] if isinstance(marker, str) else named


def structural_of(state: OperationState) -> StructuralDecision | None:
    """The structural decision of a compaction, a summarized navigation, or a run that compacts."""
    match state:
        case CompactionState(structural=structural):
            return structural
        case NavigationState(phase=phase):
            return phase.structural if isinstance(phase.structural, StructuralDecision) else None
        case RunState(phase=CompactionPhase(structural=structural)):
            return structural
        case RunState():
            return None
        case _ as unreachable:
            assert_never(unreachable)


def named_registers(lane_state: LaneState, state: OperationState | None, operation_id: str | None) -> list[RegisterKey]:
    """Every register besides the five that the lane and its operation name."""
    keys: list[RegisterKey] = [(PENDING_ENTRY, entry) for entry in lane_state.pending_next_run]
    if state is None or operation_id is None:
        return keys
    if isinstance(state.control, CancelRequested):
        keys += [(PENDING_ENTRY, entry) for entry in (*state.control.drained_steer, *state.control.drained_follow_up)]
    structural = structural_of(state)
    if structural is not None:
        keys.append((OP_PREPARATION, f"{operation_id}:{structural.task_id}"))
    if isinstance(state, RunState):
        inbox = state.inbox
        keys += [(PENDING_ENTRY, entry) for entry in (*inbox.steer, *inbox.follow_up, *inbox.writes)]
        if isinstance(state.phase, ToolsPhase):
            batch = state.phase.batch
            keys += [
                (OP_TOOL_ARGS, tool_args_key(operation_id, batch.turn_id, call.source_index))
                for call in batch.calls
                if isinstance(call, CallEffectPending)
            ]
    return keys


# --- the checks (§3.3) ------------------------------------------------------------------------------------------


def _check_references(restored: Restored, entry_ids: Mapping[str, str], keys: list[RegisterKey]) -> None:
    for entry_id, by in entry_ids.items():
        if entry_id not in restored.entries:
            detail = f"{by} names {entry_id}, which does not exist"
            raise SessionCorruption(restored.lane, "named entries", detail)
    for namespace, key in keys:
        if f"{namespace.name}/{key}" not in restored.registers:
            raise SessionCorruption(restored.lane, "named registers", f"{namespace.name}/{key} is missing")


def _check_operation(restored: Restored, operation: Operation, state: OperationState) -> None:
    lane = restored.lane
    if operation.operation_id != restored.lane_state.current_operation_id or operation.lane != lane:
        found = f"op.meta holds operation {operation.operation_id} of lane {operation.lane!r}"
        raise SessionCorruption(lane, "operation owner", found)
    if kind_of(operation.intent) != _kind_of_state(state):
        found = f"a {kind_of(operation.intent)} intent with a {_kind_of_state(state)} state"
        raise SessionCorruption(lane, "intent and state", found)
    if isinstance(state, NavigationState) and isinstance(operation.intent, NavigationIntent):
        intent = operation.intent
        if (intent.target_id, intent.summarize) != (state.target_id, state.summarize):
            raise SessionCorruption(lane, "navigation target", "op.meta and op.state disagree")
    if isinstance(state, RunState):
        _check_run(restored, state)


def _kind_of_state(state: OperationState) -> str:
    match state:
        case RunState():
            return "run"
        case CompactionState():
            return "compaction"
        case NavigationState():
            return "navigation"
        case _ as unreachable:
            assert_never(unreachable)


def _check_run(restored: Restored, state: RunState) -> None:
    lane = restored.lane
    latest = state.latest_assistant_entry_id
    if latest is not None:
        message = _message(restored, latest, "assistant")
        cancelled = isinstance(state.control, CancelRequested)
        if stop_reason_of(message) == "aborted" and not cancelled:
            raise SessionCorruption(lane, "aborted implies cancelled", f"{latest} is aborted under running control")
    if isinstance(state.phase, ToolsPhase):
        _check_batch(restored, state.phase.batch)
    if isinstance(state.phase, FailureDrainPhase) and isinstance(state.phase.provenance, ResponseProvenance):
        _message(restored, state.phase.provenance.entry_id, "assistant")
    if isinstance(state.phase, DeferredPhase):
        _message(restored, state.phase.deferred.source_entry_id, "assistant")


def _message(restored: Restored, id: str, role: str) -> dict[str, Any]:
    payload = restored.entries[id].payload
    if not isinstance(payload, MessagePayload) or role_of(payload.message) != role:
        raise SessionCorruption(restored.lane, "entry types", f"{id} is not an entry with an {role} message")
    return payload.message


def _check_batch(restored: Restored, batch: ToolBatch) -> None:
    lane = restored.lane
    calls = {
        call.source_index: call for call in source_calls(_message(restored, batch.assistant_entry_id, "assistant"))
    }
    indices = [call.source_index for call in batch.calls]
    if indices != sorted(calls):
        raise SessionCorruption(lane, "tool indices", f"the batch has {indices}, its message has {sorted(calls)}")
    results = [call.result_entry_id for call in batch.calls]
    if len(set(results)) != len(results):
        raise SessionCorruption(lane, "tool results", "two calls reserve one result id")
    for call in batch.calls:
        if isinstance(call, CallCompleted):
            message = _message(restored, call.result_entry_id, "toolResult")
            if message.get("toolCallId") != calls[call.source_index].id:
                raise SessionCorruption(lane, "tool results", f"{call.result_entry_id} answers another call")
