"""The whole campaign: ``python -m restartpoint_oracle.crash --backend jsonl --variant killed [scenario ...]``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import anyio

from restartpoint.seams import SystemClock
from restartpoint_oracle.crash.killed import sweep_killed
from restartpoint_oracle.crash.report import SweepReport
from restartpoint_oracle.crash.scenarios import SCENARIOS
from restartpoint_oracle.crash.sweep import MakeScenario, sweep
from restartpoint_oracle.crash.torn import sweep_torn_jsonl, sweep_torn_sqlite
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, SqlitePlace

__all__ = ["main"]

_ROW = "{:<22}{:>12}{:>8}{:>10}{:>10}{:>9}"


def main(arguments: list[str] | None = None) -> int:
    """Print one line per scenario; 0 when no crash shows, 1 when one does."""
    parser = argparse.ArgumentParser(prog="python -m restartpoint_oracle.crash", description=__doc__)
    parser.add_argument("scenarios", nargs="*", metavar="scenario", help="by default all of them")
    parser.add_argument("--backend", choices=["memory", "jsonl", "sqlite"], default="memory")
    parser.add_argument("--variant", choices=["in-process", "killed", "torn"], default="in-process")
    parser.add_argument("--crashes", type=int, default=1, help="how many processes of one run die, in process only")
    given = parser.parse_args(arguments)
    if given.backend == "memory" and given.variant != "in-process":
        parser.error("memory does not outlive a process, and nothing of it can be torn")
    if unknown := set(given.scenarios) - SCENARIOS.keys():
        parser.error(f"no such scenario: {', '.join(sorted(unknown))}; there are {', '.join(SCENARIOS)}")
    return anyio.run(_campaign, given.scenarios or [*SCENARIOS], given.backend, given.variant, given.crashes)


async def _campaign(names: list[str], backend: str, variant: str, crashes: int) -> int:
    sys.stdout.write(_ROW.format("scenario", "boundaries", "runs", "looked", "findings", "seconds") + "\n")
    clock, found = SystemClock(), 0
    for name in names:
        begun = clock.now_ms()
        with TemporaryDirectory() as folder:
            report = await _sweeping(backend, variant, crashes, Path(folder))(SCENARIOS[name])
        seconds = f"{(clock.now_ms() - begun) / 1000:.1f}"
        figures = (name, report.boundaries, report.runs, report.looked, len(report.findings), seconds)
        sys.stdout.write(_ROW.format(*figures) + "\n")
        for finding in report.findings:
            sys.stdout.write(f"  {finding}\n")
        sys.stdout.flush()
        found += len(report.findings)
    return 1 if found else 0


def _sweeping(
    backend: str, variant: str, crashes: int, folder: Path
) -> Callable[[MakeScenario], Awaitable[SweepReport]]:
    match backend, variant:
        case "jsonl", "killed":
            return lambda scenario: sweep_killed(scenario, JsonlPlace, folder)
        case "sqlite", "killed":
            return lambda scenario: sweep_killed(scenario, SqlitePlace, folder)
        case "jsonl", "torn":
            return partial(sweep_torn_jsonl, folder=folder)
        case "sqlite", "torn":
            return partial(sweep_torn_sqlite, folder=folder)
        case "jsonl", _:
            return lambda scenario: sweep(scenario, lambda: JsonlPlace(_new(folder)), crashes=crashes)
        case "sqlite", _:
            return lambda scenario: sweep(scenario, lambda: SqlitePlace(_new(folder)), crashes=crashes)
        case _:
            return lambda scenario: sweep(scenario, MemoryPlace, crashes=crashes)


def _new(folder: Path) -> Path:
    return Path(mkdtemp(dir=folder))


if __name__ == "__main__":
    sys.exit(main())
