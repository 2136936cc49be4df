"""What the tests of the SQLite backend stand on: one session file, raw looks into it, and traced connections."""

import sqlite3
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

from restartpoint.contract import Transaction
from restartpoint.storage.sqlite import Hop, LeaseSettings, SqliteStorage
from tests.harness.storage.stage import INITIAL, METADATA, HeldClock, StopAt

__all__ = ["BY_HAND", "Connections", "child", "created", "opened", "raw", "rows", "run_child"]

_ROOT = Path(__file__).parents[4]

BY_HAND = LeaseSettings(background=False)


class Connections:
    def __init__(self) -> None:
        self.made: list[sqlite3.Connection] = []
        self.statements: list[str] = []

    def add(self, database: str, connection: sqlite3.Connection) -> sqlite3.Connection:
        if database != ":memory:":
            self.made.append(connection)
            connection.set_trace_callback(self.statements.append)
        return connection

    @property
    def last(self) -> sqlite3.Connection:
        return self.made[-1]

    def take(self) -> list[str]:
        """The statements since the last call."""
        taken = list(self.statements)
        self.statements.clear()
        return taken


@asynccontextmanager
async def created(
    path: Path,
    clock: HeldClock,
    *,
    initial: Transaction = INITIAL,
    lease: LeaseSettings = BY_HAND,
    hop: Hop | None = None,
    faults: StopAt | None = None,
) -> AsyncIterator[SqliteStorage]:
    storage = await SqliteStorage.create(path, METADATA, initial, clock=clock, lease=lease, hop=hop, faults=faults)
    try:
        yield storage
    finally:
        await storage.close()


@asynccontextmanager
async def opened(
    path: Path,
    clock: HeldClock,
    *,
    lease: LeaseSettings = BY_HAND,
    hop: Hop | None = None,
    read_only: bool = False,
) -> AsyncIterator[SqliteStorage]:
    storage = await SqliteStorage.open(path, clock=clock, lease=lease, hop=hop, read_only=read_only)
    try:
        yield storage
    finally:
        await storage.close()


@contextmanager
def raw(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection of somebody else."""
    connection = sqlite3.connect(path, isolation_level=None, timeout=0)
    try:
        yield connection
    finally:
        connection.close()


def rows(path: Path, sql: str, *arguments: Any) -> list[Any]:
    with raw(path) as connection:
        return connection.execute(sql, arguments).fetchall()


def child(code: str, *arguments: object) -> subprocess.Popen[str]:
    """Another process that runs the code and whose output can be read."""
    command = [sys.executable, "-c", code, *map(str, arguments)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=_ROOT)


def run_child(code: str, *arguments: object) -> tuple[int, str]:
    """The exit code and the output of another process that ran the code."""
    with child(code, *arguments) as process:
        output, _ = process.communicate(timeout=60)
        return process.returncode, output
