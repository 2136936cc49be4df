"""What a process of a sweep runs on: it ends right after a chosen commit, before anyone is told, and then does nothing.

A commit is judged before it counts. Effects tell the chronicle that they start, and start no more once the process is
dead: tasks that nobody has cancelled yet would otherwise reach the outside world.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple

import anyio

from restartpoint.contract import (
    OP_META,
    AgentMessage,
    AgentTool,
    CommitResult,
    InsertEntry,
    InsertUsage,
    JsonObject,
    Model,
    ModelRequest,
    Models,
    RegisterSet,
    RequestCallbacks,
    ToolContext,
    ToolResult,
    Transaction,
)
from restartpoint.errors import StorageClosed
from restartpoint.seams import Signal
from restartpoint_oracle.crash.chronicle import Chronicle, Committed, Requested, ToolStarted
from restartpoint_oracle.effects import EffectLog
from restartpoint_oracle.judge import Judge, Judged
from restartpoint_oracle.judged import JudgedStorage
from restartpoint_oracle.logged import LoggedModels, LoggedTool
from restartpoint_reference import State

__all__ = ["MortalModels", "MortalStorage", "MortalTool", "Process", "Stop"]


class Stop(NamedTuple):
    """Where a process dies: right after its commit of that number was written, or ``before`` it is; 0 is the creation.

    Between the two lies what the process did with the commit before: effects that started, and may have taken place.
    """

    commit: int
    before: bool = False

    def __str__(self) -> str:
        return f"{self.commit}{'-' if self.before else ''}"


class Process:
    """Whether one process lives, and everything that it tells. ``states`` gets the model's state after each commit.

    It dies at its ``stop``, or never. ``kill`` ends it: a real process kills itself, another one cancels its tasks.
    """

    def __init__(
        self, chronicle: Chronicle, *, states: list[State], stop: Stop | None, kill: Callable[[], object]
    ) -> None:
        self.chronicle = chronicle
        self.states = states
        self.effects = EffectLog()
        self.dead = False
        self._stop = stop
        self._commits = 0
        self._kill = kill

    def follow(self, judge: Judge) -> None:
        """Tell the log of effects of this process's commits; commits count from now on."""
        self.effects.follow(judge)

    def committing(self) -> None:
        """A commit is about to be written; the process may die before that."""
        self._at(Stop(self._commits + 1, before=True))

    def committed(self, tx: Transaction, judged: Judged, state: State) -> None:
        """A commit is durable; the process may die of it."""
        self.states.append(state)
        self.chronicle.note(_event_of(tx, judged))
        self._commits += 1
        self._at(Stop(self._commits))

    def created(self) -> None:
        """The session was created; the process may die of it."""
        self._at(Stop(0))

    def _at(self, place: Stop) -> None:
        if self._stop == place:
            self.dead = True
            self._kill()


def _event_of(tx: Transaction, judged: Judged) -> Committed:
    return Committed(
        transition=judged.name,
        detail=judged.detail,
        entries=tuple(write.entry.id for write in tx.writes if isinstance(write, InsertEntry)),
        usage=tuple(write.row.id for write in tx.writes if isinstance(write, InsertUsage)),
        operations=tuple(
            write.key for write in tx.writes if isinstance(write, RegisterSet) and write.namespace is OP_META
        ),
    )


class MortalStorage(JudgedStorage):
    """A judged storage of a process. When the process is dead, nothing is written, told, closed or flushed any more."""

    process: Process

    async def commit(self, tx: Transaction) -> CommitResult:
        """The result of a judged commit, unless the process dies at it."""
        self._assert_alive()
        self.process.committing()
        self._assert_alive()
        result = await super().commit(tx)
        self.process.committed(tx, self.judge.history[-1], self.judge.state)
        self._assert_alive()
        return result

    def _assert_alive(self) -> None:
        if self.process.dead:
            raise StorageClosed

    async def close(self) -> None:
        """Compare and close, unless the process is dead."""
        if not self.process.dead:
            await super().close()


class MortalModels(LoggedModels):
    """Models that tell the chronicle of each request of a living process."""

    def __init__(self, inner: Models, process: Process) -> None:
        super().__init__(inner, process.effects)
        self._process = process

    async def request(
        self, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        if self._process.dead:
            await anyio.sleep_forever()
        self._process.chronicle.note(Requested())
        return await super().request(model, request, callbacks, signal)


class MortalTool(LoggedTool):
    """A tool that tells the chronicle of each call in a living process."""

    def __init__(self, inner: AgentTool, process: Process) -> None:
        super().__init__(inner, process.effects)
        self._process = process

    def execute(self, arguments: JsonObject, context: ToolContext) -> Awaitable[ToolResult]:
        if self._process.dead:
            return _never()
        self._process.chronicle.note(ToolStarted(tool=self.name, call=context.tool_call_id))
        return super().execute(arguments, context)


async def _never() -> ToolResult:
    await anyio.sleep_forever()
    raise AssertionError("unreachable")
