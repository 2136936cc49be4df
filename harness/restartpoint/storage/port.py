"""The storage port: one session's entries, registers and ledger behind one write primitive (§1.4, §1.5).

Clauses that every backend keeps, and that the conformance suite checks by these numbers:

P1   ``commit`` applies all writes or none; no reader sees a part of them.
P2   Writes get strictly increasing sequence numbers in the order given, from 1, across all kinds of write.
P3   Writes apply in order; an entry may name a parent inserted earlier in the same transaction.
P4   Entries and usage rows share one id namespace; a taken id raises ``DuplicateId``.
P5   A parent that does not exist raises ``MissingParent``.
P6   A set replaces, a delete removes, a later set recreates; deleting an absent key changes nothing.
P7   A refusal or a corruption error applies nothing, uses no sequence number, and leaves the storage usable.
P8   Expectations are checked before anything is applied; ``StaleExpectation`` names the first that fails.
P9   Commits are serialized; a cancelled caller never leaves one undecided.
P10  After a write whose outcome is uncertain every later commit raises the same ``StorageFault``.
P11  ``list_registers`` returns ascending keys by code point.
P12  Scans follow the bounds, order, filters, cursor and limit of their query; an unknown start raises
     ``UnknownEntry``.
P13  ``get_stats`` equals the message count and the ledger's left-to-right sum after every commit.
P14  ``close`` is idempotent, refuses later calls with ``StorageClosed``, drains admitted commits, then releases.
P15  Values come back as they were committed: absent is not null, 1 is not 1.0, unknown payload fields survive.
P16  Values that JSON cannot hold raise ``InvalidJson`` before anything is applied.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

from restartpoint.contract.entries import Entry, EntryStructure
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.queries import BranchScan, EntryScan, SessionStats, UsageScan
from restartpoint.contract.registers import Namespace, Register, RegisterKey
from restartpoint.contract.usage import UsageRow
from restartpoint.contract.writes import CommitResult, Transaction

__all__ = ["Storage"]

V = TypeVar("V")


class Storage(Protocol):
    """One open session. Every method raises ``StorageClosed`` after ``close``."""

    @property
    def metadata(self) -> SessionMetadata:
        """The session's identity as stored."""
        ...

    async def commit(self, tx: Transaction) -> CommitResult:
        """The sequence numbers and timestamp of a transaction that is now durable (P1-P10).

        Raises:
            CommitRefused: nothing was applied (``EmptyTransaction``, ``InvalidJson``, ``StaleExpectation``).
            StorageCorruption: nothing was applied (``DuplicateId``, ``MissingParent``).
            StorageFault: the outcome is uncertain or the claim was lost; the instance accepts no more.
        """
        ...

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        """The entries that exist among ``ids``, by id."""
        ...

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        """The register, or None when the key does not exist."""
        ...

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        """One read of several registers, in the order of ``keys``; None where a key does not exist."""
        ...

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        """The registers whose key starts with the prefix, ascending by key (P11)."""
        ...

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        """Entries on the path from ``query.start`` to the root (P12, §2.5)."""
        ...

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        """The same as ``scan_branch`` without payloads."""
        ...

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        """Entries of the whole session by sequence (P12)."""
        ...

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        """Ledger rows by sequence (P12)."""
        ...

    async def get_stats(self) -> SessionStats:
        """Message count and ledger total (P13)."""
        ...

    async def close(self) -> None:
        """Seal, drain admitted commits, release resources and the writer claim (P14)."""
        ...
