"""Exact JSON shapes: how every durable noun of the model is read from JSON and written back (§0.7, §1.1).

A noun is a frozen dataclass that derives from ``Record``; its annotations are its shape. Fields are snake_case here and
camelCase in JSON. A field whose type includes ``Unset`` may be absent, one that includes ``None`` may be null; the two
differ. A record declared with a tag (``class Ready(Record, status="ready")``) carries that key in JSON.
Nothing else is accepted: no unknown key, no integer for a boolean, no 1.0 for an integer.
"""

import math
import types
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields
from enum import Enum, StrEnum
from functools import cache
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias, TypeVar, Union, cast, get_args, get_origin

if TYPE_CHECKING:
    Json: TypeAlias = None | bool | int | float | str | list["Json"] | dict[str, "Json"]
    JsonObject: TypeAlias = dict[str, Json]
else:

    class Json:
        """Any JSON value (§1.1); at run time a marker that the reader knows."""

    class JsonObject:
        """Any JSON object; at run time a marker that the reader knows."""


SAFE_INTEGER: Final = 2**53 - 1
"""The greatest integer that every JSON implementation keeps (§0.7)."""


class Unset(Enum):
    """The type of ``UNSET``, the absence of a field or a value; JSON null is None."""

    UNSET = "unset"

    def __bool__(self) -> bool:
        return False


UNSET: Final = Unset.UNSET


class Refused(ValueError):
    """A JSON value that has not the specified shape: ``path`` says where (``phase.batch.calls[1]``), ``reason`` why."""

    def __init__(self, reason: str, path: str = "") -> None:
        super().__init__(f"{path}: {reason}" if path else reason)
        self.reason = reason
        self.path = path

    def under(self, step: str | int) -> "Refused":
        """The same refusal seen from one level further out."""
        head = f"[{step}]" if isinstance(step, int) else step
        joint = "." if self.path and not self.path.startswith("[") else ""
        return Refused(self.reason, f"{head}{joint}{self.path}")


Reader: TypeAlias = Callable[["Json"], object]


class Record:
    """A durable noun with an exact JSON shape."""

    _tag: ClassVar[tuple[str, str] | None] = None

    def __init_subclass__(cls, **tag: str) -> None:
        super().__init_subclass__()
        for key, value in tag.items():
            cls._tag = (key, value)

    @classmethod
    def from_json(cls, value: "Json") -> Self:
        """The record that this JSON object spells; raises ``Refused`` with the path and the reason."""
        return _read_record(cls, value)

    def to_json(self) -> "JsonObject":
        """The JSON object of this record: tag first, absent fields left out."""
        made: JsonObject = {} if self._tag is None else {self._tag[0]: self._tag[1]}
        held = vars(self)
        for name, key, _, _ in _plan(type(self)):
            value = held[name]
            if value is not UNSET:
                made[key] = value if type(value) in _PLAIN else _write(value)
        return made

    def check(self) -> None:
        """Refuse combinations of fields that the types alone admit; overridden where there are any."""


def _write(value: object) -> "Json":
    if isinstance(value, Record):
        return value.to_json()
    if isinstance(value, tuple):
        return [item if type(item) in _PLAIN else _write(item) for item in value]
    return value.value if isinstance(value, StrEnum) else cast("Json", value)


_PLAIN: Final = frozenset({str, int, float, bool, type(None), dict, list})
"""What is written as it is, without a look at it."""

_Plan: TypeAlias = tuple[tuple[str, str, Reader, bool], ...]


def _plan_of(record: type[Record]) -> _Plan:
    """Per field that takes part in comparison: attribute, JSON key, reader, whether it may be absent."""
    return tuple(
        (field.name, camel(field.name), _reader(cast("Hashable", field.type)), Unset in get_args(field.type))
        for field in fields(record)  # type: ignore[arg-type]
        if field.compare
    )


_plan: Final = cast("Callable[[type[Record]], _Plan]", cache(_plan_of))


