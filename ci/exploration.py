"""Writes docs/reference/exploration.md: the slices of the model that are explored, their bounds, and how many states.

`python -m ci.exploration` explores all of them within quick and full bounds, which takes some minutes. A test holds the
bounds of the page to the code, and the counts of the smaller slices to a search.
"""

import sys
from pathlib import Path

from restartpoint_oracle.exploration import bounded, explore
from restartpoint_reference import TRANSITIONS
from restartpoint_reference.explore import SLICES, Report, Slice

__all__ = ["PAGE", "counts", "limits", "main"]

PAGE = Path(__file__).resolve().parents[1] / "docs" / "reference" / "exploration.md"

HEAD = """# Exploring the model

`restartpoint explore` visits every state that the model can reach within bounds. The world outside may say anything of
a small alphabet at any moment: answer, fail, ask for tools, queue input, abort, crash. Each commit on the way must be
explained back by its own name and inputs, keep every rule of the store and every invariant; the search ends at the
first that does not, with a shortest path to it. States that differ in nothing but minted ids, sequence numbers and
times are one.

```sh
restartpoint explore                                   # every slice within quick bounds
restartpoint explore --bounds full                     # the long search
restartpoint explore --slice abort --bounds crash=2    # one slice, one limit changed
```

The state machine is explored in slices, because everything at once multiplies. Together they take every transition of
[the table](transitions.md). Counts are of distinct states and of commits made, and do not depend on the machine.
"""

FOOT = """## What the bounds mean

`operations`, `turns` (generation steps), `polls`, `requests` (of summaries), `compactions` and `checks` (of the
threshold) count in all; `items` are queued messages, tree writes and follow-ups, `withdrawals` their cancellation;
`aborts` include ends from outside; `crash` is the loss of every process at once; `creations` (of lanes), `facts` and
`settings` count calls. `lanes` is how many there are, `calls` how many tools one response may ask for, and `attempts`
how many a retry policy admits; a slice that does not name one of these has one.

Written by `python -m ci.exploration`.
"""


def limits(part: Slice) -> str:
    """The bounds of a slice as the page shows them."""
    return ", ".join(f"{name} {limit}" for name, limit in part.bounds.items())


def counts(report: Report) -> str:
    """The cells of a finished search."""
    return f"{report.states:,} | {report.commits:,}"


def _searched(parts: list[Slice]) -> dict[str, Report]:
    found: dict[str, Report] = {}
    for report, ended in explore(parts, jobs=2):
        found[report.slice] = report
        if ended:
            print(f"{report.slice}: {report.states:,} states", file=sys.stderr)
    return found


def main() -> None:
    """Search, and write the page; a counterexample or a transition that no slice takes is an error."""
    tables: list[str] = []
    for title, bounds in (("Quick", "quick"), ("Full", "full")):
        parts = [bounded(part, bounds) for part in SLICES]
        found = _searched(parts)
        broken = [str(report.counterexample) for report in found.values() if report.counterexample]
        assert not broken, broken
        assert TRANSITIONS.keys() <= {name for report in found.values() for name in report.taken}
        tables += [f"## {title} bounds", "", "| Slice | What happens | Bounds | States | Commits |"]
        tables += ["|---|---|---|--:|--:|"]
        tables += [f"| {part.name} | {part.summary} | {limits(part)} | {counts(found[part.name])} |" for part in parts]
        states, commits = (sum(getattr(report, name) for report in found.values()) for name in ("states", "commits"))
        tables += [f"| all | | | {states:,} | {commits:,} |", ""]
    PAGE.write_text("\n".join((HEAD, *tables, FOOT)), encoding="utf-8")


if __name__ == "__main__":
    main()
