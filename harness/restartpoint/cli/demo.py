"""``restartpoint demo``: a run is killed in the middle, reopened and resumed, and nothing happened twice."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated

import anyio
import typer
from msgspec.structs import replace

from restartpoint.cli.consoles import complain, out
from restartpoint.cli.demonstration.audited import installed, print_audit
from restartpoint.cli.demonstration.checks import checks
from restartpoint.cli.demonstration.kill import parse_kill_at
from restartpoint.cli.demonstration.process import ChildFailed, Ended, run_child
from restartpoint.cli.demonstration.recovery import all_commits, finish_the_run, look, session_path
from restartpoint.cli.demonstration.report import (
    print_checks,
    print_commits,
    print_effects,
    print_steps,
    print_transcript,
)
from restartpoint.cli.demonstration.scene import PROMPT, SESSION_ID, Backend, Stage
from restartpoint.cli.render import heading, print_inspection, print_ledger
from restartpoint.cli.safe_text import safe_text
from restartpoint.errors import RestartpointError

__all__ = ["register"]

INCOHERENT = 1
"""The exit code when a claim does not hold, the audit finds something, or the demo cannot be played."""


class _BackendName(StrEnum):
    JSONL = "jsonl"
    SQLITE = "sqlite"


def register(app: typer.Typer) -> None:
    """Add the command ``demo``."""

    @app.command("demo")
    def _demo(
        backend: Annotated[_BackendName, typer.Option(help="Where the session is kept.")] = _BackendName.JSONL,
        kill_at: Annotated[
            str,
            typer.Option(
                help="Where the child dies: tool, request, or a commit: N (right after it), N- (just before it is "
                "written), N+ (after it is written and before anyone is told).",
            ),
        ] = "tool",
        keep: Annotated[
            Path | None, typer.Option(help="Play in this folder, which is new or empty, and keep it.", metavar="DIR")
        ] = None,
    ) -> None:
        """Kill a run in the middle, reopen its session, resume it, and check that nothing happened twice."""
        try:
            parse_kill_at(kill_at)
        except ValueError as error:
            raise typer.BadParameter(str(error), param_hint="--kill-at") from None
        if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
            raise typer.BadParameter(f"{keep} is not an empty folder", param_hint="--keep")
        name: Backend = "jsonl" if backend is _BackendName.JSONL else "sqlite"
        try:
            with _folder(keep) as folder:
                coherent = _play(Stage(folder), name, kill_at)
        except (ChildFailed, RestartpointError, OSError) as error:
            complain(f"the demo failed: {error}")
            raise typer.Exit(INCOHERENT) from None
        if keep is not None:
            kept = keep / "sessions" / f"{SESSION_ID}.{name}"
            heading(out(), "Kept")
            out().print(safe_text(f"  Look inside: restartpoint inspect {kept}"), soft_wrap=True)
        if not coherent:
            raise typer.Exit(INCOHERENT)


@contextmanager
def _folder(keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        keep.mkdir(parents=True, exist_ok=True)
        yield keep.absolute()
    else:
        with TemporaryDirectory(prefix="restartpoint-demo-") as folder:
            yield Path(folder)


def _play(stage: Stage, backend: Backend, kill_at: str) -> bool:
    """Tell the whole story; whether every claim holds at its end."""
    console = out()
    ended = run_child(stage, backend, kill_at)
    heading(console, f"A child process (pid {ended.pid}) ran a prompt")
    console.print(f'  "{PROMPT}"')
    console.print(f"  {_fate(ended, kill_at)}")
    found = anyio.run(look, stage, backend)
    heading(console, "What it left on disk")
    if found is None:
        console.print("  nothing: the session was not created yet")
    else:
        print_inspection(console, replace(found, path=str(Path(found.path).relative_to(stage.folder))))
    print_steps(console, os.getpid(), anyio.run(finish_the_run, stage, backend))
    final, effects = anyio.run(look, stage, backend), stage.effects()
    if final is None:
        raise ChildFailed("the session is gone")
    print_effects(console, effects)
    print_transcript(console, final)
    heading(console, "Ledger")
    print_ledger(console, final)
    print_commits(console, all_commits(stage, backend, found))
    claims = checks(final, effects)
    print_checks(console, claims)
    clean = print_audit(console, installed(), stage.folder, session_path(stage, backend))
    return clean and all(claim.holds for claim in claims)


def _fate(ended: Ended, kill_at: str) -> str:
    place = parse_kill_at(kill_at)
    if ended.killed:
        return f"It was killed with SIGKILL {place}."
    return f"It was to be killed {place}, but the run ended before that."
