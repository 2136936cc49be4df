"""Restore: which few reads it makes, and every contradiction that it refuses by the name of its check (§3.3, §4.4)."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from restartpoint.contract import (
    LANE_LAST_RESULT,
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_STATE,
    OP_TOOL_ARGS,
    AgentMessage,
    CallCompleted,
    CancelRequested,
    CheckpointPhase,
    CompactionIntent,
    CompactionState,
    Entry,
    EntryDraft,
    EntryScan,
    Inbox,
    InsertEntry,
    LaneLastResult,
    LaneState,
    MessagePayload,
    NavigationIntent,
    NavigationPhase,
    NavigationState,
    NeedAssistant,
    Operation,
    RegisterDelete,
    RegisterSet,
    RunIntent,
    Running,
    RunState,
    StructuralDecision,
    ToolsPhase,
    Transaction,
    Write,
    role_of,
)
from restartpoint.errors import SessionCorruption
from restartpoint.execution import synthetic_response
from restartpoint.providers import SCRIPTED_MODEL
from restartpoint.storage import Storage
from tests.harness.runtime.crash import next_life, prefixes
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import MemoryPlace, Place, dump
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage
from tests.harness.runtime.storages import CountingStorage

SCENARIO = SCENARIOS["sequential by the option"]


@dataclass(frozen=True)
class Held:
    """What a prefix holds: the open operation with its state, or None for both, and the entries in order."""

    operation: Operation | None
    state: RunState | None
    entries: list[Entry]

    @property
    def id(self) -> str:
        assert self.operation is not None
        return self.operation.operation_id

    @property
    def run(self) -> RunState:
        assert self.state is not None
        return self.state

    def with_phase(self, **changes: Any) -> Write:
        return RegisterSet(OP_STATE, self.id, replace(self.run, phase=replace(self.run.phase, **changes)))

    def with_state(self, **changes: Any) -> Write:
        return RegisterSet(OP_STATE, self.id, replace(self.run, **changes))

    def with_meta(self, **changes: Any) -> Write:
        assert self.operation is not None
        return RegisterSet(OP_META, self.id, replace(self.operation, **changes))

    def with_calls(self, *order: int, **changes: Any) -> Write:
        """The batch with its calls in another order; ``changes`` go to the first."""
        assert isinstance(self.run.phase, ToolsPhase)
        batch = self.run.phase.batch
        calls = [batch.calls[index] for index in order]
        calls[0] = replace(calls[0], **changes)
        return self.with_phase(batch=replace(batch, calls=calls))


Corrupt = Callable[[Held], list[Write]]


def an_aborted_answer(held: Held) -> list[Write]:
    model = SCRIPTED_MODEL
    message = synthetic_response(model, api=model.api, stop_reason="aborted", error="cut", timestamp=1)
    entry = EntryDraft(id="aborted", parent_id=held.entries[-1].id, payload=MessagePayload(message=message))
    return [InsertEntry(entry), held.with_state(latest_assistant_entry_id="aborted")]


def a_wrong_result(held: Held) -> list[Write]:
    message: AgentMessage = {
        "role": "toolResult", "toolCallId": "another", "toolName": "save", "content": [], "isError": False,
        "timestamp": 1,
    }  # fmt: skip
    entry = EntryDraft(id="wrong", parent_id=held.entries[-1].id, payload=MessagePayload(message=message))
    return [InsertEntry(entry), held.with_calls(0, 1, result_entry_id="wrong")]


def a_shared_result(held: Held) -> list[Write]:
    assert isinstance(held.run.phase, ToolsPhase)
    return [held.with_calls(0, 1, result_entry_id=held.run.phase.batch.calls[1].result_entry_id)]


def a_compaction_without_preparation(held: Held) -> list[Write]:
    structural = StructuralDecision(task_id="task", status="deciding")
    return [
        held.with_meta(intent=CompactionIntent()),
        RegisterSet(OP_STATE, held.id, CompactionState(control=Running(), structural=structural)),
    ]


def a_navigation_elsewhere(held: Held) -> list[Write]:
    state = NavigationState(
        control=Running(), target_id=None, summarize=False, phase=NavigationPhase(kind="ready_to_commit")
    )
    intent = NavigationIntent(target_id=held.entries[0].id, summarize=False)
    return [held.with_meta(intent=intent), RegisterSet(OP_STATE, held.id, state)]


def drained(held: Held) -> list[Write]:
    control = CancelRequested(requested_at=1, drained_steer=["gone"], drained_follow_up=[])
    return [held.with_state(control=control)]


def batch_of(held: Held, entry: str) -> list[Write]:
    assert isinstance(held.run.phase, ToolsPhase)
    return [held.with_phase(batch=replace(held.run.phase.batch, assistant_entry_id=entry))]


CORRUPTIONS: dict[str, tuple[str, str, Corrupt]] = {
    "no leaf": ("finish_run", "lane registers", lambda held: [RegisterDelete(LANE_LEAF, "main")]),
    "no configuration": (
        "finish_run", "lane registers",
        lambda held: [
            RegisterSet(LANE_LEAF, "side", None),
            RegisterSet(LANE_STATE, "side", LaneState(current_operation_id=None, pending_next_run=[])),
        ],
    ),
    "an idle leaf that is nowhere": (
        "finish_run", "named entries", lambda held: [RegisterSet(LANE_LEAF, "main", "nowhere")],
    ),
    "queued input that is nowhere": (
        "finish_run", "named registers",
        lambda held: [
            RegisterSet(LANE_STATE, "main", LaneState(current_operation_id=None, pending_next_run=["gone"]))
        ],
    ),
    "an operation without meta": (
        "settle_tool_calls", "operation registers", lambda held: [RegisterDelete(OP_META, held.id)],
    ),
    "an operation without state": (
        "settle_tool_calls", "operation registers", lambda held: [RegisterDelete(OP_STATE, held.id)],
    ),
    "an operation of another lane": (
        "settle_tool_calls", "operation owner", lambda held: [held.with_meta(lane="side")],
    ),
    "another operation": (
        "settle_tool_calls", "operation owner", lambda held: [held.with_meta(operation_id="other")],
    ),
    "an intent of another kind": (
        "settle_tool_calls", "intent and state", lambda held: [held.with_meta(intent=CompactionIntent())],
    ),
    "no newest response": (
        "settle_tool_calls", "named entries", lambda held: [held.with_state(latest_assistant_entry_id="nowhere")],
    ),
    "no prompt": (
        "settle_tool_calls", "named entries",
        lambda held: [held.with_meta(intent=RunIntent(prompt_entry_ids=["nowhere"]))],
    ),
    "no source leaf": (
        "settle_tool_calls", "named entries", lambda held: [held.with_meta(source_leaf_id="nowhere")],
    ),
    "no trigger": ("accept_run", "named entries", lambda held: [held.with_phase(trigger_entry_id="nowhere")]),
    "no trigger of a step": (
        "start_generation", "named entries",
        lambda held: [
            held.with_state(
                phase=CheckpointPhase(
                    continuation=NeedAssistant(overflow_recovery_used=False), trigger_entry_id=held.entries[0].id,
                    threshold_checked_trigger_entry_id="nowhere",
                )
            )
        ],
    ),
    "no batch message": ("settle_tool_calls", "named entries", lambda held: batch_of(held, "nowhere")),
    "a batch of a user message": (
        "settle_tool_calls", "entry types", lambda held: batch_of(held, held.entries[0].id),
    ),
    "a newest response that is a prompt": (
        "settle_tool_calls", "entry types",
        lambda held: [held.with_state(latest_assistant_entry_id=held.entries[0].id)],
    ),
    "steering that is nowhere": (
        "settle_tool_calls", "named registers",
        lambda held: [held.with_state(inbox=Inbox(steer=["gone"], follow_up=[], writes=[]))],
    ),
    "drained input that is nowhere": ("settle_tool_calls", "named registers", drained),
    "arguments that are nowhere": (
        "intend_tool", "named registers",
        lambda held: [RegisterDelete(OP_TOOL_ARGS, f"{held.id}:{turn_of(held)}:0")],
    ),
    "a call too few": ("settle_tool_calls", "tool indices", lambda held: [held.with_calls(0)]),
    "calls out of order": ("settle_tool_calls", "tool indices", lambda held: [held.with_calls(1, 0)]),
    "a call twice": ("settle_tool_calls", "tool indices", lambda held: [held.with_calls(0, 0)]),
    "a call out of range": (
        "settle_tool_calls", "tool indices", lambda held: [held.with_calls(0, 1, source_index=7)],
    ),
    "two calls with one result": ("settle_tool_calls", "tool results", a_shared_result),
    "a result of another call": ("settle_tool", "tool results", a_wrong_result),
    "a result that is no result": (
        "settle_tool", "entry types", lambda held: [held.with_calls(0, 1, result_entry_id=held.entries[0].id)],
    ),
    "a result that is nowhere": (
        "settle_tool", "named entries", lambda held: [held.with_calls(0, 1, result_entry_id="nowhere")],
    ),
    "aborted while running": ("settle_tool_calls", "aborted implies cancelled", an_aborted_answer),
    "a compaction without preparation": ("settle_tool_calls", "named registers", a_compaction_without_preparation),
    "a navigation elsewhere": ("settle_tool_calls", "navigation target", a_navigation_elsewhere),
}  # fmt: skip


def turn_of(held: Held) -> str:
    assert isinstance(held.run.phase, ToolsPhase)
    return held.run.phase.batch.turn_id


async def held_by(storage: Storage) -> Held:
    (meta, state) = (await storage.list_registers(OP_META), await storage.list_registers(OP_STATE))
    entries = await storage.scan_entries(EntryScan(order="asc"))
    run = state[0].value if state else None
    assert run is None or isinstance(run, RunState)
    return Held(meta[0].value if meta else None, run, entries)


@pytest.fixture
async def corrupted(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Stage, str]:
    """The stage over a session with the corruption that the parameter names, and the check that must find it."""
    name, check, corrupt = CORRUPTIONS[request.param]
    prefix = next(one for one in await prefixes(SCENARIO, MemoryPlace(tmp_path)) if one.name == name)
    stage = next_life(prefix, [])
    storage = await stage.storage()
    await storage.commit(Transaction(tuple(corrupt(await held_by(storage)))))
    await storage.close()
    return stage, check


@pytest.mark.covers("RT-3.3-03", "RT-3.3-04", "RT-3.3-05", "INV-20")
@pytest.mark.parametrize("corrupted", CORRUPTIONS, indirect=True)
async def test_a_contradiction_is_refused_by_the_name_of_its_check(corrupted: tuple[Stage, str]) -> None:
    stage, check = corrupted
    before = await content_of(stage)
    with pytest.raises(SessionCorruption) as refused:
        async with stage.open():
            pass
    assert refused.value.check == check
    await stage.session.close()
    assert await content_of(stage) == before
    assert stage.log.lines == []


async def content_of(stage: Stage) -> bytes:
    storage = await stage.storage()
    try:
        return await dump(storage)
    finally:
        await storage.close()


@pytest.mark.covers("RT-3.3-06", "RT-3.3-08", "RT-3.3-09", "TIER-A-13")
def test_the_table_has_each_check_of_a_batch_and_of_an_aborted_response() -> None:
    checks = {check for _, check, _ in CORRUPTIONS.values()}
    assert checks == {
        "lane registers", "operation registers", "named entries", "named registers", "operation owner",
        "intent and state", "navigation target", "aborted implies cancelled", "entry types", "tool indices",
        "tool results",
    }  # fmt: skip


@pytest.mark.covers("RT-4.4-01", "RT-4.4-02", "RT-4.4-06", "TEST-R1-05")
async def test_restore_makes_five_point_reads_and_one_batch(place: Place) -> None:
    for prefix in (await prefixes(SCENARIO, place))[1:]:
        stage = next_life(prefix, [])
        storage = CountingStorage(await stage.storage())
        held = await held_by(storage)
        await storage.close()
        stage = next_life(prefix, [])
        counting = count_calls(stage)
        async with stage.open():
            counted = counting[0]
        expected = ["lane.config/main", "lane.config/main", "lane.state/main", "lane.leaf/main"]
        if held.operation is not None:
            expected += [f"op.meta/{held.id}", f"op.state/{held.id}"]
        named = [f"op.tool_args/{held.id}:{turn_of(held)}:{index}" for index in pending_of(held)]
        assert counted.registers[-len(expected + named) :] == expected + named, prefix.name
        assert counted.calls["scan_branch"] == counted.calls["scan_branch_structure"] == 0


def count_calls(stage: Stage) -> list[CountingStorage]:
    """The counting storages that the stage opens from now on."""
    made: list[CountingStorage] = []

    def wrap(inner: Storage) -> Storage:
        made.append(CountingStorage(inner))
        return made[-1]

    stage.wrap = wrap
    return made


def pending_of(held: Held) -> list[int]:
    if held.state is None or not isinstance(held.state.phase, ToolsPhase):
        return []
    return [call.source_index for call in held.state.phase.batch.calls if type(call).__name__ == "CallEffectPending"]


@pytest.mark.covers("RT-4.4-03", "RT-4.4-04", "RT-4.4-05", "RT-3.3-02")
async def test_restore_asks_for_exactly_the_entries_that_the_state_names(place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIO, place) if one.name == "settle_tool")
    stage = next_life(prefix, [])
    counting = count_calls(stage)
    async with stage.open() as harness:
        held = await held_by(counting[0].inner)
        asked = [*counting[0].entries]
        assert harness.suspended[0].operation_id == held.id
    assert isinstance(held.run.phase, ToolsPhase)
    first, second = held.run.phase.batch.calls
    assert isinstance(first, CallCompleted)
    assert asked == [sorted(entry.id for entry in held.entries)]
    assert [role_of(entry.payload.message) for entry in held.entries if isinstance(entry.payload, MessagePayload)] == [
        "user", "assistant", "toolResult",
    ]  # fmt: skip
    assert second.result_entry_id not in asked[0]


@pytest.mark.covers("RT-3.3-11", "INV-16")
async def test_the_last_result_is_never_read_by_restore(place: Place) -> None:
    prefix = next(one for one in await prefixes(SCENARIO, place) if one.name == "settle_tool_calls")
    stage = next_life(prefix, [])
    storage = await stage.storage()
    nonsense = LaneLastResult(operation_id="x", kind="navigation", outcome="declined", leaf_id="nowhere")
    await storage.commit(Transaction((RegisterSet(LANE_LAST_RESULT, "main", nonsense),)))
    await storage.close()
    stage = next_life(prefix, SCENARIO.steps, SCENARIO.tools(Log()))
    counting = count_calls(stage)
    async with stage.open() as harness:
        assert not any("lastResult" in key for key in counting[0].registers)
        assert type(await harness.resume()).__name__ == "RunCompleted"
