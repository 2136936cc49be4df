"""The events of one flat, passive stream (§5.5). ``lane`` names the origin, except where a class says otherwise.

``recovery`` is true only on process-local lifecycle that ``resume()`` shows again, never on durable facts.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias

import msgspec

from restartpoint.contract.configuration import ModelIdentity, ThinkingLevel
from restartpoint.contract.entries import Entry, EntryType
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.models import AssistantEvent
from restartpoint.contract.operations import OperationError
from restartpoint.contract.tools import ToolResult
from restartpoint.contract.usage import Usage, UsageRow

__all__ = [
    "ActiveToolsUpdateEvent", "CompactionEndEvent", "CompactionReason", "CompactionStartEvent",
    "CompactionSuspendEvent", "CustomFactEvent", "EntryAddedEvent", "EventListener", "EventType", "FaultEvent",
    "HandlerErrorEvent", "HarnessEvent", "LabelFactEvent", "LaneCreatedEvent", "MessageEndEvent",
    "MessageStartEvent", "MessageUpdateEvent", "MissingIdentitiesNames", "ModelUpdateEvent", "NameFactEvent",
    "NavigationEndEvent", "NavigationStartEvent", "NavigationSuspendEvent", "QueueUpdateEvent", "QueuedItem",
    "RetryEndEvent", "RetryScheduledEvent", "RetryStartEvent", "RunAbortEvent", "RunEndEvent", "RunResumeEvent",
    "RunStartEvent", "RunSuspendEvent", "SettingUpdateEvent", "ThinkingLevelUpdateEvent", "ToolEndEvent",
    "ToolStartEvent", "ToolUpdateEvent", "TurnEndEvent", "TurnStartEvent", "UsageEvent", "WritePendingEvent",
    "event_type", "lane_of",
]  # fmt: skip

EventType: TypeAlias = Literal[
    "run_start", "run_resume", "run_suspend", "compaction_suspend", "navigation_suspend", "run_abort", "run_end",
    "fault", "handler_error", "turn_start", "turn_end", "retry_scheduled", "retry_start", "retry_end",
    "message_start", "message_update", "message_end", "tool_start", "tool_update", "tool_end", "entry_added",
    "write_pending", "queue_update", "fact_update", "config_update", "compaction_start", "compaction_end",
    "navigation_start", "navigation_end", "lane_created", "usage",
]  # fmt: skip


class _Event(msgspec.Struct, frozen=True, kw_only=True, rename="camel", tag_field="type"):
    """An event without a lane."""


class _LaneEvent(_Event, frozen=True, kw_only=True):
    lane: str
    recovery: Literal[True] | UnsetType = UNSET


class _OperationEvent(_LaneEvent, frozen=True, kw_only=True):
    run_id: str


class MissingIdentitiesNames(msgspec.Struct, frozen=True, kw_only=True):
    """What has to be registered before the operation can go on."""

    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()


# --- run lifecycle ----------------------------------------------------------------------------------------------


class RunStartEvent(_OperationEvent, frozen=True, kw_only=True, tag="run_start"):
    """A prompt was accepted; its placed messages follow."""


class RunResumeEvent(_OperationEvent, frozen=True, kw_only=True, tag="run_resume"):
    """``resume()`` took an operation up, of whatever kind."""


class RunSuspendEvent(_OperationEvent, frozen=True, kw_only=True, tag="run_suspend"):
    """The run waits: for a deferred response, or for identities to be registered."""

    reason: Literal["deferred", "missing_identities"]
    deferred: JsonObject | UnsetType = UNSET
    missing: MissingIdentitiesNames | UnsetType = UNSET


class CompactionSuspendEvent(_OperationEvent, frozen=True, kw_only=True, tag="compaction_suspend"):
    """The compaction waits for identities to be registered."""

    missing: MissingIdentitiesNames
    reason: Literal["missing_identities"] = "missing_identities"


class NavigationSuspendEvent(_OperationEvent, frozen=True, kw_only=True, tag="navigation_suspend"):
    """The navigation waits for identities to be registered."""

    missing: MissingIdentitiesNames
    reason: Literal["missing_identities"] = "missing_identities"


class RunAbortEvent(_OperationEvent, frozen=True, kw_only=True, tag="run_abort"):
    """Cancellation became durable; the queued messages that it took out."""

    steer: list[AgentMessage]
    follow_up: list[AgentMessage]


class RunEndEvent(_OperationEvent, frozen=True, kw_only=True, tag="run_end"):
    """The run ended durably; ``error`` is set exactly when it failed, the final pair both or neither."""

    outcome: Literal["completed", "aborted", "failed"]
    leaf_id: str | None
    error: OperationError | UnsetType = UNSET
    final_entry_id: str | UnsetType = UNSET
    final_message: AgentMessage | UnsetType = UNSET


class FaultEvent(_Event, frozen=True, kw_only=True, tag="fault"):
    """The harness stopped because a commit failed or an invariant broke. Has no lane."""

    code: str
    message: str


class HandlerErrorEvent(_Event, frozen=True, kw_only=True, tag="handler_error"):
    """A hook handler or a listener raised; ``lane`` is that of its call, when it had one."""

    kind: Literal["hook", "event"]
    error: str
    stack: str | UnsetType = UNSET
    hook: str | UnsetType = UNSET
    event: str | UnsetType = UNSET
    lane: str | UnsetType = UNSET
    recovery: Literal[True] | UnsetType = UNSET


# --- steps and retries ------------------------------------------------------------------------------------------


class TurnStartEvent(_OperationEvent, frozen=True, kw_only=True, tag="turn_start"):
    """A generation step or a poll began."""

    turn_id: str


class TurnEndEvent(_OperationEvent, frozen=True, kw_only=True, tag="turn_end"):
    """The step's response and all its tool results are recorded."""

    turn_id: str
    message: AgentMessage
    tool_results: list[AgentMessage]


