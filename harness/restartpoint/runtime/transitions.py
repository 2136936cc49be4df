"""The ordered writes of every transition of a run, as functions from the current state to one transaction (§3).

Each function has the name of its transition and decides nothing: the procedures choose, the lane line verifies.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec.structs import replace

from restartpoint.contract import (
    LANE_LAST_RESULT,
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    UNSET,
    AgentMessage,
    AssistantPhase,
    CallCompleted,
    CallEffectPending,
    CallPlanned,
    CancelRequested,
    CheckpointPhase,
    CustomPayload,
    DeferredPhase,
    DeferredSuspended,
    EntryDraft,
    EntryPayload,
    FailureDrainPhase,
    GenerationContext,
    GenerationEffectPending,
    GenerationReady,
    GenerationRetryWait,
    Inbox,
    InsertEntry,
    InsertUsage,
    JsonObject,
    LaneLastResult,
    LaneState,
    MayFinish,
    MessagePayload,
    Namespace,
    NeedAssistant,
    Operation,
    OperationError,
    PendingCustom,
    PendingEntry,
    RegisterDelete,
    RegisterSet,
    Replay,
    ResponseProvenance,
    RunIntent,
    Running,
    RunPhase,
    RunSettings,
    RunState,
    ToolBatch,
    ToolCall,
    ToolsPhase,
    Transaction,
    UnsetType,
    Usage,
    UsageDraft,
    Write,
    source_calls,
)  # fmt: skip
from restartpoint.errors import InvariantBroken

__all__ = [
    "Acceptance", "Current", "OwnedKeys", "accept_run", "append_run_end_follow_up", "call_at", "finish_failed",
    "finish_run", "intend_assistant", "intend_tool", "recover_assistant", "settle_call", "settle_response",
    "start_generation", "step_id_of", "tool_args_key", "tool_args_prefix",
]  # fmt: skip


class Current(msgspec.Struct, frozen=True, kw_only=True):
    """What a transition of a run rereads on the lane line: the operation, its state, and the lane's registers."""

    operation: Operation
    state: RunState
    lane_state: LaneState
    leaf_id: str | None

    @property
    def operation_id(self) -> str:
        """The operation's durable id."""
        return self.operation.operation_id

    @property
    def lane(self) -> str:
        """The lane that owns the operation."""
        return self.operation.lane


class OwnedKeys(msgspec.Struct, frozen=True, kw_only=True):
    """The register keys that an operation owns besides meta and state, as listed on the lane line."""

    tool_args: tuple[str, ...]
    preparation: tuple[str, ...]


# --- acceptance (§3.6) ------------------------------------------------------------------------------------------


