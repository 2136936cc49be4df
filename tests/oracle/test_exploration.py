"""Slices explored side by side, and the command that does it."""

import json

import pytest
from typer.testing import CliRunner

from restartpoint.cli.application import build
from restartpoint_oracle.cli.explore import register
from restartpoint_oracle.exploration import BadBounds, bounded, explore, never_taken
from restartpoint_reference import TRANSITIONS
from restartpoint_reference.explore import SLICES, Report, search


def run(*arguments: str) -> tuple[int, str, str]:
    app = build(())
    register(app)
    result = CliRunner().invoke(app, ["explore", *arguments])
    return result.exit_code, result.stdout, result.stderr


@pytest.mark.parametrize("name", [found.name for found in SLICES])
def test_full_bounds_are_at_least_the_quick_ones(name: str) -> None:
    (quick,) = (found for found in SLICES if found.name == name)
    full = bounded(quick, "full")
    assert full.bounds.keys() == quick.bounds.keys() | quick.full.keys()
    assert all(full.bounds[limit] >= quick.bounds[limit] for limit in quick.bounds)
    assert full.bounds != quick.bounds


def test_single_limits_replace_quick_ones_where_a_slice_has_them() -> None:
    quick = SLICES[0]
    assert bounded(quick, "turns=1,polls=7").bounds == {**quick.bounds, "turns": 1}
    assert bounded(quick, "quick") is quick


@pytest.mark.parametrize("bounds", ["turn=1", "turns", "turns=-1", "turns=x", "", "fast"])
def test_bounds_that_name_nothing_are_refused(bounds: str) -> None:
    with pytest.raises(BadBounds, match="limit"):
        bounded(SLICES[0], bounds)


def test_processes_report_what_the_search_itself_reports() -> None:
    chosen = [
        bounded(found, "turns=1,items=0,crash=0,polls=1") for found in SLICES if found.name in ("deferred", "two-lanes")
    ]
    last: dict[str, Report] = {}
    ended: list[str] = []
    for report, is_last in explore(chosen, jobs=2):
        last[report.slice] = report
        ended += [report.slice] if is_last else []
    assert sorted(ended) == ["deferred", "two-lanes"]
    for found in chosen:
        *_, alone = search(found)
        assert last[found.name] == alone


def test_what_no_search_took_is_named() -> None:
    report = Report(slice="x", states=1, commits=1, depth=1, taken={"accept_run": 1})
    assert set(never_taken([report])) == TRANSITIONS.keys() - {"accept_run"}


def test_the_command_prints_a_row_per_slice() -> None:
    code, out, err = run("--slice", "deferred", "--bounds", "polls=1,items=0", "--jobs", "1")
    assert (code, err) == (0, "")
    assert "deferred" in out
    assert "polls=1" in out
    assert "states" in out


def test_the_command_prints_json_for_programs() -> None:
    code, out, _ = run("--slice", "deferred", "--bounds", "polls=1,items=0", "--json")
    (row,) = map(json.loads, out.splitlines())
    assert code == 0
    assert row["slice"] == "deferred"
    assert row["counterexample"] is None
    assert row["states"] > 10
    assert row["taken"]["intend_poll"] > 0


@pytest.mark.parametrize(
    "arguments, says",
    [
        (("--slice", "nothing"), "no slice nothing; there are run-with-tools"),
        (("--bounds", "turn=2"), "no limit 'turn'; there are quick, full, and limits on"),
    ],
)
def test_a_wrong_name_is_told_with_what_there_is(arguments: tuple[str, ...], says: str) -> None:
    code, out, err = run(*arguments)
    assert (code, out) == (2, "")
    assert says in err
