"""Context projection: the messages that a provider request is built from (§2.5).

Everything is a pure function of entries, except that projectors may be asynchronous. Projection is per entry, so a
live lane extends its context by projecting only what was appended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from inspect import isawaitable
from typing import Protocol, TypeAlias, assert_never

from restartpoint.contract import (
    AgentMessage,
    BranchScan,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryType,
    MessagePayload,
    SourceCall,
    role_of,
    source_calls,
    stop_reason_of,
    user_message,
)  # fmt: skip

__all__ = [
    "BRANCH_SUMMARY_PREFIX", "COMPACTION_PREFIX", "HEALED_RESULT_TEXT", "BranchReader", "EntryProjector",
    "context_entries", "heal", "project_context", "project_entry",
]  # fmt: skip

COMPACTION_PREFIX = "The conversation before this point was compacted. Summary:\n\n"
"""What stands before the summary of a compaction."""

BRANCH_SUMMARY_PREFIX = "A branch of this conversation was explored and left. Summary:\n\n"
"""What stands before the summary of a branch that was left."""

HEALED_RESULT_TEXT = "No result was recorded for this tool call."
"""The text of a tool result that stands in for one that does not exist."""

Projection: TypeAlias = Sequence[AgentMessage] | None

EntryProjector: TypeAlias = Callable[[Entry], Projection | Awaitable[Projection]]
"""Gives the messages of a custom entry, or None when it adds nothing. Deterministic; may be asynchronous."""

_DROPPED = frozenset({"error", "aborted", "deferred"})


class BranchReader(Protocol):
    """What the projection reads through: a session, a mutator or a storage."""

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        """Entries on the path from ``query.start`` to the root."""
        ...


async def context_entries(reader: BranchReader, leaf_id: str | None) -> list[Entry]:
    """The entries whose projection is the context at a leaf, oldest first; empty when the leaf is the root.

    The newest compaction on the path comes first when there is one; one scan reads nothing beyond it.

    Raises:
        UnknownEntry: no entry has the id ``leaf_id``.
    """
    if leaf_id is None:
        return []
    found = await reader.scan_branch(BranchScan(start=leaf_id, stop_at_type=EntryType.COMPACTION))
    found.reverse()
    return found


async def project_context(entries: Iterable[Entry], projectors: Mapping[str, EntryProjector]) -> list[AgentMessage]:
    """The healed messages of ``context_entries``, oldest first; the list is new, the messages are the stored ones."""
    return heal([message for entry in entries for message in await project_entry(entry, projectors)])


async def project_entry(entry: Entry, projectors: Mapping[str, EntryProjector]) -> list[AgentMessage]:
    """The messages that one entry adds to the context, not healed.

    A compaction gives its summary as a user message and then its retained tail, a branch summary a user message, a
    custom entry what the projector of its custom type returns (nothing without one). Assistant responses that ended
    as error, aborted or deferred are left out everywhere, in a retained tail too.
    """
    payload = entry.payload
    match payload:
        case MessagePayload():
            return [] if _is_dropped(payload.message) else [payload.message]
        case CompactionPayload():
            summary = user_message(COMPACTION_PREFIX + payload.summary, entry.timestamp)
            return [summary, *(message for message in payload.retained_tail if not _is_dropped(message))]
        case BranchSummaryPayload():
            return [user_message(BRANCH_SUMMARY_PREFIX + payload.summary, entry.timestamp)]
        case CustomPayload():
            projector = projectors.get(payload.custom_type)
            if projector is None:
                return []
            projected = projector(entry)
            messages = await projected if isawaitable(projected) else projected
            return [message for message in messages or () if not _is_dropped(message)]
        case _:
            assert_never(payload)


def heal(messages: Sequence[AgentMessage]) -> list[AgentMessage]:
    """The messages with a result for every tool call, so that a provider accepts them (§2.7).

    Runs after the projectors and before ``transform_context``. A tool call of an assistant message is an orphan when
    no tool result with its call id comes anywhere later in the list. Each orphan gets an error result directly behind
    its assistant message, several in the order of their calls, with the assistant message's timestamp. Nothing is
    removed or reordered, so a settled history comes back equal and the context of a lane only grows at its tail.
    """
    healed: list[AgentMessage] = []
    answered: set[object] = set()
    for message in reversed(messages):
        if role_of(message) == "toolResult":
            answered.add(message.get("toolCallId"))
        else:
            orphans = [call for call in source_calls(message) if call.id not in answered] if _may_call(message) else []
            healed.extend(_stand_in(call, message) for call in reversed(orphans))
        healed.append(message)
    healed.reverse()
    return healed


def _stand_in(call: SourceCall, assistant: AgentMessage) -> AgentMessage:
    result: AgentMessage = {
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.name,
        "content": [{"type": "text", "text": HEALED_RESULT_TEXT}],
        "isError": True,
    }
    if "timestamp" in assistant:
        result["timestamp"] = assistant["timestamp"]
    return result


def _may_call(message: AgentMessage) -> bool:
    return role_of(message) == "assistant"


def _is_dropped(message: AgentMessage) -> bool:
    return stop_reason_of(message) in _DROPPED