class Acceptance(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen parts of a run's acceptance: reserved ids, messages, settings, and what before_run fixed."""

    operation_id: str
    lane: str
    started_at: int
    prompts: Sequence[tuple[str, AgentMessage]]
    injected: Sequence[tuple[str, AgentMessage]]
    captured: Sequence[tuple[str, PendingEntry]]
    settings: RunSettings
    system_prompt_override: str | UnsetType = UNSET
    resume_data: JsonObject | UnsetType = UNSET


def accept_run(chosen: Acceptance, lane_state: LaneState, leaf_id: str | None) -> tuple[Transaction, Current]:
    """T01: the captured queue items, the caller's messages and the injected ones, then the operation."""
    placed: list[tuple[str, EntryPayload]] = [
        (entry_id, _placed_payload(pending)) for entry_id, pending in chosen.captured
    ]
    placed += [(entry_id, MessagePayload(message=message)) for entry_id, message in (*chosen.prompts, *chosen.injected)]
    inserts, newest = _chain(leaf_id, placed)
    captured = [entry_id for entry_id, _ in chosen.captured]
    operation = Operation(
        operation_id=chosen.operation_id,
        lane=chosen.lane,
        source_leaf_id=leaf_id,
        started_at=chosen.started_at,
        intent=RunIntent(
            prompt_entry_ids=[entry_id for entry_id, _ in chosen.prompts],
            system_prompt_override=chosen.system_prompt_override,
            resume_data=chosen.resume_data,
        ),
    )
    state = RunState(
        control=Running(),
        settings=chosen.settings,
        phase=_awaiting_assistant(newest, skip_inbox=True),
        inbox=Inbox(steer=[], follow_up=[], writes=[]),
        latest_assistant_entry_id=None,
    )
    lane_after = LaneState(
        current_operation_id=chosen.operation_id,
        pending_next_run=[entry_id for entry_id in lane_state.pending_next_run if entry_id not in captured],
    )
    writes = (
        *inserts,
        *(RegisterDelete(PENDING_ENTRY, entry_id) for entry_id in captured),
        RegisterSet(LANE_LEAF, chosen.lane, newest),
        RegisterSet(OP_META, chosen.operation_id, operation),
        RegisterSet(OP_STATE, chosen.operation_id, state),
        RegisterSet(LANE_STATE, chosen.lane, lane_after),
    )
    return Transaction(writes), Current(operation=operation, state=state, lane_state=lane_after, leaf_id=newest)


def _placed_payload(pending: PendingEntry) -> EntryPayload:
    if isinstance(pending, PendingCustom):
        return CustomPayload(custom_type=pending.custom_type, data=pending.payload)
    return MessagePayload(message=pending.payload)


def _chain(parent_id: str | None, placed: Sequence[tuple[str, EntryPayload]]) -> tuple[list[Write], str]:
    """Inserts that hang each entry under the one before it, and the id of the newest."""
    inserts: list[Write] = []
    for entry_id, payload in placed:
        inserts.append(InsertEntry(EntryDraft(id=entry_id, parent_id=parent_id, payload=payload)))
        parent_id = entry_id
    if parent_id is None or not placed:
        raise InvariantBroken("a placement needs at least one entry")
    return inserts, parent_id


def _awaiting_assistant(trigger: str, *, skip_inbox: bool) -> CheckpointPhase:
    return CheckpointPhase(
        continuation=NeedAssistant(overflow_recovery_used=False),
        trigger_entry_id=trigger,
        skip_inbox_once=True if skip_inbox else UNSET,
    )


# --- assistant generation (§3.7) --------------------------------------------------------------------------------


def _advance(current: Current, phase: RunPhase, **fields: object) -> tuple[RegisterSet[Any], RunState]:
    state: RunState = replace(current.state, phase=phase, **fields)
    return RegisterSet(OP_STATE, current.operation_id, state), state


def start_generation(current: Current, context: GenerationContext) -> tuple[Transaction, Current]:
    """T11: the step's captured context becomes durable; the inbox may be drained again afterwards."""
    write, state = _advance(current, AssistantPhase(generation=GenerationReady(context=context, next_attempt=1)))
    return Transaction((write,)), replace(current, state=state)


def intend_assistant(current: Current, pending: GenerationEffectPending) -> tuple[Transaction, Current]:
    """T16: a request is about to start under the reserved ids."""
    write, state = _advance(current, AssistantPhase(generation=pending))
    return Transaction((write,)), replace(current, state=state)


def recover_assistant(current: Current, pending: GenerationEffectPending) -> tuple[Transaction, Current]:
    """T27: the outcome of the attempt is unknown; a later one may start."""
    ready = GenerationReady(context=pending.context, next_attempt=pending.attempt + 1)
    write, state = _advance(current, AssistantPhase(generation=ready))
    return Transaction((write,)), replace(current, state=state)


def settle_response(
    current: Current,
    pending: GenerationEffectPending,
    message: AgentMessage,
    usage: Usage,
    *,
    tools: Sequence[str] | None = None,
    error: OperationError | None = None,
    retry: GenerationRetryWait | None = None,
    deferred: bool = False,
) -> tuple[Transaction, Current]:
    """T17, T18, T20-T24, T28: response, usage and next state in one commit.

    ``tools`` are the reserved result ids of the response's calls (T17), ``retry`` waits for the next attempt (T18),
    ``error`` sends the run to its failure drain (T20, T22, T24, T28), ``deferred`` suspends it (T21); with none of
    them the run may finish (T23).
    """
    response_id = pending.response_entry_id
    write, state = _advance(
        current,
        AssistantPhase(generation=retry)
        if retry is not None
        else _phase_after(pending, message, tools=tools, error=error, deferred=deferred),
        latest_assistant_entry_id=response_id,
    )
    writes = (
        InsertEntry(EntryDraft(id=response_id, parent_id=current.leaf_id, payload=MessagePayload(message=message))),
        RegisterSet(LANE_LEAF, current.lane, response_id),
        InsertUsage(UsageDraft(id=pending.usage_id, usage=usage, entry_id=response_id)),
        write,
    )
    return Transaction(writes), replace(current, state=state, leaf_id=response_id)


def _phase_after(
    pending: GenerationEffectPending,
    message: AgentMessage,
    *,
    tools: Sequence[str] | None,
    error: OperationError | None,
    deferred: bool,
) -> RunPhase:
    context, response_id = pending.context, pending.response_entry_id
    if error is not None:
        return FailureDrainPhase(error=error, provenance=ResponseProvenance(entry_id=response_id))
    if tools is not None:
        calls = source_calls(message)
        return ToolsPhase(
            batch=ToolBatch(
                assistant_entry_id=response_id,
                configuration=context.configuration,
                turn_id=context.step_id,
                calls=[
                    CallPlanned(source_index=call.source_index, result_entry_id=result_id)
                    for call, result_id in zip(calls, tools, strict=True)
                ],
            )
        )
    if deferred:
        suspended = DeferredSuspended(
            step_id=context.step_id,
            source_entry_id=response_id,
            poll=0,
            configuration=context.configuration,
            stream_options=context.stream_options,
        )
        return DeferredPhase(deferred=suspended)
    return CheckpointPhase(continuation=MayFinish(include_final_assistant=True), trigger_entry_id=response_id)


# --- tools (§3.8) -----------------------------------------------------------------------------------------------


def step_id_of(turn_id: str) -> str:
    """The producing generation's step id of a turn, which keys its tool arguments."""
    return turn_id.partition(":poll:")[0]


def tool_args_prefix(operation_id: str, turn_id: str) -> str:
    """The common prefix of a batch's op.tool_args keys."""
    return f"{operation_id}:{step_id_of(turn_id)}:"


def tool_args_key(operation_id: str, turn_id: str, source_index: int) -> str:
    """The op.tool_args key of one call."""
    return f"{tool_args_prefix(operation_id, turn_id)}{source_index}"


def call_at(batch: ToolBatch, source_index: int) -> ToolCall:
    """The call at that source position; a missing one is a broken invariant."""
    for call in batch.calls:
        if call.source_index == source_index:
            return call
    raise InvariantBroken(f"the batch of turn {batch.turn_id} has no call at source index {source_index}")


def _with_call(batch: ToolBatch, changed: ToolCall) -> ToolBatch:
    calls = [changed if call.source_index == changed.source_index else call for call in batch.calls]
    return replace(batch, calls=calls)


def intend_tool(
    current: Current, batch: ToolBatch, source_index: int, arguments: JsonObject, replay: Replay
) -> tuple[Transaction, Current]:
    """T30: the call is about to run with exactly these arguments."""
    call = call_at(batch, source_index)
    pending = CallEffectPending(source_index=source_index, result_entry_id=call.result_entry_id, replay=replay)
    write, state = _advance(current, ToolsPhase(batch=_with_call(batch, pending)))
    key = tool_args_key(current.operation_id, batch.turn_id, source_index)
    return Transaction((RegisterSet(OP_TOOL_ARGS, key, arguments), write)), replace(current, state=state)


def settle_call(
    current: Current,
    batch: ToolBatch,
    source_index: int,
    message: AgentMessage,
    *,
    terminate: bool,
    usage: tuple[str, Usage] | None,
    tool_args_keys: Sequence[str],
) -> tuple[Transaction, Current]:
    """T31-T36: one result at its source position; the last one completes the batch.

    ``usage`` is a minted row id with the reported usage. ``tool_args_keys`` are the batch's keys that exist now.
    """
    result_id = call_at(batch, source_index).result_entry_id
    completed = CallCompleted(source_index=source_index, result_entry_id=result_id, terminate=terminate)
    after = _with_call(batch, completed)
    done = all(isinstance(call, CallCompleted) for call in after.calls)
    write, state = _advance(current, _after_batch(after, result_id) if done else ToolsPhase(batch=after))
    payload = MessagePayload(message=message, terminate=terminate)
    writes: list[Write] = [
        InsertEntry(EntryDraft(id=result_id, parent_id=current.leaf_id, payload=payload)),
        RegisterSet(LANE_LEAF, current.lane, result_id),
    ]
    if usage is not None:
        writes.append(InsertUsage(UsageDraft(id=usage[0], usage=usage[1], entry_id=result_id)))
    if done:
        writes += [RegisterDelete(OP_TOOL_ARGS, key) for key in tool_args_keys]
    return Transaction((*writes, write)), replace(current, state=state, leaf_id=result_id)


def _after_batch(batch: ToolBatch, newest_result_id: str) -> CheckpointPhase:
    if all(isinstance(call, CallCompleted) and call.terminate for call in batch.calls):
        may_finish = MayFinish(include_final_assistant=False)
        return CheckpointPhase(continuation=may_finish, trigger_entry_id=newest_result_id)
    return _awaiting_assistant(newest_result_id, skip_inbox=False)


# --- ends (§3.12, §3.13) ----------------------------------------------------------------------------------------


def append_run_end_follow_up(current: Current, entry_id: str, message: AgentMessage) -> tuple[Transaction, Current]:
    """T13: the follow-up of before_run_end is born placed and the run goes on."""
    write, state = _advance(current, _awaiting_assistant(entry_id, skip_inbox=True))
    inserts, _ = _chain(current.leaf_id, [(entry_id, MessagePayload(message=message))])
    writes = (*inserts, RegisterSet(LANE_LEAF, current.lane, entry_id), write)
    return Transaction(writes), replace(current, state=state, leaf_id=entry_id)


def finish_run(current: Current, continuation: MayFinish, owned: OwnedKeys) -> tuple[Transaction, LaneLastResult]:
    """T14 and T15: the run completed, with its final assistant message or ended by its tools."""
    final = current.state.latest_assistant_entry_id if continuation.include_final_assistant else None
    result = LaneLastResult(
        operation_id=current.operation_id,
        kind="run",
        outcome="completed",
        leaf_id=current.leaf_id,
        final_assistant_entry_id=UNSET if final is None else final,
        run_completion="assistant" if continuation.include_final_assistant else "terminated_tools",
    )
    return _terminal(current, result, owned), result


def finish_failed(current: Current, error: OperationError, owned: OwnedKeys) -> tuple[Transaction, LaneLastResult]:
    """T76: the run failed."""
    latest = current.state.latest_assistant_entry_id
    result = LaneLastResult(
        operation_id=current.operation_id,
        kind="run",
        outcome="failed",
        leaf_id=current.leaf_id,
        final_assistant_entry_id=UNSET if latest is None else latest,
        error=error,
    )
    return _terminal(current, result, owned), result


def _terminal(current: Current, result: LaneLastResult, owned: OwnedKeys) -> Transaction:
    """The shared end: every register that the operation owns goes, the result and the idle lane come."""
    operation_id, inbox, control = current.operation_id, current.state.inbox, current.state.control
    pending = [*inbox.steer, *inbox.follow_up, *inbox.writes]
    if isinstance(control, CancelRequested):
        pending += [*control.drained_steer, *control.drained_follow_up]
    deletes: list[tuple[Namespace[Any], str]] = [
        (OP_META, operation_id),
        (OP_STATE, operation_id),
        *((OP_TOOL_ARGS, key) for key in owned.tool_args),
        *((OP_PREPARATION, key) for key in owned.preparation),
        *((PENDING_ENTRY, entry_id) for entry_id in pending),
    ]
    return Transaction(
        (
            *(RegisterDelete(namespace, key) for namespace, key in deletes),
            RegisterSet(LANE_LAST_RESULT, current.lane, result),
            RegisterSet(LANE_STATE, current.lane, replace(current.lane_state, current_operation_id=None)),
        )
    )
