"""Random calls find no difference between the backends and the model of storage."""

import os
from pathlib import Path

import msgspec
import pytest

from restartpoint.contract import EntryDraft, EntryScan, InsertEntry, InsertUsage, Transaction, UsageDraft
from restartpoint.seams import Clock, FaultPoints
from restartpoint.storage import MemoryStorage, Storage
from restartpoint.storage.sqlite import InlineHop
from restartpoint_oracle import LockstepBroken
from restartpoint_oracle.machine import RULES, Lockstep, run_storage_machine
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, Place, SqlitePlace
from restartpoint_oracle.samples import message, usage

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
@pytest.mark.covers("ST-1.6-10", "ST-9.3-01", "ST-0.2-03", "ST-0.2-06")
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


class Rewriting(MemoryPlace):
    """Changes a row while it is closed, as a repair by rewriting would."""

    async def reopen(self, *, clock: Clock, faults: FaultPoints) -> Storage:
        storage = await super().reopen(clock=clock, faults=faults)
        assert isinstance(storage, MemoryStorage)
        for entry in await storage.scan_entries(EntryScan(limit=1)):
            changed = msgspec.structs.replace(entry, timestamp=entry.timestamp + 1)
            storage.data._entries[entry.id] = changed
            storage.data._entries_by_seq[0] = changed
        return storage


@pytest.mark.covers("ST-9.1-01", "ST-9.1-06")
def test_entries_and_ledger_rows_only_grow_and_never_change(tmp_path: Path) -> None:
    with Lockstep(Folders(tmp_path).places()) as lockstep:
        ids: list[str] = []
        for number in range(12):
            parent = None if number % 4 == 0 else ids[-1]
            draft = EntryDraft(id=f"e-{number}", parent_id=parent, payload=message())
            lockstep.commit(
                Transaction((InsertEntry(draft), InsertUsage(UsageDraft(id=f"u-{number}", usage=usage(1)))))
            )
            ids.append(draft.id)
            for taken in (*ids, f"u-{number}"):
                again = EntryDraft(id=taken, parent_id=None, payload=message("rewritten"))
                assert lockstep.refuse(Transaction((InsertEntry(again),))) == "DuplicateId"
                row = InsertUsage(UsageDraft(id=taken, usage=usage(2)))
                assert lockstep.refuse(Transaction((row,))) == "DuplicateId"
            if number % 2:
                lockstep.reopen()
            else:
                lockstep.crash(0.5)
            assert all(len(rows) == 2 * len(ids) for rows in lockstep.remembered)
    with Lockstep([Rewriting()]) as lockstep:
        lockstep.commit(Transaction((InsertEntry(EntryDraft(id="e-1", parent_id=None, payload=message())),)))
        lockstep.everything()
        with pytest.raises(LockstepBroken):
            lockstep.reopen()
