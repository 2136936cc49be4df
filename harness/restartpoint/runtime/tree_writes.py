"""The writes of a lane's tree view while a harness runs: whose they are, and behind whom they wait (§3.6, §4.8)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeVar

from restartpoint.runtime.owner import LaneOwner
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.services import Services
from restartpoint.session import SessionMutator

__all__ = ["HarnessLine"]

T = TypeVar("T")


class _Reserved(Exception):
    """Somebody got the idle lane before the write's turn came."""


class HarnessLine:
    """Runs writes in tasks of the harness, so that a failed commit stops it, whoever was waiting for the write."""

    def __init__(self, services: Services, owner: LaneOwner) -> None:
        self._services = services
        self._owner = owner

    async def run(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """What the job returns; it runs alone on its lane, in order of arrival.

        Raises:
            WrongEventLoop: nothing was written.
            InvariantBroken: the caller is a job on the lane's line, which the write would wait for.
            HarnessClosed, HarnessFault: the harness stopped before it, or because of it.
        """
        return await self._owned(lane, lambda: self._services.session.mutate(lane, job))

    async def run_at_leaf(self, lane: str, job: Callable[[SessionMutator], Awaitable[T]]) -> T:
        """The same once nobody keeps the idle lane; what is asked for meanwhile sees the leaf after the write."""

        async def unless_reserved(mutator: SessionMutator) -> T:
            if self._owner.reservation is not None:
                raise _Reserved
            return await job(mutator)

        async def when_unreserved() -> T:
            while True:
                await self._owner.unreserved()
                try:
                    return await self._services.session.mutate(lane, unless_reserved)
                except _Reserved:
                    continue

        return await self._owned(lane, when_unreserved)

    async def _owned(self, lane: str, write: Callable[[], Awaitable[T]]) -> T:
        self._services.home.require()
        self._services.session.assert_outside(lane)
        promise: Promise[T] = self._services.spawn(write)
        return await promise.wait()
