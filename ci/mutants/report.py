"""The result of a run as a table and lists for people, and as JSON."""

from collections.abc import Sequence

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from ci.mutants.project import Project
from ci.mutants.survivors import Count, Key, count, key
from ci.mutants.trial import Outcome
from ci.mutants.workers import Tried


def show(console: Console, project: Project, tried: Sequence[Tried], listed: dict[Key, str]) -> None:
    """Prints the table per module and every survivor with its reason."""
    table = Table("module", "mutants", "killed", "by time", "survived", "unborn", "%")
    for module in project.modules:
        mine = [one for one in tried if one.mutant.module == module]
        if mine:
            table.add_row(module.partition(".")[2], *_cells(count(mine)))
    table.add_section()
    table.add_row("all", *_cells(count(tried)))
    for one in tried:
        if one.outcome in (Outcome.SURVIVED, Outcome.TIMED_OUT):
            mutant = one.mutant
            word = "survives" if one.outcome is Outcome.SURVIVED else "hangs"
            path = project.path(mutant.module).relative_to(project.root)
            console.print(f"[bold]{path}:{mutant.line}[/] {mutant.owner} {word} {mutant.operator}", highlight=False)
            console.print(f"  - {escape(mutant.before)}\n  + {escape(mutant.after)}", highlight=False)
            if reason := listed.get(key(mutant)):
                console.print(f"  {escape(reason)}", highlight=False)
    console.print(table)


def _cells(found: Count) -> list[str]:
    mutants = found.killed + found.timed_out + found.survived
    numbers = (mutants, found.killed, found.timed_out, found.survived, found.unborn)
    return [*map(str, numbers), f"{100 * found.share:.1f}"]


def to_json(tried: Sequence[Tried], listed: dict[Key, str], complaints: Sequence[str]) -> dict[str, object]:
    """The counts, and every mutant with its outcome; survivors have their reason."""
    total = count(tried)
    return {
        "killed": total.killed,
        "timedOut": total.timed_out,
        "survived": total.survived,
        "unborn": total.unborn,
        "percent": round(100 * total.share, 2),
        "complaints": list(complaints),
        "mutants": [
            {
                **one.mutant.to_json(),
                "outcome": one.outcome.name.lower(),
                "seconds": one.seconds,
                "reason": listed.get(key(one.mutant)),
            }
            for one in tried
        ],
    }
