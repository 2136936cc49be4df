"""What the runtime holds, as plain JSON: encoded with the runtime's codec and read back with another reader.

The reader is orjson on purpose: a mistake of the runtime's own JSON reading cannot hide behind itself. JSON values are
compared as text where 1 and 1.0, absent and null, and the order of keys must stay apart.
"""

from __future__ import annotations

from typing import Any, TypeAlias, cast

import orjson

from restartpoint.contract import (
    CommitResult,
    Entry,
    EntryStructure,
    Expectation,
    Register,
    SessionStats,
    Transaction,
    UsageRow,
    encode_json,
    entry_to_wire,
    usage_row_to_wire,
    write_to_wire,
)  # fmt: skip

__all__ = [
    "Json", "JsonObject", "commit_json", "entry_json", "expectation_json", "json_text", "read_json", "register_json",
    "stats_json", "structure_json", "usage_json",
]  # fmt: skip

Json: TypeAlias = "None | bool | int | float | str | list[Json] | dict[str, Json]"
JsonObject: TypeAlias = "dict[str, Json]"


def read_json(text: bytes | str) -> Json:
    """The JSON value of this text."""
    return cast("Json", orjson.loads(text))


def json_text(value: Json) -> bytes:
    """Compact JSON in the order of the keys: equal texts are equal values, 1 and 1.0 apart."""
    return orjson.dumps(value)


def _read_back(value: object) -> JsonObject:
    return cast("JsonObject", read_json(encode_json(value)))


def entry_json(entry: Entry) -> JsonObject:
    """An entry as one flat object, as on disk (§1.7)."""
    return _read_back(entry_to_wire(entry))


def structure_json(structure: EntryStructure) -> JsonObject:
    """An entry's placement as one flat object; ``customType`` only on custom entries (§1.5)."""
    made: JsonObject = {
        "id": structure.id,
        "parentId": structure.parent_id,
        "seq": structure.seq,
        "timestamp": structure.timestamp,
        "type": str(structure.type),
    }
    if structure.custom_type is not None:
        made["customType"] = structure.custom_type
    return made


def usage_json(row: UsageRow) -> JsonObject:
    """A ledger row as one flat object, as on disk (§1.7)."""
    return _read_back(usage_row_to_wire(row))


def register_json(register: Register[Any]) -> JsonObject:
    """A register as ``{namespace, key, value, seq}``."""
    value = read_json(encode_json(register.value))
    return {"namespace": register.namespace.name, "key": register.key, "value": value, "seq": register.seq}


def stats_json(stats: SessionStats) -> JsonObject:
    """Statistics as ``{messageCount, usage}``."""
    return {"messageCount": stats.message_count, "usage": read_json(encode_json(stats.usage))}


def expectation_json(expectation: Expectation) -> JsonObject:
    """An expectation as ``{namespace, key, seq}``."""
    return {"namespace": expectation.namespace.name, "key": expectation.key, "seq": expectation.seq}


def commit_json(tx: Transaction, result: CommitResult) -> list[Json]:
    """The elements of a commit as a JSONL line holds them, in order (§1.7)."""
    placed = zip(tx.writes, result.seqs, strict=True)
    return [_read_back(write_to_wire(write, seq, result.timestamp)) for write, seq in placed]
