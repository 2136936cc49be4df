"""The page of the exploration shows the slices, bounds and counts of the code."""

import pytest

from ci.exploration import PAGE, counts, limits
from restartpoint_oracle.exploration import bounded
from restartpoint_reference.explore import SLICES, Slice, search

ROWS = [
    pytest.param(bounded(part, bounds), id=f"{part.name}-{bounds}") for part in SLICES for bounds in ("quick", "full")
]


@pytest.mark.parametrize("part", ROWS)
def test_the_page_has_a_row_for_every_slice_and_its_bounds(part: Slice) -> None:
    row = f"| {part.name} | {part.summary} | {limits(part)} | "
    assert sum(line.startswith(row) for line in PAGE.read_text(encoding="utf-8").splitlines()) == 1


@pytest.mark.parametrize("name", ["abort", "deferred", "sequential-tools"])
def test_the_counts_of_a_small_slice_are_those_of_a_search(name: str) -> None:
    (part,) = (part for part in SLICES if part.name == name)
    *_, report = search(part)
    assert f"{limits(part)} | {counts(report)} |" in PAGE.read_text(encoding="utf-8")
