"""The rows of a SQLite session in their JSON shapes (§1.7): SQL NULL is an absent value, ``null`` is JSON null."""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Final, cast

import orjson

from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import Json, JsonObject, Refused

__all__ = ["Branch", "Place", "Rows", "read_rows"]

Place = tuple[Json, Json, Json, Json]
"""A row of the branch index: branch, entry, the entry's sequence number and type."""

Branch = tuple[Json, Json, Json, Json, Json]
"""A segment of the branch index: its id, its tip and the tip's number, its base and the number through which."""

_ENTRIES: Final = "SELECT id, parent_id, seq, type, custom_type, timestamp, payload FROM entries ORDER BY seq"
_REGISTERS: Final = "SELECT namespace, key, seq, value FROM registers ORDER BY seq"
_USAGE: Final = "SELECT id, seq, entry_id, adjustment, usage, details FROM usage_ledger ORDER BY seq"
_SESSION: Final = "SELECT storage_version, metadata, message_count, usage_payload, next_seq FROM session"
_BRANCHES: Final = "SELECT branch_id, tip_entry_id, tip_seq, base_branch_id, base_seq FROM branch_meta"
_PLACES: Final = "SELECT branch_id, entry_id, entry_seq, entry_type FROM branch_entries ORDER BY entry_seq"


@dataclass(frozen=True, kw_only=True)
class Rows:
    """Everything in the database of a session but its lease."""

    session: str
    storage_version: int
    next_seq: int
    stats: JsonObject
    entries: list[Json]
    registers: list[Json]
    usage: list[Json]
    branches: list[Branch]
    places: list[Place]


def read_rows(connection: sqlite3.Connection) -> Rows:
    """Every row.

    Raises:
        Refused: a column holds what no session has there.
        Unreadable: the database does not say which session it is.
        sqlite3.Error: it has no such tables, or is damaged.
    """
    known = connection.execute(_SESSION).fetchall()
    if len(known) != 1:
        raise Unreadable(f"the table of the session has {len(known)} rows, not one")
    version, metadata, count, total, next_seq = known[0]
    identity = _json(metadata, "session.metadata")
    if type(version) is not int or not isinstance(identity, dict) or not isinstance(identity.get("id"), str):
        raise Unreadable("the session row names no id or no storage version")
    if type(next_seq) is not int:
        raise Refused("no whole number", "session.next_seq")
    return Rows(
        session=str(identity["id"]),
        storage_version=version,
        next_seq=next_seq,
        stats={"messageCount": count, "usage": _json(total, "session.usage_payload")},
        entries=[_entry(row) for row in connection.execute(_ENTRIES)],
        registers=[_register(row) for row in connection.execute(_REGISTERS)],
        usage=[_usage(row) for row in connection.execute(_USAGE)],
        branches=connection.execute(_BRANCHES).fetchall(),
        places=connection.execute(_PLACES).fetchall(),
    )


def _entry(row: tuple[Json, ...]) -> Json:
    entry_id, parent_id, seq, type_, custom_type, timestamp, payload = row
    where = f"entries.payload of {entry_id!r}"
    fields = _json(payload, where)
    if not isinstance(fields, dict):
        raise Refused("no object", where)
    placed: JsonObject = {"id": entry_id, "parentId": parent_id, "seq": seq, "timestamp": timestamp, "type": type_}
    twice = sorted({*placed, "customType"} & fields.keys())
    if twice:
        raise Refused(f"{twice[0]} is a column", where)
    return {**placed, **({} if custom_type is None else {"customType": custom_type}), **fields}


def _register(row: tuple[Json, ...]) -> Json:
    namespace, key, seq, value = row
    where = f"registers.value of {namespace!r}/{key!r}"
    return {"namespace": namespace, "key": key, "seq": seq, "value": _json(value, where)}


def _usage(row: tuple[Json, ...]) -> Json:
    row_id, seq, entry_id, adjustment, usage, details = row
    if adjustment not in (0, 1):
        raise Refused("neither 0 nor 1", f"usage_ledger.adjustment of {row_id!r}")
    made: JsonObject = {"id": row_id, "seq": seq, "adjustment": bool(adjustment)}
    if entry_id is not None:
        made["entryId"] = entry_id
    if details is not None:
        made["details"] = _json(details, f"usage_ledger.details of {row_id!r}")
    return {**made, "usage": _json(usage, f"usage_ledger.usage of {row_id!r}")}


def _json(text: Json, where: str) -> Json:
    if not isinstance(text, str):
        raise Refused("no text", where)
    try:
        return cast("Json", orjson.loads(text))
    except orjson.JSONDecodeError as error:
        raise Refused(f"no JSON: {error.msg}", where) from None
