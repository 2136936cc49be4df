"""Acceptance data of an operation: written once into op.meta, deleted by the terminal transaction (§3.1)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType

__all__ = [
    "CompactionIntent", "NavigationIntent", "Operation", "OperationError", "OperationIntent", "OperationKind",
    "RunIntent", "kind_of",
]  # fmt: skip

OperationKind: TypeAlias = Literal["run", "compaction", "navigation"]


class _Tagged(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True, tag_field="kind"):
    """A durable variant that its ``kind`` names."""


class RunIntent(_Tagged, frozen=True, kw_only=True, tag="run"):
    """A prompt: the caller's entries only, and what before_run fixed. ``resume_data`` is keyed by handler id."""

    prompt_entry_ids: list[str]
    system_prompt_override: str | UnsetType = UNSET
    resume_data: JsonObject | UnsetType = UNSET


class CompactionIntent(_Tagged, frozen=True, kw_only=True, tag="compaction"):
    """A manual compaction."""

    custom_instructions: str | UnsetType = UNSET


class NavigationIntent(_Tagged, frozen=True, kw_only=True, tag="navigation"):
    """A move of the lane's leaf; a None target is the root."""

    target_id: str | None
    summarize: bool
    label: str | UnsetType = UNSET
    custom_instructions: str | UnsetType = UNSET


OperationIntent: TypeAlias = RunIntent | CompactionIntent | NavigationIntent


class Operation(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Identity, start and intent of an operation. ``source_leaf_id`` is the leaf before it appended anything."""

    operation_id: str
    lane: str
    source_leaf_id: str | None
    started_at: int
    intent: OperationIntent


class OperationError(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """Why an operation failed; ``details`` hold ids and counts only."""

    code: str
    message: str
    details: JsonValue | UnsetType = UNSET


def kind_of(intent: OperationIntent) -> OperationKind:
    """The kind of operation that the intent starts."""
    match intent:
        case RunIntent():
            return "run"
        case CompactionIntent():
            return "compaction"
        case NavigationIntent():
            return "navigation"
