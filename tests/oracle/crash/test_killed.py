"""Processes that SIGKILL ends around a commit leave whole commits, and another process finishes their run."""

import sys
from pathlib import Path

import pytest

from restartpoint_oracle.crash import SCENARIOS, CrashShows, Scenario, sweep_killed
from restartpoint_oracle.places import JsonlPlace, SqlitePlace
from tests.oracle.crash.doubles import LaggingPlace


@pytest.mark.timeout(120)
@pytest.mark.covers("ST-1.7-19")
@pytest.mark.parametrize("place, every", [(JsonlPlace, 2), (SqlitePlace, 5)])
async def test_a_kill_around_a_commit_does_not_show(
    place: type[JsonlPlace] | type[SqlitePlace], every: int, tmp_path: Path
) -> None:
    report = await sweep_killed(SCENARIOS["unsafe_tool"], place, tmp_path, every=every)
    report.verify()
    assert report.runs == 1 + -(-23 // every)


async def test_a_backend_that_keeps_commits_in_its_process_is_found(tmp_path: Path) -> None:
    report = await sweep_killed(SCENARIOS["plain"], LaggingPlace, tmp_path, every=5)
    with pytest.raises(CrashShows, match="the reopened session is not what had been committed"):
        report.verify()


async def test_a_process_that_does_not_die_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[__name__], "IS_HERE", True)
    report = await sweep_killed(SCENARIOS["plain"], place_of_this_process, tmp_path, every=100)
    with pytest.raises(CrashShows, match="did not die where it should but ended with exit 1"):
        report.verify()


IS_HERE = False


def place_of_this_process(folder: Path) -> JsonlPlace:
    """A place that no other process can use."""
    if not IS_HERE:
        raise LookupError(str(folder))
    return JsonlPlace(folder)


async def test_what_another_process_cannot_import_is_refused(tmp_path: Path) -> None:
    def plain() -> Scenario:
        return SCENARIOS["plain"]()

    def place(folder: Path) -> JsonlPlace:
        return JsonlPlace(folder)

    with pytest.raises(LookupError, match="cannot be imported by another process"):
        await sweep_killed(plain, JsonlPlace, tmp_path)
    with pytest.raises(LookupError, match="cannot be imported by another process"):
        await sweep_killed(SCENARIOS["plain"], place, tmp_path)
