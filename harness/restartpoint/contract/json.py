"""Plain JSON values, the absent marker, and the edge where a value that JSON cannot hold is refused (§1.1)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import msgspec
from msgspec import UNSET, UnsetType

from restartpoint.errors import InvalidJson

__all__ = [
    "MAX_DEPTH",
    "MAX_SAFE_INTEGER",
    "UNSET",
    "Check",
    "Checks",
    "JsonObject",
    "JsonValue",
    "UnsetType",
    "are_surely_plain",
    "check_json",
    "or_unset",
]

if TYPE_CHECKING:
    JsonValue: TypeAlias = "None | bool | int | float | str | list[JsonValue] | dict[str, JsonValue]"
else:
    JsonValue = Any  # msgspec resolves annotations and knows no recursive alias
JsonObject: TypeAlias = dict[str, JsonValue]

MAX_SAFE_INTEGER = 2**53 - 1
MAX_DEPTH = 200

Check: TypeAlias = Callable[[Any, int], bool]
"""Whether a struct is surely plain, given how many levels of lists and objects may be looked into."""

Checks: TypeAlias = Mapping[type, Check]

_NO_CHECKS: Checks = MappingProxyType({})
_MIN_SAFE_INTEGER = -MAX_SAFE_INTEGER
_encode = msgspec.json.Encoder().encode

T = TypeVar("T")


def or_unset(value: T | None) -> T | UnsetType:
    """The value, or the absent marker when it is None."""
    return UNSET if value is None else value


def check_json(value: object, where: str = "$") -> None:
    """Return when ``value`` is JSON that survives every backend unchanged.

    Accepts dict with str keys, list, str, bool, int within ±(2^53-1), finite float, None, and durable structs of
    this package whose fields are such values.

    Raises:
        InvalidJson: names the path and the reason; nothing was written.
    """
    if are_surely_plain((value,), _NO_CHECKS) and _is_encodable(value):
        return
    reason = _objection(value, 0)
    if reason is not None:
        path, why = reason
        raise InvalidJson(where + path, why)


def are_surely_plain(values: Iterable[object], checks: Checks, depth: int = MAX_DEPTH) -> bool:
    """Given that the encoder takes the values: true only where ``check_json`` accepts each, which decides otherwise.

    The encoder refuses lone surrogates, so no text needs a look. ``checks`` look at structs; one without a check is
    never sure. ``depth`` is how many levels of lists and objects are looked into.
    """
    for value in values:
        kind = type(value)
        if kind is str:
            continue
        parts: Iterable[object]
        if kind is dict:
            for key in value:  # type: ignore[attr-defined]
                if type(key) is not str:
                    return False
            parts = value.values()  # type: ignore[attr-defined]
        elif kind is list:
            parts = value  # type: ignore[assignment]
        elif kind is int:
            if not _MIN_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER:  # type: ignore[operator]
                return False
            continue
        elif value is None or kind is bool:
            continue
        elif kind is float:
            if not math.isfinite(value):  # type: ignore[arg-type]
                return False
            continue
        elif kind in checks:
            if not checks[kind](value, depth):
                return False
            continue
        else:
            return False
        if parts and (depth == 0 or not are_surely_plain(parts, checks, depth - 1)):
            return False
    return True


def _is_encodable(value: object) -> bool:
    """True when the encoder takes the value; why it does not is for ``_objection`` to say."""
    try:
        _encode(value)
    except (ValueError, TypeError, OverflowError, RecursionError):
        return False
    return True


def _objection(value: object, depth: int) -> tuple[str, str] | None:
    kind = type(value)
    if kind is str:
        return None if _encodable(value) else ("", "the text holds a lone surrogate, which UTF-8 cannot carry")  # type: ignore[arg-type]
    if value is None or kind is bool:
        return None
    if kind is int:
        within = -MAX_SAFE_INTEGER <= value <= MAX_SAFE_INTEGER  # type: ignore[operator]
        return None if within else ("", "the integer lies outside ±(2^53-1); send it as text")
    if kind is float:
        return None if math.isfinite(value) else ("", "the number is not finite; JSON has no NaN or infinity")  # type: ignore[arg-type]
    if depth > MAX_DEPTH:
        return "", f"the value nests deeper than {MAX_DEPTH} levels"
    for step, child in _children(value):
        if type(step) is str and not _encodable(step):
            return "", "a key holds a lone surrogate, which UTF-8 cannot carry"
        found = ("", "a key is not text") if step is None else _objection(child, depth + 1)
        if found is not None:
            return (f".{step}" if type(step) is str else f"[{step}]" if step is not None else "") + found[0], found[1]
    if kind is dict or kind is list or isinstance(value, msgspec.Struct):
        return None
    return "", f"{kind.__name__} is not a JSON value"


def _children(value: object) -> Iterator[tuple[str | int | None, object]]:
    """The parts of a container, each with its key or index (None: a key that is not text)."""
    if isinstance(value, dict):
        for key, child in value.items():
            yield (key if type(key) is str else None), child
    elif isinstance(value, list):
        yield from enumerate(value)
    elif isinstance(value, msgspec.Struct):
        for name in value.__struct_fields__:
            child = getattr(value, name)
            if child is UNSET:
                continue
            if type(child) is tuple:
                yield name, list(child)
            else:
                yield name, child


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
