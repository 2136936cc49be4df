"""The lines of a session file as bytes: the header, and one line per transaction (§1.7).

The structs below exist for speed: they encode in one call to exactly what `contract.write_to_wire` describes.
"""

from __future__ import annotations

from typing import Literal, TypeAlias, assert_never

import msgspec

from restartpoint.contract.codec import write_to_wire
from restartpoint.contract.entries import MessagePayload
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterDelete, RegisterSet, Write

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
_encode_lines = msgspec.json.Encoder().encode_lines


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
    lines = _lines(writes, first_seq, timestamp)
    return _encode_lines((lines[0] if len(lines) == 1 else lines,))


def _lines(writes: tuple[Write, ...], first_seq: int, timestamp: int) -> list[_Line]:
    lines: list[_Line] = []
    for seq, write in enumerate(writes, first_seq):
        if type(write) is RegisterSet:
            lines.append(_SetLine("register", "set", seq, write.namespace.name, write.key, write.value))
        elif type(write) is InsertEntry:
            entry, payload = write.entry, write.entry.payload
            if type(payload) is MessagePayload and not payload.extra:
                terminate = payload.terminate or UNSET
                line = _MessageLine(
                    "entry", seq, timestamp, entry.id, entry.parent_id, "message", payload.message, terminate
                )
                lines.append(line)
            else:
                lines.append(write_to_wire(write, seq, timestamp))
        elif type(write) is InsertUsage:
            row = write.row
            lines.append(_UsageLine("usage", seq, row.id, row.entry_id, row.adjustment, row.usage, row.details))
        elif type(write) is RegisterDelete:
            lines.append(_DeleteLine("register", "delete", seq, write.namespace.name, write.key))
        else:
            assert_never(write)
    return lines
