"""Random calls find no difference between the backends and the model of storage."""

import os
from pathlib import Path

import pytest

from restartpoint.storage.sqlite import InlineHop
from restartpoint_oracle.machine import RULES, run_storage_machine
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, Place, SqlitePlace

LONG = "RESTARTPOINT_MACHINE_RUNS"
"""The environment variable that asks for so many random runs instead of the fixed ones of `make test`."""


class Folders:
    """A folder of its own for every run of the machine."""

    def __init__(self, root: Path) -> None:
        self._root, self._made = root, 0

    def places(self) -> list[Place]:
        self._made += 1
        folder = self._root / f"{self._made}"
        folder.mkdir()
        return [MemoryPlace(), JsonlPlace(folder), SqlitePlace(folder, new_hop=InlineHop)]


@pytest.mark.slow
@pytest.mark.covers("ST-1.6-10", "ST-9.3-01", "ST-9.1-01", "TIER-X-01")
def test_no_sequence_of_calls_tells_the_backends_from_the_model(tmp_path: Path) -> None:
    runs = int(os.environ.get(LONG, "0"))
    tally = run_storage_machine(
        Folders(tmp_path).places, runs=runs or 40, steps=60 if runs else 25, derandomize=not runs
    )
    assert all(tally[name] for name in RULES)
    assert {name for name in tally if name.startswith("refused with ")} == {
        f"refused with {error}"
        for error in ("EmptyTransaction", "InvalidJson", "StaleExpectation", "DuplicateId", "MissingParent")
    }
