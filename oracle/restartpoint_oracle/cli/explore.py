"""``restartpoint explore``: every state of the model within bounds, slice by slice, and what does not hold in one."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from typing import Annotated

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from restartpoint.cli.consoles import complain, out
from restartpoint_oracle.exploration import BadBounds, bounded, explore, never_taken
from restartpoint_reference.explore import SLICES, Report, Slice

__all__ = ["register"]

NAMES = ", ".join(part.name for part in SLICES)


def register(app: typer.Typer) -> None:
    """Add the command ``explore``."""

    @app.command("explore")
    def _explore(
        names: Annotated[
            list[str] | None, typer.Option("--slice", help=f"Explore this slice only; may be repeated. One of {NAMES}.")
        ] = None,
        bounds: Annotated[
            str, typer.Option(help="`quick`, `full`, or limits such as `turns=3,crash=2` on top of `quick`.")
        ] = "quick",
        jobs: Annotated[int, typer.Option(min=1, help="How many slices at once.")] = 2,
        as_json: Annotated[bool, typer.Option("--json", help="Print one JSON line per slice.")] = False,
    ) -> None:
        """Visit every state that the model can reach within bounds; each commit is explained back."""
        try:
            chosen = [bounded(part, bounds) for part in _chosen(names)]
        except BadBounds as error:
            complain(str(error))
            raise typer.Exit(2) from None
        reports = _with_progress(chosen, jobs)
        missing = () if names else never_taken(reports)
        if as_json:
            for report in reports:
                sys.stdout.write(f"{json.dumps(asdict(report))}\n")
        else:
            _print(chosen, reports)
        for report in reports:
            if report.counterexample is not None:
                complain(f"{report.slice}: {report.counterexample}")
        if missing:
            complain(f"no slice took {', '.join(missing)}")
        if missing or any(report.counterexample for report in reports):
            raise typer.Exit(1)


def _chosen(names: list[str] | None) -> list[Slice]:
    known = {part.name: part for part in SLICES}
    for name in names or ():
        if name not in known:
            raise BadBounds(f"no slice {name}; there are {NAMES}")
    return [known[name] for name in names] if names else list(SLICES)


def _with_progress(chosen: list[Slice], jobs: int) -> list[Report]:
    """The last report of every slice, in the order of the slices."""
    columns = (SpinnerColumn(), TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[found]}"))
    found: dict[str, Report] = {}
    with Progress(*columns, TimeElapsedColumn(), disable=not sys.stderr.isatty(), transient=True) as progress:
        rows = {part.name: progress.add_task(part.name, total=None, found="waiting") for part in chosen}
        for report, ended in explore(chosen, jobs):
            found[report.slice] = report
            text = f"{report.states:,} states, {report.commits:,} commits, depth {report.depth}"
            progress.update(rows[report.slice], found=text, total=1 if ended else None, completed=int(ended))
    return [found[part.name] for part in chosen]


def _print(chosen: list[Slice], reports: list[Report]) -> None:
    table = Table("slice", "bounds", box=None, pad_edge=False)
    for title in ("states", "commits", "depth", "transitions"):
        table.add_column(title, justify="right")
    for part, report in zip(chosen, reports, strict=True):
        limits = " ".join(f"{name}={limit}" for name, limit in part.bounds.items())
        counts = (report.states, report.commits, report.depth, len(report.taken))
        table.add_row(report.slice, limits, *(f"{count:,}" for count in counts))
    out().print(table)
    total = sum(report.states for report in reports)
    every = {name for report in reports for name in report.taken}
    out().print(f"{total:,} states; together the slices take {len(every - {'crash'})} transitions")
