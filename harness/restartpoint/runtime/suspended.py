"""What the application is told of an operation that was open when the harness was opened (§5.2)."""

from __future__ import annotations

from restartpoint.contract import (
    UNSET,
    AbortedQueues,
    AgentMessage,
    CancelRequested,
    DeferredPhase,
    DeferredSuspended,
    JsonObject,
    MessagePayload,
    MissingIdentitiesNames,
    OperationState,
    PendingMessage,
    RunIntent,
    RunState,
    SuspendedOperation,
    UnsetType,
    kind_of,
)
from restartpoint.errors import InvariantBroken
from restartpoint.runtime.identities import MissingNames, needed_next
from restartpoint.runtime.restore import Restored
from restartpoint.runtime.services import Services

__all__ = ["suspended_operation"]


def suspended_operation(services: Services, restored: Restored) -> SuspendedOperation:
    """The descriptor of a restored lane's open operation."""
    operation, state = restored.operation, restored.state
    if operation is None or state is None:
        raise InvariantBroken(f"lane {restored.lane!r} is idle")
    prompt: list[AgentMessage] | UnsetType = UNSET
    handle: JsonObject | UnsetType = UNSET
    missing, deferred = MissingNames(), False
    if isinstance(operation.intent, RunIntent):
        payloads = [restored.entries[key].payload for key in operation.intent.prompt_entry_ids]
        prompt = [payload.message for payload in payloads if isinstance(payload, MessagePayload)]
    if isinstance(state, RunState):
        missing = needed_next(services, restored, state)
        if isinstance(state.phase, DeferredPhase):
            deferred = isinstance(state.phase.deferred, DeferredSuspended)
            source = restored.entries[state.phase.deferred.source_entry_id].payload
            found = source.message.get("deferred") if isinstance(source, MessagePayload) else None
            handle = found if isinstance(found, dict) else UNSET
    return SuspendedOperation(
        lane=restored.lane,
        operation_id=operation.operation_id,
        kind=kind_of(operation.intent),
        started_at=operation.started_at,
        reason="deferred" if deferred else "crash",
        prompt=prompt,
        aborting=_aborting(restored, state),
        deferred=handle,
        missing=MissingIdentitiesNames(tools=missing.tools, models=missing.models) if missing.any else UNSET,
    )


def _aborting(restored: Restored, state: OperationState) -> AbortedQueues | UnsetType:
    """The queued messages that a durable abort drained, when there was one."""
    control = state.control
    if not isinstance(control, CancelRequested):
        return UNSET
    return AbortedQueues(
        steer=_drained(restored, control.drained_steer), follow_up=_drained(restored, control.drained_follow_up)
    )


def _drained(restored: Restored, ids: list[str]) -> list[AgentMessage]:
    pending = (restored.registers[f"pending.entry/{key}"].value for key in ids)
    return [value.payload for value in pending if isinstance(value, PendingMessage)]
