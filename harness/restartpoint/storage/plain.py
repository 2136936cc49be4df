"""The fast check that a transaction is plain JSON: what the encoder and the types prove already is not walked again.

- The encoder refuses lone surrogates and stray absent markers, so no text needs a look.
- The fields of durable structs have closed types, which §0.8 trusts. What is left to look at are their whole numbers,
  and the few fields that hold whatever providers and applications put there.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import get_args

from msgspec import inspect

from restartpoint.contract.entries import EntryPayload
from restartpoint.contract.json import MAX_DEPTH
from restartpoint.contract.json import is_surely_plain as is_plain_with
from restartpoint.contract.registers import NAMESPACES
from restartpoint.contract.usage import UsageDraft

__all__ = ["is_surely_plain"]

_DEEPEST_STRUCT = 16
_DEPTH = MAX_DEPTH - _DEEPEST_STRUCT


def is_surely_plain(value: object, depth: int = _DEPTH) -> bool:
    """Given that the encoder took the value: true only where ``check_json`` accepts it, which decides otherwise."""
    return is_plain_with(value, _READERS, depth)


def _readers() -> Mapping[type, Callable[[object], tuple[object, ...]]]:
    """For each durable struct, what reads the fields that need a look, those of its fixed parts included."""
    found: dict[type, tuple[str, ...]] = {}

    def paths(struct: inspect.StructType) -> tuple[str, ...]:
        if struct.cls not in found:
            found[struct.cls] = tuple(path for field in struct.fields for path in paths_of(field))
        return found[struct.cls]

    def paths_of(field: inspect.Field) -> tuple[str, ...]:
        if isinstance(field.type, inspect.StructType) and field.required:
            return tuple(f"{field.name}.{path}" for path in paths(field.type))
        return (field.name,) if needs_a_look(field.type) else ()

    def needs_a_look(node: inspect.Type) -> bool:
        match node:
            case inspect.StructType():
                return bool(paths(node))
            case inspect.UnionType(types=members):
                return max([needs_a_look(member) for member in members])  # all of them: each is put into `found`
            case inspect.ListType(item_type=item):
                return needs_a_look(item)
            case inspect.StrType() | inspect.BoolType() | inspect.NoneType() | inspect.LiteralType():
                return False
            case _:
                return True

    for root in (*get_args(EntryPayload), UsageDraft, *(namespace.type for namespace in NAMESPACES.values())):
        needs_a_look(inspect.type_info(root))
    return {kind: _reader(names) for kind, names in found.items()}


def _reader(names: tuple[str, ...]) -> Callable[[object], tuple[object, ...]]:
    match names:
        case ():
            return lambda _: ()
        case (name,):
            read = attrgetter(name)
            return lambda value: (read(value),)
        case _:
            return attrgetter(*names)


_READERS = _readers()
