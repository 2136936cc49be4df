"""What a restart repeats and what it never repeats, and what happens between intent and settlement (§0.3-§0.6)."""

from collections.abc import Callable, Mapping
from dataclasses import replace as vary
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import fields

from restartpoint import HarnessFault
from restartpoint.contract import (
    NAMESPACES,
    AgentMessage,
    EntryDraft,
    EntryScan,
    InsertEntry,
    InsertUsage,
    MessagePayload,
    MessageUpdateEvent,
    Register,
    RegisterSet,
    RunEndEvent,
    ToolEndEvent,
    ToolStartEvent,
    Transaction,
    UsageDraft,
    UsageScan,
    role_of,
)
from restartpoint.contract.hooks import Invocation
from restartpoint.hooks import Hooks
from restartpoint.providers import ScriptedCall, ScriptedResponse, asks, says
from restartpoint.seams.ids import timestamp_of
from restartpoint.storage import MemoryStorage
from tests.harness.runtime.crash import Prefix, next_life, prefixes
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.drive import calling
from tests.harness.runtime.places import BACKENDS, METADATA, MemoryPlace, Place
from tests.harness.runtime.scenarios import SCENARIOS, Scenario
from tests.harness.runtime.stage import Stage, stage_of
from tests.harness.runtime.storages import FailingStorage

MIDNIGHT = 1_700_006_400_000
"""The next midnight, in UTC, of the clock that every stage starts with."""


@pytest.mark.covers("ST-0.5-02")
async def test_a_safe_tool_runs_again_after_a_crash_with_the_same_arguments(place: Place) -> None:
    first, second = Tool(name="save", log=Log(), replay="safe"), Tool(name="save", log=Log(), replay="safe")
    scenario = vary(SCENARIOS["replaced arguments"], tools=lambda log: [first])
    (prefix,) = [one for one in await prefixes(scenario, place) if one.name == "intend_tool"]
    stage = next_life(prefix, scenario.steps, [second], log=second.log)
    async with stage.open() as harness:
        await harness.resume()
    assert first.seen == second.seen == [{"path": "b"}]
    assert second.log.count("tool save") == 1
    assert (await stage.messages())[2] == "toolResult: save done"


@pytest.mark.covers("ST-0.5-03")
@pytest.mark.parametrize("name", ["one tool", "two tools side by side", "blocked", "genuine length with calls"])
async def test_wherever_it_crashed_every_call_ends_with_exactly_one_result(name: str, tmp_path: Path) -> None:
    scenario = SCENARIOS[name]
    for prefix in (await prefixes(scenario, MemoryPlace(tmp_path)))[1:-1]:
        log = Log()
        stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
        stage.prepare = lambda hooks, log=log: scenario.hooks(hooks, log)  # type: ignore[misc]
        async with stage.open(**scenario.options) as harness:
            await harness.resume()
            messages = [one.payload.message for one in await stage.entries() if isinstance(one.payload, MessagePayload)]
        calls = [block["id"] for message in messages if role_of(message) == "assistant" for block in calls_of(message)]
        results = [message["toolCallId"] for message in messages if role_of(message) == "toolResult"]
        assert sorted(map(str, results)) == sorted(map(str, calls)), prefix.name


def calls_of(message: AgentMessage) -> list[Mapping[str, Any]]:
    content = message["content"]
    assert isinstance(content, list)
    return [block for block in content if isinstance(block, dict) and block["type"] == "toolCall"]


# --- recovery needs the registers alone


async def current_rows_alone(prefix: Prefix, tmp_path: Path) -> Prefix:
    """A session of the same rows and registers, written anew in two commits: nothing tells how they came about."""
    storage = await prefix.place.reopen(clock=prefix.stage.clock, faults=prefix.stage.faults)
    entries = await storage.scan_entries(EntryScan(order="asc"))
    rows = await storage.scan_usage(UsageScan(order="asc"))
    registers: list[Register[Any]] = []
    for namespace in NAMESPACES.values():
        registers += await storage.list_registers(namespace)
    await storage.close()
    sets = [RegisterSet(register.namespace, register.key, register.value) for register in registers]
    made = await MemoryStorage.create(METADATA, Transaction(tuple(sets)), clock=prefix.stage.clock)
    inserts = [InsertEntry(EntryDraft(id=one.id, parent_id=one.parent_id, payload=one.payload)) for one in entries]
    drafts = [UsageDraft(id=row.id, usage=row.usage, entry_id=row.entry_id) for row in rows]
    await made.commit(Transaction((*inserts, *map(InsertUsage, drafts))))
    place = MemoryPlace(tmp_path)
    place.data = made.data
    return Prefix(name=prefix.name, place=place, lines=prefix.lines, stage=prefix.stage)


