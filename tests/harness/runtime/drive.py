"""Driving a run by hand: a call in the background, and its parked steps one by one."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any, Generic, TypeVar

import anyio

from restartpoint import ActionInfo, AgentLane

__all__ = ["Calling", "calling", "details_of", "park_at", "release_all"]

T = TypeVar("T")


class Calling(Generic[T]):
    """A call that runs beside the test; ``result`` waits for what it returns or raises what it raised."""

    def __init__(self, call: Awaitable[T]) -> None:
        self._call = call
        self._done = anyio.Event()
        self._value: tuple[T] | None = None
        self.error: Exception | None = None

    async def run(self) -> None:
        try:
            self._value = (await self._call,)
        except Exception as error:  # noqa: BLE001 - the test that asks for the result gets it
            self.error = error
        self._done.set()

    @property
    def ended(self) -> bool:
        return self._done.is_set()

    async def result(self) -> T:
        await self._done.wait()
        if self._value is None:
            assert self.error is not None
            raise self.error
        return self._value[0]


@asynccontextmanager
async def calling(call: Awaitable[T]) -> AsyncIterator[Calling[T]]:
    """The call, running; it has ended when the block has."""
    async with anyio.create_task_group() as group:
        made = Calling(call)
        group.start_soon(made.run)
        yield made


async def release_all(lane: AgentLane, told: Callable[[ActionInfo], object] = lambda info: None) -> list[ActionInfo]:
    """Every step of what runs, each shown to ``told`` before it is released."""
    seen: list[ActionInfo] = []
    while (parked := await lane.peek_action()) is not None:
        told(parked)
        assert await lane.execute_action() == parked
        seen.append(parked)
    return seen


async def park_at(lane: AgentLane, kind: str, *, skip: int = 0) -> ActionInfo:
    """The first step of that kind (after ``skip`` others of it), still parked; the ones before it are released."""
    while True:
        parked = await lane.peek_action()
        assert parked is not None, f"nothing parks at {kind}"
        if parked.kind == kind:
            if skip == 0:
                return parked
            skip -= 1
        await lane.execute_action()


def details_of(info: ActionInfo) -> dict[str, Any]:
    """The details, which every runtime step has."""
    assert isinstance(info.details, dict)
    return info.details
