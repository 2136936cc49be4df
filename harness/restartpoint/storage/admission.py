"""What every backend checks before it applies a transaction: one place, pure, in one order (§1.4).

Clauses P3 to P5, P8 and P16 of the port. The order is: at least one write, JSON, expectations, then ids and parents
write by write, so that all backends refuse the same transaction with the same error.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias, assert_never

import msgspec

from restartpoint.contract.entries import MessagePayload
from restartpoint.contract.json import are_surely_plain, check_json
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
from restartpoint.storage.plain import CHECKS, DEPTH

__all__ = ["Encode", "admit", "check_against_state", "check_alone", "encode_values"]

Encode: TypeAlias = Callable[[tuple[Write, ...], int, int], bytes]
"""What a backend makes of the writes under a first seq and a timestamp; it holds every value of every write."""

_encode_json = msgspec.json.Encoder().encode

_MISFITS = (ValueError, TypeError, OverflowError, RecursionError, AttributeError, LookupError)
"""What the encoder raises, and the checks of structs whose fields hold something else than their types say."""


def encode_values(writes: tuple[Write, ...], first_seq: int, timestamp: int) -> bytes:  # noqa: ARG001
    """For a backend that keeps no text: everything of the writes that has to be JSON."""
    return _encode_json([part for write in writes for _, part in _json_parts(write)])


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
    check_against_state(tx, register_seq, is_taken, is_entry)


def check_alone(tx: Transaction, encode: Encode = encode_values, first_seq: int = 0, timestamp: int = 0) -> bytes:
    """The part of admission that needs no stored state; what ``encode`` made of the writes.

    Raises:
        EmptyTransaction: there is no write.
        InvalidJson: the path starts with the position of the write, as in ``writes[2].value.phase``.
    """
    writes = tx.writes
    if not writes:
        raise EmptyTransaction
    try:
        encoded = encode(writes, first_seq, timestamp)
        surely_plain = are_surely_plain(_values(writes), CHECKS, DEPTH)
    except _MISFITS as error:
        _check_each(writes)
        raise InvalidJson("writes", f"a value is not what its type says: {error}") from error
    if not surely_plain:
        _check_each(writes)
    return encoded


def check_against_state(
    tx: Transaction,
    register_seq: Callable[[str, str], int | None],
    is_taken: Callable[[str], bool],
    is_entry: Callable[[str], bool],
) -> None:
    """The part of admission that needs the stored state.

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
        if type(write) is RegisterSet or type(write) is RegisterDelete:
            name = write.namespace.name
            if name not in NAMESPACES:
                raise InvariantBroken(f"{name!r} is no register namespace; a file with it would never open again")
        elif type(write) is InsertEntry:
            entry_id, parent_id = write.entry.id, write.entry.parent_id
            if entry_id in fresh or is_taken(entry_id):
                raise DuplicateId(entry_id)
            if parent_id is not None and not fresh.get(parent_id, False) and not is_entry(parent_id):
                raise MissingParent(entry_id, parent_id)
            fresh[entry_id] = True
        elif type(write) is InsertUsage:
            row_id = write.row.id
            if row_id in fresh or is_taken(row_id):
                raise DuplicateId(row_id)
            fresh[row_id] = False
        else:
            assert_never(write)


def _values(writes: tuple[Write, ...]) -> list[object]:
    """What of the writes is not proven to be JSON by the encoder: all but keys and ids, and an empty ``extra``."""
    values: list[object] = []
    for write in writes:
        if type(write) is RegisterSet:
            values.append(write.value)
        elif type(write) is InsertEntry:
            payload = write.entry.payload
            values.append(payload.message if type(payload) is MessagePayload and not payload.extra else payload)
        elif type(write) is InsertUsage:
            values.append(write.row)
    return values


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
