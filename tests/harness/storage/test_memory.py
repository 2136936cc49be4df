"""Memory holds the live state and nothing else."""

import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_STATE,
    STORAGE_VERSION,
    BranchScan,
    JsonValue,
    RegisterSet,
)
from restartpoint.errors import StorageError
from restartpoint.storage import MemoryStorage
from tests.harness.storage.stage import IDLE, INITIAL, METADATA, HeldClock, contents, entry, said, tx


async def created() -> MemoryStorage:
    return await MemoryStorage.create(METADATA, INITIAL, clock=HeldClock())


@pytest.mark.covers("ST-0.8-01", "ST-1.7-06")
async def test_values_are_kept_and_returned_without_copies() -> None:
    storage = await created()
    write, value = entry("a"), {"k": ["v"]}
    await storage.commit(tx(write, RegisterSet(FACT_CUSTOM, "k", value)))
    assert (await storage.get_entries(["a"]))["a"].payload is write.entry.payload
    assert (await storage.scan_branch(BranchScan(start="a")))[0].payload is write.entry.payload
    register, lane = await storage.get_registers([(FACT_CUSTOM, "k"), (LANE_STATE, "main")])
    assert register is not None
    assert lane is not None
    assert register.value is value
    assert lane.value is IDLE


@pytest.mark.covers("ST-1.7-06")
async def test_overwriting_leaves_nothing_behind() -> None:
    storage = await created()

    async def sizes_after(value: JsonValue) -> list[int]:
        await storage.commit(tx(RegisterSet(FACT_CUSTOM, "k", value)))
        held = [part for part in vars(storage.data).values() if isinstance(part, dict | list | set)]
        return [len(part) for whole in held for part in [whole, *(whole.values() if isinstance(whole, dict) else ())]
                if isinstance(part, dict | list | set)]  # fmt: skip

    first = await sizes_after(0)
    assert [await sizes_after(value) for value in range(1, 50)] == [first] * 49


async def test_another_storage_attaches_to_the_maps_of_the_first() -> None:
    first = await created()
    await first.commit(said("a"))
    before = await contents(first)
    await first.close()
    second = MemoryStorage.attach(first.data, clock=HeldClock(1))
    assert await contents(second) == before
    assert (await second.commit(said("b", "a"))).first_seq == 5


@pytest.mark.covers("ST-1.7-02")
async def test_a_session_in_memory_is_of_the_current_version() -> None:
    assert (await created()).metadata.storage_version == STORAGE_VERSION


async def test_a_refused_initial_transaction_makes_no_session() -> None:
    with pytest.raises(StorageError):
        await MemoryStorage.create(METADATA, tx(entry("a", "nobody")), clock=HeldClock())
