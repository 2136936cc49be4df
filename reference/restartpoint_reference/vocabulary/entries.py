"""Entries, registers, ledger rows, and the writes that make them (§1.1, §1.3, §1.4, §2.1).

An entry's payload fields stay plain JSON beside the structure, so that fields of a newer version survive. What an entry
of each type must carry is checked when it is read.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final, Self, TypeAlias, TypeVar, cast

from restartpoint_reference.shapes import (
    UNSET,
    Json,
    JsonObject,
    Record,
    Refused,
    Unset,
    as_object,
    read_boolean,
    read_integer,
    read_json,
    read_object,
    read_string,
)  # fmt: skip
from restartpoint_reference.vocabulary.messages import Usage, read_message, read_usage, role


class EntryType(StrEnum):
    """The four kinds of entry (§1.1)."""

    MESSAGE = "message"
    COMPACTION = "compaction"
    BRANCH_SUMMARY = "branch_summary"
    CUSTOM = "custom"


class Namespace(StrEnum):
    """The complete set of register namespaces (§1.3)."""

    LANE_LEAF = "lane.leaf"
    LANE_CONFIG = "lane.config"
    LANE_STATE = "lane.state"
    LANE_LAST_RESULT = "lane.lastResult"
    OP_META = "op.meta"
    OP_STATE = "op.state"
    OP_TOOL_ARGS = "op.tool_args"
    OP_PREPARATION = "op.preparation"
    PENDING_ENTRY = "pending.entry"
    FACT_NAME = "fact.name"
    FACT_LABEL = "fact.label"
    FACT_CUSTOM = "fact.custom"


Reader: TypeAlias = Callable[[Json], object]
T = TypeVar("T")


def _messages(value: Json) -> object:
    if not isinstance(value, list):
        raise Refused("expected an array of messages")
    for index, item in enumerate(value):
        try:
            read_message(item)
        except Refused as refused:
            raise refused.under(index) from None
    return value


def _only_true(value: Json) -> object:
    if value is not True:
        raise Refused("stored only as true")
    return value


_SUMMARY: Final[tuple[tuple[str, Reader, bool], ...]] = (
    ("summary", read_string, True), ("details", read_json, False), ("usage", read_usage, False),
    ("fromHook", read_boolean, True),
)  # fmt: skip
_PAYLOADS: Final[Mapping[EntryType, tuple[tuple[str, Reader, bool], ...]]] = {
    EntryType.MESSAGE: (("message", read_message, True), ("terminate", _only_true, False)),
    EntryType.COMPACTION: (("retainedTail", _messages, True), ("tokensBefore", read_integer, True), *_SUMMARY),
    EntryType.BRANCH_SUMMARY: (("fromId", read_string, True), *_SUMMARY),
    EntryType.CUSTOM: (("data", read_json, False),),
}
"""Per entry type: payload key, reader, whether it is required (§2.1)."""

_STRUCTURE: Final = ("id", "parentId", "type", "customType", "seq", "timestamp")


@dataclass(frozen=True, kw_only=True)
class NewEntry:
    """An entry as a transaction inserts it: storage assigns ``seq`` and ``timestamp`` (§1.4)."""

    id: str
    parent_id: str | None
    type: EntryType
    custom_type: str | Unset = UNSET
    payload: JsonObject

    @classmethod
    def from_json(cls, value: Json) -> "NewEntry":
        """The entry of this JSON object, flat as on disk."""
        return _read_entry(read_object(value))

    def to_json(self) -> JsonObject:
        """The flat JSON object: structure first, then the payload fields in their order."""
        made: JsonObject = {"id": self.id, "parentId": self.parent_id, "type": self.type.value}
        if self.custom_type is not UNSET:
            made["customType"] = self.custom_type
        return {**made, **self.payload}

    @property
    def message(self) -> JsonObject | None:
        """The message of a message entry."""
        found = self.payload.get("message")
        return found if self.type is EntryType.MESSAGE and isinstance(found, dict) else None

    def placed(self, seq: int, timestamp: int) -> "Entry":
        """This entry as committed."""
        return Entry(
            id=self.id, parent_id=self.parent_id, type=self.type, custom_type=self.custom_type, payload=self.payload,
            seq=seq, timestamp=timestamp,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Entry(NewEntry):
    """An entry as committed; ``timestamp`` in Unix milliseconds (§1.1)."""

    seq: int
    timestamp: int

    @classmethod
    def from_json(cls, value: Json) -> "Entry":
        """The committed entry of this JSON object, flat as on disk."""
        holder = read_object(value)
        return _read_entry(holder).placed(_integer(holder, "seq"), _integer(holder, "timestamp"))

    def to_json(self) -> JsonObject:
        """The flat JSON object as queries answer it."""
        return {**self.structure(), **self.payload}

    def structure(self) -> JsonObject:
        """Placement without the payload (§1.5)."""
        made: JsonObject = {
            "id": self.id, "parentId": self.parent_id, "seq": self.seq, "timestamp": self.timestamp,
            "type": self.type.value,
        }  # fmt: skip
        if self.custom_type is not UNSET:
            made["customType"] = self.custom_type
        return made


def _integer(holder: JsonObject, key: str) -> int:
    if key not in holder:
        raise Refused("missing", key)
    try:
        return read_integer(holder[key])
    except Refused as refused:
        raise refused.under(key) from None


def _read_entry(holder: JsonObject) -> NewEntry:
    kind = holder.get("type")
    if kind not in {member.value for member in EntryType}:
        raise Refused(f"not an entry type: {kind!r}", "type")
    entry_type = EntryType(str(kind))
    head = _Head.from_json({key: holder[key] for key in ("id", "parentId", "customType") if key in holder})
    if (entry_type is EntryType.CUSTOM) != (head.custom_type is not UNSET):
        raise Refused("set exactly on custom entries", "customType")
    payload: JsonObject = {key: value for key, value in holder.items() if key not in _STRUCTURE}
    for key, reader, required in _PAYLOADS[entry_type]:
        if key in payload:
            try:
                reader(payload[key])
            except Refused as refused:
                raise refused.under(key) from None
        elif required:
            raise Refused("missing", key)
    entry = NewEntry(
        id=head.id, parent_id=head.parent_id, type=entry_type, custom_type=head.custom_type, payload=payload
    )
    if "terminate" in payload and role(entry.message or {}) != "toolResult":
        raise Refused("only a tool result terminates", "terminate")
    return entry


@dataclass(frozen=True, kw_only=True)
class _Head(Record):
    id: str
    parent_id: str | None
    custom_type: str | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class NewUsage(Record):
    """A ledger row as a transaction inserts it; ``adjustment`` marks a reconciliation by the caller (§1.6)."""

    id: str
    entry_id: str | Unset = UNSET
    adjustment: bool
    usage: Usage
    details: Json | Unset = UNSET

    def check(self) -> None:
        """Counts and costs are numbers."""
        try:
            read_usage(self.usage)
        except Refused as refused:
            raise refused.under("usage") from None

    def placed(self, seq: int) -> "UsageRow":
        """This row as committed."""
        return UsageRow(
            id=self.id, entry_id=self.entry_id, adjustment=self.adjustment, usage=self.usage, details=self.details,
            seq=seq,
        )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class UsageRow(NewUsage):
    """A ledger row as committed (§1.1)."""

    seq: int


def _read_once(readings: dict[Reader, object], reader: Callable[[Json], T], value: Json) -> T:
    found = readings.get(reader, UNSET)
    if found is UNSET:
        found = readings[reader] = reader(value)
    return cast("T", found)


@dataclass(frozen=True, kw_only=True)
class Register(Record):
    """A register with its current value and the sequence number of the write that set it (§1.1)."""

    namespace: Namespace
    key: str
    value: Json
    seq: int
    readings: dict[Reader, object] = field(default_factory=dict, init=False, compare=False, repr=False)

    def read(self, reader: Callable[[Json], T]) -> T:
        """The value read as a noun, once per register; raises ``Refused``."""
        return _read_once(self.readings, reader, self.value)


@dataclass(frozen=True, kw_only=True)
class InsertEntry:
    """The write of one entry (§1.4)."""

    entry: NewEntry

    def to_json(self) -> JsonObject:
        """The write as its JSONL element, without what storage assigns."""
        return {"kind": "entry", **self.entry.to_json()}


@dataclass(frozen=True, kw_only=True)
class InsertUsage:
    """The write of one ledger row (§1.4)."""

    row: NewUsage

    def to_json(self) -> JsonObject:
        """The write as its JSONL element, without what storage assigns."""
        return {"kind": "usage", **self.row.to_json()}


@dataclass(frozen=True, kw_only=True)
class SetRegister:
    """The write that sets or replaces a register (§1.4)."""

    namespace: Namespace
    key: str
    value: Json
    readings: dict[Reader, object] = field(default_factory=dict, init=False, compare=False, repr=False)

    def read(self, reader: Callable[[Json], T]) -> T:
        """The value read as a noun, once per write; raises ``Refused``."""
        return _read_once(self.readings, reader, self.value)

    def placed(self, seq: int) -> Register:
        """This register as committed; what was read of its value needs no second reading."""
        made = Register(namespace=self.namespace, key=self.key, value=self.value, seq=seq)
        made.readings.update(self.readings)
        return made

    def to_json(self) -> JsonObject:
        """The write as its JSONL element, without what storage assigns."""
        address: JsonObject = {"namespace": self.namespace.value, "key": self.key}
        return {"kind": "register", "op": "set", **address, "value": self.value}


@dataclass(frozen=True, kw_only=True)
class DeleteRegister:
    """The write that removes a register; a no-op when there is none (§1.4)."""

    namespace: Namespace
    key: str

    def to_json(self) -> JsonObject:
        """The write as its JSONL element, without what storage assigns."""
        return {"kind": "register", "op": "delete", "namespace": self.namespace.value, "key": self.key}


Write: TypeAlias = InsertEntry | InsertUsage | SetRegister | DeleteRegister


@dataclass(frozen=True, kw_only=True)
class Expectation(Record):
    """A register's expected sequence number, null for an expected absence (decision ST-1.4-21)."""

    namespace: Namespace
    key: str
    seq: int | None


