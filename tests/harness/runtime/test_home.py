"""A harness serves the event loop that opened it; calls from elsewhere are refused and leave nothing behind."""

import asyncio
from collections.abc import Callable
from typing import Any

import anyio
import anyio.from_thread
import anyio.to_thread
import pytest
import trio

from restartpoint import AgentHarness, HarnessOptions, MemoryRepository, NotBuiltYet, RunCompleted
from restartpoint.contract import Resources, zero_usage
from restartpoint.errors import WrongEventLoop
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels, says
from restartpoint.runtime.settings import NO_COMPACTION, ONE_ATTEMPT
from tests.harness.runtime.drive import calling


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def options(**more: object) -> HarnessOptions:
    return HarnessOptions(models=ScriptedModels([says("done")] * 3), model=SCRIPTED_MODEL, **more)  # type: ignore[arg-type]


async def nothing() -> None:
    raise AssertionError("the callback ran")


ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "prompt": ("go",),
    "skill": ("s",),
    "prompt_from_template": ("t",),
    "navigate_tree": (None,),
    "steer": ("x",),
    "follow_up": ("x",),
    "next_run": ("x",),
    "cancel_queued": ("e",),
    "record_usage": (zero_usage(),),
    "run_when_idle": (nothing,),
    "set_model": (SCRIPTED_MODEL,),
    "set_thinking_level": ("high",),
    "set_active_tools": ([],),
    "set_tools": ([],),
    "set_resources": (Resources(skills=(), prompt_templates=()),),
    "set_stream_options": ({},),
    "set_retry_policy": (ONE_ATTEMPT,),
    "set_compaction_settings": (NO_COMPACTION,),
    "set_steering_mode": ("all",),
    "set_follow_up_mode": ("all",),
    "lane": ("main",),
    "create_lane": ("side", None),
}
METHODS = [
    name
    for name in dir(AgentHarness)
    if not name.startswith("_") and name != "open" and callable(getattr(AgentHarness, name))
]


def with_no_loop(harness: AgentHarness, name: str) -> None:
    getattr(harness, name)(*ARGUMENTS.get(name, ())).send(None)


def in_a_loop_of_asyncio(harness: AgentHarness, name: str) -> None:
    async def call() -> None:
        await getattr(harness, name)(*ARGUMENTS.get(name, ()))

    asyncio.run(call())


def in_a_loop_of_trio(harness: AgentHarness, name: str) -> None:
    async def call() -> None:
        await getattr(harness, name)(*ARGUMENTS.get(name, ()))

    trio.run(call)


@pytest.mark.parametrize("elsewhere", [with_no_loop, in_a_loop_of_asyncio, in_a_loop_of_trio])
@pytest.mark.parametrize("drive", ["automatic", "manual"])
async def test_every_method_refuses_another_thread_and_the_harness_goes_on(
    elsewhere: Callable[[AgentHarness, str], None], drive: str
) -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options(drive=drive)) as harness:
        for name in METHODS:
            with pytest.raises((WrongEventLoop, NotBuiltYet)) as refused:
                await anyio.to_thread.run_sync(elsewhere, harness, name)
            assert refused.type is WrongEventLoop or name in NOT_BUILT, name
        await harness.wait_for_idle()
        assert await harness.peek_action() is None
        assert await harness.get_leaf_id() is None
        async with calling(harness.prompt("go")) as run:
            await harness.run_to_completion()
            assert isinstance(await run.result(), RunCompleted)


NOT_BUILT = {"compact", "navigate_tree", "steer", "follow_up", "next_run", "cancel_queued"}
"""They refuse every caller so far."""


@pytest.mark.parametrize("name", ["session", "hooks", "events"])
async def test_what_a_harness_consists_of_is_not_handed_to_another_thread(name: str) -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        with pytest.raises(WrongEventLoop, match=r"anyio\.from_thread\.run"):
            await anyio.to_thread.run_sync(getattr, harness, name)


async def test_a_call_made_at_home_is_not_awaited_elsewhere() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        call = harness.prompt("go")
        with pytest.raises(WrongEventLoop):
            await anyio.to_thread.run_sync(call.send, None)
        await harness.wait_for_idle()
        last = await harness.get_last_result()
        assert last is not None
        assert last.outcome == "completed"


async def test_a_worker_thread_calls_as_the_error_says() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        outcome = await anyio.to_thread.run_sync(lambda: anyio.from_thread.run(harness.prompt, "go"))
        assert isinstance(outcome, RunCompleted)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_foreign_thread_calls_as_the_error_says() -> None:
    async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
        loop = asyncio.get_running_loop()

        async def prompt() -> object:
            return await harness.prompt("go")

        outcome = await anyio.to_thread.run_sync(lambda: asyncio.run_coroutine_threadsafe(prompt(), loop).result())
        assert isinstance(outcome, RunCompleted)


def test_a_callback_of_the_loop_is_told_to_use_a_task() -> None:
    async def main() -> None:
        async with AgentHarness.open(await MemoryRepository().create(), options()) as harness:
            loop = asyncio.get_running_loop()
            refusal: asyncio.Future[WrongEventLoop] = loop.create_future()

            def callback() -> None:
                try:
                    harness.prompt("go").close()
                except WrongEventLoop as refused:
                    refusal.set_result(refused)
                else:
                    refusal.cancel()

            loop.call_soon(callback)
            assert "no task" in str(await refusal)
            await harness.wait_for_idle()

    asyncio.run(main())
