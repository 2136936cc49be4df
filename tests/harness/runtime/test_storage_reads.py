"""Which few reads restore and recovery make, whatever the length of the session (§0.3, §1.5, §1.8)."""

from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from restartpoint import AgentHarness
from restartpoint.contract import user_message
from restartpoint.session import Session
from tests.harness.runtime.crash import Prefix, keep_copies, next_life
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import CountingStorage

SCENARIO = SCENARIOS["sequential by the option"]
POINT_READS = {"get_register", "get_registers", "get_entries"}


@asynccontextmanager
async def attached(stage: Stage, **options: Any) -> AsyncIterator[tuple[AgentHarness, CountingStorage]]:
    """A harness over the place of the stage, alone with a storage that counts its reads."""
    storage = CountingStorage(await stage.storage())
    session = Session(storage, ids=stage.ids, clock=stage.clock)
    async with AgentHarness.open(session, stage.options(**options)) as harness:
        yield harness, storage


async def two_lanes(place: Place, *, length: int = 1) -> list[Prefix]:
    """Every committed prefix of a run on main beside an idle lane, over a history of that many messages."""
    stage = stage_of(SCENARIO, place, Log())
    kept: list[Prefix] = []
    async with stage.open(**SCENARIO.options) as harness:
        for number in range(length):
            await stage.session.append_message(user_message(f"before {number}", 1))
        await harness.create_lane("side", await harness.get_leaf_id())
        kept = keep_copies(stage)
        await harness.prompt("go")
    return kept


def of_lane(reads: list[str], lane: str) -> Counter[str]:
    return Counter(key for key in reads if key.endswith(f"/{lane}"))


@pytest.mark.covers("ST-1.8-01")
async def test_an_open_lane_is_restored_by_five_point_reads_and_an_idle_one_by_three(place: Place) -> None:
    for prefix in await two_lanes(place):
        stage = next_life(prefix, [])
        async with attached(stage) as (harness, storage):
            reads = [*storage.registers]
            operations = [one.operation_id for one in harness.suspended]
        lane = {"lane.config", "lane.state", "lane.leaf"}
        assert of_lane(reads, "side") == Counter(f"{name}/side" for name in lane)
        seed = Counter(["lane.config/main"])
        assert of_lane(reads, "main") - seed == Counter(f"{name}/main" for name in lane)
        for operation in operations:
            assert of_lane(reads, operation) == Counter([f"op.meta/{operation}", f"op.state/{operation}"])
        assert len(operations) == (prefix.name != "finish_run")


@pytest.mark.covers("ST-0.3-08", "ST-1.6-12", "ST-1.3-23")
async def test_restore_reads_points_and_one_batch_and_neither_scans_nor_asks_the_ledger(place: Place) -> None:
    for prefix in await two_lanes(place):
        stage = next_life(prefix, [])
        async with attached(stage) as (_, storage):
            calls, reads = Counter(storage.calls), [*storage.registers]
        assert set(calls) - POINT_READS == {"list_registers lane.state"}, prefix.name
        assert calls["list_registers lane.state"] == 1
        assert calls["get_entries"] <= 2
        assert not any(key.startswith("lane.lastResult/") for key in reads)


@pytest.mark.covers("ST-1.5-15")
async def test_what_restore_reads_does_not_depend_on_the_length_of_the_session(place: Place) -> None:
    counted: list[list[tuple[Counter[str], int, list[int]]]] = []
    for length in (1, 60):
        rows = []
        for prefix in await two_lanes(place.another(), length=length):
            stage = next_life(prefix, [])
            async with attached(stage) as (_, storage):
                rows.append((Counter(storage.calls), len(storage.registers), [len(ids) for ids in storage.entries]))
        counted.append(rows)
    short, long = counted
    assert len(short) > 5
    assert short == long


@pytest.mark.covers("ST-1.6-12", "ST-1.5-14")
async def test_recovery_reads_points_and_its_branch_and_never_the_inventory_or_the_ledger(place: Place) -> None:
    for prefix in (await two_lanes(place))[:-1]:
        stage = next_life(prefix, SCENARIO.steps, SCENARIO.tools(Log()))
        async with attached(stage, **SCENARIO.options) as (harness, storage):
            await harness.resume()
            calls = Counter(storage.calls)
        assert set(calls) - POINT_READS <= {
            "list_registers lane.state", "list_registers op.tool_args", "list_registers op.preparation", "scan_branch",
        }  # fmt: skip
