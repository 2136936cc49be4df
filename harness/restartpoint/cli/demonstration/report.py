"""The demo's story as it is printed."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.text import Text

from restartpoint.cli.demonstration.checks import Check
from restartpoint.cli.demonstration.commits import CommitRecord
from restartpoint.cli.demonstration.phrases import phrases, write_names
from restartpoint.cli.demonstration.recovery import Step
from restartpoint.cli.demonstration.scene import Effect
from restartpoint.cli.inspection import Inspection
from restartpoint.cli.layout import print_rows
from restartpoint.cli.render import heading
from restartpoint.cli.safe_text import safe_text
from restartpoint.cli.words import entry_words

__all__ = ["print_checks", "print_commits", "print_effects", "print_steps", "print_transcript"]

_LONGEST = 600


def _cells(*texts: str) -> list[Text]:
    return [safe_text(text, longest=_LONGEST) for text in texts]


def print_steps(console: Console, pid: int, steps: Sequence[Step]) -> None:
    """Print what the recovering process called."""
    heading(console, f"Another process (pid {pid}) goes on")
    print_rows(console, [_cells(step.call, step.outcome) for step in steps])


def print_effects(console: Console, effects: Sequence[Effect]) -> None:
    """Print the log that the tools kept outside of the session."""
    heading(console, "What the tools did (their own log, outside of the session)")
    rows = [_cells(f"pid {effect.pid}", effect.tool, effect.call_id, effect.event) for effect in effects]
    print_rows(console, rows or [_cells("nothing")])


def print_transcript(console: Console, inspection: Inspection) -> None:
    """Print every entry in full."""
    heading(console, "Transcript")
    words = [entry_words(entry) for entry in inspection.entries]
    print_rows(console, [_cells(kind, text) for kind, text in words])


def print_commits(console: Console, commits: Sequence[CommitRecord]) -> None:
    """Print a table of every commit: who made it, what it means, what it writes."""
    heading(console, f"Every commit ({len(commits)})")
    rows = [[Text(text, style="dim") for text in ("#", "by", "what it means", "what it writes")]]
    told = phrases(commit.writes for commit in commits)
    for number, (commit, meaning) in enumerate(zip(commits, told, strict=True), 1):
        who = "child" if commit.process == 1 else "resumer"
        untold = "" if commit.told else " (nobody was told)"
        rows.append(_cells(str(number), who, f"{meaning}{untold}", write_names(commit.writes)))
    print_rows(console, rows)


def print_checks(console: Console, checks: Sequence[Check]) -> None:
    """Print each claim and whether it holds."""
    heading(console, "Checked")
    for check in checks:
        mark, style = ("ok", "green") if check.holds else ("FAILED", "red")
        objection = "" if check.objection is None else f": {check.objection}"
        console.print(Text(f"  {mark} ", style=style) + safe_text(f"{check.claim}{objection}"))
