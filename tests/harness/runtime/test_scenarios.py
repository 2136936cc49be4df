"""Each scenario on each backend: these commits and effects in this order, and nothing left behind (§3, §9.3)."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import (
    LANE_STATE,
    OP_META,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    InsertEntry,
    InsertUsage,
    LaneState,
    MessagePayload,
    Namespace,
    RegisterSet,
    UsageScan,
    role_of,
    sum_usage,
)
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import MemoryPlace
from tests.harness.runtime.scenarios import Scenario
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.writes import fits

MakeStage = Callable[[Scenario], Stage]

OWNED: tuple[Namespace[Any], ...] = (OP_META, OP_STATE, OP_TOOL_ARGS, OP_PREPARATION, PENDING_ENTRY)


@pytest.mark.covers("TIER-B-01", "TIER-B-02", "RT-3.4-01", "RT-3.2-03")
async def test_a_run_makes_exactly_its_commits_and_effects(scenario: Scenario, staged: MakeStage) -> None:
    stage = staged(scenario)
    async with stage.open(**scenario.options) as harness:
        outcome = await harness.prompt("go")
    assert type(outcome).__name__ == scenario.outcome
    assert stage.log.lines == ["seed_main", *scenario.lines]
    assert await stage.messages() == scenario.messages
    misfits = [pair for pair in zip(stage.names, stage.writes, strict=True) if not fits(*pair)]
    assert misfits == []


@pytest.mark.covers("RT-3.13-14", "RT-3.5-09", "INV-13", "TEST-R2-04")
async def test_an_ended_run_leaves_no_register_of_its_own(scenario: Scenario, staged: MakeStage) -> None:
    stage = staged(scenario)
    async with stage.open(**scenario.options) as harness:
        outcome = await harness.prompt("go")
        session = stage.session
        owned = [register.key for namespace in OWNED for register in await session.list_registers(namespace)]
        state = await session.get_register(LANE_STATE, "main")
        last = await harness.get_last_result()
    assert state is not None
    if scenario.outcome == "RunDeferred":
        assert owned == [outcome.run_id, outcome.run_id]
        assert state.value == LaneState(current_operation_id=outcome.run_id, pending_next_run=[])
        assert last is None
    else:
        assert owned == []
        assert state.value == LaneState(current_operation_id=None, pending_next_run=[])
        assert last is not None
        assert (last.operation_id, last.leaf_id) == (outcome.run_id, outcome.leaf_id)


@pytest.mark.covers("RT-3.7-01", "TIER-X-06", "RT-3.13-10", "ST-1.6-02")
async def test_every_response_is_committed_with_its_usage_and_the_decision(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
        rows = await stage.session.scan_usage(UsageScan(order="asc"))
        stats = await stage.session.get_stats()
    responses, billed = [], []
    for tx in stage.court.commits:
        inserted = [write.entry for write in tx.writes if isinstance(write, InsertEntry)]
        usage = [write.row for write in tx.writes if isinstance(write, InsertUsage)]
        billed += [row.id for row in usage]
        for draft in inserted:
            if isinstance(draft.payload, MessagePayload) and role_of(draft.payload.message) == "assistant":
                responses.append(draft.id)
                assert [row.entry_id for row in usage] == [draft.id]
                assert any(isinstance(write, RegisterSet) and write.namespace is OP_STATE for write in tx.writes)
    assert len(responses) == len(stage.models.requests)
    assert [row.id for row in rows] == billed
    assert stats.usage == sum_usage(row.usage for row in rows)


@pytest.mark.covers("RT-3.1-05", "RT-3.13-13", "RT-3.1-08", "ST-1.3-05")
async def test_meta_and_result_are_set_once_and_prompts_never_wait(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
    names, flat = stage.names, [write for writes in stage.writes for write in writes]
    ended = 0 if scenario.outcome == "RunDeferred" else 1
    assert flat.count("set op.meta/O") == 1
    assert flat.count("delete op.meta/O") == ended
    assert flat.count("set lane.lastResult/main") == ended == sum(name.startswith("finish_") for name in names)
    assert not any("pending.entry" in write for write in flat)