class RetryScheduledEvent(_OperationEvent, frozen=True, kw_only=True, tag="retry_scheduled"):
    """Attempt number ``attempt`` will start after ``delay_ms``."""

    step: str
    attempt: int
    max_attempts: int
    delay_ms: int
    error_message: str


class RetryStartEvent(_OperationEvent, frozen=True, kw_only=True, tag="retry_start"):
    """A later attempt began."""

    step: str
    attempt: int


class RetryEndEvent(_OperationEvent, frozen=True, kw_only=True, tag="retry_end"):
    """A retried step settled for good."""

    step: str
    attempt: int
    success: bool
    final_error: str | UnsetType = UNSET


# --- messages ---------------------------------------------------------------------------------------------------


class _MessageEvent(_LaneEvent, frozen=True, kw_only=True):
    message: AgentMessage
    run_id: str | UnsetType = UNSET


class MessageStartEvent(_MessageEvent, frozen=True, kw_only=True, tag="message_start"):
    """A streamed response, a placed message or a tool result begins."""


class MessageUpdateEvent(_OperationEvent, frozen=True, kw_only=True, tag="message_update"):
    """A streamed response grew; ``message`` is the draft so far."""

    message: AgentMessage
    event: AssistantEvent


class MessageEndEvent(_MessageEvent, frozen=True, kw_only=True, tag="message_end"):
    """The final value, which is durable only when entry_added follows."""

    entry_id: str | UnsetType = UNSET


# --- tools ------------------------------------------------------------------------------------------------------


class _ToolEvent(_OperationEvent, frozen=True, kw_only=True):
    turn_id: str
    tool_call_id: str
    tool_name: str


class ToolStartEvent(_ToolEvent, frozen=True, kw_only=True, tag="tool_start"):
    """A real call runs, with its effective arguments."""

    args: JsonObject


class ToolUpdateEvent(_ToolEvent, frozen=True, kw_only=True, tag="tool_update"):
    """A running call published a partial result."""

    partial_result: ToolResult


class ToolEndEvent(_ToolEvent, frozen=True, kw_only=True, tag="tool_end"):
    """The result after after_tool, in source order."""

    result: ToolResult
    is_error: bool
    terminate: bool


# --- tree, queues, facts ----------------------------------------------------------------------------------------


class EntryAddedEvent(_LaneEvent, frozen=True, kw_only=True, tag="entry_added"):
    """The entry is committed and can be queried: the only proof of durability."""

    entry: Entry


class WritePendingEvent(_OperationEvent, frozen=True, kw_only=True, tag="write_pending"):
    """A tree write was accepted and waits for the open operation."""

    entry_id: str
    entry_type: EntryType


