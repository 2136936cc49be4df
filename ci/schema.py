"""Writes docs/schema: a JSON Schema of every durable value, so that other programs can read and check our files.

`python -m ci.schema` writes the files, `python -m ci.schema --check` fails when one of them is stale.
"""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from restartpoint.contract import NAMESPACES, AgentMessage, JsonValue, SessionMetadata, Usage, UsageRow

__all__ = ["FOLDER", "main", "schemas", "text_of"]

FOLDER = Path(__file__).resolve().parents[1] / "docs" / "schema"

Schema: TypeAlias = dict[str, Any]


# --- what the codec writes flat, as structs for their schemas only ----------------------------------------------


class _Entry(msgspec.Struct, kw_only=True, rename="camel", tag_field="type"):
    seq: int
    timestamp: int
    id: str
    parent_id: str | None


class MessageEntry(_Entry, kw_only=True, tag="message"):
    """A message of any role; `terminate` stands on tool results only."""

    message: AgentMessage
    terminate: Literal[True] | UnsetType = UNSET


class CompactionEntry(_Entry, kw_only=True, tag="compaction"):
    """A self-contained checkpoint of the context."""

    summary: str
    retained_tail: list[AgentMessage]
    tokens_before: int
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    from_hook: bool


class BranchSummaryEntry(_Entry, kw_only=True, tag="branch_summary"):
    """The summary of a branch that was left."""

    from_id: str
    summary: str
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    from_hook: bool


class CustomEntry(_Entry, kw_only=True, tag="custom"):
    """Application data; absent data differs from JSON null."""

    custom_type: str
    data: JsonValue | UnsetType = UNSET


# --- relations that types cannot say ----------------------------------------------------------------------------


def _when(field: str, value: JsonValue, then: Schema, otherwise: Schema) -> Schema:
    return {"if": {"properties": {field: {"const": value}}}, "then": then, "else": otherwise}


def _without(field: str) -> Schema:
    return {"not": {"required": [field]}}


RELATIONS: Mapping[str, Schema] = {
    "StructuralDecision": _when("status", "generating", {"required": ["generation"]}, _without("generation")),
    "NavigationPhase": _when("kind", "summary", {"required": ["structural"]}, _without("structural")),
    "NavigationState": _when(
        "summarize",
        True,
        {"properties": {"phase": {"properties": {"kind": {"const": "summary"}}}, "targetId": {"type": "string"}}},
        {
            "properties": {"phase": {"properties": {"kind": {"const": "ready_to_commit"}}}},
            **_without("customInstructions"),
        },
    ),
}


# --- documents --------------------------------------------------------------------------------------------------


def schemas() -> dict[str, Schema]:
    """Every document by file name."""
    entry = MessageEntry | CompactionEntry | BranchSummaryEntry | CustomEntry
    made = {
        f"register.{name}.json": _document(f"A value of the register namespace {name}", namespace.type)
        for name, namespace in NAMESPACES.items()
    }
    made["entry.json"] = _document("An entry of the conversation tree, as queries and files show it", entry)
    made["usage-row.json"] = _document("A row of the usage ledger", UsageRow)
    made["metadata.json"] = _document("The identity of a session", SessionMetadata)
    made["jsonl-header.json"] = _header()
    made["jsonl-line.json"] = _line(entry)
    return made


def _document(title: str, kind: Any) -> Schema:
    (body,), components = msgspec.json.schema_components([kind], ref_template="#/$defs/{name}")
    return _titled(title, body, components)


def _titled(title: str, body: Schema, components: Mapping[str, Schema]) -> Schema:
    defs = {name: _related(name, components[name]) for name in sorted(components)}
    document = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **body}
    return {**document, "$defs": defs} if defs else document


def _related(name: str, schema: Schema) -> Schema:
    return {**schema, **RELATIONS.get(name, {})}


def _header() -> Schema:
    document = _document("The first line of a JSONL session", SessionMetadata)
    metadata = document["$defs"].pop("SessionMetadata")
    fields = {
        "v": {"const": 4},
        "kind": {"const": "header"},
        **metadata["properties"],
        "nextSeq": {"type": "integer", "minimum": 1},
    }
    required = ["v", "kind", "id", "storageVersion", "createdAt"]
    body = {"type": "object", "properties": fields, "required": required}
    return _titled(document["title"], body, {})


def _line(entry: Any) -> Schema:
    kinds = [entry, UsageRow, *(namespace.type for namespace in NAMESPACES.values())]
    (entry_body, usage_body, *values), components = msgspec.json.schema_components(kinds, ref_template="#/$defs/{name}")
    writes = [
        {"properties": {"kind": {"const": "entry"}}, "required": ["kind"], **entry_body},
        {"properties": {"kind": {"const": "usage"}}, "required": ["kind"], **usage_body},
        *(_register("set", [name], value) for name, value in zip(NAMESPACES, values, strict=True)),
        _register("delete", list(NAMESPACES), None),
    ]
    one: Schema = {"$ref": "#/$defs/Write"}
    body: Schema = {"anyOf": [one, {"type": "array", "minItems": 1, "items": one}]}
    title = "A line of a JSONL session after the first: the writes of one transaction, alone or as an array"
    return _titled(title, body, {**components, "Write": {"anyOf": writes}})


def _register(op: str, namespaces: list[str], value: Schema | None) -> Schema:
    fields: Schema = {
        "kind": {"const": "register"},
        "op": {"const": op},
        "seq": {"type": "integer", "minimum": 1},
        "namespace": {"enum": namespaces},
        "key": {"type": "string"},
    }
    if value is not None:
        fields["value"] = value
    return {"type": "object", "properties": fields, "required": list(fields), "additionalProperties": False}


def text_of(schema: Schema) -> str:
    """The content of a schema file."""
    return json.dumps(schema, indent=1, ensure_ascii=False) + "\n"


def main(arguments: list[str]) -> int:
    """Write or check the files; 1 when `--check` found a stale or superfluous one."""
    made = {name: text_of(schema) for name, schema in schemas().items()}
    found = {path.name: path.read_text(encoding="utf-8") for path in FOLDER.glob("*.json")}
    if "--check" in arguments:
        stale = sorted(name for name in made.keys() | found.keys() if made.get(name) != found.get(name))
        if stale:
            print(f"stale in {FOLDER}: {', '.join(stale)}; run `python -m ci.schema`")
        return 1 if stale else 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    for name in found.keys() - made.keys():
        (FOLDER / name).unlink()
    for name, text in made.items():
        (FOLDER / name).write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
