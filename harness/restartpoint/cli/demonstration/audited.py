"""The session file at the end, held to the model by the command ``audit``, which an installed package may offer."""

from __future__ import annotations

from contextlib import chdir
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

from rich.console import Console

from restartpoint.cli.application import GROUP, build
from restartpoint.cli.render import heading
from restartpoint.cli.safe_text import safe_text

__all__ = ["AUDIT", "installed", "print_audit"]

AUDIT = "audit"
"""The name of the command."""


def installed() -> EntryPoints:
    """The command as it is installed; empty where it is not, or lacks what it needs."""
    found = entry_points(group=GROUP, name=AUDIT)
    try:
        for entry in found:
            entry.load()
    except ImportError:
        return EntryPoints()
    return found


def print_audit(console: Console, command: EntryPoints, folder: Path, session: Path) -> bool:
    """Print the audit of a session file below the folder, each commit with its transition; whether it is clean."""
    heading(console, "Audit of the session file")
    if not command:
        console.print(safe_text("  not installed; it comes with restartpoint[oracle]"))
        return True
    with chdir(folder):  # so that the demo says the same wherever it is played
        arguments = [AUDIT, "--commits", str(session.relative_to(folder))]
        console.print(safe_text(f"  restartpoint {' '.join(arguments)}"), soft_wrap=True)
        return not build(command)(arguments, standalone_mode=False)
