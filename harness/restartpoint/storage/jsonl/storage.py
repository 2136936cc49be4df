"""The JSONL backend: the maps of `ram`, and an append-only file that replays into them (§1.7)."""

from __future__ import annotations

import os
from pathlib import Path

from restartpoint.contract.metadata import SessionMetadata
from restartpoint.contract.writes import Transaction
from restartpoint.errors import CommitRefused, WriteUncertain
from restartpoint.seams.clock import Clock
from restartpoint.seams.faults import FaultPoints, NoFaults
from restartpoint.storage.admission import check_against_state, check_alone
from restartpoint.storage.jsonl import files
from restartpoint.storage.jsonl.files import Durability, FileCalls
from restartpoint.storage.jsonl.lines import encode_header, encode_line
from restartpoint.storage.jsonl.lock import FileLock
from restartpoint.storage.jsonl.replay import read_header, replay
from restartpoint.storage.ram import SessionData
from restartpoint.storage.resident import ResidentStorage

__all__ = ["JsonlStorage"]


class JsonlStorage(ResidentStorage):
    """A ``Storage`` in one file. A commit is one line and one write on a descriptor that stays open."""

    def __init__(
        self,
        data: SessionData,
        *,
        path: Path,
        writer: _Writer | None,
        clock: Clock,
        faults: FaultPoints | None,
    ) -> None:
        faults = NoFaults() if faults is None else faults
        super().__init__(data, encode=encode_line, clock=clock, faults=faults)
        self._writer = writer
        if writer is None:
            self._fault = CommitRefused(f"{path} is open for reading only; open it for writing to commit")

    @classmethod
    async def create(
        cls,
        path: Path,
        metadata: SessionMetadata,
        initial: Transaction,
        *,
        clock: Clock,
        durability: Durability = "process",
        faults: FaultPoints | None = None,
        calls: FileCalls | None = None,
    ) -> JsonlStorage:
        """A new session, published whole with its initial transaction, open and locked.

        Raises:
            SessionExists: the path is taken.
            SessionLocked: somebody creates it at this moment.
            StorageError: the file cannot be written, or what ``commit`` raises; there is no session then.
        """
        calls = FileCalls() if calls is None else calls
        data, timestamp = SessionData(metadata), clock.now_ms()
        line = check_alone(initial, encode_line, data.next_seq, timestamp)
        check_against_state(initial, data.register_seq, data.is_taken, data.is_entry)
        content = encode_header(metadata) + line
        files.assert_free(path, metadata.id)  # so that an existing session is called that, even while it is locked
        lock = FileLock.acquire(path)
        try:
            descriptor = files.publish(path, content, id=metadata.id, durability=durability, calls=calls)
        except BaseException:
            lock.release()
            raise
        data.apply(initial, timestamp)
        writer = _Writer(path, descriptor, lock, durability=durability, calls=calls, cut_at=None)
        return cls(data, path=path, writer=writer, clock=clock, faults=faults)

    @classmethod
    async def open(
        cls,
        path: Path,
        *,
        clock: Clock,
        durability: Durability = "process",
        faults: FaultPoints | None = None,
        read_only: bool = False,
        calls: FileCalls | None = None,
    ) -> JsonlStorage:
        """An existing session. ``read_only`` takes no lock and never touches the file; a torn last line is dropped.

        Raises:
            SessionNotFound: there is nothing at the path.
            SessionLocked: another writer has it open.
            CorruptFile: the file cannot be read; names line and byte.
            UnsupportedStorageVersion: a newer program wrote it.
        """
        os.close(files.open_session(path, writable=False))  # before anything is created beside a path that is none
        if read_only:
            with os.fdopen(files.open_session(path, writable=False), "rb") as file:
                return cls(replay(path, file).data, path=path, writer=None, clock=clock, faults=faults)
        lock = FileLock.acquire(path)
        try:
            descriptor = files.open_session(path, writable=True)
        except BaseException:
            lock.release()
            raise
        try:
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                replayed = replay(path, file)
        except BaseException:
            os.close(descriptor)
            lock.release()
            raise
        calls = FileCalls() if calls is None else calls
        cut_at = replayed.length if replayed.torn else None
        writer = _Writer(path, descriptor, lock, durability=durability, calls=calls, cut_at=cut_at)
        return cls(replayed.data, path=path, writer=writer, clock=clock, faults=faults)

    @staticmethod
    async def read_metadata(path: Path) -> SessionMetadata:
        """The identity of a session from its first line, without a lock; raises what ``open`` raises."""
        with os.fdopen(files.open_session(path, writable=False), "rb") as file:
            return read_header(path, file)

    @staticmethod
    async def delete(path: Path) -> None:
        """Remove a session that nobody has open for writing.

        Raises:
            SessionNotFound: there is nothing at the path.
            SessionLocked: another writer has it open.
        """
        files.delete(path)

    def _write(self, encoded: bytes) -> None:
        assert self._writer is not None
        self._writer.append(encoded)

    def _release(self) -> None:
        if self._writer is not None:
            self._writer.close()


class _Writer:
    """The one descriptor that appends to a locked file."""

    def __init__(
        self,
        path: Path,
        descriptor: int,
        lock: FileLock,
        *,
        durability: Durability,
        calls: FileCalls,
        cut_at: int | None,
    ) -> None:
        self._path = path
        self._descriptor = descriptor
        self._lock = lock
        self._calls = calls
        self._fsync = durability == "power"
        self._cut_at = cut_at

    def append(self, line: bytes) -> None:
        """Write a whole line with one call, after cutting off what was torn.

        Raises:
            WriteUncertain: the disk took none, a part, or perhaps all of it.
        """
        try:
            if self._cut_at is not None:
                os.ftruncate(self._descriptor, self._cut_at)
                self._cut_at = None
            written = self._calls.write(self._descriptor, line)
            if written != len(line):
                raise self._uncertain(f"the disk took {written} of {len(line)} bytes")
            if self._fsync:
                self._calls.fsync(self._descriptor)
        except OSError as error:
            raise self._uncertain(error.strerror) from error

    def _uncertain(self, reason: str | None) -> WriteUncertain:
        return WriteUncertain(f"{self._path}: {reason}; reopen the session, which keeps whole commits only")

    def close(self) -> None:
        os.close(self._descriptor)
        self._lock.release()
