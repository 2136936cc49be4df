"""What the backends that keep the session in memory have in common: one commit path, all reads, seal and poison."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

from restartpoint.contract.entries import Entry, EntryStructure
from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.queries import BranchScan, EntryScan, SessionStats, UsageScan
from restartpoint.contract.registers import Namespace, Register, RegisterKey
from restartpoint.contract.usage import UsageRow
from restartpoint.contract.writes import CommitResult, Transaction
from restartpoint.errors import StorageClosed, StorageError, StorageFault, WriteUncertain
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints
from restartpoint.storage.admission import Encode, check_against_state, check_alone
from restartpoint.storage.ram import SessionData

__all__ = ["ResidentStorage"]

V = TypeVar("V")


class ResidentStorage(ABC):
    """A ``Storage`` over ``SessionData``.

    A commit awaits nothing, so commits cannot interleave and cancellation cannot cut one: that is their queue (P9).
    """

    def __init__(self, data: SessionData, *, encode: Encode, clock: Clock, faults: FaultPoints) -> None:
        self.data = data
        self._encode = encode
        self._clock = clock
        self._faults = faults
        self._closed = False
        self._fault: StorageError | None = None  # what every commit raises from now on

    @property
    def metadata(self) -> SessionMetadata:
        return self.data.metadata

    async def commit(self, tx: Transaction) -> CommitResult:
        if self._closed:
            raise StorageClosed
        self._assert_writable()
        data = self.data
        first, timestamp = data.next_seq, self._clock.now_ms()
        encoded = check_alone(tx, self._encode, first, timestamp)
        check_against_state(tx, data.register_seq, data.is_taken, data.is_entry)
        try:
            self._faults.reach("commit.before_write")
            self._write(encoded)
            data.apply(tx, timestamp)
            self._faults.reach("commit.after_write")
        except BaseException as error:
            # Whatever it was, file and memory may disagree now, so nothing may follow (P10).
            self._poison(error)
            raise
        return CommitResult(first_seq=first, seqs=tuple(range(first, data.next_seq)), timestamp=timestamp)

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]:
        return self._open_data().get_entries(ids)

    async def get_register(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        return self._open_data().get_register(namespace, key)

    async def get_registers(self, keys: Sequence[RegisterKey]) -> list[Register[Any] | None]:
        return self._open_data().get_registers(keys)

    async def list_registers(self, namespace: Namespace[V], key_prefix: str = "") -> list[Register[V]]:
        return self._open_data().list_registers(namespace, key_prefix)

    async def scan_branch(self, query: BranchScan) -> list[Entry]:
        return self._open_data().scan_branch(query)

    async def scan_branch_structure(self, query: BranchScan) -> list[EntryStructure]:
        return self._open_data().scan_branch_structure(query)

    async def scan_entries(self, query: EntryScan) -> list[Entry]:
        return self._open_data().scan_entries(query)

    async def scan_usage(self, query: UsageScan) -> list[UsageRow]:
        return self._open_data().scan_usage(query)

    async def get_stats(self) -> SessionStats:
        return self._open_data().get_stats()

    async def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._release()

    @abstractmethod
    def _write(self, encoded: bytes) -> None:
        """Make a commit outlive this process; raises ``StorageFault`` when it is uncertain whether it did."""

    @abstractmethod
    def _release(self) -> None:
        """Give up what the open storage holds."""

    def _assert_writable(self) -> None:
        """Raise when this storage accepts no commit."""
        if self._fault is not None:
            raise self._fault

    def _open_data(self) -> SessionData:
        if self._closed:
            raise StorageClosed
        return self.data

    def _poison(self, error: BaseException) -> None:
        if isinstance(error, StorageFault):
            self._fault = error
        else:
            self._fault = WriteUncertain(f"a commit was cut short, so it may or may not be kept: {error!r}")
            self._fault.__cause__ = error
