"""Who asked first gets the lane, on either event loop; callbacks take an idle lane; lanes in short (§5.1, §5.2)."""

import anyio
import pytest

from restartpoint import AgentHarness, HarnessClosed, HarnessOptions, MemoryRepository, RunCompleted
from restartpoint.errors import Closed, InvalidMessage, LaneBusy
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels, says


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def options(**more: object) -> HarnessOptions:
    return HarnessOptions(models=ScriptedModels([says("done")] * 3), model=SCRIPTED_MODEL, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize("time", range(8))
async def test_the_first_of_two_prompts_is_the_one_that_is_accepted(time: int) -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options(drive="manual")) as harness:
        first, second = harness.prompt("first"), harness.prompt("second")
        with pytest.raises(LaneBusy) as refused:
            await second
        await harness.run_to_completion()
        accepted = await first
        assert isinstance(accepted, RunCompleted)
        assert refused.value.operation_id == accepted.run_id


async def test_a_refused_call_passes_its_turn_on() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        refused, accepted = harness.prompt([{"role": "assistant"}]), harness.prompt("go")
        assert isinstance(await accepted, RunCompleted)
        with pytest.raises(InvalidMessage, match="message 0 needs a role"):
            await refused


async def test_a_callback_keeps_the_idle_lane_to_itself() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:

        async def callback() -> None:
            with pytest.raises(LaneBusy) as refused:
                await harness.prompt("now")
            assert refused.value.operation_kind == "callback"

        await harness.run_when_idle(callback)
        assert isinstance(await harness.prompt("later"), RunCompleted)


async def test_a_callback_waits_for_the_run_that_is_there() -> None:
    async with (
        AgentHarness.open(await MemoryRepository().create(), options(drive="manual")) as harness,
        anyio.create_task_group() as group,
    ):
        ended: list[bool] = []

        async def callback() -> None:
            ended.append(await harness.get_last_result() is not None)

        group.start_soon(harness.prompt, "go")
        group.start_soon(harness.run_when_idle, callback)
        await harness.peek_action()
        assert ended == []
        await harness.run_to_completion()
        await harness.wait_for_idle()
    assert ended == [True]


async def test_what_a_callback_raises_frees_the_lane() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:

        async def callback() -> None:
            raise ValueError("no")

        with pytest.raises(ValueError, match="no"):
            await harness.run_when_idle(callback)
        assert isinstance(await harness.prompt("go"), RunCompleted)


async def test_lanes_tell_their_leaf_and_their_open_operation() -> None:
    async with (
        AgentHarness.open(await MemoryRepository().create(), options(drive="manual")) as harness,
        anyio.create_task_group() as group,
    ):
        side = await harness.create_lane("side", None)
        group.start_soon(side.prompt, "go")
        await side.peek_action()
        main, other = await harness.lanes()
        assert (main.name, main.operation) == ("main", None)
        assert other.operation is not None
        assert (other.name, other.operation.kind, other.operation.status) == ("side", "run", "running")
        await side.run_to_completion()
        assert [lane.operation for lane in await harness.lanes()] == [None, None]


async def test_after_the_close_getters_say_so_and_calls_are_rejected() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        await harness.close()
        for getter in (
            harness.get_leaf_id,
            harness.get_last_result,
            harness.get_model,
            harness.get_tools,
            harness.lanes,
        ):
            with pytest.raises(HarnessClosed):
                await getter()
        with pytest.raises(Closed):
            await harness.abort()
        with pytest.raises(Closed):
            await harness.prompt("go")
