"""A torn line and a torn log lose the commit that they belong to, and nothing else (§1.7)."""

from pathlib import Path

import pytest

from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import Storage
from restartpoint_oracle.crash import SCENARIOS, CrashShows, sweep_torn_jsonl, sweep_torn_sqlite
from restartpoint_oracle.places import JsonlPlace, SqlitePlace


async def test_a_line_that_is_cut_at_a_byte_is_dropped_whole_and_the_run_finishes(tmp_path: Path) -> None:
    report = await sweep_torn_jsonl(SCENARIOS["unsafe_tool"], tmp_path, every=53)
    report.verify()
    assert report.looked > 150
    assert report.runs == 1 + 3 * (report.boundaries - 1)


async def test_a_log_that_is_cut_at_a_frame_leaves_whole_commits_and_the_run_finishes(tmp_path: Path) -> None:
    report = await sweep_torn_sqlite(SCENARIOS["plain"], tmp_path)
    report.verify()
    assert report.looked > 100
    assert report.runs == 1 + 3 * (report.boundaries - 1)


async def test_a_backend_that_keeps_a_torn_line_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = JsonlPlace.reopen

    async def mend(place: JsonlPlace, *, clock: Clock, faults: FaultPoints) -> Storage:
        if not place.path.read_bytes().endswith(b"\n"):
            place.path.write_bytes(place.path.read_bytes() + b"\n")
        return await opened(place, clock=clock, faults=faults)

    monkeypatch.setattr(JsonlPlace, "reopen", mend)
    with pytest.raises(Exception, match=r"line 3|not what had been committed"):
        (await sweep_torn_jsonl(SCENARIOS["plain"], tmp_path, every=10_000)).verify()


async def test_a_backend_that_forgets_its_log_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened = SqlitePlace.reopen

    async def without_log(place: SqlitePlace, *, clock: Clock, faults: FaultPoints) -> Storage:
        place.path.with_name(place.path.name + "-wal").unlink(missing_ok=True)
        return await opened(place, clock=clock, faults=faults)

    monkeypatch.setattr(SqlitePlace, "reopen", without_log)
    report = await sweep_torn_sqlite(SCENARIOS["plain"], tmp_path)
    assert report.findings[-1].differences == ("the whole log leaves the state after commit 0 of 6",)
    with pytest.raises(CrashShows, match=r"accept_run\), torn before frame"):
        report.verify()