async def recovered(prefix: Prefix, scenario: Scenario) -> tuple[list[str], list[str], str]:
    log = Log()
    stage = next_life(prefix, scenario.steps, scenario.tools(log), log=log)
    async with stage.open(**scenario.options) as harness:
        outcome = await harness.resume()
    return stage.log.lines, await stage.messages(), type(outcome).__name__


@pytest.mark.covers("ST-0.3-07")
@pytest.mark.parametrize("name", ["one tool", "sequential by one tool", "genuine length with calls", "provider error"])
async def test_recovery_from_the_current_rows_alone_equals_recovery_with_the_whole_history(
    name: str, tmp_path: Path
) -> None:
    scenario = SCENARIOS[name]
    seen = 0
    for prefix in (await prefixes(scenario, BACKENDS["jsonl"](tmp_path)))[1:-1]:
        alone = await current_rows_alone(prefix, tmp_path)
        assert await recovered(alone, scenario) == await recovered(prefix, scenario), prefix.name
        seen += 1
    assert seen >= 4


# --- between intent and settlement


@pytest.mark.covers("ST-0.3-11")
async def test_every_effect_starts_after_its_intent_and_before_its_settlement(
    scenario: Scenario, tmp_path: Path, log: Log
) -> None:
    stage = stage_of(scenario, MemoryPlace(tmp_path), log)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
    open_requests, open_calls, started = 0, 0, 0
    for line in log.lines:
        match line.split()[0]:
            case "intend_assistant":
                open_requests += 1
            case "intend_tool":
                open_calls += 1
            case "request":
                assert open_requests == 1
                started += 1
            case "tool":
                assert open_calls > 0
                started += 1
            case "settle_tool":
                open_calls -= 1
            case "complete_batch" | "complete_terminating_batch":
                open_calls = 0
            case word if word.startswith("settle_"):
                open_requests -= 1
                assert open_requests == 0
    assert started == len([line for line in log.lines if line.startswith(("request", "tool "))]) > 0


@pytest.mark.covers("ST-0.6-02")
async def test_nothing_is_written_while_a_response_streams_and_all_of_it_before_it_is_classified(
    place: Place, log: Log
) -> None:
    chunks = ["one ", "two ", "three"]
    stage = Stage(place, [ScriptedResponse(chunks=chunks, text="one two three")], log=log)
    drafts: list[int] = []
    async with stage.open() as harness:
        harness.events.on(MessageUpdateEvent, lambda event: drafts.append(len(stage.court.commits)))
        await harness.prompt("go")
    assert len(drafts) >= len(chunks)
    assert set(drafts) == {4}
    assert stage.names[3:] == ["intend_assistant", "settle_stop", "finish_run"]
    assert await stage.messages() == ["user: go", "assistant: one two three"]


@pytest.mark.covers("ST-1.2-05")
async def test_result_ids_share_the_time_of_their_response_also_across_midnight(place: Place, log: Log) -> None:
    async def work(arguments: Any, context: Any) -> Any:
        stage.clock.now += 5_000
        return await Tool(name="done", log=Log()).execute(arguments, context)

    stage = Stage(
        place,
        [asks(ScriptedCall(name="save"), ScriptedCall(name="load")), says("done")],
        [Tool(name="save", log=log, work=work), Tool(name="load", log=log, work=work)],
        log=log,
    )
    stage.clock.now = MIDNIGHT - 1
    async with stage.open() as harness:
        await harness.prompt("go")
        entries = await stage.entries()
    ids = {shown(entry): entry.id for entry in entries}
    assert {timestamp_of(ids["toolResult 0"]), timestamp_of(ids["toolResult 1"])} == {timestamp_of(ids["assistant"])}
    assert timestamp_of(ids["assistant"]) == MIDNIGHT - 1
    assert [entry.timestamp >= MIDNIGHT for entry in entries if "toolResult" in shown(entry)] == [True, True]
    assert timestamp_of(ids["assistant again"]) > MIDNIGHT


def shown(entry: Any) -> str:
    message = entry.payload.message
    role = str(message["role"])
    if role == "toolResult":
        return f"{role} {str(message['toolCallId'])[-1]}"
    return f"{role} again" if role == "assistant" and not calls_of(message) else role


