"""Opening a harness: the seed of main, what an error of the block looks like, lanes and defaults (§5.2)."""

from typing import Any

import anyio
import pytest

from restartpoint import AgentHarness, HarnessOptions
from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    LaneConfiguration,
    Namespace,
    RegisterDelete,
    RetryPolicy,
    Transaction,
)
from restartpoint.errors import (
    InvalidLane,
    InvalidOptions,
    LaneExists,
    NotBuiltYet,
    SessionCorruption,
    StorageClosed,
    UnknownTarget,
)
from restartpoint.providers import SCRIPTED_MODEL, says
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import SCENARIOS
from tests.harness.runtime.stage import Stage, stage_of


class Expected(Exception):
    pass


async def test_an_error_of_the_block_leaves_it_as_it_was_raised(place: Place, log: Log) -> None:
    with pytest.raises(Expected):
        async with Stage(place, [], log=log).open():
            raise Expected


async def test_async_listeners_do_not_keep_the_block_open(place: Place, log: Log) -> None:
    never = anyio.Event()
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open() as harness:
        harness.events.on("run_start", lambda event: never.wait())
        await harness.prompt("go")


@pytest.mark.covers("AMB-79", "RT-3.3-13", "RT-5.2-19")
async def test_a_lane_without_its_registers_is_refused_as_corrupt(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        await harness.create_lane("side", None)
    storage = await stage.storage()
    await storage.commit(Transaction((RegisterDelete(LANE_CONFIG, "side"),)))
    await storage.close()
    with pytest.raises(SessionCorruption) as refused:
        async with stage.open():
            pass
    assert (refused.value.lane, refused.value.check) == ("side", "lane registers")


@pytest.mark.parametrize("namespace", [LANE_LEAF, LANE_STATE])
async def test_a_session_without_the_lane_main_is_refused_before_anything_is_written_and_closed(
    place: Place, log: Log, namespace: Namespace[Any]
) -> None:
    stage = Stage(place, [], log=log)
    storage = await stage.storage()
    await storage.commit(Transaction((RegisterDelete(namespace, "main"),)))
    await storage.close()
    with pytest.raises(SessionCorruption) as refused:
        async with stage.open():
            pass
    assert (refused.value.lane, refused.value.check) == ("main", "lane registers")
    with pytest.raises(StorageClosed):
        await stage.session.get_stats()
    storage = await stage.storage()
    assert await storage.get_register(LANE_CONFIG, "main") is None
    await storage.close()


@pytest.mark.covers("RT-5.2-18", "RT-5.2-17", "RT-5.2-01")
async def test_main_is_seeded_once_with_the_options_of_the_first_harness(place: Place, log: Log) -> None:
    stage = Stage(place, [], [Tool(name="save", log=log)], log=log)
    async with stage.open() as harness:
        seeded = await harness.get_configuration()
    assert seeded == LaneConfiguration(model=SCRIPTED_MODEL.identity, thinking_level="off", active_tool_names=["save"])
    assert log.lines == ["seed_main"]
    async with stage.open(thinking_level="high", active_tool_names=[]) as harness:
        assert await harness.get_configuration() == seeded
    assert log.lines == ["seed_main"]
    defaults = HarnessOptions(models=stage.models, model=SCRIPTED_MODEL)
    assert (defaults.tool_execution, defaults.drive, defaults.thinking_level) == ("parallel", "automatic", "off")


@pytest.mark.covers("RT-5.2-04", "RT-5.5-37", "RT-5.2-03")
async def test_a_new_lane_has_the_seed_whatever_main_has_by_now(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        seed = await harness.get_configuration()
        await harness.set_thinking_level("high")
        assert await harness.lane("side") is None
        side = await harness.create_lane("side", None)
        assert side.name == "side"
        assert await side.get_configuration() == seed
        assert [lane.name for lane in await harness.lanes()] == ["main", "side"]
        found = await harness.lane("side")
        assert found is not None
        with pytest.raises(LaneExists):
            await harness.create_lane("side", None)
        with pytest.raises(InvalidLane):
            await harness.create_lane("", None)
        with pytest.raises(UnknownTarget):
            await harness.create_lane("other", "nowhere")
    assert log.told[-2:] == ["create_lane", "lane_created"]


@pytest.mark.covers("RT-5.2-02", "RT-5.1-02", "RT-5.2-13")
async def test_the_harness_is_the_lane_main(place: Place, log: Log) -> None:
    stage = Stage(place, [says("hello")], log=log)
    async with stage.open() as harness:
        assert harness.name == "main"
        assert await harness.get_leaf_id() is None
        outcome = await harness.prompt("go")
        assert await harness.get_leaf_id() == getattr(outcome, "leaf_id", "")
        main = await harness.lane("main")
        assert main is not None
        assert await main.get_leaf_id() == await harness.get_leaf_id()
        assert harness.hooks is harness.hooks
        assert harness.events is harness.events


@pytest.mark.parametrize(
    "options, error",
    [
        ({"retry": RetryPolicy()}, NotBuiltYet),
        ({"retry": RetryPolicy(enabled=False, max_retries=-1)}, InvalidOptions),
        ({"stream_options": {"deferred": True}}, NotBuiltYet),
        ({"stream_options": {"temperature": float("nan")}}, InvalidOptions),
    ],
)
async def test_options_that_cannot_be_honoured_are_refused_before_anything_is_written(
    options: dict[str, object], error: type[Exception], place: Place, log: Log
) -> None:
    stage = Stage(place, [], log=log)
    with pytest.raises(error):
        async with stage.open(**options):
            pass
    assert log.lines == []


async def test_two_tools_of_one_name_are_refused(place: Place, log: Log) -> None:
    with pytest.raises(InvalidOptions):
        async with Stage(place, [], [Tool(name="a", log=log), Tool(name="a", log=log)], log=log).open():
            pass


@pytest.mark.covers("RT-5.2-14", "RT-4.7-05")
async def test_a_closed_harness_can_be_opened_again(place: Place, log: Log) -> None:
    stage = stage_of(SCENARIOS["text"], place, log)
    async with stage.open() as harness:
        await harness.prompt("go")
        await harness.close()
        await harness.close()
    async with stage.open() as harness:
        assert isinstance(harness, AgentHarness)
        assert harness.suspended == ()
