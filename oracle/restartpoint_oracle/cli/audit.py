"""``restartpoint audit PATH...``: files held to the model, commit by commit; 0 clean, 1 violations, 2 unreadable."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console
from rich.progress import BarColumn, DownloadColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

from restartpoint.cli.consoles import complain, out
from restartpoint.cli.safe_text import safe_text
from restartpoint_oracle.audit import Report, Told, audit
from restartpoint_oracle.audit.document import document
from restartpoint_oracle.cli.audit_report import print_report

__all__ = ["register"]

_LONG = 1 << 20
"""Bytes of a file from which on its progress is shown."""


def register(app: typer.Typer) -> None:
    """Add the command ``audit``."""

    @app.command("audit")
    def _audit(
        paths: Annotated[
            list[Path],
            typer.Argument(metavar="PATH...", help="Sessions (JSONL, SQLite) or traces.", show_default=False),
        ],
        json: Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")] = False,
        commits: Annotated[bool, typer.Option("--commits", help="List every commit with its transition.")] = False,
        admit_finalization: Annotated[
            bool, typer.Option("--admit-finalization", help="Operations may have been ended from outside.")
        ] = False,
        everything: Annotated[bool, typer.Option("--all", help="Fold no long lists of findings.")] = False,
    ) -> None:
        """Hold every commit of session files and traces to the model, without changing anything."""
        reports: list[Report] = []
        for path in paths:
            with _progress(path) as told:
                report = audit(path, keep_commits=commits, finalizations_admitted=admit_finalization, told=told)
            reports.append(report)
            if not json:
                print_report(out(), report, everything=everything)
            if report.unreadable is not None:
                complain(f"{path}: {report.unreadable}")
        if json:
            sys.stdout.write(f"{document(reports, commits=commits)}\n")
        code = max(report.exit_code for report in reports)
        if code:
            raise typer.Exit(code)


@contextmanager
def _progress(path: Path) -> Iterator[Told]:
    """A bar on a terminal; nothing elsewhere, and nothing for what is done before anyone could read it."""
    console = Console(file=sys.stderr, markup=False, emoji=False, highlight=False)
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TaskProgressColumn(),
        DownloadColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(safe_text(path.name, longest=40).plain, total=None, visible=False)

        def told(done: int, total: int) -> None:
            progress.update(task, completed=done, total=total, visible=total >= _LONG)

        yield told
