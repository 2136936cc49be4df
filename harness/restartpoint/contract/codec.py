"""The wire form of writes and entries: exactly the specified JSON, in the specified key order (§1.7)."""

from __future__ import annotations

from typing import assert_never

import msgspec

from restartpoint.contract.entries import (
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryDraft,
    EntryPayload,
    MessagePayload,
    entry_type_of,
)  # fmt: skip
from restartpoint.contract.json import UNSET
from restartpoint.contract.usage import UsageDraft, UsageRow
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterDelete, RegisterSet, Write

__all__ = [
    "encode_json", "entry_from_wire", "entry_payload_from_wire", "entry_payload_to_wire", "entry_to_wire",
    "usage_row_from_wire", "usage_row_to_wire", "write_to_wire",
]  # fmt: skip

encode_json = msgspec.json.encode
"""Compact UTF-8 JSON of a wire value or a durable struct."""


def entry_payload_to_wire(payload: EntryPayload) -> dict[str, object]:
    """The payload fields of an entry, without its type, in their specified order; unknown fields come last."""
    wire: dict[str, object]
    match payload:
        case MessagePayload():
            wire = {"message": payload.message}
            if payload.terminate:
                wire["terminate"] = True
        case CompactionPayload():
            wire = {
                "summary": payload.summary,
                "retainedTail": payload.retained_tail,
                "tokensBefore": payload.tokens_before,
                "details": payload.details,
                "usage": payload.usage,
                "fromHook": payload.from_hook,
            }
        case BranchSummaryPayload():
            wire = {
                "fromId": payload.from_id,
                "summary": payload.summary,
                "details": payload.details,
                "usage": payload.usage,
                "fromHook": payload.from_hook,
            }
        case CustomPayload():
            wire = {"data": payload.data}
        case _:
            assert_never(payload)
    present = {key: value for key, value in wire.items() if value is not UNSET}
    return {**present, **payload.extra} if payload.extra else present


def entry_to_wire(entry: Entry) -> dict[str, object]:
    """An entry as one flat object, without a line kind."""
    return _placed_wire(entry, entry.seq, entry.timestamp)


def _placed_wire(entry: Entry | EntryDraft, seq: int, timestamp: int) -> dict[str, object]:
    payload = entry.payload
    wire: dict[str, object] = {
        "seq": seq,
        "timestamp": timestamp,
        "id": entry.id,
        "parentId": entry.parent_id,
        "type": entry_type_of(payload).value,
    }
    if isinstance(payload, CustomPayload):
        wire["customType"] = payload.custom_type
    return {**wire, **entry_payload_to_wire(payload)}


_PLACEMENT_KEYS = frozenset({"kind", "seq", "timestamp", "id", "parentId", "type", "customType"})


_FIELDS: dict[str, tuple[type[EntryPayload], tuple[tuple[str, str], ...]]] = {
    "message": (MessagePayload, (("message", "message"), ("terminate", "terminate"))),
    "compaction": (
        CompactionPayload,
        (("summary", "summary"), ("retainedTail", "retained_tail"), ("tokensBefore", "tokens_before"),
         ("details", "details"), ("usage", "usage"), ("fromHook", "from_hook")),
    ),
    "branch_summary": (
        BranchSummaryPayload,
        (("fromId", "from_id"), ("summary", "summary"), ("details", "details"), ("usage", "usage"),
         ("fromHook", "from_hook")),
    ),
    "custom": (CustomPayload, (("data", "data"),)),
}  # fmt: skip
_KNOWN_KEYS = {type_: _PLACEMENT_KEYS.union(key for key, _ in names) for type_, (_, names) in _FIELDS.items()}


def entry_payload_from_wire(type_: str, custom_type: object, wire: dict[str, object]) -> EntryPayload:
    """The payload of an entry from its payload fields.

    Raises:
        msgspec.ValidationError: the fields do not fit the type; the message names the path.
    """
    if type_ not in _FIELDS:
        raise msgspec.ValidationError(f"Unknown entry type {type_!r} - at `$.type`")
    kind, names = _FIELDS[type_]
    fields = {name: wire[key] for key, name in names if key in wire}
    if type_ == "custom":
        fields["custom_type"] = custom_type
    if not wire.keys() <= _KNOWN_KEYS[type_]:
        fields["extra"] = {key: value for key, value in wire.items() if key not in _KNOWN_KEYS[type_]}
    return msgspec.convert(fields, kind)


def entry_from_wire(wire: dict[str, object]) -> Entry:
    """The entry of one flat object; extra fields are kept.

    Raises:
        msgspec.ValidationError: a field is missing or has the wrong type; the message names the path.
    """
    payload = entry_payload_from_wire(str(wire.get("type")), wire.get("customType"), wire)
    placed = msgspec.convert(wire, _Placement)
    return Entry(id=placed.id, parent_id=placed.parent_id, seq=placed.seq, timestamp=placed.timestamp, payload=payload)


class _Placement(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    id: str
    parent_id: str | None
    seq: int
    timestamp: int


def usage_row_to_wire(row: UsageRow) -> dict[str, object]:
    """A ledger row as one flat object, without a line kind."""
    return _usage_wire(row, row.seq)


def _usage_wire(row: UsageRow | UsageDraft, seq: int) -> dict[str, object]:
    wire: dict[str, object] = {"seq": seq, "id": row.id}
    if row.entry_id is not UNSET:
        wire["entryId"] = row.entry_id
    wire["adjustment"] = row.adjustment
    wire["usage"] = row.usage
    if row.details is not UNSET:
        wire["details"] = row.details
    return wire


def usage_row_from_wire(wire: dict[str, object]) -> UsageRow:
    """The ledger row of one flat object.

    Raises:
        msgspec.ValidationError: a field is missing or has the wrong type; the message names the path.
    """
    return msgspec.convert(wire, UsageRow)


def write_to_wire(write: Write, seq: int, timestamp: int) -> dict[str, object]:
    """A committed write as one element of a JSONL line; register values are left as structs for the encoder."""
    match write:
        case InsertEntry(entry=entry):
            return {"kind": "entry", **_placed_wire(entry, seq, timestamp)}
        case InsertUsage(row=row):
            return {"kind": "usage", **_usage_wire(row, seq)}
        case RegisterSet():
            return {
                "kind": "register",
                "op": "set",
                "seq": seq,
                "namespace": write.namespace.name,
                "key": write.key,
                "value": write.value,
            }
        case RegisterDelete():
            return {"kind": "register", "op": "delete", "seq": seq, "namespace": write.namespace.name, "key": write.key}
        case _:
            assert_never(write)
