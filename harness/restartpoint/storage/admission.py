"""What every backend checks before it applies a transaction: one place, pure, in one order (§1.4).

Clauses P3 to P5, P8 and P16 of the port. The order is: at least one write, JSON, expectations, then ids and parents
write by write, so that all backends refuse the same transaction with the same error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

import msgspec

from restartpoint.contract.json import check_json
from restartpoint.contract.registers import NAMESPACES
from restartpoint.contract.writes import InsertEntry, InsertUsage, RegisterDelete, RegisterSet, Transaction, Write
from restartpoint.errors import (
    DuplicateId,
    EmptyTransaction,
    InvalidJson,
    InvariantBroken,
    MissingParent,
    StaleExpectation,
)
from restartpoint.storage.plain import is_surely_plain

__all__ = ["Encode", "admit", "check_against_state", "check_alone"]

Encode: TypeAlias = Callable[[tuple[Write, ...]], bytes]
"""What a backend makes of the writes anyhow; it must hold every value of every write."""

_encode_json = msgspec.json.Encoder().encode


def admit(
    tx: Transaction,
    *,
    register_seq: Callable[[str, str], int | None],
    is_taken: Callable[[str], bool],
    is_entry: Callable[[str], bool],
    encode: Encode | None = None,
) -> bytes:
    """The encoded writes of a transaction that may be applied; nothing was changed in either case.

    Raises:
        EmptyTransaction, InvalidJson, StaleExpectation: the transaction is refused.
        DuplicateId, MissingParent: the transaction contradicts the stored state or itself.
    """
    encoded = check_alone(tx, encode)
    check_against_state(tx, register_seq=register_seq, is_taken=is_taken, is_entry=is_entry)
    return encoded


def check_alone(tx: Transaction, encode: Encode | None = None) -> bytes:
    """The part of ``admit`` that needs no stored state.

    Raises:
        EmptyTransaction: there is no write.
        InvalidJson: the path starts with the position of the write, as in ``writes[2].value.phase``.
    """
    writes = tx.writes
    if not writes:
        raise EmptyTransaction
    try:
        encoded = _encode_parts(writes) if encode is None else encode(writes)
    except (ValueError, TypeError, OverflowError, RecursionError) as error:
        _check_each(writes)
        raise InvalidJson("writes", f"the encoder refuses it: {error}") from error
    for write in writes:
        if isinstance(write, RegisterSet):
            plain = is_surely_plain(write.value)
        elif isinstance(write, InsertEntry):
            plain = is_surely_plain(write.entry.payload)
        else:
            plain = not isinstance(write, InsertUsage) or is_surely_plain(write.row)
        if not plain:
            _check_each(writes)
            break
    return encoded


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
            case RegisterSet() | RegisterDelete():
                name = write.namespace.name
                if name not in NAMESPACES:
                    raise InvariantBroken(f"{name!r} is no register namespace; a file with it would never open again")
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
            case _:
                assert_never(write)


def _encode_parts(writes: tuple[Write, ...]) -> bytes:
    return _encode_json([part for write in writes for _, part in _json_parts(write)])


def _check_each(writes: tuple[Write, ...]) -> None:
    for position, write in enumerate(writes):
        for name, part in _json_parts(write):
            check_json(part, f"writes[{position}].{name}")


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
