"""What a watcher sees first: the state of a lane or a session, then events from there on (§5.4)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Literal, TypeVar

import msgspec

from restartpoint.contract.entries import Entry, EntryType
from restartpoint.contract.events import EventListener, MissingIdentitiesNames, QueuedItem
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.operations import OperationKind
from restartpoint.contract.tools import ToolResult

__all__ = [
    "AbortedQueues", "LaneInfo", "LaneOperation", "LaneQueues", "LaneSnapshot", "OperationSnapshot",
    "OperationStatus", "PendingWrite", "RetrySnapshot", "RunningTool", "SessionLane", "SessionSnapshot",
    "SuspendedOperation", "WatchHandle",
]  # fmt: skip

T = TypeVar("T")

OperationStatus = Literal["running", "suspended", "aborting"]


class AbortedQueues(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Queued messages that an abort took out."""

    steer: list[AgentMessage]
    follow_up: list[AgentMessage]


class SuspendedOperation(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """An open operation that waits for ``resume()``; ``started_at`` in Unix milliseconds."""

    lane: str
    operation_id: str
    kind: OperationKind
    started_at: int
    reason: Literal["deferred", "missing_identities", "crash"]
    prompt: list[AgentMessage] | UnsetType = UNSET
    aborting: AbortedQueues | UnsetType = UNSET
    deferred: JsonObject | UnsetType = UNSET
    missing: MissingIdentitiesNames | UnsetType = UNSET


class LaneOperation(msgspec.Struct, frozen=True, kw_only=True):
    """The open operation of a lane, in short."""

    id: str
    kind: OperationKind
    status: OperationStatus


class LaneInfo(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A lane, its leaf, and its open operation."""

    name: str
    leaf_id: str | None
    operation: LaneOperation | None


class SessionLane(LaneInfo, frozen=True, kw_only=True):
    """A lane as a session snapshot shows it."""

    suspended: SuspendedOperation | UnsetType = UNSET


class SessionSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """Every lane."""

    lanes: list[SessionLane]
    faulted: bool


class RunningTool(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A call that runs now."""

    tool_call_id: str
    tool_name: str
    args: JsonObject
    partial_result: ToolResult | UnsetType = UNSET


class RetrySnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A wait between attempts; ``next_attempt_at`` in Unix milliseconds."""

    attempt: int
    max_attempts: int
    next_attempt_at: int


class OperationSnapshot(LaneOperation, frozen=True, kw_only=True, rename="camel"):
    """The open operation of a lane, with what only this process knows."""

    started_at: int
    suspended: SuspendedOperation | UnsetType = UNSET
    streaming_message: AgentMessage | UnsetType = UNSET
    running_tools: list[RunningTool] = []
    retry: RetrySnapshot | UnsetType = UNSET


class LaneQueues(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """What waits in the lane."""

    steer: list[QueuedItem] = []
    follow_up: list[QueuedItem] = []
    next_run: list[QueuedItem] = []


class PendingWrite(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A tree write that waits, under its reserved id."""

    entry_id: str
    type: EntryType
    custom_type: str | UnsetType = UNSET
    message: AgentMessage | UnsetType = UNSET
    data: JsonValue | UnsetType = UNSET


class LaneSnapshot(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """One lane: its context window with the compaction entry it begins with, its operation, its queues."""

    lane: str
    transcript: list[Entry]
    leaf_id: str | None
    operation: OperationSnapshot | None
    queues: LaneQueues
    pending_writes: list[PendingWrite]
    faulted: bool


class WatchHandle(msgspec.Struct, Generic[T], frozen=True, kw_only=True):
    """A snapshot and the events from there on: ``start(listener)`` hands over what came since, in order, then live."""

    snapshot: T
    start: Callable[[EventListener], None]
    unsubscribe: Callable[[], None]
