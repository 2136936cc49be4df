"""``restartpoint inspect PATH``: what a session file holds, or in one line why it cannot be read."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import anyio
import typer

from restartpoint.cli.consoles import complain, out
from restartpoint.cli.inspection import Inspection, document, inspect_session
from restartpoint.cli.opening import open_file
from restartpoint.cli.render import print_inspection
from restartpoint.errors import RestartpointError

__all__ = ["register"]

DAMAGED = 2
"""The exit code when there is no session at the path, or not a sound one."""


def register(app: typer.Typer) -> None:
    """Add the command ``inspect``."""

    @app.command("inspect")
    def _inspect(
        path: Annotated[Path, typer.Argument(help="A session file, JSONL or SQLite.", show_default=False)],
        json: Annotated[bool, typer.Option("--json", help="Print one JSON document for programs.")] = False,
        everything: Annotated[bool, typer.Option("--all", help="Fold no long lists.")] = False,
    ) -> None:
        """Print tree, lanes, registers, open operation and ledger of a session file, without changing it."""
        try:
            inspection = anyio.run(_read, path)
        except RestartpointError as error:
            complain(str(error))
            raise typer.Exit(DAMAGED) from None
        if json:
            sys.stdout.write(f"{document(inspection)}\n")
        else:
            print_inspection(out(), inspection, everything=everything)
        for problem in inspection.problems:
            complain(f"{path}: {problem}")
        if inspection.problems:
            raise typer.Exit(DAMAGED)


async def _read(path: Path) -> Inspection:
    async with open_file(path) as file:
        return await inspect_session(file)
