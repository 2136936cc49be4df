"""The lines of a session file as bytes: the header, and one line per transaction (§1.7).

The structs below exist for speed: they encode in one call to exactly what `contract.write_to_wire` describes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract.codec import write_to_wire
from restartpoint.contract.entries import MessagePayload
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterSet, Write

__all__ = ["FORMAT", "encode_header", "encode_line"]

FORMAT = 4
"""The format of the file, `v` in its header."""


class _MessageLine(msgspec.Struct, rename="camel", gc=False):
    kind: Literal["entry"]
    seq: int
    timestamp: int
    id: str
    parent_id: str | None
    type: Literal["message"]
    message: JsonObject
    terminate: bool | UnsetType = UNSET


class _SetLine(msgspec.Struct, gc=False):
    kind: Literal["register"]
    op: Literal["set"]
    seq: int
    namespace: str
    key: str
    value: object


class _DeleteLine(msgspec.Struct, gc=False):
    kind: Literal["register"]
    op: Literal["delete"]
    seq: int
    namespace: str
    key: str


class _UsageLine(msgspec.Struct, rename="camel", gc=False):
    kind: Literal["usage"]
    seq: int
    id: str
    entry_id: str | UnsetType
    adjustment: bool
    usage: JsonObject
    details: JsonValue | UnsetType


_Line: TypeAlias = "_MessageLine | _SetLine | _DeleteLine | _UsageLine | dict[str, object]"

_encode = msgspec.json.Encoder().encode


def encode_header(metadata: SessionMetadata) -> bytes:
    """The first line of a session file."""
    wire: dict[str, object] = {
        "v": FORMAT,
        "kind": "header",
        "id": metadata.id,
        "storageVersion": metadata.storage_version,
        "createdAt": metadata.created_at,
        "cwd": metadata.cwd,
        "parentSessionId": metadata.parent_session_id,
        "legacyParentSessionPath": metadata.legacy_parent_session_path,
    }
    if metadata.store_generation != 1:
        wire["storeGeneration"] = metadata.store_generation
    return _encode({key: value for key, value in wire.items() if value is not UNSET}) + b"\n"


def encode_line(writes: tuple[Write, ...], first_seq: int, timestamp: int) -> bytes:
    """A transaction as one line: one object for one write, an array for several; sequence numbers are consecutive."""
    lines = [_line(write, seq, timestamp) for seq, write in enumerate(writes, first_seq)]
    return _encode(lines[0] if len(lines) == 1 else lines) + b"\n"


def _line(write: Write, seq: int, timestamp: int) -> _Line:
    if isinstance(write, RegisterSet):
        return _SetLine("register", "set", seq, write.namespace.name, write.key, write.value)
    if isinstance(write, InsertEntry):
        entry = write.entry
        payload = entry.payload
        if type(payload) is MessagePayload and not payload.extra:
            terminate = payload.terminate or UNSET
            return _MessageLine(
                "entry", seq, timestamp, entry.id, entry.parent_id, "message", payload.message, terminate
            )
        return write_to_wire(write, seq, timestamp)
    if isinstance(write, InsertUsage):
        row = write.row
        return _UsageLine("usage", seq, row.id, row.entry_id, row.adjustment, row.usage, row.details)
    return _DeleteLine("register", "delete", seq, write.namespace.name, write.key)
