"""Writes docs/reference/transitions.md: the table of the model's transitions, from its registry.

`python -m ci.transitions` writes the page, `python -m ci.transitions --check` fails when it is stale.
"""

import sys
from dataclasses import fields
from pathlib import Path
from typing import Any

from restartpoint_reference import ALIKE, NO_COMMIT, TRANSITIONS, Transition
from restartpoint_reference.transitions.frame import ANY, LANE, OPEN, RUN

__all__ = ["PAGE", "main", "text"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "transitions.md"

HEAD = """# The transitions of the model

Generated from the registry of `restartpoint_reference` by `python -m ci.transitions`; a test fails when it is stale.
Every commit of a session is one of these. *Public* ones are made by a call from outside at any time, the others are
steps of an operation's procedure. *Inputs* are all that is chosen outside; everything else in the commit follows from
the state. [How to read the model](../guide/model.md) explains the rest.
"""


def text() -> str:
    """The whole page."""
    rows = [
        "| # | Name | Section | From | Guards | Inputs | What it does |",
        "|---|---|---|---|---|---|---|",
        *(_row(found) for found in TRANSITIONS.values()),
    ]
    quiet = [f"- **{key}**: {reason}." for key, reason in NO_COMMIT.items()]
    alike = [f"- {' and '.join(f'`{name}`' for name in sorted(pair))}: {reason}." for pair, reason in ALIKE.items()]
    parts = [HEAD, *rows, "", "## Rows of the table without a commit", "", *quiet]
    if alike:
        parts += ["", "## Transitions that can make the same writes", "", *alike]
    return "\n".join(parts) + "\n"


def _row(found: Transition) -> str:
    cells = (
        found.id,
        f"`{found.name}`" + (" (public)" if found.public else ""),
        f"§{found.section}",
        _phases(found.phases),
        ", ".join(guard.replace("_", " ") for guard in found.guards),
        ", ".join(f"`{name}`" for name in _inputs(found)),
        found.summary.replace("``", "`").replace("|", "\\|"),
    )
    return "| " + " | ".join(cells) + " |"


def _inputs(found: Transition) -> list[str]:
    declared: Any = found.inputs  # every concrete one is a dataclass; their common base is not
    return [field.name for field in fields(declared)]


def _phases(phases: tuple[str, ...]) -> str:
    """The from-phases, shortened where they are a whole group."""
    groups = {ANY: "any", LANE: "any lane", OPEN: "any open operation", RUN: "any phase of a run"}
    return groups.get(phases, ", ".join(phases))


def main(arguments: list[str]) -> int:
    """Write or check the page; 1 when `--check` found it stale."""
    made = text()
    if "--check" in arguments:
        stale = not PAGE.exists() or PAGE.read_text(encoding="utf-8") != made
        if stale:
            print(f"stale: {PAGE}; run `python -m ci.transitions`")
        return int(stale)
    PAGE.write_text(made, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
