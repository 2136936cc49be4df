"""Where a session lives in a test: created once, reopened any number of times, copied as a crash would leave it."""

import copy
import shutil
import sqlite3
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Self

from restartpoint.contract import NAMESPACES, EntryScan, SessionMetadata, UsageScan, encode_json
from restartpoint.seams import Clock, FaultPoints, IdGenerator
from restartpoint.session import first_transaction
from restartpoint.storage import JsonlStorage, LeaseSettings, MemoryStorage, SessionData, SqliteStorage, Storage
from restartpoint.storage.sqlite import Hop, InlineHop, default_hop
from restartpoint_oracle.wire import entry_json, json_text, register_json, usage_json

__all__ = ["BACKENDS", "METADATA", "JsonlPlace", "MemoryPlace", "Place", "SqlitePlace", "ThreadedSqlitePlace", "dump"]

METADATA = SessionMetadata(id="session-1", created_at=1_700_000_000_000, storage_version=1)


class Place(ABC):
    """One session of one backend, with nobody's process attached to it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._copies = 0

    @abstractmethod
    async def create(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        """The session, new."""

    @abstractmethod
    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        """The session as the previous owner left it."""

    @abstractmethod
    def copy(self) -> Self:
        """What a process would find that started now, while the present owner was stopped without a warning."""

    @abstractmethod
    def content(self) -> bytes:
        """Everything durable, byte by byte or row by row, that must be equal when two histories are equal."""

    def another(self) -> Self:
        """An empty place of the same backend."""
        return type(self)(self._new_folder())

    def _new_folder(self) -> Path:
        self._copies += 1
        folder = self._folder / f"copy-{self._copies}"
        folder.mkdir()
        return folder


class MemoryPlace(Place):
    data: SessionData

    async def create(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        storage = await MemoryStorage.create(METADATA, first_transaction(), clock=clock, faults=faults)
        self.data = storage.data
        return storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        return MemoryStorage.attach(self.data, clock=clock, faults=faults)

    def copy(self) -> Self:
        other = self.another()
        other.data = copy.deepcopy(self.data, {id(namespace): namespace for namespace in NAMESPACES.values()})
        return other

    def content(self) -> bytes:
        data = self.data
        rows = [entry_json(entry) for entry in data.scan_entries(EntryScan(order="asc"))]
        rows += [usage_json(row) for row in data.scan_usage(UsageScan(order="asc"))]
        rows += [register_json(one) for name in NAMESPACES.values() for one in data.list_registers(name)]
        return b"\n".join([encode_json(data.metadata), *map(json_text, rows), b"%d" % data.next_seq])


class JsonlPlace(Place):
    @property
    def path(self) -> Path:
        return self._folder / "session-1.jsonl"

    async def create(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        return await JsonlStorage.create(self.path, METADATA, first_transaction(), clock=clock, faults=faults)

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        return await JsonlStorage.open(self.path, clock=clock, faults=faults)

    def copy(self) -> Self:
        other = self.another()
        shutil.copyfile(self.path, other.path)
        return other

    def content(self) -> bytes:
        return self.path.read_bytes()


class SqlitePlace(Place):
    """The work of the connection is done in place, so that a run is the same every time."""

    hop: Callable[[], Hop] = InlineHop

    @property
    def path(self) -> Path:
        return self._folder / "session-1.sqlite"

    async def create(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        made = self._given(clock)
        return await SqliteStorage.create(
            self.path, METADATA, first_transaction(), clock=clock, faults=faults, lease=LEASE, hop=self.hop(), ids=made
        )

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        made = self._given(clock)
        return await SqliteStorage.open(self.path, clock=clock, faults=faults, lease=LEASE, hop=self.hop(), ids=made)

    def copy(self) -> Self:
        other = self.another()
        for suffix in ("", "-wal"):
            source = self.path.with_name(self.path.name + suffix)
            if source.exists():
                shutil.copyfile(source, other.path.with_name(source.name))
        return other

    def content(self) -> bytes:
        """Every row of every table but the lease, whose owner and fence tell how often the session was opened."""
        with closing(sqlite3.connect(self.path)) as connection:
            names = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
            tables = sorted(name for name in names if name != "writer_lease")
            rows = {name: sorted(map(repr, connection.execute(f"SELECT * FROM {name}"))) for name in tables}
        return repr(rows).encode()

    def _given(self, clock: Clock) -> IdGenerator:
        drawn = iter(range(10**6))
        return IdGenerator(clock, lambda size: next(drawn).to_bytes(size, "big"))


class ThreadedSqlitePlace(SqlitePlace):
    """As applications use it: the work of the connection is done on its thread."""

    hop = staticmethod(default_hop)


LEASE = LeaseSettings(background=False)

BACKENDS: dict[str, Callable[[Path], Place]] = {"memory": MemoryPlace, "jsonl": JsonlPlace, "sqlite": SqlitePlace}


async def dump(storage: Storage) -> bytes:
    """Every entry, ledger row and register of an open session as text: equal texts are equal sessions."""
    rows = [entry_json(entry) for entry in await storage.scan_entries(EntryScan(order="asc"))]
    rows += [usage_json(row) for row in await storage.scan_usage(UsageScan(order="asc"))]
    rows += [register_json(one) for name in NAMESPACES.values() for one in await storage.list_registers(name)]
    return b"\n".join(map(json_text, rows))
