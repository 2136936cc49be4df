"""What every backend checks before it applies a transaction: one place, pure, in one order (§1.4).

Clauses P3 to P5, P8 and P16 of the port. The order is: at least one write, JSON, expectations, then ids and parents
write by write, so that all backends refuse the same transaction with the same error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import assert_never

import msgspec

from restartpoint.contract.json import MAX_DEPTH, MAX_SAFE_INTEGER, UNSET, check_json
from restartpoint.contract.registers import NAMESPACES
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterDelete, RegisterSet, Transaction, Write
from restartpoint.errors import DuplicateId, EmptyTransaction, InvariantBroken, MissingParent, StaleExpectation

__all__ = ["admit", "check_against_state", "check_alone"]

_astuple = msgspec.structs.astuple


def admit(
    tx: Transaction,
    *,
    register_seq: Callable[[str, str], int | None],
    is_taken: Callable[[str], bool],
    is_entry: Callable[[str], bool],
) -> None:
    """Return when the transaction may be applied; nothing was changed in either case.

    Raises:
        EmptyTransaction, InvalidJson, StaleExpectation: the transaction is refused.
        DuplicateId, MissingParent: the transaction contradicts the stored state or itself.
    """
    check_alone(tx)
    check_against_state(tx, register_seq=register_seq, is_taken=is_taken, is_entry=is_entry)


def check_alone(tx: Transaction) -> None:
    """The part of ``admit`` that needs no stored state.

    Raises:
        EmptyTransaction: there is no write.
        InvalidJson: the path starts with the position of the write, as in ``writes[2].value.phase``.
    """
    if not tx.writes:
        raise EmptyTransaction
    if not _is_plain([part for write in tx.writes for _, part in _json_parts(write)]):
        for position, write in enumerate(tx.writes):
            for name, part in _json_parts(write):
                check_json(part, f"writes[{position}].{name}")


def check_against_state(
    tx: Transaction,
    *,
    register_seq: Callable[[str, str], int | None],
    is_taken: Callable[[str], bool],
    is_entry: Callable[[str], bool],
) -> None:
    """The part of ``admit`` that needs the stored state.

    ``register_seq(namespace, key)`` is the sequence number of a register or None, ``is_taken(id)`` is true for the
    ids of entries and of usage rows, ``is_entry(id)`` for those of entries.

    Raises:
        StaleExpectation: names the first expectation that fails.
        DuplicateId, MissingParent: names the first write that fails.
        InvariantBroken: a write names a namespace outside §1.3.
    """
    for expectation in tx.expectations:
        namespace, key = expectation.namespace.name, expectation.key
        actual = register_seq(namespace, key)
        if actual != expectation.seq:
            raise StaleExpectation(namespace, key, expected=expectation.seq, actual=actual)
    fresh: dict[str, bool] = {}  # ids of this transaction; True for entries
    for write in tx.writes:
        match write:
            case InsertEntry(entry=entry):
                if entry.id in fresh or is_taken(entry.id):
                    raise DuplicateId(entry.id)
                parent_id = entry.parent_id
                if parent_id is not None and not fresh.get(parent_id, False) and not is_entry(parent_id):
                    raise MissingParent(entry.id, parent_id)
                fresh[entry.id] = True
            case InsertUsage(row=row):
                if row.id in fresh or is_taken(row.id):
                    raise DuplicateId(row.id)
                fresh[row.id] = False
            case RegisterSet() | RegisterDelete():
                name = write.namespace.name
                if name not in NAMESPACES:
                    raise InvariantBroken(f"{name!r} is no register namespace; a file with it would never open again")
            case _:
                assert_never(write)


def _json_parts(write: Write) -> tuple[tuple[str, object], ...]:
    """What of a write is stored as JSON, by name."""
    match write:
        case RegisterSet():
            return ("key", write.key), ("value", write.value)
        case InsertEntry():
            return (("entry", write.entry),)
        case InsertUsage():
            return (("row", write.row),)
        case RegisterDelete():
            return (("key", write.key),)
        case _:
            assert_never(write)


def _is_plain(values: list[object]) -> bool:
    """True only where ``check_json`` accepts every value; where it is false, ``check_json`` decides.

    Several times faster: it goes level by level instead of by recursion, and reads a struct's fields as one tuple.
    """
    level: list[object] = [values]
    for _ in range(MAX_DEPTH):
        deeper: list[object] = []
        for container in level:
            if not _is_plain_container(container, deeper):
                return False
        if not deeper:
            return True
        level = deeper
    return False


def _is_plain_container(container: object, deeper: list[object]) -> bool:
    """Whether the container and its scalars are plain; what it contains besides scalars is added to ``deeper``."""
    kind = type(container)
    children: Iterable[object]
    if kind is dict:
        for key in container:  # type: ignore[attr-defined]
            if type(key) is not str or not (key.isascii() or _is_encodable(key)):
                return False
        children = container.values()  # type: ignore[attr-defined]
    elif kind is list:
        children = container  # type: ignore[assignment]
    elif isinstance(container, msgspec.Struct):
        children = [child for child in _astuple(container) if child is not UNSET]
    else:
        return False
    for child in children:
        kind = type(child)
        if kind is str:
            if not (child.isascii() or _is_encodable(child)):  # type: ignore[attr-defined, arg-type]
                return False
        elif kind is int:
            if not -MAX_SAFE_INTEGER <= child <= MAX_SAFE_INTEGER:  # type: ignore[operator]
                return False
        elif kind is float:
            if not math.isfinite(child):  # type: ignore[arg-type]
                return False
        elif child is not None and kind is not bool:
            deeper.append(child)
    return True


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True
