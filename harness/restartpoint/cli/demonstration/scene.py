"""What the demo is about: a folder, a model that follows a script, an unsafe and a safe tool, and the log of effects.

The child that is killed and the process that resumes build the same scene; only the clock, the chance and what happens
in the middle of the unsafe tool differ. Clock and chance are counted, so that the demo says the same every time.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract import AgentTool, ToolContext
from restartpoint.providers import SCRIPTED_MODEL, Script, ScriptedCall, ScriptedModels, ScriptedResponse, says
from restartpoint.repo import FileRepository, JsonlRepository, SqliteRepository
from restartpoint.runtime import HarnessOptions
from restartpoint.seams import FaultPoints, IdGenerator, InlineWork
from restartpoint.storage import LeaseSettings
from restartpoint.tools import tool

__all__ = [
    "ASKING", "GO_ON", "PROMPT", "SESSION_ID", "Backend", "Effect", "Stage", "options", "repository", "scripted_models",
]  # fmt: skip

Backend: TypeAlias = Literal["jsonl", "sqlite"]

SESSION_ID = "demo"
PROMPT = "Write my two notes, then read them back to me."
GO_ON = "Please go on."
ASKING = "asking"
"""The name of the model's first answer, the one that asks for both tools."""

NOTES = ["Buy oat milk.", "Call the plumber."]

_EPOCH_MS = 1_767_225_600_000  # 2026-01-01 00:00:00 UTC
_MINUTE_MS = 60_000
_LEASE = LeaseSettings(background=False)  # a run is over long before the 30 seconds of a claim, and commits extend it


class Effect(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """A line of the log: which process did what, for which tool call."""

    pid: int
    tool: str
    call_id: str
    event: Literal["started", "finished"]


class Stage(msgspec.Struct, frozen=True):
    """The demo's folder and what is where in it."""

    folder: Path

    @property
    def sessions(self) -> Path:
        """The folder of the repository."""
        return self.folder / "sessions"

    @property
    def scratch(self) -> Path:
        """Where the unsafe tool writes."""
        return self.folder / "scratch"

    @property
    def log(self) -> Path:
        """The log of effects, outside the session."""
        return self.folder / "effects.log"

    @property
    def commits(self) -> Path:
        """Every commit that a process was told of, for backends that keep no history."""
        return self.folder / "commits.ndjson"

    def note(self, effect: Effect) -> None:
        """Append to the log, and return once the disk has it."""
        with self.log.open("ab") as file:
            file.write(msgspec.json.encode(effect) + b"\n")
            file.flush()
            os.fsync(file.fileno())

    def effects(self) -> list[Effect]:
        """The log; a torn last line is left out."""
        if not self.log.exists():
            return []
        lines = self.log.read_bytes().split(b"\n")[:-1]
        return [msgspec.json.decode(line, type=Effect) for line in lines]


class CountedClock:
    """A clock that moves on by a millisecond with each look at it, starting ``process`` minutes into 2026.

    So the second process opens a session whose writer lease has expired since the first one died.
    """

    def __init__(self, process: int) -> None:
        self._now = _EPOCH_MS + process * _MINUTE_MS

    def now_ms(self) -> int:
        """Unix milliseconds."""
        self._now += 1
        return self._now


def counted_ids(process: int, clock: CountedClock) -> IdGenerator:
    """Ids that end in the number of the process and a count."""
    count = process << 20

    def chance(size: int) -> bytes:
        nonlocal count
        count += 1
        return count.to_bytes(size, "big")

    return IdGenerator(clock, chance)


def repository(stage: Stage, backend: Backend, *, process: int, faults: FaultPoints | None = None) -> FileRepository:
    """The repository in the demo's folder, as process number ``process`` (from 1) opens it."""
    clock = CountedClock(process)
    ids = counted_ids(process, clock)
    if backend == "sqlite":
        return SqliteRepository(stage.sessions, lease=_LEASE, clock=clock, ids=ids, faults=faults)
    return JsonlRepository(stage.sessions, clock=clock, ids=ids, faults=faults)


def scripted_models(process: int, *, stalls: bool = False) -> ScriptedModels:
    """The model: it asks for both tools, then says that it is done. ``stalls``: its first answer never ends."""
    asking = ScriptedResponse(
        name=ASKING,
        text="I will write the notes and read them back.",
        calls=[
            ScriptedCall(name="write_notes", arguments={"texts": [*NOTES]}, id="call_write"),
            ScriptedCall(name="read_notes", arguments={}, id="call_read"),
        ],
        stall="stream" if stalls else None,
    )
    closing = says("That is what became of your notes.", name="closing")
    return ScriptedModels(Script(steps=[asking, closing]), clock=CountedClock(process))


def _tools(stage: Stage, stand: Callable[[], None]) -> list[AgentTool]:
    """The unsafe tool, which calls ``stand`` between its two files, and the safe one."""

    @tool(replay="never", execution_mode="sequential")
    def write_notes(texts: list[str], context: ToolContext) -> str:
        """Write each text into a new file."""
        effect = Effect(pid=os.getpid(), tool="write_notes", call_id=context.tool_call_id, event="started")
        stage.note(effect)
        stage.scratch.mkdir(exist_ok=True)
        for number, text in enumerate(texts, 1):
            if number > 1:
                stand()
            (stage.scratch / f"note-{number}.txt").write_text(text, encoding="utf-8")
        stage.note(msgspec.structs.replace(effect, event="finished"))
        return f"Wrote {len(texts)} notes."

    @tool(replay="safe")
    def read_notes(context: ToolContext) -> str:
        """Read every note that is there."""
        stage.note(Effect(pid=os.getpid(), tool="read_notes", call_id=context.tool_call_id, event="started"))
        found = sorted(stage.scratch.glob("note-*.txt")) if stage.scratch.exists() else []
        return " ".join(f"{path.name}: {path.read_text(encoding='utf-8')}" for path in found) or "There are no notes."

    return [write_notes, read_notes]


def options(stage: Stage, models: ScriptedModels, *, stand: Callable[[], None] = lambda: None) -> HarnessOptions:
    """What the demo opens its harness with."""
    return HarnessOptions(models=models, model=SCRIPTED_MODEL, tools=_tools(stage, stand), blocking=InlineWork())
