"""What a run writes, in which order and for how long: the worked examples on every backend (§0.4, §1.3, §1.8)."""

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace as vary
from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LAST_RESULT,
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    OP_STATE,
    OP_TOOL_ARGS,
    PENDING_ENTRY,
    UNSET,
    AssistantPhase,
    CallEffectPending,
    CheckpointPhase,
    CustomPayload,
    GenerationEffectPending,
    InsertEntry,
    InsertUsage,
    LaneState,
    MessagePayload,
    Namespace,
    PendingCustom,
    PendingMessage,
    RegisterDelete,
    RegisterSet,
    RunState,
    ToolsPhase,
    Transaction,
    Write,
    user_message,
)
from restartpoint.providers import ScriptedCall, asks, says
from restartpoint.session import SessionMutator
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import MemoryPlace, Place
from tests.harness.runtime.scenarios import SCENARIOS, Scenario, saved_by, spent
from tests.harness.runtime.stage import Stage, stage_of

ACCEPTANCE = ["entry", "set lane.leaf/main", "set op.meta/O", "set op.state/O", "set lane.state/main"]
SETTLEMENT = ["entry", "set lane.leaf/main", "usage", "set op.state/O"]
TERMINAL = ["delete op.meta/O", "delete op.state/O", "set lane.lastResult/main", "set lane.state/main"]

TWO_TURNS = vary(
    SCENARIOS["one tool"],
    steps=[
        asks(ScriptedCall(name="save"), ScriptedCall(name="load")),
        asks(ScriptedCall(name="save"), ScriptedCall(name="load")),
        says("done"),
    ],
    tools=lambda log: [Tool(name="save", log=log, usage=spent(3)), Tool(name="load", log=log)],
)


