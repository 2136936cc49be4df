"""A valid value of every register namespace and every kind of entry, for suites and state machines."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from restartpoint.contract import (
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    EntryPayload,
    LaneState,
    MessagePayload,
    RegisterSet,
    SessionMetadata,
    Transaction,
    Usage,
)  # fmt: skip
from restartpoint_oracle.wire import Json

__all__ = [
    "FIRST_TRANSACTION", "METADATA", "REGISTER_SAMPLES", "assistant", "compaction", "custom", "message",
    "register_value", "summary", "tool_result", "usage",
]  # fmt: skip

METADATA = SessionMetadata(id="conformance", created_at=1_700_000_000_000)
"""The session that suites create."""

FIRST_TRANSACTION = Transaction(
    (RegisterSet(LANE_LEAF, "main", None), RegisterSet(LANE_STATE, "main", LaneState(
        current_operation_id=None, pending_next_run=[])))
)  # fmt: skip
"""What a repository writes when it creates a session (S01)."""

_CONFIGURATION: Json = {
    "model": {"provider": "scripted", "modelId": "m-1"}, "thinkingLevel": "off", "activeToolNames": ["read"],
}  # fmt: skip
_USER: Json = {"role": "user", "content": [{"type": "text", "text": "hi"}], "timestamp": 1}

REGISTER_SAMPLES: Mapping[str, tuple[Json, ...]] = MappingProxyType({
    "lane.leaf": (None, "e-1"),
    "lane.config": (_CONFIGURATION,),
    "lane.state": (
        {"currentOperationId": None, "pendingNextRun": []}, {"currentOperationId": "op-1", "pendingNextRun": ["e-9"]},
    ),
    "lane.lastResult": (
        {"operationId": "op-1", "kind": "run", "outcome": "completed", "leafId": "e-1", "finalAssistantEntryId": "e-1",
         "runCompletion": "assistant"},
        {"operationId": "op-2", "kind": "run", "outcome": "failed", "leafId": None,
         "error": {"code": "provider", "message": "no"}},
    ),
    "op.meta": (
        {"operationId": "op-1", "lane": "main", "sourceLeafId": None, "startedAt": 1,
         "intent": {"kind": "run", "promptEntryIds": ["e-1"]}},
    ),
    "op.state": (
        {"kind": "run", "control": {"status": "running"},
         "settings": {"compaction": {"enabled": True, "reserveTokens": 16384, "keepRecentTokens": 20000},
                      "steeringMode": "all", "followUpMode": "one-at-a-time", "toolExecution": "parallel"},
         "phase": {"kind": "checkpoint", "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
                   "triggerEntryId": "e-1"},
         "inbox": {"steer": [], "followUp": [], "writes": []}, "latestAssistantEntryId": None},
        {"kind": "navigation", "control": {"status": "cancel_requested", "requestedAt": 5, "drainedSteer": [],
                                           "drainedFollowUp": []},
         "targetId": None, "summarize": False, "phase": {"kind": "ready_to_commit"}},
    ),
    "op.tool_args": ({}, {"path": "a.txt", "lines": [1, 2.0, None], "deep": {"x": {"y": False}}}),
    "op.preparation": (
        {"kind": "branch_summary", "messages": [_USER], "fileOps": {"read": ["a"], "written": [], "edited": []},
         "totalTokens": 12},
        {"kind": "compaction", "messagesToSummarize": [_USER], "turnPrefixMessages": [], "retainedTail": [],
         "isSplitTurn": False, "tokensBefore": 9, "fileOps": {"read": [], "written": [], "edited": []},
         "settings": {"enabled": True, "reserveTokens": 1, "keepRecentTokens": 2}},
    ),
    "pending.entry": (
        {"type": "message", "payload": _USER}, {"type": "custom", "customType": "note"},
        {"type": "custom", "customType": "note", "payload": None},
    ),
    "fact.name": ("", "a name"),
    "fact.label": ("a label",),
    "fact.custom": (None, 1, 1.0, "text", [], {"a": [True, None]}),
})  # fmt: skip
"""Valid values by namespace, as JSON; null stands only where a namespace allows it (§1.3)."""


def register_value(namespace: str, value: Json) -> Any:
    """The typed value of a register sample."""
    return NAMESPACES[namespace].convert(value)


def message(text: str = "hi", **extra: Any) -> MessagePayload:
    """A user message; ``extra`` are fields of the payload that no version knows."""
    content: list[Any] = [{"type": "text", "text": text}]
    return MessagePayload(message={"role": "user", "content": content, "timestamp": 1}, extra=extra)


def assistant(text: str = "answer", stop_reason: str = "stop") -> MessagePayload:
    """A settled assistant response."""
    content: list[Any] = [{"type": "text", "text": text}]
    return MessagePayload(message={
        "role": "assistant", "content": content, "api": "scripted", "provider": "scripted", "model": "m-1",
        "usage": usage(1), "stopReason": stop_reason, "timestamp": 1,
    })  # fmt: skip


def tool_result(*, terminate: bool = False) -> MessagePayload:
    """The result of a tool call."""
    content: list[Any] = [{"type": "text", "text": "done"}]
    return MessagePayload(
        message={
            "role": "toolResult", "toolCallId": "c-1", "toolName": "read", "content": content, "isError": False,
            "timestamp": 1,
        },
        terminate=terminate,
    )  # fmt: skip


def compaction(text: str = "so far", **fields: Any) -> CompactionPayload:
    """A compaction with an empty tail; ``fields`` replace or add."""
    return CompactionPayload(**{
        "summary": text, "retained_tail": [], "tokens_before": 100, "from_hook": False, **fields,
    })  # fmt: skip


def summary(from_id: str, text: str = "left", **fields: Any) -> BranchSummaryPayload:
    """A branch summary; ``fields`` replace or add."""
    return BranchSummaryPayload(**{"from_id": from_id, "summary": text, "from_hook": False, **fields})


def custom(custom_type: str = "note", **fields: Any) -> EntryPayload:
    """A custom entry; without ``data`` it has none."""
    return CustomPayload(custom_type=custom_type, **fields)


def usage(tokens: int = 0, cost: float = 0) -> Usage:
    """A usage whose input is ``tokens`` and whose input cost is ``cost``."""
    return {
        "input": tokens, "output": 0, "cacheRead": 0, "cacheWrite": 0, "totalTokens": tokens,
        "cost": {"input": cost, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost},
    }  # fmt: skip