@dataclass(frozen=True, kw_only=True)
class _RegisterElement(Record, kind="register"):
    op: str
    namespace: Namespace
    key: str
    seq: int
    value: Json | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class Observed:
    """One commit as it was seen: its writes in order, their sequence numbers, and the timestamp of its entries.

    ``timestamp`` is UNSET when the commit holds no entry and nobody said it.
    """

    writes: tuple[Write, ...]
    seqs: tuple[int, ...]
    timestamp: int | Unset = UNSET

    @classmethod
    def from_json(cls, elements: Json, timestamp: int | Unset = UNSET) -> Self:
        """The commit of these JSONL elements (§1.7); raises ``Refused`` naming the element and the field."""
        if not isinstance(elements, list):
            raise Refused("expected an array of writes")
        writes: list[Write] = []
        seqs: list[int] = []
        stamps: list[int] = []
        for index, element in enumerate(elements):
            try:
                write, seq, stamp = _read_element(as_object(element))
            except Refused as refused:
                raise refused.under(index) from None
            writes.append(write)
            seqs.append(seq)
            stamps.extend(() if stamp is UNSET else (stamp,))
        seen = stamps[0] if stamps else timestamp
        if any(stamp != seen for stamp in stamps) or (timestamp is not UNSET and seen != timestamp):
            raise Refused(f"the entries of one commit share its timestamp: {stamps}")
        return cls(writes=tuple(writes), seqs=tuple(seqs), timestamp=seen)


