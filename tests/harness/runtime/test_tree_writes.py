"""Writes of a lane's tree view: they wait for who keeps the idle lane, and their failed commit stops everything."""

from collections.abc import Awaitable, Callable

import anyio
import anyio.to_thread
import pytest

from restartpoint import AgentHarness, HarnessClosed, HarnessFault
from restartpoint.contract import BeforeRun, FaultEvent
from restartpoint.errors import InvalidJson, InvalidMessage, InvariantBroken, UnknownTarget, WrongEventLoop
from restartpoint.providers import says
from restartpoint.session import SessionMutator
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.drive import calling
from tests.harness.runtime.places import Place
from tests.harness.runtime.stage import Stage
from tests.harness.runtime.storages import FailingStorage
from tests.harness.session.stage import say

Write = Callable[[AgentHarness], Awaitable[object]]

APPENDS: dict[str, Write] = {
    "append_message": lambda harness: harness.session.append_message(say("x")),
    "append_custom_entry": lambda harness: harness.session.append_custom_entry("note"),
}
FACTS: dict[str, Write] = {
    "set_name": lambda harness: harness.session.set_name("n"),
    "set_custom_fact": lambda harness: harness.session.set_custom_fact("k", 1),
}
WRITES = {**APPENDS, **FACTS}


class Held:
    """A before_run hook that keeps the reservation of its prompt until it is let go."""

    def __init__(self, harness: AgentHarness) -> None:
        self.entered, self.go = anyio.Event(), anyio.Event()
        harness.hooks.on("before_run", self._wait, id="held")

    async def _wait(self, _: BeforeRun) -> None:
        self.entered.set()
        await self.go.wait()


@pytest.mark.parametrize("write", APPENDS.values(), ids=APPENDS)
async def test_an_append_waits_while_an_operation_is_being_admitted(write: Write, place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        held = Held(harness)
        async with calling(harness.prompt([])) as prompt:
            await held.entered.wait()
            async with calling(write(harness)) as append:
                await anyio.wait_all_tasks_blocked()
                assert not append.ended
                assert await harness.get_leaf_id() is None
                held.go.set()
                with pytest.raises(InvalidMessage):
                    await prompt.result()
                assert await append.result() == await harness.get_leaf_id()


async def test_an_append_before_the_prompt_is_what_the_prompt_hangs_under(place: Place, log: Log) -> None:
    stage = Stage(place, [says("done")], log=log)
    async with stage.open() as harness:
        async with calling(harness.session.append_message(say("first"))) as append:
            entry_id = await append.result()
            await harness.prompt("go")
        (_, prompt, first) = await harness.session.find_entries_on_branch()
    assert (first.id, prompt.parent_id) == (entry_id, entry_id)


@pytest.mark.parametrize("write", FACTS.values(), ids=FACTS)
async def test_a_fact_waits_for_nobody(write: Write, place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        held = Held(harness)
        async with calling(harness.prompt([])) as prompt:
            await held.entered.wait()
            await write(harness)
            held.go.set()
            with pytest.raises(InvalidMessage):
                await prompt.result()


async def test_an_append_waits_for_the_callback_that_keeps_the_idle_lane(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    entered, go = anyio.Event(), anyio.Event()

    async def callback() -> None:
        entered.set()
        await go.wait()

    async with stage.open() as harness, calling(harness.run_when_idle(callback)) as kept:
        await entered.wait()
        async with calling(harness.session.append_message(say("x"))) as append:
            await anyio.wait_all_tasks_blocked()
            assert not append.ended
            go.set()
            await kept.result()
            await append.result()


async def test_a_close_ends_the_wait(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        held = Held(harness)
        async with calling(harness.prompt([])) as prompt:
            await held.entered.wait()
            async with calling(harness.session.append_message(say("x"))) as append:
                await anyio.wait_all_tasks_blocked()
                await harness.close()
            assert isinstance(append.error, HarnessClosed)
        assert prompt.error is not None
        for write in WRITES.values():
            with pytest.raises(HarnessClosed):
                await write(harness)
    assert stage.names == ["seed_main"]


@pytest.mark.covers("RT-4.8-01", "RT-4.8-02")
@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_write_whose_commit_fails_stops_the_harness(write: Write, place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    stage.wrap = lambda inner: FailingStorage(inner, fail_at=1)
    faults: list[FaultEvent] = []
    async with stage.open() as harness:
        harness.events.on(FaultEvent, faults.append)
        with pytest.raises(HarnessFault) as fault:
            await write(harness)
        with pytest.raises(HarnessFault) as later:
            await harness.prompt("go")
    assert str(fault.value.__cause__) == "the disk is gone"
    assert later.value is fault.value
    assert len(faults) == 1


async def test_a_write_that_is_refused_stops_nothing(place: Place, log: Log) -> None:
    stage = Stage(place, [says("done")], log=log)
    async with stage.open() as harness:
        with pytest.raises(UnknownTarget):
            await harness.session.set_label("nothing", "l")
        with pytest.raises(InvalidJson):
            await harness.session.set_custom_fact("k", float("nan"))
        with pytest.raises(InvalidMessage):
            await harness.session.append_message({})
        await harness.prompt("go")


async def test_a_view_that_was_taken_earlier_is_not_written_from_another_thread(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:
        call = harness.session.append_message(say("x"))
        with pytest.raises(WrongEventLoop):
            await anyio.to_thread.run_sync(call.send, None)
        assert await harness.get_leaf_id() is None


@pytest.mark.parametrize("write", WRITES.values(), ids=WRITES)
async def test_a_job_on_the_line_that_writes_through_the_view_is_told_not_to(
    write: Write, place: Place, log: Log
) -> None:
    stage = Stage(place, [], log=log)
    async with stage.open() as harness:

        async def job(_: SessionMutator) -> None:
            with pytest.raises(InvariantBroken, match="use its mutator"):
                await write(harness)

        await stage.session.mutate("main", job)
        await write(harness)
