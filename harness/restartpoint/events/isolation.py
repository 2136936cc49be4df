"""Copies that share nothing changeable, so that a listener cannot reach the state of an operation (§5.5)."""

from __future__ import annotations

from typing import TypeVar, cast

import msgspec

__all__ = ["isolated"]

T = TypeVar("T")


def isolated(value: T) -> T:
    """An equal value whose lists and objects are its own; frozen values without any are shared."""
    return cast("T", _isolated(value))


def _isolated(value: object) -> object:
    kind = type(value)
    if kind is str or kind is int or value is None or kind is bool or kind is float:
        return value
    if kind is dict:
        return {key: _isolated(child) for key, child in value.items()}  # type: ignore[attr-defined]
    if kind is list:
        return [_isolated(child) for child in value]  # type: ignore[attr-defined]
    if kind is tuple:
        return tuple(_isolated(child) for child in value)  # type: ignore[attr-defined]
    if isinstance(value, msgspec.Struct):
        return _struct(value)
    return value


def _struct(value: msgspec.Struct) -> msgspec.Struct:
    changed = {}
    for name in value.__struct_fields__:
        child = getattr(value, name)
        own = _isolated(child)
        if own is not child:
            changed[name] = own
    return msgspec.structs.replace(value, **changed) if changed else value