def _read_element(element: JsonObject) -> tuple[Write, int, int | Unset]:
    match element.get("kind"), element.get("op", UNSET):
        case "entry", op if op is UNSET:
            entry = NewEntry.from_json(_body(element))
            return InsertEntry(entry=entry), _integer(element, "seq"), _integer(element, "timestamp")
        case "usage", op if op is UNSET:
            row = UsageRow.from_json(_body(element))
            return InsertUsage(row=_without_seq(row)), row.seq, UNSET
        case "register", "set":
            cell = _RegisterElement.from_json(element)
            if cell.value is UNSET:
                raise Refused("missing", "value")
            return SetRegister(namespace=cell.namespace, key=cell.key, value=cell.value), cell.seq, UNSET
        case "register", "delete":
            cell = _RegisterElement.from_json(element)
            if cell.value is not UNSET:
                raise Refused("unknown key", "value")
            return DeleteRegister(namespace=cell.namespace, key=cell.key), cell.seq, UNSET
        case kind, op:
            raise Refused(f"not a kind of write: {kind!r}, op {op!r}", "kind")


def _body(element: JsonObject) -> JsonObject:
    return {key: value for key, value in element.items() if key != "kind"}


def _without_seq(row: UsageRow) -> NewUsage:
    return NewUsage(id=row.id, entry_id=row.entry_id, adjustment=row.adjustment, usage=row.usage, details=row.details)