class QueuedItem(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A message that waits in a queue."""

    entry_id: str
    message: AgentMessage


class QueueUpdateEvent(_LaneEvent, frozen=True, kw_only=True, tag="queue_update"):
    """The complete queues of the lane after a change."""

    steer: list[QueuedItem]
    follow_up: list[QueuedItem]
    next_run: list[QueuedItem]


class NameFactEvent(_Event, frozen=True, kw_only=True, tag="fact_update"):
    """The session's name changed; unset means removed. Has no lane."""

    fact: Literal["name"] = "name"
    name: str | UnsetType = UNSET


class LabelFactEvent(_Event, frozen=True, kw_only=True, tag="fact_update"):
    """An entry's label changed; unset means removed. Has no lane."""

    target_id: str
    fact: Literal["label"] = "label"
    label: str | UnsetType = UNSET


class CustomFactEvent(_Event, frozen=True, kw_only=True, tag="fact_update"):
    """A custom fact changed; unset means removed, None is JSON null. Has no lane."""

    key: str
    fact: Literal["custom"] = "custom"
    value: JsonValue | UnsetType = UNSET


# --- configuration ----------------------------------------------------------------------------------------------


class ModelUpdateEvent(_LaneEvent, frozen=True, kw_only=True, tag="config_update"):
    """The lane's model changed."""

    value: ModelIdentity
    previous: ModelIdentity
    property: Literal["model"] = "model"


class ThinkingLevelUpdateEvent(_LaneEvent, frozen=True, kw_only=True, tag="config_update"):
    """The lane's thinking level changed."""

    value: ThinkingLevel
    previous: ThinkingLevel
    property: Literal["thinkingLevel"] = "thinkingLevel"


class ActiveToolsUpdateEvent(_LaneEvent, frozen=True, kw_only=True, tag="config_update"):
    """The lane's active tools changed."""

    value: list[str]
    previous: list[str]
    property: Literal["activeTools"] = "activeTools"


class SettingUpdateEvent(_Event, frozen=True, kw_only=True, tag="config_update"):
    """A harness-global setting changed; read it again. Has no lane."""

    property: Literal[
        "tools",
        "resources",
        "streamOptions",
        "retryPolicy",
        "compactionSettings",
        "steeringMode",
        "followUpMode",
    ]


# --- structural -------------------------------------------------------------------------------------------------

CompactionReason: TypeAlias = Literal["manual", "threshold", "overflow"]


class CompactionStartEvent(_OperationEvent, frozen=True, kw_only=True, tag="compaction_start"):
    """A compaction is being decided."""

    reason: CompactionReason


class CompactionEndEvent(_OperationEvent, frozen=True, kw_only=True, tag="compaction_end"):
    """The compaction is over; ``entry`` and ``from_hook`` exactly when completed, ``error`` exactly when failed."""

    reason: CompactionReason
    outcome: Literal["completed", "declined", "aborted", "failed"]
    entry: Entry | UnsetType = UNSET
    from_hook: bool | UnsetType = UNSET
    error: OperationError | UnsetType = UNSET


class NavigationStartEvent(_OperationEvent, frozen=True, kw_only=True, tag="navigation_start"):
    """A navigation was accepted."""

    target_id: str | None


class NavigationEndEvent(_OperationEvent, frozen=True, kw_only=True, tag="navigation_end"):
    """The navigation is over; ``error`` exactly when failed."""

    old_leaf_id: str | None
    new_leaf_id: str | None
    outcome: Literal["completed", "declined", "aborted", "failed"]
    summary_entry: Entry | UnsetType = UNSET
    error: OperationError | UnsetType = UNSET


# --- lanes and cost ---------------------------------------------------------------------------------------------


class LaneCreatedEvent(_LaneEvent, frozen=True, kw_only=True, tag="lane_created"):
    """A lane exists; ``at`` is its leaf."""

    at: str | None


class UsageEvent(_Event, frozen=True, kw_only=True, tag="usage"):
    """A ledger row was committed. ``lane`` is its origin; it reaches every watcher, since totals are session-wide.

    Rows of several lanes may arrive out of order: keep the totals of the greatest ``row.seq``.
    """

    lane: str
    row: UsageRow
    totals: Usage


HarnessEvent: TypeAlias = (
    RunStartEvent
    | RunResumeEvent
    | RunSuspendEvent
    | CompactionSuspendEvent
    | NavigationSuspendEvent
    | RunAbortEvent
    | RunEndEvent
    | FaultEvent
    | HandlerErrorEvent
    | TurnStartEvent
    | TurnEndEvent
    | RetryScheduledEvent
    | RetryStartEvent
    | RetryEndEvent
    | MessageStartEvent
    | MessageUpdateEvent
    | MessageEndEvent
    | ToolStartEvent
    | ToolUpdateEvent
    | ToolEndEvent
    | EntryAddedEvent
    | WritePendingEvent
    | QueueUpdateEvent
    | NameFactEvent
    | LabelFactEvent
    | CustomFactEvent
    | ModelUpdateEvent
    | ThinkingLevelUpdateEvent
    | ActiveToolsUpdateEvent
    | SettingUpdateEvent
    | CompactionStartEvent
    | CompactionEndEvent
    | NavigationStartEvent
    | NavigationEndEvent
    | LaneCreatedEvent
    | UsageEvent
)

EventListener: TypeAlias = Callable[[Any], "None | Awaitable[None]"]
"""Takes an event of its own; plain or async. What it returns, raises or changes never reaches the operation."""


def event_type(event: HarnessEvent) -> str:
    """The ``type`` of the event."""
    return str(type(event).__struct_config__.tag)


def lane_of(event: HarnessEvent) -> str | None:
    """The event's base lane; None on facts, faults, global settings and usage (whose lane is its origin only)."""
    if isinstance(event, UsageEvent):
        return None
    lane = getattr(event, "lane", None)
    return lane if isinstance(lane, str) else None
