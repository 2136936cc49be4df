"""Where the commands write: plain to pipes and files, coloured to terminals; never as markup."""

from __future__ import annotations

import sys

from rich.console import Console

from restartpoint.cli.safe_text import safe_text

__all__ = ["complain", "out"]


def out() -> Console:
    """A console for stdout that takes text for text: no markup, no emoji codes, no guessed highlights."""
    return Console(file=sys.stdout, markup=False, emoji=False, highlight=False)


def complain(reason: str) -> None:
    """Write one line to stderr."""
    sys.stderr.write(f"restartpoint: {safe_text(reason).plain}\n")
