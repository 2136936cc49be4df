"""What the tests of the command line stand on: sessions on disk, and the program as a user calls it."""

import sys
from collections.abc import Sequence
from importlib.metadata import entry_points
from pathlib import Path

import typer
from typer.testing import CliRunner, Result

from restartpoint.cli.application import GROUP, build
from restartpoint.contract import (
    EntryDraft,
    InsertEntry,
    InsertUsage,
    MessagePayload,
    Transaction,
    UsageDraft,
    Write,
    user_message,
    zero_usage,
)
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels, Step, says
from restartpoint.repo import FileRepository, JsonlRepository, SqliteRepository
from restartpoint.runtime import AgentHarness, HarnessOptions
from restartpoint.session import Session, SessionMutator
from restartpoint.tools import tool

__all__ = [
    "ANSI",
    "HOSTILE",
    "PROGRAM",
    "application",
    "call",
    "commit",
    "open_repository",
    "play_prompt",
    "said",
    "settle",
]

ANSI = "\x1b[31mred\x1b[0m\x1b]0;title\x07"
PROGRAM = [sys.executable, "-c", "from restartpoint.cli import main; main()"]
"""The program in a process of its own."""
HOSTILE = f"{ANSI} [bold red]markup[/] \u202egnp.exe\u2066 \x9b2J :smile: \r\nover \U000e0041"


def application() -> typer.Typer:
    return build(entry_points(group=GROUP))


def call(*args: str, columns: int = 80) -> Result:
    """What ``restartpoint ARGS`` does in a pipe of that width."""
    return CliRunner().invoke(application(), args, env={"COLUMNS": str(columns)})


def open_repository(backend: str, root: Path) -> FileRepository:
    return SqliteRepository(root) if backend == "sqlite" else JsonlRepository(root)


async def play_prompt(session: Session, *texts: str, steps: Sequence[Step] | None = None) -> None:
    """Run prompts to their ends; by default each gets one answer that echoes nothing."""

    @tool
    def shout(text: str) -> str:
        """Give the text back."""
        return text

    script = steps if steps is not None else [says("Yes.") for _ in texts]
    models = ScriptedModels(list(script))
    async with AgentHarness.open(
        session, HarnessOptions(models=models, model=SCRIPTED_MODEL, tools=[shout])
    ) as harness:
        for text in texts:
            await harness.prompt(text)


async def commit(session: Session, *writes: Write) -> None:
    async def job(mutator: SessionMutator) -> None:
        await mutator.commit(Transaction(tuple(writes)))

    await session.mutate("main", job)


def said(id: str, parent: str | None, text: str) -> InsertEntry:
    return InsertEntry(EntryDraft(id=id, parent_id=parent, payload=MessagePayload(message=user_message(text, 1))))


def settle(id: str, tokens: int) -> InsertUsage:
    return InsertUsage(UsageDraft(id=id, adjustment=True, usage={**zero_usage(), "input": tokens}))
