"""Transactions: the only write primitive, all-or-none, in order (§1.4)."""

from __future__ import annotations

from typing import Any, Generic, TypeAlias, TypeVar, final

import msgspec

from restartpoint.contract.entries import EntryDraft
from restartpoint.contract.registers import Namespace
from restartpoint.contract.usage import UsageDraft

__all__ = [
    "CommitResult", "Expectation", "InsertEntry", "InsertUsage", "RegisterDelete", "RegisterSet", "Transaction",
    "Write",
]  # fmt: skip

V = TypeVar("V")


@final
class InsertEntry(msgspec.Struct, frozen=True):
    """Insert an entry; its parent may have been inserted earlier in the same transaction."""

    entry: EntryDraft


@final
class InsertUsage(msgspec.Struct, frozen=True):
    """Insert a ledger row."""

    row: UsageDraft


@final
class RegisterSet(msgspec.Struct, Generic[V], frozen=True):
    """Set a register to a value of its namespace's type."""

    namespace: Namespace[V]
    key: str
    value: V


@final
class RegisterDelete(msgspec.Struct, frozen=True):
    """Delete a register; deleting an absent key changes nothing."""

    namespace: Namespace[Any]
    key: str


Write: TypeAlias = InsertEntry | InsertUsage | RegisterSet[Any] | RegisterDelete
"""All final, so that ``type(write) is`` tells them apart where every commit passes: a class pattern costs much more."""


class Expectation(msgspec.Struct, frozen=True):
    """A register must be at ``seq`` (None: absent) or the transaction is refused."""

    namespace: Namespace[Any]
    key: str
    seq: int | None


class Transaction(msgspec.Struct, frozen=True):
    """Writes in commit order, at least one, and optional expectations that are checked first."""

    writes: tuple[Write, ...]
    expectations: tuple[Expectation, ...] = ()


class CommitResult(msgspec.Struct, frozen=True, kw_only=True):
    """The sequence number of each write, in order, and the timestamp of the transaction (Unix milliseconds)."""

    first_seq: int
    seqs: tuple[int, ...]
    timestamp: int
