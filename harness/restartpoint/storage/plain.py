"""The quick checks of durable structs for plain JSON: what the encoder and the types prove already is left out.

- The encoder refuses lone surrogates, so no text needs a look.
- The fields of durable structs have closed types, which §0.8 trusts. What is left to look at are their whole numbers,
  and the few fields that hold whatever providers and applications put there.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast, get_args

import msgspec
from msgspec import inspect

from restartpoint.contract.entries import EntryPayload
from restartpoint.contract.json import MAX_DEPTH, MAX_SAFE_INTEGER, UNSET, Check, Checks, are_surely_plain
from restartpoint.contract.registers import NAMESPACES
from restartpoint.contract.usage import UsageDraft

__all__ = ["CHECKS", "DEPTH"]

_DEEPEST_STRUCT = 16
DEPTH = MAX_DEPTH - _DEEPEST_STRUCT
"""How many levels of lists and objects are looked into; levels of structs are not counted."""


def _checks() -> Checks:
    """The check of each durable struct."""
    checks: dict[type, Check] = {}

    def add(node: inspect.Type) -> None:
        match node:
            case inspect.StructType(cls=kind, fields=fields):
                if kind not in checks:
                    checks[kind] = _check_of(node, checks)
                    for field in fields:
                        add(field.type)
            case inspect.ListType(item_type=item):
                add(item)
            case inspect.UnionType(types=members):
                for member in members:
                    add(member)
            case _:
                pass

    for root in (*get_args(EntryPayload), UsageDraft, *(namespace.type for namespace in NAMESPACES.values())):
        add(inspect.type_info(root))
    return checks


def _check_of(struct: inspect.StructType, checks: Checks) -> Check:
    """The check of a struct, compiled from its text, as dataclasses compile theirs: every commit runs a few.

    With a count, settings that have a limit, a phase of several kinds, and options that may hold anything, its text is
    ``-MAX <= v.count <= MAX and -MAX <= v.settings.limit <= MAX and checks[type(v.phase)](v.phase, depth)
    and look((v.options,), checks, depth)``.
    """
    text = " and ".join(_terms(struct, "v")) or "True"
    return cast("Check", eval(f"lambda v, depth: {text}", {"checks": checks, "look": are_surely_plain, "UNSET": UNSET}))


def _terms(struct: inspect.StructType, at: str) -> Iterator[str]:
    """The conditions of a check, for the struct that stands at ``at``."""
    for field in struct.fields:
        path, is_there = f"{at}.{field.name}", field.required or field.default is not msgspec.NODEFAULT
        match field.type:
            case closed if _is_closed(closed):
                pass
            case inspect.IntType() if is_there:
                yield f"-{MAX_SAFE_INTEGER} <= {path} <= {MAX_SAFE_INTEGER}"
            case inspect.StructType() as part if is_there:
                yield from _terms(part, path)
            case inspect.UnionType(types=kinds) if is_there and all(isinstance(k, inspect.StructType) for k in kinds):
                yield f"checks[type({path})]({path}, depth)"
            case _:
                looks = f"look(({path},), checks, depth)"
                yield looks if is_there else f"({path} is UNSET or {looks})"


def _is_closed(node: inspect.Type) -> bool:
    """Whether the encoder and the type together prove every value of it."""
    match node:
        case inspect.StrType() | inspect.BoolType() | inspect.NoneType() | inspect.LiteralType():
            return True
        case inspect.StructType():
            return all(_is_closed(field.type) for field in node.fields)
        case inspect.ListType(item_type=item):
            return _is_closed(item)
        case inspect.UnionType(types=members):
            return all(_is_closed(member) for member in members)
        case _:
            return False


CHECKS = _checks()
