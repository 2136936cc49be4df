"""`make prove`: every property confirmed over all paths, and every faulty twin refuted, or the exit code is 1.

Usage: python -m ci.prove [--json] [--workers N] [NAME ...]
"""

import argparse
import json
import sys
from collections.abc import Sequence
from time import monotonic
from typing import Final

from rich.console import Console
from rich.progress import track
from rich.table import Table

from ci.prove.analysis import Verdict
from ci.prove.campaign import Finding, run
from ci.prove.properties import PROPERTIES

__all__ = ["main"]

CORES: Final = 2


def main(arguments: Sequence[str] | None = None) -> int:
    """Proves the named properties, or all; prints a table or JSON; 1 when one does not stand, 2 for an unknown name."""
    asked = _arguments(arguments)
    unknown = [name for name in asked.names if name not in PROPERTIES]
    if unknown:
        print(f"no such property: {', '.join(unknown)}", file=sys.stderr)
        return 2
    chosen = [found for name, found in PROPERTIES.items() if not asked.names or name in asked.names]
    began = monotonic()
    found = run(chosen, asked.workers)
    console = Console(stderr=True)
    findings = list(track(found, "proving", total=len(chosen), console=console, disable=not console.is_terminal))
    seconds = round(monotonic() - began, 1)
    if asked.json:
        print(json.dumps({"seconds": seconds, "findings": [finding.to_json() for finding in findings]}, indent=2))
    else:
        _print(findings, seconds)
    return 0 if all(finding.stands for finding in findings) else 1


def _arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m ci.prove", description="Prove properties of the model.")
    parser.add_argument("--json", action="store_true", help="print the findings as JSON")
    parser.add_argument("--workers", type=int, default=CORES, help="processes at a time (default: %(default)s)")
    parser.add_argument("names", nargs="*", metavar="NAME", help="properties to prove (default: all)")
    return parser.parse_args(arguments)


def _print(findings: Sequence[Finding], seconds: float) -> None:
    console = Console(width=max(Console().width, 165))
    table = Table(title="properties of the model's functions")
    for column in ("function", "property", "verdict", "twin"):
        table.add_column(column, overflow="fold")
    table.add_column("paths", justify="right")
    table.add_column("CPU s", justify="right")
    for finding in findings:
        proof, refutation = finding.proof, finding.refutation
        table.add_row(
            finding.about.function,
            finding.about.name,
            _words(proof.verdict),
            refutation.verdict.value,
            f"{proof.paths}",
            f"{proof.cpu_seconds + refutation.cpu_seconds:.1f}",
            style=None if finding.stands else "red",
        )
    console.print(table)
    for finding in findings:
        if not finding.stands:
            _explain(console, finding)
    stand = sum(finding.stands for finding in findings)
    console.print(f"{stand} of {len(findings)} confirmed over all paths with the twin refuted, in {seconds} s")


def _words(verdict: Verdict) -> str:
    return "confirmed over all paths" if verdict is Verdict.CONFIRMED else verdict.value


def _explain(console: Console, finding: Finding) -> None:
    """What is wrong with a finding that does not stand."""
    found = finding.about
    if finding.proof.verdict is not Verdict.CONFIRMED:
        console.print(f"{found.name}: not confirmed: {finding.proof.words}", markup=False)
    if finding.refutation.verdict is not Verdict.REFUTED:
        words = f"{found.name}: the twin is not refuted ({found.fault}): {finding.refutation.words}"
        console.print(words, markup=False)


if __name__ == "__main__":
    sys.exit(main())
