"""Mutation testing of the model. Usage: ``python -m ci.mutants [--module NAME]... [--all] [--json FILE] [--list]``.

Fails when a mutant survives without a reason in survivors.toml, when one that is listed there does not survive, and
when fewer than 95 % are killed.
"""

import argparse
import json
import sys
from pathlib import Path

from rich.console import Console
from rich.progress import MofNCompleteColumn, Progress, TimeElapsedColumn

from ci.mutants.baseline import known_tests
from ci.mutants.mutant import Mutant, mutants
from ci.mutants.operators import operators
from ci.mutants.project import ROOT, Project, model
from ci.mutants.report import show, to_json
from ci.mutants.survivors import complaints, reasons
from ci.mutants.workers import Tried, try_all

__all__ = ["main"]

BUILD = ROOT / "build" / "mutants"


def main() -> int:
    """Make the mutants, try them, print the report."""
    parser = argparse.ArgumentParser(prog="python -m ci.mutants", description=__doc__)
    parser.add_argument("--module", action="append", help="the end of a module's name; may be repeated")
    parser.add_argument("--all", action="store_true", help="every replacement of an operator, not one or two per place")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the result there as well")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--list", action="store_true", help="only list the mutants")
    chosen = parser.parse_args()
    project, console = model(), Console()
    names = [name for name in project.modules if not chosen.module or name.endswith(tuple(chosen.module))]
    made = [one for name in names for one in mutants(project, name, operators(every=chosen.all))]
    if chosen.list:
        for one in made:
            print(f"{one.module}:{one.line} {one.operator}: {one.before} -> {one.after}")
        return 0
    tried = _tried(project, made, chosen.workers, console)
    listed = reasons()
    found = complaints(tried, listed)
    show(console, project, tried, listed)
    for line in found:
        console.print(line, style="red", markup=False, highlight=False)
    if chosen.json is not None:
        chosen.json.write_text(json.dumps(to_json(tried, listed, found), indent=1), encoding="utf-8")
    return 1 if found else 0


def _tried(project: Project, made: list[Mutant], workers: int, console: Console) -> list[Tried]:
    known = known_tests(project, BUILD)
    columns = (*Progress.get_default_columns(), MofNCompleteColumn(), TimeElapsedColumn())
    # No thread refreshes it: workers are forked while it is shown.
    with Progress(
        *columns, console=console, auto_refresh=False, redirect_stdout=False, redirect_stderr=False
    ) as progress:
        task = progress.add_task("mutants", total=len(made))
        return try_all(project, known, made, workers, lambda _: progress.update(task, advance=1, refresh=True))


if __name__ == "__main__":
    sys.exit(main())
