"""Every scenario, crashed around every commit, comes to the same end on every backend (§0.3, §4.5)."""

from pathlib import Path

import anyio
import pytest

from restartpoint_oracle.crash import SCENARIOS, SweepReport, sweep
from restartpoint_oracle.crash.equivalence import FAILED, INTERRUPTED, REPEATED_CALL, REPEATED_REQUEST
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, SqlitePlace
from tests.oracle.crash.doubles import new_folders

ON_JSONL = ["unsafe_tool", "parallel_tools", "follow_up", "next_run_captured", "facts_and_usage"]
ON_SQLITE = ["unsafe_tool", "next_run_captured"]


def swept_twice_per_boundary(report: SweepReport) -> SweepReport:
    """A report that shows nothing, after the run before and the run after each commit but the creation."""
    report.verify()
    assert report.boundaries > 5
    assert report.runs == 2 * report.boundaries
    return report


@pytest.mark.covers("ST-0.1-01", "RT-4.5-07", "RT-4.5-08", "RT-4.5-10")
@pytest.mark.parametrize("name", sorted(SCENARIOS))
async def test_a_crash_around_any_commit_does_not_show_on_memory(name: str) -> None:
    swept_twice_per_boundary(await sweep(SCENARIOS[name], MemoryPlace))


@pytest.mark.covers("ST-0.4-06", "RT-4.5-09", "TIER-A-11", "RT-3.11-08")
@pytest.mark.parametrize("name", ON_JSONL)
async def test_a_crash_around_any_commit_does_not_show_on_jsonl(name: str, tmp_path: Path) -> None:
    new = new_folders(tmp_path)
    swept_twice_per_boundary(await sweep(SCENARIOS[name], lambda: JsonlPlace(new())))


@pytest.mark.parametrize("name", ON_SQLITE)
async def test_a_crash_around_any_commit_does_not_show_on_sqlite(name: str, tmp_path: Path) -> None:
    new = new_folders(tmp_path)
    swept_twice_per_boundary(await sweep(SCENARIOS[name], lambda: SqlitePlace(new())))


@pytest.mark.covers("TIER-A-12", "RT-4.5-06")
async def test_a_second_crash_during_recovery_does_not_show_either() -> None:
    report = await sweep(SCENARIOS["follow_up"], MemoryPlace, crashes=2)
    report.verify()
    assert report.runs > 200


async def test_every_difference_that_may_be_does_occur() -> None:
    report = await sweep(SCENARIOS["terminating_batch"], MemoryPlace)
    assert {INTERRUPTED, FAILED, REPEATED_REQUEST} <= report.allowed.keys()
    assert (await sweep(SCENARIOS["safe_tool"], MemoryPlace)).allowed[REPEATED_CALL] == 1


def test_the_sweep_runs_on_trio() -> None:
    anyio.run(sweep, SCENARIOS["unsafe_tool"], MemoryPlace, backend="trio").verify()
