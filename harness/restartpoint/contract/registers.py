"""Registers: namespaced typed cells, the only mutable state, and the values that each namespace holds (§1.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any, Generic, Literal, TypeAlias, TypeVar, cast

import msgspec

from restartpoint.contract.configuration import CompactionSettings, LaneConfiguration
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.operations import Operation, OperationError, OperationKind
from restartpoint.contract.states import OperationState

__all__ = [
    "FACT_CUSTOM", "FACT_LABEL", "FACT_NAME", "LANE_CONFIG", "LANE_LAST_RESULT", "LANE_LEAF", "LANE_STATE",
    "NAMESPACES", "OP_META", "OP_PREPARATION", "OP_STATE", "OP_TOOL_ARGS", "PENDING_ENTRY",
    "BranchSummaryPreparation", "CompactionPreparation", "FileOperations", "LaneLastResult", "LaneState", "Namespace",
    "PendingCustom", "PendingEntry", "PendingMessage", "Register", "RegisterKey", "StructuralPreparation",
]  # fmt: skip

V = TypeVar("V")


class _Durable(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A durable value with the specified field names and no others."""


class LaneState(_Durable, frozen=True, kw_only=True):
    """What a lane owns durably besides its leaf and configuration (§3.3)."""

    current_operation_id: str | None
    pending_next_run: list[str]


class LaneLastResult(_Durable, frozen=True, kw_only=True):
    """The outcome of the lane's latest ended operation; recovery never reads it (§3.13)."""

    operation_id: str
    kind: OperationKind
    outcome: Literal["completed", "failed", "declined", "aborted"]
    leaf_id: str | None
    final_assistant_entry_id: str | UnsetType = UNSET
    error: OperationError | UnsetType = UNSET
    run_completion: Literal["assistant", "terminated_tools"] | UnsetType = UNSET


class PendingMessage(_Durable, frozen=True, kw_only=True, tag_field="type", tag="message"):
    """A queued message that has no place in the tree yet (§2.2)."""

    payload: AgentMessage


class PendingCustom(_Durable, frozen=True, kw_only=True, tag_field="type", tag="custom"):
    """A queued custom entry; an absent payload differs from JSON null (§2.2)."""

    custom_type: str
    payload: JsonValue | UnsetType = UNSET


PendingEntry: TypeAlias = PendingMessage | PendingCustom


class FileOperations(_Durable, frozen=True, kw_only=True):
    """The files that the summarized messages touched, sorted."""

    read: list[str]
    written: list[str]
    edited: list[str]


class CompactionPreparation(_Durable, frozen=True, kw_only=True, tag_field="kind", tag="compaction"):
    """The input of a compaction, fixed before its decision hook (§3.9)."""

    messages_to_summarize: list[AgentMessage]
    turn_prefix_messages: list[AgentMessage]
    retained_tail: list[AgentMessage]
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | UnsetType = UNSET
    file_ops: FileOperations
    settings: CompactionSettings


class BranchSummaryPreparation(_Durable, frozen=True, kw_only=True, tag_field="kind", tag="branch_summary"):
    """The input of a navigation summary, fixed before its decision hook (§3.9)."""

    messages: list[AgentMessage]
    file_ops: FileOperations
    total_tokens: int


StructuralPreparation: TypeAlias = CompactionPreparation | BranchSummaryPreparation


@dataclass(frozen=True, slots=True)
class Namespace(Generic[V]):
    """A register namespace and the type of the values under it."""

    name: str
    type: object

    def convert(self, value: object) -> V:
        """The typed value of parsed JSON; raises ``msgspec.ValidationError`` with the path of the first misfit."""
        return cast("V", msgspec.convert(value, self.type))

    def decode(self, raw: bytes | str) -> V:
        """The typed value of JSON text; raises ``msgspec.DecodeError`` or ``msgspec.ValidationError``."""
        return cast("V", msgspec.json.decode(raw, type=self.type))


LANE_LEAF: Namespace[str | None] = Namespace("lane.leaf", str | None)
LANE_CONFIG: Namespace[LaneConfiguration] = Namespace("lane.config", LaneConfiguration)
LANE_STATE: Namespace[LaneState] = Namespace("lane.state", LaneState)
LANE_LAST_RESULT: Namespace[LaneLastResult] = Namespace("lane.lastResult", LaneLastResult)
OP_META: Namespace[Operation] = Namespace("op.meta", Operation)
OP_STATE: Namespace[OperationState] = Namespace("op.state", OperationState)
OP_TOOL_ARGS: Namespace[JsonObject] = Namespace("op.tool_args", dict[str, Any])
OP_PREPARATION: Namespace[StructuralPreparation] = Namespace("op.preparation", StructuralPreparation)
PENDING_ENTRY: Namespace[PendingEntry] = Namespace("pending.entry", PendingEntry)
FACT_NAME: Namespace[str] = Namespace("fact.name", str)
FACT_LABEL: Namespace[str] = Namespace("fact.label", str)
FACT_CUSTOM: Namespace[JsonValue] = Namespace("fact.custom", Any)

NAMESPACES: Mapping[str, Namespace[Any]] = MappingProxyType(
    {
        namespace.name: namespace
        for namespace in (
            LANE_LEAF, LANE_CONFIG, LANE_STATE, LANE_LAST_RESULT, OP_META, OP_STATE, OP_TOOL_ARGS, OP_PREPARATION,
            PENDING_ENTRY, FACT_NAME, FACT_LABEL, FACT_CUSTOM,
        )
    }
)  # fmt: skip
"""Every namespace by its name on disk."""


class Register(msgspec.Struct, Generic[V], frozen=True, kw_only=True):
    """A register's current value and the sequence number of the write that set it."""

    namespace: Namespace[V]
    key: str
    value: V
    seq: int


RegisterKey: TypeAlias = tuple[Namespace[Any], str]
"""A namespace and a key, as batch reads take them."""
