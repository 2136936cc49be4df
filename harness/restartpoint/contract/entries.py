"""Entries: write-once rows of the conversation tree, placement and payload together (§1.1, §2.1)."""

from __future__ import annotations

from enum import StrEnum
from typing import TypeAlias

import msgspec

from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.usage import Usage

__all__ = [
    "BranchSummaryPayload", "CompactionPayload", "CustomPayload", "Entry", "EntryDraft", "EntryPayload",
    "EntryStructure", "EntryType", "MessagePayload", "custom_type_of", "entry_type_of",
]  # fmt: skip


class EntryType(StrEnum):
    """The four kinds of entry."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "branch_summary"
    CUSTOM = "custom"


class _Payload(msgspec.Struct, frozen=True, kw_only=True):
    extra: JsonObject = {}
    """Fields that this version does not know; they survive every rewrite, after the known ones."""


class MessagePayload(_Payload, frozen=True, kw_only=True):
    """A message of any role. ``terminate`` is stored only as true and only on tool results."""

    message: AgentMessage
    terminate: bool = False


class CompactionPayload(_Payload, frozen=True, kw_only=True):
    """A self-contained checkpoint of the context: summary plus the complete retained tail."""

    summary: str
    retained_tail: list[AgentMessage]
    tokens_before: int
    from_hook: bool
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET


class BranchSummaryPayload(_Payload, frozen=True, kw_only=True):
    """The summary of a branch that was left; ``from_id`` is the leaf before the navigation."""

    from_id: str
    summary: str
    from_hook: bool
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET


class CustomPayload(_Payload, frozen=True, kw_only=True):
    """Application data; an absent ``data`` differs from JSON null."""

    custom_type: str
    data: JsonValue | UnsetType = UNSET


EntryPayload: TypeAlias = MessagePayload | CompactionPayload | BranchSummaryPayload | CustomPayload

_TYPES: dict[type, EntryType] = {
    MessagePayload: EntryType.MESSAGE,
    CompactionPayload: EntryType.COMPACTION,
    BranchSummaryPayload: EntryType.BRANCH_SUMMARY,
    CustomPayload: EntryType.CUSTOM,
}


def entry_type_of(payload: EntryPayload) -> EntryType:
    """The entry type that the payload belongs to."""
    return _TYPES[type(payload)]


def custom_type_of(payload: EntryPayload) -> str | None:
    """The application's type name on custom payloads, else None."""
    return payload.custom_type if isinstance(payload, CustomPayload) else None


class EntryDraft(msgspec.Struct, frozen=True, kw_only=True):
    """An entry before commit: storage assigns ``seq`` and ``timestamp``."""

    id: str
    parent_id: str | None
    payload: EntryPayload


class Entry(msgspec.Struct, frozen=True, kw_only=True):
    """An entry as committed. ``seq`` is the session-wide sequence number, ``timestamp`` Unix milliseconds."""

    id: str
    parent_id: str | None
    seq: int
    timestamp: int
    payload: EntryPayload

    @property
    def type(self) -> EntryType:
        """The entry type, derived from the payload."""
        return _TYPES[type(self.payload)]

    @property
    def custom_type(self) -> str | None:
        """The application's type name on custom entries, else None."""
        return custom_type_of(self.payload)


class EntryStructure(msgspec.Struct, frozen=True, kw_only=True):
    """Placement of an entry without its payload (§1.5)."""

    id: str
    parent_id: str | None
    seq: int
    timestamp: int
    type: EntryType
    custom_type: str | None = None