def camel(name: str) -> str:
    """The JSON spelling of a field name: ``base_delay_ms`` is ``baseDelayMs``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


R = TypeVar("R", bound=Record)


def _read_record(record: type[R], value: "Json") -> R:
    if not isinstance(value, dict):
        raise Refused(f"expected object, found {_name(value)}")
    left = len(value)
    tag = record._tag
    if tag is not None:
        if value.get(tag[0]) != tag[1]:
            raise Refused(f"expected {tag[1]!r}, found {value.get(tag[0])!r}", tag[0])
        left -= 1
    read: dict[str, object] = {}
    for name, key, reader, optional in _plan(record):
        if key in value:
            try:
                read[name] = reader(value[key])
            except Refused as refused:
                raise refused.under(key) from None
            left -= 1
        elif optional:
            read[name] = UNSET
        else:
            raise Refused("missing", key)
    if left:
        known = {key for _, key, _, _ in _plan(record)} | ({tag[0]} if tag else set())
        raise Refused("unknown key", next(key for key in value if key not in known))
    made = _made(record, read)
    made.check()
    return made


def _made(record: type[R], values: dict[str, object]) -> R:
    """The record of these fields, of which none is missing: a frozen dataclass would set each by a call of its own."""
    if not _is_whole(record):
        return record(**values)
    made = record.__new__(record)
    vars(made).update(values)
    return made


def _has_no_other_field(record: type[Record]) -> bool:
    return all(field.compare for field in fields(record))  # type: ignore[arg-type]


_is_whole: Final = cast("Callable[[type[Record]], bool]", cache(_has_no_other_field))


@cache
def _reader(hint: Hashable) -> Reader:
    simple = _SIMPLE.get(hint)
    if simple is not None:
        return simple
    if get_origin(hint) is tuple:
        return _list_reader(_reader(get_args(hint)[0]))
    if get_origin(hint) in (Union, types.UnionType):
        return _union_reader(tuple(arg for arg in get_args(hint) if arg is not Unset))
    if isinstance(hint, type) and issubclass(hint, StrEnum):
        return _enum_reader(hint)
    if isinstance(hint, type) and issubclass(hint, Record):
        return hint.from_json
    raise TypeError(f"no JSON shape for {hint!r}")


def _list_reader(item: Reader) -> Reader:
    def read(value: Json) -> object:
        if not isinstance(value, list):
            raise Refused(f"expected array, found {_name(value)}")
        made: list[object] = []
        for index, element in enumerate(value):
            try:
                made.append(item(element))
            except Refused as refused:
                raise refused.under(index) from None
        return tuple(made)

    return read


def _enum_reader(choices: type[StrEnum]) -> Reader:
    members: Mapping[str, StrEnum] = {member.value: member for member in choices}

    def read(value: Json) -> object:
        if not isinstance(value, str) or value not in members:
            raise Refused(f"expected one of {', '.join(members)}, found {value!r}")
        return members[value]

    return read


def _union_reader(members: tuple[Hashable, ...]) -> Reader:
    if len(members) == 1:
        return _reader(members[0])
    nothing = cast("Hashable", type(None))
    if nothing in members:
        inner = _union_reader(tuple(member for member in members if member != nothing))
        return lambda value: None if value is None else inner(value)
    variants: dict[str, type[Record]] = {}
    key = ""
    for member in members:
        if not (isinstance(member, type) and issubclass(member, Record) and member._tag):
            raise TypeError(f"only tagged records make a union: {members!r}")
        key = member._tag[0]
        variants[member._tag[1]] = member

    def read(value: Json) -> object:
        if not isinstance(value, dict):
            raise Refused(f"expected object, found {_name(value)}")
        tag = value.get(key)
        if not isinstance(tag, str) or tag not in variants:
            raise Refused(f"expected one of {', '.join(variants)}, found {tag!r}", key)
        return variants[tag].from_json(value)

    return read


def read_string(value: "Json") -> str:
    """A string without lone surrogates."""
    if not isinstance(value, str):
        raise Refused(f"expected string, found {_name(value)}")
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise Refused("a lone surrogate is not text") from None
    return value


def read_integer(value: "Json") -> int:
    """An integer that JSON keeps; neither a boolean nor 1.0."""
    if type(value) is not int:
        raise Refused(f"expected integer, found {value if isinstance(value, float) else _name(value)}")
    if abs(value) > SAFE_INTEGER:
        raise Refused("integer beyond 2^53-1")
    return value


def read_boolean(value: "Json") -> bool:
    """A boolean."""
    if not isinstance(value, bool):
        raise Refused(f"expected boolean, found {_name(value)}")
    return value


def read_json(value: "Json") -> "Json":
    """Any JSON value: finite numbers, integers within 2^53-1, text without lone surrogates, string keys."""
    match value:
        case dict():
            for key in value:
                if type(key) is not str or not key.isascii():
                    read_string(key)
            _read_items(value.items())
        case list():
            _read_items(enumerate(value))
        case str():
            read_string(value)
        case None | bool():
            pass
        case int():
            read_integer(value)
        case float():
            if not math.isfinite(value):
                raise Refused("not a finite number")
        case _:
            raise Refused(f"not JSON: {type(value).__name__}")
    return value


def _read_items(items: "Iterable[tuple[str | int, Json]]") -> None:
    for step, item in items:
        if type(item) is str and item.isascii():  # most items are plain text, and need no call
            continue
        try:
            read_json(item)
        except Refused as refused:
            raise refused.under(step) from None


def as_object(value: "Json") -> "JsonObject":
    """A JSON object whose content was read already or will be."""
    if not isinstance(value, dict):
        raise Refused(f"expected object, found {_name(value)}")
    return value


def read_object(value: "Json") -> "JsonObject":
    """A JSON object with any content."""
    read_json(as_object(value))
    return as_object(value)


_SIMPLE: Final[Mapping[object, Reader]] = {
    str: read_string, int: read_integer, bool: read_boolean, Json: read_json, JsonObject: read_object,
}  # fmt: skip


def _name(value: object) -> str:
    if value is None:
        return "null"
    kinds = {
        bool: "a boolean",
        int: "an integer",
        float: "a number",
        str: "a string",
        list: "an array",
        dict: "an object",
    }
    return kinds.get(type(value), type(value).__name__)


def same(one: "Json", other: "Json") -> bool:
    """Whether two JSON values are equal; 1, 1.0 and true are three values, the order of keys does not matter."""
    return one is other or (one == other and _alike(one, other))


def _alike(one: "Json", other: "Json") -> bool:
    """Whether two equal values are of the same types throughout."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict) and isinstance(other, dict):
        return _all_alike((value, other[key]) for key, value in one.items())
    return not (isinstance(one, list) and isinstance(other, list)) or _all_alike(zip(one, other, strict=True))


