"""Rows of a session file as durable values, and back (§1.7).

The structural columns are the only copy of an entry's placement; its payload column holds payload fields only. SQL
NULL stands for an absent value, the text ``null`` for JSON null.
"""

from __future__ import annotations

import msgspec

from restartpoint.contract.codec import encode_json, entry_payload_from_wire, entry_payload_to_wire
from restartpoint.contract.entries import Entry, EntryDraft, EntryPayload, EntryStructure, EntryType, MessagePayload
from restartpoint.contract.json import UNSET
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.usage import UsageDraft, UsageRow

__all__ = [
    "ENTRY_COLUMNS", "STRUCTURE_COLUMNS", "USAGE_COLUMNS", "EntryColumns", "StructureColumns", "UsageColumns",
    "entry_of", "metadata_of", "payload_text", "structure_of", "text_of", "usage_columns", "usage_of",
]  # fmt: skip

STRUCTURE_COLUMNS = "e.id, e.parent_id, e.seq, e.type, e.custom_type, e.timestamp"
ENTRY_COLUMNS = f"{STRUCTURE_COLUMNS}, e.payload"
USAGE_COLUMNS = "id, seq, entry_id, adjustment, usage, details"

StructureColumns = tuple[str, str | None, int, str, str | None, int]
EntryColumns = tuple[str, str | None, int, str, str | None, int, str]
UsageColumns = tuple[str, int, str | None, int, str, str | None]

_decode = msgspec.json.Decoder().decode


def text_of(value: object) -> str:
    """A JSON value or durable struct as JSON text."""
    return encode_json(value).decode()


def payload_text(draft: EntryDraft) -> str:
    """The payload column of an entry."""
    payload = draft.payload
    if type(payload) is MessagePayload and not payload.extra and not payload.terminate:
        return encode_json({"message": payload.message}).decode()
    return encode_json(entry_payload_to_wire(payload)).decode()


def entry_of(columns: EntryColumns) -> Entry:
    """The entry of one row; raises ``msgspec.DecodeError`` when the payload does not fit."""
    entry_id, parent_id, seq, type_, custom_type, timestamp, payload = columns
    return Entry(
        id=entry_id,
        parent_id=parent_id,
        seq=seq,
        timestamp=timestamp,
        payload=_payload(type_, custom_type, _decode(payload)),
    )


def _payload(type_: str, custom_type: str | None, wire: object) -> EntryPayload:
    if not isinstance(wire, dict):
        raise msgspec.ValidationError("the payload of an entry is no object")
    return entry_payload_from_wire(type_, custom_type, wire)


def structure_of(columns: StructureColumns) -> EntryStructure:
    """The placement of one row."""
    entry_id, parent_id, seq, type_, custom_type, timestamp = columns
    return EntryStructure(
        id=entry_id, parent_id=parent_id, seq=seq, timestamp=timestamp, type=EntryType(type_), custom_type=custom_type
    )


def usage_columns(row: UsageDraft, seq: int) -> UsageColumns:
    """A ledger row as its columns."""
    entry_id = None if row.entry_id is UNSET else row.entry_id
    details = None if row.details is UNSET else text_of(row.details)
    return row.id, seq, entry_id, int(row.adjustment), text_of(row.usage), details


def usage_of(columns: UsageColumns) -> UsageRow:
    """The ledger row of one row; raises ``msgspec.DecodeError`` when its usage does not fit."""
    row_id, seq, entry_id, adjustment, usage, details = columns
    parsed = _decode(usage)
    if not isinstance(parsed, dict):
        raise msgspec.ValidationError("the usage of a ledger row is no object")
    return UsageRow(
        id=row_id,
        seq=seq,
        usage=parsed,
        adjustment=bool(adjustment),
        entry_id=UNSET if entry_id is None else entry_id,
        details=UNSET if details is None else _decode(details),
    )


def metadata_of(storage_version: int, metadata: str) -> SessionMetadata:
    """The identity of a session; the version column is the one that counts."""
    stored = msgspec.json.decode(metadata, type=SessionMetadata)
    return msgspec.structs.replace(stored, storage_version=storage_version)
