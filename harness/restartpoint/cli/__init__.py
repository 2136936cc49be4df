"""The command line: parse and render, nothing else. Subcommands come from the entry points `restartpoint.commands`."""

from __future__ import annotations

__all__ = ["main"]


def main() -> None:
    """Run the command that ``sys.argv`` names; ends the process with its exit code."""
    from restartpoint.cli.application import run  # late: the demo's child needs no parser

    run()
