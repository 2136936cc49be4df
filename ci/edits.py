"""How many edits of session files the audit sees. Usage: ``python -m ci.edits``; it takes some minutes.

Prints a line per kind of edit and one per reason why an edit cannot be seen, and fails when one was missed without any.
"""

from __future__ import annotations

import sys
from collections import Counter

from tests.oracle.audit.counting import every_outcome
from tests.oracle.audit.edits import EditKind
from tests.oracle.audit.histories import recorded
from tests.oracle.audit.listed import reason_for

__all__ = ["main"]


def main() -> int:
    """Count, and print the table."""
    made, caught, listed, missed = Counter[EditKind](), Counter[EditKind](), Counter[str](), Counter[str]()
    for outcome in every_outcome():
        kind = outcome.edit.kind
        made[kind] += 1
        if outcome.finding is not None:
            caught[kind] += 1
        elif (reason := reason_for(outcome)) is not None:
            listed[f"{kind}: {reason}"] += 1
        else:
            missed[f"{kind}: {outcome.names} {outcome.edit.place} in {outcome.history}"] += 1
    commits = sum(len(history.commits) for history in recorded())
    print(f"{len(recorded())} sessions, {commits} commits: {made.total()} edits")
    print(f"  {caught.total()} caught, {listed.total()} cannot be seen, {missed.total()} missed")
    for kind in EditKind:
        print(f"{made[kind]:8} {caught[kind]:8} caught  {kind}")
    for heading, lines in (("cannot be seen", listed), ("MISSED", missed)):
        for line, count in sorted(lines.items()):
            print(f"{count:8} {heading}  {line}")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
