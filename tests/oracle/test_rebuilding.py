"""Entries, registers and the ledger are all there is, and the tree stands without orchestration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import NAMESPACES, BranchScan, RegisterDelete, Transaction
from restartpoint.seams import NoFaults
from restartpoint.storage import Storage
from restartpoint_oracle import Json, ManualClock, content_of_model, content_of_storage, state_of_content
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, Place, SqlitePlace
from restartpoint_oracle.samples import METADATA
from restartpoint_oracle.wire import entry_json, json_text
from restartpoint_reference import BranchScan as ModelBranchScan
from restartpoint_reference import differences, scan_branch
from tests.oracle.replayed import transaction_of
from tests.reference.walk import Walk
from tests.reference.walks import SCENARIOS

PLACES: dict[str, Callable[[Path], Place]] = {
    "memory": lambda _: MemoryPlace(),
    "jsonl": JsonlPlace,
    "sqlite": SqlitePlace,
}
ORCHESTRATION = [name for name in NAMESPACES if name.startswith("op.") or name == "pending.entry"]


async def walked(place: Place, walk: Walk, steps: int) -> Storage:
    """A storage in that place after so many steps of the walk."""
    clock = ManualClock()
    first, *rest = walk.steps[:steps]
    storage = await place.create(METADATA, transaction_of(first.elements), clock=clock, faults=NoFaults())
    for step in rest:
        await storage.commit(transaction_of(step.elements))
    return storage


async def branches(storage: Storage, ids: list[str]) -> list[bytes]:
    found: list[bytes] = []
    for start in ids:
        path: list[Json] = [entry_json(one) for one in await storage.scan_branch(BranchScan(start=start))]
        found.append(json_text(path))
    return found


@pytest.mark.covers("ST-0.3-01", "ST-9.1-04")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.__name__)
async def test_the_three_dumps_rebuild_every_answer(
    scenario: Callable[[], Walk], place: Callable[[Path], Place], tmp_path: Path
) -> None:
    walk = scenario()
    storage = await walked(place(tmp_path), walk, len(walk.steps))
    content = await content_of_storage(storage)
    rebuilt = state_of_content(content)
    assert differences(content_of_model(rebuilt), content) == ()
    for start in rebuilt.entries:
        path: Json = [entry.to_json() for entry in scan_branch(rebuilt, ModelBranchScan(start=start))]
        answered: Json = [entry_json(one) for one in await storage.scan_branch(BranchScan(start=start))]
        assert differences(path, answered) == ()
    await storage.close()


@pytest.mark.covers("ST-9.1-08")
@pytest.mark.parametrize("place", PLACES.values(), ids=PLACES)
@pytest.mark.parametrize("scenario", SCENARIOS[:3], ids=lambda scenario: scenario.__name__)
async def test_the_tree_and_the_ledger_stand_without_orchestration_at_every_boundary(
    scenario: Callable[[], Walk], place: Callable[[Path], Place], tmp_path: Path
) -> None:
    walk = scenario()
    for steps in range(3, len(walk.steps) + 1):
        folder = tmp_path / f"{steps}"
        folder.mkdir()
        storage = await walked(place(folder), walk, steps)
        before: Any = await content_of_storage(storage)
        ids = [str(entry["id"]) for entry in before["entries"]]
        paths = await branches(storage, ids)
        held = [one for one in before["registers"] if one["namespace"] in ORCHESTRATION]
        deletes = tuple(RegisterDelete(NAMESPACES[one["namespace"]], one["key"]) for one in held)
        if deletes:
            await storage.commit(Transaction(deletes))
        after: Any = await content_of_storage(storage)
        assert [after[part] for part in ("entries", "usage", "stats")] == [
            before[part] for part in ("entries", "usage", "stats")
        ]
        assert await branches(storage, ids) == paths
        assert [one for one in after["registers"] if one["namespace"] in ORCHESTRATION] == []
        await storage.close()