def _all_alike(pairs: "Iterable[tuple[Json, Json]]") -> bool:
    for value, there in pairs:
        if value is not there:
            kind = type(value)  # most are text, and need no call
            if kind is not type(there) or ((kind is dict or kind is list) and not _alike(value, there)):
                return False
    return True


def differences(expected: "Json", found: "Json", path: str = "") -> tuple[str, ...]:
    """Where and how ``found`` departs from ``expected``, one sentence per place, worded for a person."""
    if same(expected, found):
        return ()
    if type(expected) is type(found):
        if isinstance(expected, dict) and isinstance(found, dict):
            return _object_differences(expected, found, path)
        if isinstance(expected, list) and isinstance(found, list):
            return _list_differences(expected, found, path)
    return (f"{path or 'value'}: expected {_show(expected)}, found {_show(found)}",)


def _object_differences(expected: "JsonObject", found: "JsonObject", path: str) -> tuple[str, ...]:
    lines: list[str] = []
    for key, value in expected.items():
        here = f"{path}.{key}" if path else key
        if key in found:
            lines.extend(differences(value, found[key], here))
        else:
            lines.append(f"{here}: expected {_show(value)}, found nothing")
    lines.extend(
        f"{path}.{key}: unexpected {_show(value)}" if path else f"{key}: unexpected {_show(value)}"
        for key, value in found.items()
        if key not in expected
    )
    return tuple(lines)


def _list_differences(expected: list["Json"], found: list["Json"], path: str) -> tuple[str, ...]:
    lines: list[str] = []
    for index, (one, other) in enumerate(zip(expected, found, strict=False)):
        lines.extend(differences(one, other, f"{path}[{index}]"))
    if len(expected) != len(found):
        lines.append(f"{path or 'value'}: expected {len(expected)} items, found {len(found)}")
    return tuple(lines)


def _show(value: "Json") -> str:
    text = repr(value)
    return text if len(text) <= 160 else f"{text[:157]}..."
