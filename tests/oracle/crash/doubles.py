"""Places that lose or change what was committed, and a scenario with a memory of its own."""

import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from restartpoint.contract import SessionMetadata, Transaction
from restartpoint.providers import ScriptedCall, ScriptedModels, asks, says
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import FileCalls, JsonlStorage, Storage
from restartpoint.tools import tool
from restartpoint_oracle.crash import Scenario, prompts
from restartpoint_oracle.places import JsonlPlace, MemoryPlace

__all__ = ["LaggingPlace", "LosingPlace", "TamperingPlace", "new_folders", "remembering"]


class LosingPlace(JsonlPlace):
    """A crash takes the last commit with it."""

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        await super().crash(clock=clock, faults=faults, torn=torn)
        assert self._storage is not None
        await self._storage.close()
        lines = self.path.read_bytes().splitlines(keepends=True)
        self.path.write_bytes(b"".join(lines[:-1] if len(lines) > 2 else lines))
        return await self.reopen(clock=clock, faults=faults)


class TamperingPlace(MemoryPlace):
    """Whoever opens the session after a crash finds it changed."""

    def __init__(self, tamper: Callable[[Storage], Awaitable[object]]) -> None:
        super().__init__()
        self._tamper = tamper

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        storage = await super().crash(clock=clock, faults=faults, torn=torn)
        await self._tamper(storage)
        return storage


class LaggingPlace(JsonlPlace):
    """Says that a commit is durable while its line still waits for the next one, or for the orderly end."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self._waiting: list[bytes] = []

    async def create(
        self, metadata: SessionMetadata, initial: Transaction, *, clock: Clock, faults: FaultPoints
    ) -> Storage:
        self._storage = await JsonlStorage.create(
            self.path, metadata, initial, clock=clock, faults=faults, calls=FileCalls(write=self._write)
        )
        return self._storage

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        with self.path.open("ab") as file:
            file.writelines(self._waiting)
        return await super().reopen(clock=clock, faults=faults)

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        self._waiting.clear()
        return await super().crash(clock=clock, faults=faults, torn=torn)

    def _write(self, descriptor: int, line: bytes) -> int:
        if line.startswith(b'{"v"'):
            return os.write(descriptor, line)
        for waiting in self._waiting:
            os.write(descriptor, waiting)
        self._waiting[:] = [line]
        return len(line)


def remembering() -> Scenario:
    """A tool that tells how often it ran: its answer does not follow from what was asked alone."""
    ran: list[str] = []

    @tool(name="count", replay="safe")
    def count(path: str) -> str:
        """Counts."""
        ran.append(path)
        return f"ran {len(ran)} times"

    return Scenario(
        name="remembering",
        script=[prompts("go")],
        models=lambda: ScriptedModels(
            [asks(ScriptedCall(name="count", arguments={"path": "a"}, id="c1")), says("done")]
        ),
        tools=lambda: (count,),
    )


def new_folders(folder: Path) -> Callable[[], Path]:
    """Makes another folder inside of that one each time."""
    made: list[Path] = []

    def make() -> Path:
        made.append(folder / f"run-{len(made)}")
        made[-1].mkdir()
        return made[-1]

    return make
