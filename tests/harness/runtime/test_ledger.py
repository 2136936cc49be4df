"""What stands in the ledger: one row for each settled attempt, under the id that its intent reserved (§1.6)."""

from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import (
    OP_STATE,
    UNSET,
    AssistantPhase,
    GenerationEffectPending,
    InsertEntry,
    InsertUsage,
    MessagePayload,
    RegisterSet,
    RunState,
    UsageRow,
    UsageScan,
    role_of,
    zero_usage,
)
from restartpoint.providers import ScriptedCall, asks, says
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.scenarios import SCENARIOS, Scenario, saved_by, spent
from tests.harness.runtime.stage import Stage, stage_of


def intents(stage: Stage) -> list[GenerationEffectPending]:
    """Every intent of a request, in order."""
    states = [
        write.value
        for tx in stage.court.commits
        for write in tx.writes
        if isinstance(write, RegisterSet) and write.namespace is OP_STATE
    ]
    phases = [state.phase for state in states if isinstance(state, RunState)]
    found = [phase.generation for phase in phases if isinstance(phase, AssistantPhase)]
    return [generation for generation in found if isinstance(generation, GenerationEffectPending)]


async def ledger(stage: Stage) -> list[UsageRow]:
    return await stage.session.scan_usage(UsageScan(order="asc"))


@pytest.mark.covers("ST-1.6-01")
async def test_every_settled_attempt_has_one_row_under_the_id_that_its_intent_reserved(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
        rows = await ledger(stage)
    reserved = [(intent.usage_id, intent.response_entry_id) for intent in intents(stage)]
    assert len(reserved) == len(stage.models.requests)
    of_attempts = [(row.id, row.entry_id) for row in rows if row.id in {usage_id for usage_id, _ in reserved}]
    assert of_attempts == reserved
    assert not any(row.adjustment for row in rows)


@pytest.mark.covers("ST-1.6-03", "ST-1.6-01")
async def test_a_request_of_unknown_outcome_gets_a_row_of_zeros_under_its_reserved_id(place: Place) -> None:
    (prefix,) = [one for one in await prefixes(SCENARIOS["text"], place) if one.name == "intend_assistant"]
    (intent,) = intents(prefix.stage)
    stage = next_life(prefix, [])
    async with stage.open() as harness:
        assert await ledger(stage) == []
        await harness.resume()
        rows = await ledger(stage)
    assert [(row.id, row.entry_id, row.usage) for row in rows] == [
        (intent.usage_id, intent.response_entry_id, zero_usage())
    ]


@pytest.mark.covers("ST-1.6-05", "ST-1.6-08", "ST-1.1-11")
async def test_rows_name_the_entry_that_they_belong_to_and_only_attempts_are_reserved(place: Place, log: Log) -> None:
    stage = Stage(place, [asks(ScriptedCall(name="save")), says("done")], saved_by(usage=spent(3))(log), log=log)
    async with stage.open() as harness:
        await harness.prompt("go")
        leaf = await harness.get_leaf_id()
        assert leaf is not None
        free = await harness.record_usage(spent(1))
        bound = await harness.record_usage(spent(2), entry_id=leaf, details={"invoice": None})
        rows = await ledger(stage)
        roles = {
            entry.id: role_of(entry.payload.message)
            for entry in await stage.session.find_entries()
            if isinstance(entry.payload, MessagePayload)
        }
    kinds = [(roles.get(row.entry_id) if isinstance(row.entry_id, str) else None, row.adjustment) for row in rows]
    assert kinds == [
        ("assistant", False),
        ("toolResult", False),
        ("assistant", False),
        (None, True),
        ("assistant", True),
    ]
    assert (rows[3].id, rows[3].entry_id, rows[3].details) == (free, UNSET, UNSET)
    assert (rows[4].id, rows[4].entry_id, rows[4].details) == (bound, leaf, {"invoice": None})
    assert [row.id[14] for row in rows] == ["7"] * 5
    assert [row.seq for row in rows] == sorted({row.seq for row in rows})
    assert known_before(stage, rows) == [True, False, True, False, False]


def known_before(stage: Stage, rows: list[UsageRow]) -> list[bool]:
    """For each row whether a commit before its own held its id anywhere."""
    found = []
    for row in rows:
        (own,) = [number for number, tx in enumerate(stage.court.commits) if inserts(tx, row.id)]
        found.append(any(row.id in repr(tx) for tx in stage.court.commits[:own]))
    return found


def inserts(tx: Any, usage_id: str) -> bool:
    return any(isinstance(write, InsertUsage) and write.row.id == usage_id for write in tx.writes)


@pytest.mark.covers("ST-1.6-02", "ST-1.6-04")
async def test_an_answer_and_its_row_are_one_commit_and_the_end_of_the_run_removes_no_row(
    place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS["one tool"], place, log)
    counted: dict[str, list[int]] = {}
    stage.on_commit = lambda name: counted.setdefault(name, []).append(len(stage.court.state.usage))
    async with stage.open() as harness:
        await harness.prompt("go")
        assert len(await ledger(stage)) == 2
    for tx in stage.court.commits:
        answers = [write.entry.id for write in tx.writes if isinstance(write, InsertEntry) and answer(write)]
        rows = [write.row.entry_id for write in tx.writes if isinstance(write, InsertUsage)]
        assert answers == rows
    assert counted["settle_stop"] == counted["finish_run"] == [2]


def answer(write: InsertEntry) -> bool:
    payload = write.entry.payload
    return isinstance(payload, MessagePayload) and role_of(payload.message) == "assistant"