async def run(scenario: Scenario, place: Place, log: Log) -> Stage:
    """The stage after one prompt."""
    stage = stage_of(scenario, place, log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
    return stage


@pytest.fixture
async def one_tool(place: Place, log: Log) -> Stage:
    return await run(SCENARIOS["one tool"], place, log)


@pytest.fixture
async def two_turns(place: Place, log: Log) -> Stage:
    return await run(TWO_TURNS, place, log)


def commits(stage: Stage, name: str) -> list[Transaction]:
    return [tx for done, tx in zip(stage.names, stage.court.commits, strict=True) if done == name]


def sets(writes: Iterator[Write] | tuple[Write, ...]) -> list[RegisterSet[Any]]:
    return [write for write in writes if isinstance(write, RegisterSet)]


def all_writes(stage: Stage) -> Iterator[Write]:
    return (write for tx in stage.court.commits for write in tx.writes)


def state_in(tx: Transaction) -> RunState:
    (state,) = [write.value for write in sets(tx.writes) if write.namespace is OP_STATE]
    assert isinstance(state, RunState)
    return state


# --- the worked example


@pytest.mark.covers("ST-0.4-09")
async def test_a_run_with_one_tool_writes_exactly_this_in_exactly_this_order(one_tool: Stage) -> None:
    state = ["set op.state/O"]
    assert one_tool.writes == [
        ["set lane.config/main"],
        ACCEPTANCE,
        state,
        state,
        SETTLEMENT,
        ["set op.tool_args/O:0", *state],
        ["entry", "set lane.leaf/main", "delete op.tool_args/O:0", *state],
        state,
        state,
        SETTLEMENT,
        TERMINAL,
    ]


@pytest.mark.covers("ST-0.4-01")
async def test_acceptance_writes_prompt_leaf_meta_state_and_lane(one_tool: Stage) -> None:
    (tx,) = commits(one_tool, "accept_run")
    entry, leaf, meta, state, lane = tx.writes
    assert one_tool.writes[1] == ACCEPTANCE
    assert isinstance(entry, InsertEntry)
    assert isinstance(leaf, RegisterSet)
    assert isinstance(meta, RegisterSet)
    assert isinstance(state, RegisterSet)
    assert isinstance(lane, RegisterSet)
    assert leaf.value == entry.entry.id
    assert meta.key == state.key == meta.value.operation_id
    assert isinstance(state.value.phase, CheckpointPhase)
    assert lane.value == LaneState(current_operation_id=meta.key, pending_next_run=[])


@pytest.mark.covers("ST-0.4-02", "ST-1.6-07", "ST-2.2-08")
async def test_the_second_of_two_commits_before_a_request_reserves_the_ids_of_its_settlement(
    place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    present: list[tuple[bool, bool]] = []
    async with stage.open() as harness:
        check = stage.models.check

        def look(request: Any) -> None:
            assert check is not None
            check(request)
            pending = pending_of(commits(stage, "intend_assistant")[-1])
            held = stage.court.state
            present.append((pending.response_entry_id in held.entries, pending.usage_id in held.usage))

        stage.models.check = look
        await harness.prompt("go")
    assert log.lines[2:5] == ["start_generation", "intend_assistant", "request 0"]
    assert stage.writes[2:4] == [["set op.state/O"], ["set op.state/O"]]
    pending = pending_of(commits(stage, "intend_assistant")[0])
    (settled,) = commits(stage, "settle_stop")
    entry, usage = settled.writes[0], settled.writes[2]
    assert isinstance(entry, InsertEntry)
    assert isinstance(usage, InsertUsage)
    assert (entry.entry.id, usage.row.id) == (pending.response_entry_id, pending.usage_id)
    assert present == [(False, False)]


def pending_of(tx: Transaction) -> GenerationEffectPending:
    phase = state_in(tx).phase
    assert isinstance(phase, AssistantPhase)
    assert isinstance(phase.generation, GenerationEffectPending)
    return phase.generation


@pytest.mark.covers("ST-0.4-03")
async def test_every_classification_settles_response_leaf_usage_and_state_in_this_order(tmp_path: Path) -> None:
    settled: set[str] = set()
    for scenario in SCENARIOS.values():
        stage = await run(scenario, MemoryPlace(tmp_path), Log())
        for name, writes in zip(stage.names, stage.writes, strict=True):
            if name.startswith("settle_") and name != "settle_tool":
                assert writes == SETTLEMENT, (scenario.name, name)
                settled.add(name)
    assert settled == {
        "settle_tool_calls", "settle_stop", "settle_failure", "settle_deferred", "settle_invalid_deferred",
        "settle_unpreparable_overflow",
    }  # fmt: skip


@pytest.mark.covers("ST-0.4-04", "ST-1.3-07", "ST-1.3-20")
async def test_a_call_writes_its_arguments_before_its_state_and_its_result_before_its_usage(two_turns: Stage) -> None:
    intents, arguments = commits(two_turns, "intend_tool"), list[str]()
    for tx in intents:
        first, second = tx.writes
        assert isinstance(first, RegisterSet)
        assert isinstance(second, RegisterSet)
        assert (first.namespace, second.namespace) == (OP_TOOL_ARGS, OP_STATE)
        phase = state_in(tx).phase
        assert isinstance(phase, ToolsPhase)
        operation, step, index = first.key.split(":")
        assert (operation, step) == (second.key, phase.batch.turn_id)
        assert isinstance(phase.batch.calls[int(index)], CallEffectPending)
        assert first.value == {}
        arguments.append(first.key)
    assert len(arguments) == len(set(arguments)) == 4
    assert len({key.split(":")[1] for key in arguments}) == 2
    named = zip(two_turns.names, two_turns.writes, strict=True)
    assert [writes for name, writes in named if name == "settle_tool"] == [SETTLEMENT, SETTLEMENT]


@pytest.mark.covers("ST-0.4-05", "ST-1.3-19")
async def test_the_end_deletes_the_operation_then_tells_its_result_and_frees_the_lane(
    two_turns: Stage,
) -> None:
    assert two_turns.names[-1] == "finish_run"
    assert two_turns.writes[-1] == TERMINAL
    (tx,) = commits(two_turns, "finish_run")
    meta, state, result, lane = tx.writes
    assert isinstance(meta, RegisterDelete)
    assert isinstance(state, RegisterDelete)
    assert isinstance(result, RegisterSet)
    assert isinstance(lane, RegisterSet)
    assert meta.key == state.key == result.value.operation_id
    assert lane.value == LaneState(current_operation_id=None, pending_next_run=[])
    left = two_turns.court.state.namespaces
    assert [key for name, held in left.items() if str(name).startswith("op.") for key in held] == []


# --- what lives how long


@pytest.mark.covers("ST-1.3-06", "ST-0.2-08")
async def test_the_state_is_the_only_register_of_an_operation_that_is_overwritten(two_turns: Stage) -> None:
    written = Counter(
        (write.namespace.name, write.key)
        for write in sets(all_writes(two_turns))
        if write.namespace.name.startswith(("op.", "pending."))
    )
    often = {name for (name, _), times in written.items() if times > 1}
    assert often == {"op.state"}
    assert sum(times for (name, _), times in written.items() if name == "op.meta") == 1
    kept = two_turns.court.state.namespaces
    assert [len(held) for name, held in kept.items() if str(name) in ("op.meta", "op.state")] == [0, 0]
    assert [len(held) for name, held in kept.items() if str(name) == "lane.lastResult"] == [1]


@pytest.mark.covers("ST-1.3-18", "ST-2.3-11")
async def test_no_commit_of_a_run_deletes_a_register_of_a_lane_or_a_fact(place: Place, log: Log) -> None:
    stage = stage_of(TWO_TURNS, place, log)
    async with stage.open() as harness:
        session = stage.session
        await session.set_name("n")
        await session.set_custom_fact("k", None)
        entry = await session.append_message(user_message("before", 1))
        await session.set_label(entry, "l")
        await harness.create_lane("side", entry)
        await harness.prompt("go")
        assert (await session.get_name(), await session.get_label(entry)) == ("n", "l")
        assert await session.get_custom_fact("k") is None
        lane_registers: tuple[Namespace[Any], ...] = (LANE_LEAF, LANE_CONFIG, LANE_STATE)
        for namespace in lane_registers:
            assert [one.key for one in await session.list_registers(namespace)] == ["main", "side"]
    deleted = {write.namespace.name for write in all_writes(stage) if isinstance(write, RegisterDelete)}
    assert deleted == {"op.meta", "op.state", "op.tool_args"}


@pytest.mark.covers("ST-1.3-23")
async def test_only_the_end_of_a_run_writes_the_last_result_and_there_is_one_for_a_lane(place: Place, log: Log) -> None:
    stage = Stage(place, [says("one"), says("two"), says("three")], log=log)
    async with stage.open() as harness:
        for _ in range(3):
            await harness.prompt("go")
            (result,) = await stage.session.list_registers(LANE_LAST_RESULT)
            assert result.value == await harness.get_last_result()
    writers = [
        name
        for name, tx in zip(stage.names, stage.court.commits, strict=True)
        if any(write.namespace is LANE_LAST_RESULT for write in sets(tx.writes))
    ]
    assert writers == ["finish_run"] * 3


@pytest.mark.covers("ST-1.8-03", "ST-1.6-04")
async def test_after_a_run_of_thirty_turns_only_conversation_ledger_and_lane_remain(place: Place, log: Log) -> None:
    turns = [asks(ScriptedCall(name="save")) for _ in range(29)]
    stage = Stage(place, [*turns, says("done")], saved_by(usage=spent(1))(log), log=log)
    rows: list[int] = []
    stage.on_commit = lambda name: rows.append(len(stage.court.state.usage))
    async with stage.open() as harness:
        await harness.prompt("go")
        held = {
            namespace.name: [one.key for one in await stage.session.list_registers(namespace)]
            for namespace in NAMESPACES.values()
        }
    assert {name: keys for name, keys in held.items() if keys} == {
        "lane.config": ["main"], "lane.lastResult": ["main"], "lane.leaf": ["main"], "lane.state": ["main"],
    }  # fmt: skip
    assert len(stage.court.state.entries) == 1 + 30 + 29
    assert rows[-2:] == [30 + 29, 30 + 29]
    assert rows == sorted(rows)


# --- content that waits


def queueing(*values: tuple[str, PendingMessage | PendingCustom]) -> Transaction:
    state = LaneState(current_operation_id=None, pending_next_run=[key for key, _ in values])
    waiting = [RegisterSet(PENDING_ENTRY, key, value) for key, value in values]
    return Transaction((*waiting, RegisterSet(LANE_STATE, "main", state)))


@pytest.mark.covers("ST-1.4-11", "ST-1.3-09", "ST-1.3-14", "ST-2.2-05")
async def test_content_that_waits_becomes_the_entry_of_its_key_in_the_commit_that_deletes_it(
    place: Place, log: Log
) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    ids = [stage.ids.next() for _ in range(3)]
    storage = await stage.storage()
    message = user_message("waited", 1)
    await storage.commit(
        queueing(
            (ids[0], PendingMessage(payload=message)),
            (ids[1], PendingCustom(custom_type="note")),
            (ids[2], PendingCustom(custom_type="note", payload=None)),
        )
    )
    await storage.close()
    async with stage.open() as harness:
        await harness.prompt("go")
        entries = await stage.session.find_entries()
        assert await stage.session.list_registers(PENDING_ENTRY) == []
    (accepted,) = [writes for name, writes in zip(stage.names, stage.writes, strict=True) if name == "accept_run"]
    assert accepted == [*["entry"] * 4, *["delete pending.entry/O"] * 3, *ACCEPTANCE[1:]]
    deletes = [write.key for write in commits(stage, "accept_run")[0].writes if isinstance(write, RegisterDelete)]
    assert deletes == ids
    placed = {entry.id: entry.payload for entry in entries}
    assert [placed[key] for key in ids] == [
        MessagePayload(message=message),
        CustomPayload(custom_type="note", data=UNSET),
        CustomPayload(custom_type="note", data=None),
    ]


@pytest.mark.covers("ST-1.3-22")
async def test_content_for_the_next_run_outlives_the_run_during_which_it_was_queued(place: Place, log: Log) -> None:
    tool = Tool(name="save", log=log)
    stage = Stage(place, SCENARIOS["one tool"].steps, [tool], log=log)
    queued = PendingMessage(payload=user_message("later", 1))
    async with stage.open() as harness:
        key = stage.ids.next()

        async def enqueue(mutator: SessionMutator) -> None:
            register = await mutator.get_register(LANE_STATE, "main")
            assert register is not None
            state = LaneState(current_operation_id=register.value.current_operation_id, pending_next_run=[key])
            await mutator.commit(
                Transaction((RegisterSet(PENDING_ENTRY, key, queued), RegisterSet(LANE_STATE, "main", state)))
            )

        tool.work = working(lambda: stage.session.mutate("main", enqueue))
        await harness.prompt("go")
        (waiting,) = await stage.session.list_registers(PENDING_ENTRY)
        lane = await stage.session.get_register(LANE_STATE, "main")
        assert lane is not None
        assert (waiting.key, waiting.value) == (key, queued)
        assert lane.value == LaneState(current_operation_id=None, pending_next_run=[key])
        assert key not in {entry.id for entry in await stage.session.find_entries()}
        await harness.prompt("again")
        assert await stage.session.list_registers(PENDING_ENTRY) == []
        assert key in {entry.id for entry in await stage.session.find_entries()}
    assert "enqueue_next_run" in stage.names


def working(call: Callable[[], Any]) -> Any:
    async def work(arguments: Any, context: Any) -> Any:
        await call()
        return await Tool(name="done", log=Log()).execute(arguments, context)

    return work


# --- configuration and facts


@pytest.mark.covers("ST-2.3-05")
async def test_a_setter_of_a_lane_overwrites_its_whole_configuration_and_places_no_entry(
    place: Place, log: Log
) -> None:
    stage = Stage(place, [], [Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:
        before = await harness.get_configuration()
        await harness.set_thinking_level("high")
        await harness.set_active_tools([])
        await harness.set_model(before.model)
        assert await stage.session.find_entries() == []
        after = await harness.get_configuration()
    assert stage.writes[1:] == [["set lane.config/main"]] * 3
    values = [write.value for write in sets(all_writes(stage))]
    assert [(value.model, value.thinking_level, value.active_tool_names) for value in values] == [
        (before.model, "off", ["save"]),
        (before.model, "high", ["save"]),
        (before.model, "high", []),
        (before.model, "high", []),
    ]
    assert values[-1] == after


@pytest.mark.covers("ST-2.1-09")
async def test_terminate_stands_on_the_entry_of_a_result_and_never_in_its_message(tmp_path: Path, log: Log) -> None:
    ending = await run(SCENARIOS["every tool terminates"], MemoryPlace(tmp_path), log)
    ordinary = await run(SCENARIOS["one tool"], MemoryPlace(tmp_path), Log())
    for stage, expected in ((ending, True), (ordinary, False)):
        payloads = [
            write.entry.payload
            for write in all_writes(stage)
            if isinstance(write, InsertEntry) and isinstance(write.entry.payload, MessagePayload)
        ]
        found = {str(payload.message["role"]): payload.terminate for payload in payloads}
        assert found == {"user": False, "assistant": False, "toolResult": expected}
        assert not any("terminate" in payload.message for payload in payloads)
