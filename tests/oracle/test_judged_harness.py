"""The runtime under the judge: whole runs on every backend."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from restartpoint import AgentHarness, HarnessOptions, RetryPolicy, RunCompleted
from restartpoint.contract import user_message
from restartpoint.providers import SCRIPTED_MODEL, ScriptedCall, ScriptedModels, asks, says
from restartpoint.repo import JsonlRepository, MemoryRepository, SessionRepository, SqliteRepository
from restartpoint.seams import InlineWork
from restartpoint.tools import tool
from restartpoint_oracle import (
    EffectLog,
    EffectOutOfOrder,
    EffectStarted,
    JudgedRepository,
    LoggedModels,
    LoggedTimers,
    LoggedTool,
    ManualClock,
    RequestDiffers,
    check_requests,
    check_sandwich,
    counted_ids,
)
from restartpoint_oracle.fixtures import Judging


class NoWaiting:
    async def sleep_ms(self, delay_ms: int) -> None:
        return


@tool(name="read", replay="safe")
def read(path: str) -> str:
    """Reads a file."""
    return f"content of {path}"


@pytest.fixture(params=["memory", "jsonl", "sqlite"])
def repository(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SessionRepository]:
    clock = ManualClock()
    ids = counted_ids(clock)
    match request.param:
        case "memory":
            yield MemoryRepository(clock=clock, ids=ids)
        case "jsonl":
            yield JsonlRepository(tmp_path, clock=clock, ids=ids)
        case _:
            yield SqliteRepository(tmp_path, clock=clock, ids=ids)


def options(models: ScriptedModels, log: EffectLog) -> HarnessOptions:
    return HarnessOptions(
        models=LoggedModels(models, log),
        model=SCRIPTED_MODEL,
        tools=[LoggedTool(read, log)],
        retry=RetryPolicy(enabled=False),
        timers=LoggedTimers(NoWaiting(), log),
        blocking=InlineWork(),
    )


def effects(log: EffectLog) -> list[str]:
    return [event.kind for event in log.events if isinstance(event, EffectStarted)]


@pytest.mark.covers("TIER-B-02", "ST-0.3-11")
async def test_a_run_with_tools_is_explained_commit_by_commit(
    repository: SessionRepository, judged: Judging, effect_log: EffectLog
) -> None:
    calls = [ScriptedCall(name="read", arguments={"path": "a"}), ScriptedCall(name="read", arguments={"path": "b"})]
    models = ScriptedModels([asks(*calls), says("done")])
    async with judged(repository) as court:
        session = await court.create(id="s-1")
        async with AgentHarness.open(session, options(models, effect_log)) as harness:
            outcome = await harness.prompt(user_message("read two files", timestamp=1))
        assert isinstance(outcome, RunCompleted)
        names = [found.name for found in court.judge.history]
        assert names[:4] == ["create_session", "seed_main", "accept_run", "start_generation"]
        assert {"intend_tool", "settle_tool", "complete_batch"} <= set(names)
        assert names[-1] == "finish_run"
    assert effects(effect_log) == ["provider", "tool", "tool", "provider"]
    check_requests(effect_log)


async def test_a_session_goes_on_under_a_new_judge(
    repository: SessionRepository, judged: Judging, effect_log: EffectLog
) -> None:
    models = ScriptedModels([says("one"), says("two")])
    async with judged(repository) as court:
        for text in ("first", "second"):
            session = await (court.create(id="s-1") if text == "first" else court.open("s-1"))
            async with AgentHarness.open(session, options(models, effect_log)) as harness:
                assert isinstance(await harness.prompt(text), RunCompleted)
            await session.close()
        assert len(court.judges) == 2
        assert next(found.name for found in court.judges[1].history) == "accept_run"
    check_requests(effect_log)


async def test_a_request_that_forgets_a_message_is_found() -> None:
    log = EffectLog()
    async with JudgedRepository(MemoryRepository(), on_open=log.follow) as court:
        session = await court.create()
        given = options(ScriptedModels([says("one")]), log)
        forgetful = replace(given, to_provider_messages=lambda messages: messages[1:])
        async with AgentHarness.open(session, forgetful) as harness:
            await harness.prompt("first")
    check_sandwich(log)
    with pytest.raises(RequestDiffers, match="expected 1 items, found 0"):
        check_requests(log)


async def test_a_tool_that_runs_twice_under_one_intent_is_found() -> None:
    log = EffectLog()
    twice = LoggedTool(LoggedTool(read, log), log)
    async with JudgedRepository(MemoryRepository(), on_open=log.follow) as court:
        session = await court.create()
        models = ScriptedModels([asks(ScriptedCall(name="read", arguments={"path": "a"})), says("done")])
        async with AgentHarness.open(session, replace(options(models, log), tools=[twice])) as harness:
            await harness.prompt("first")
        court.verify()
    with pytest.raises(EffectOutOfOrder, match="tool read"):
        check_sandwich(log)
