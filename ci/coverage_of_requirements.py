"""Prints how many core requirements have a passing test, and fails where a landed section lacks one.

Usage: `python -m ci.coverage_of_requirements [--brief] [--missing SECTION] REPORT`, REPORT as `ci.covers` wrote it.
"""

import argparse
import json
import sys
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from ci.catalogue import Landed, Requirement, load_landed, load_requirements

__all__ = ["Section", "main", "problems", "summarise"]

CORE = "core"


@dataclass(frozen=True, kw_only=True)
class Section:
    """The coverage of one section: its core ids, apart by whether a passing test performs them, and the other ids."""

    catalogue: str
    name: str
    landed: bool
    covered: tuple[str, ...]
    exempt: tuple[str, ...]
    missing: tuple[str, ...]
    others: int
    others_covered: int


def summarise(requirements: Sequence[Requirement], landed: Landed, covered: Collection[str]) -> list[Section]:
    """One Section for each (catalogue, section), in the order of the catalogues."""
    keys = list(dict.fromkeys((one.catalogue, one.section) for one in requirements))
    return [
        _section(key, [r for r in requirements if (r.catalogue, r.section) == key], landed, covered) for key in keys
    ]


def _section(key: tuple[str, str], items: list[Requirement], landed: Landed, covered: Collection[str]) -> Section:
    core = [one.id for one in items if one.priority == CORE]
    others = [one.id for one in items if one.priority != CORE]
    return Section(
        catalogue=key[0],
        name=key[1],
        landed=key in landed.sections,
        covered=tuple(one for one in core if one in covered),
        exempt=tuple(one for one in core if one in landed.exempt and one not in covered),
        missing=tuple(one for one in core if one not in covered and one not in landed.exempt),
        others=len(others),
        others_covered=sum(one in covered for one in others),
    )


def problems(
    sections: Sequence[Section], requirements: Sequence[Requirement], landed: Landed, covered: Collection[str]
) -> list[str]:
    """Why the check fails, in words; nothing when it holds."""
    ids = {one.id for one in requirements}
    names = {(one.catalogue, one.name) for one in sections}
    return [
        *(
            f"landed.yaml names {name} {section}, which does not exist"
            for name, section in sorted(landed.sections - names)
        ),
        *(f"landed.yaml exempts {one}, which does not exist" for one in sorted(landed.exempt.keys() - ids)),
        *(f"{one} is exempt although a test covers it" for one in sorted(landed.exempt.keys() & set(covered))),
        *(f"{one} is exempt without a reason" for one, reason in sorted(landed.exempt.items()) if not reason),
        *(
            f"{section.catalogue} {section.name} is landed, but no passing test covers {', '.join(section.missing)}"
            for section in sections
            if section.landed and section.missing
        ),
    ]


def table(sections: Sequence[Section]) -> Table:
    """The table for people."""
    result = Table(title="requirements with a passing test")
    result.add_column("section")
    for name in ("core", "covered", "exempt", "missing", "others", "covered"):
        result.add_column(name, justify="right")
    result.add_column("landed")
    for one in sections:
        core = len(one.covered) + len(one.exempt) + len(one.missing)
        numbers = (core, len(one.covered), len(one.exempt), len(one.missing), one.others, one.others_covered)
        style = "red" if one.landed and one.missing else "green" if one.landed else None
        row = (f"{one.catalogue} {one.name}", *map(str, numbers), "yes" if one.landed else "")
        result.add_row(*row, style=style)
    return result


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints the table and the problems; returns the exit code."""
    parser = argparse.ArgumentParser(prog="ci.coverage_of_requirements", description=__doc__)
    parser.add_argument("report", type=Path)
    parser.add_argument("--brief", action="store_true", help="totals and problems only")
    parser.add_argument("--missing", metavar="SECTION", help="list the uncovered core ids of a section such as 1.7")
    options = parser.parse_args(arguments)

    results = json.loads(options.report.read_text(encoding="utf-8"))
    covered = results["passed"].keys() - results["failed"].keys()
    requirements, landed = load_requirements(), load_landed()
    sections = summarise(requirements, landed, covered)
    console = Console(width=None if sys.stdout.isatty() else 110)
    if not options.brief:
        console.print(table(sections))
        for exempt, reason in sorted(landed.exempt.items()):
            console.print(f"exempt: {exempt}: {reason}", highlight=False, markup=False)
    for one in sections:
        if options.missing == one.name:
            console.print(f"{one.catalogue} {one.name} lacks: {' '.join(one.missing) or 'nothing'}", highlight=False)
    core = sum(one.priority == CORE for one in requirements)
    done = sum(len(one.covered) for one in sections)
    console.print(
        f"requirements: {done} of {core} core ids have a passing test, {len(covered) - done} others do; "
        f"{len(landed.sections)} of {len(sections)} sections are landed",
        highlight=False,
    )
    wrong = problems(sections, requirements, landed, covered)
    for text in wrong:
        console.print(f"error: {text}", style="red", highlight=False)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