@pytest.mark.covers("ST-1.2-12")
async def test_one_seed_and_one_clock_write_the_same_file_in_both_drives(tmp_path: Path) -> None:
    files: list[bytes] = []
    for drive in ("automatic", "manual", "automatic"):
        stage = stage_of(SCENARIOS["one tool"], BACKENDS["jsonl"](new(tmp_path / str(len(files)))), Log())
        async with stage.open(drive=drive) as harness, calling(harness.prompt("go")) as run:
            await harness.run_to_completion()
            await run.result()
        files.append(stage.place.content())
    assert files[0] == files[1] == files[2]


def new(folder: Path) -> Path:
    folder.mkdir()
    return folder


# --- what is promised to hooks and to vendors


@pytest.mark.covers("ST-0.6-01")
def test_every_hook_gets_the_id_of_its_operation_and_the_documents_say_what_it_is_for() -> None:
    kinds = Invocation.__subclasses__()
    assert len(kinds) == 11
    assert [kind.__name__ for kind in kinds if not {"lane", "run_id"} <= {one.name for one in fields(kind)}] == []
    documents = Path(__file__).resolve().parents[3] / "docs"
    gaps = (documents / "why" / "known-gaps.md").read_text(encoding="utf-8")
    assert "Exactly once" in gaps
    assert "run_id" in gaps


def attach(hooks: Hooks, handler: Callable[[Any], None]) -> None:
    hooks.on("transform_context", handler)


@pytest.mark.covers("ST-2.5-09")
async def test_the_context_goes_through_the_hook_and_then_to_the_shape_of_the_vendor(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    stage.unprojected = "the application shapes the messages"

    def transform(event: Any) -> None:
        log.note("transform_context")

    def shape(messages: list[AgentMessage]) -> list[AgentMessage]:
        log.note("to_provider_messages")
        return messages

    stage.prepare = lambda hooks: attach(hooks, transform)
    async with stage.open(to_provider_messages=shape) as harness:
        await harness.prompt("go")
    order = [line for line in log.lines if line.startswith(("transform", "to_provider", "request"))]
    assert order == ["transform_context", "to_provider_messages", "request 0"]


# --- what a crash can leave


@pytest.mark.covers("ST-1.8-02")
async def test_whenever_a_process_stops_it_leaves_the_state_after_one_of_its_commits(place: Place, log: Log) -> None:
    """Looked at from inside the request, the tool, the hook and the events, between all commits."""
    after: list[bytes] = []
    meanwhile: list[bytes] = []

    async def work(arguments: Any, context: Any) -> Any:
        meanwhile.append(stage.place.copy().content())
        return await Tool(name="done", log=Log()).execute(arguments, context)

    def look(_: object) -> None:
        meanwhile.append(stage.place.copy().content())

    stage = Stage(place, SCENARIOS["one tool"].steps, [Tool(name="save", log=log, work=work)], log=log)
    stage.on_commit = lambda name: after.append(stage.place.copy().content())
    stage.prepare = lambda hooks: attach(hooks, look)
    async with stage.open() as harness:
        for kind in (MessageUpdateEvent, ToolStartEvent, ToolEndEvent, RunEndEvent):
            harness.events.on(kind, look)
        await harness.prompt("go")
    assert len(after) == len(set(after)) == len(stage.names)
    assert len(meanwhile) > 6
    assert set(meanwhile) <= set(after)


@pytest.mark.covers("ST-1.4-17")
@pytest.mark.parametrize("number", range(1, 10))
async def test_a_commit_that_fails_faults_every_later_call_and_a_restart_finds_the_one_before(
    number: int, place: Place, log: Log
) -> None:
    reference: list[bytes] = []
    twin = stage_of(SCENARIOS["one tool"], place.another(), Log())
    twin.on_commit = lambda name: reference.append(twin.place.copy().content())
    async with twin.open() as harness:
        await harness.prompt("go")
    stage = stage_of(SCENARIOS["one tool"], place, log)
    stage.wrap = lambda inner: FailingStorage(inner, fail_at=number)
    async with stage.open() as harness:
        with pytest.raises(HarnessFault):
            await harness.prompt("go")
        with pytest.raises(HarnessFault):
            await harness.prompt("more")
        with pytest.raises(HarnessFault):
            await harness.set_thinking_level("high")
        with pytest.raises(HarnessFault):
            await harness.create_lane("side", None)
    storage = await stage.storage()
    await storage.close()
    assert len(stage.names) == number
    assert stage.place.copy().content() == reference[number - 1]
