"""The hop: order, exceptions, and the private entry of aiosqlite that it stands on."""

import inspect
import threading
from collections.abc import AsyncIterator, Callable

import aiosqlite
import anyio
import pytest

from restartpoint.storage.sqlite import AiosqliteHop, Hop, InlineHop, ThreadHop, default_hop


class Broken(Exception):
    pass


@pytest.fixture(params=["default", "inline"])
async def hop(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncIterator[Hop]:
    hop = default_hop() if request.param == "default" else InlineHop()
    yield hop
    await hop.close()


async def test_each_event_loop_has_its_hop(anyio_backend: str) -> None:
    assert type(default_hop()) is (AiosqliteHop if anyio_backend == "asyncio" else ThreadHop)


async def test_a_result_and_an_exception_come_back(hop: Hop) -> None:
    def fail() -> None:
        raise Broken

    assert await hop.run(lambda: 3) == 3
    with pytest.raises(Broken):
        await hop.run(fail)
    assert await hop.run(lambda: 4) == 4


async def test_work_leaves_the_event_loop_s_thread(anyio_backend: str) -> None:
    hop = default_hop()
    assert await hop.run(threading.get_ident) != threading.get_ident()
    await hop.close()


async def test_work_runs_in_the_order_in_which_it_was_handed_over(hop: Hop) -> None:
    handed: list[int] = []
    order: list[int] = []

    async def one(number: int) -> None:
        handed.append(number)
        await hop.run(lambda: order.append(number))

    async with anyio.create_task_group() as tasks:
        for number in range(20):
            tasks.start_soon(one, number)
    assert order == handed


async def test_work_never_overlaps(hop: Hop) -> None:
    busy = threading.Lock()

    def alone() -> bool:
        free = busy.acquire(blocking=False)
        if free:
            busy.release()
        return free

    found: list[bool] = []

    async def one() -> None:
        found.append(await hop.run(alone))

    async with anyio.create_task_group() as tasks:
        for _ in range(20):
            tasks.start_soon(one)
    assert found == [True] * 20


async def test_closing_waits_for_what_was_handed_over_and_may_be_repeated(anyio_backend: str) -> None:
    hop, done, go = default_hop(), list[str](), threading.Event()

    def slow() -> None:
        go.wait()
        done.append("work")

    async def work() -> None:
        await hop.run(slow)

    await hop.run(lambda: None)
    async with anyio.create_task_group() as tasks:
        tasks.start_soon(work)
        await anyio.wait_all_tasks_blocked()
        go.set()
        await hop.close()
        assert done == ["work"]
    await hop.close()


def test_aiosqlite_still_has_the_entry_that_runs_any_function_on_its_thread() -> None:
    """`_AiosqliteThread.call` is the only user of this entry; when it changes, that method is what to change."""
    execute: Callable[..., object] = aiosqlite.Connection._execute
    assert list(inspect.signature(execute).parameters) == ["self", "fn", "args", "kwargs"]
    assert inspect.iscoroutinefunction(execute)


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_a_program_that_forgets_to_close_ends_all_the_same(anyio_backend: str) -> None:
    hop = AiosqliteHop()
    try:
        assert await hop.run(lambda: threading.current_thread().daemon)
    finally:
        await hop.close()


@pytest.mark.parametrize("anyio_backend", ["asyncio"])
async def test_aiosqlite_queues_a_call_before_it_suspends() -> None:
    ran: list[str] = []
    hop = AiosqliteHop()
    try:
        await hop.run(lambda: ran.append("first"))
        thread = hop._thread
        assert isinstance(thread, aiosqlite.Connection)
        call = thread.call(lambda: ran.append("second"))
        call.send(None)  # up to the first suspension, and no further
        call.close()
        await hop.run(lambda: ran.append("third"))
    finally:
        await hop.close()
    assert ran == ["first", "second", "third"]
