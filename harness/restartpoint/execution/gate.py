"""What the blocks need of the effect gate, and the control flow that it raises (§4.2). The runtime implements it."""

from __future__ import annotations

from collections.abc import Awaitable, Generator
from typing import Any, Protocol, TypeVar

import anyio

from restartpoint.errors import HarnessClosed, HarnessFault, InvariantBroken
from restartpoint.seams import Signal

__all__ = ["CONTROL_FLOW", "AbortMarker", "AbortRequested", "GateCheck", "OperationEnded", "contained"]

T = TypeVar("T")


class AbortMarker:
    """The end of an abort's lane mutation. ``await marker`` may be done any number of times, by any number of tasks."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._error: Exception | None = None

    @property
    def settled(self) -> bool:
        """True once the mutation ended."""
        return self._event.is_set()

    def resolve(self) -> None:
        """The marker is durable, or a terminal transaction won; a second call changes nothing."""
        self._event.set()

    def reject(self, error: Exception) -> None:
        """The mutation failed; every waiter, present and future, gets ``error``."""
        if not self._event.is_set():
            self._error = error
            self._event.set()

    def __await__(self) -> Generator[Any, Any, None]:
        return self._wait().__await__()

    async def _wait(self) -> None:
        await self._event.wait()
        if self._error is not None:
            raise self._error


class AbortRequested(Exception):
    """Ordinary work may no longer start: await ``cancellation``, reload durable control, and reconcile.

    Expected control flow inside the runtime; it reaches neither callers nor providers.
    """

    def __init__(self, cancellation: AbortMarker) -> None:
        super().__init__("an abort was requested")
        self.cancellation = cancellation


class OperationEnded(Exception):
    """The operation ended durably while its task was still at work; the task stops without writing."""


CONTROL_FLOW = (AbortRequested, OperationEnded, HarnessClosed, HarnessFault, InvariantBroken)
"""What passes through the blocks untouched; every other exception of a provider becomes an error response."""


async def contained(effect: Awaitable[T]) -> T:
    """What the effect returns; control flow that it lets out is another harness's, which it uses.

    This harness's own reaches the effect's caller by the gate and the callbacks, never through the effect.

    Raises:
        ExceptionGroup: holds the foreign control flow, so that nobody takes it for this harness's.
    """
    try:
        return await effect
    except CONTROL_FLOW as foreign:
        raise ExceptionGroup("an effect let out what ended another harness", [foreign]) from None


class GateCheck(Protocol):
    """The admission of one effect."""

    @property
    def signal(self) -> Signal:
        """The operation's cooperative signal; every admitted effect receives it."""
        ...

    def assert_open(self) -> None:
        """Return when ordinary work may start. The effect must be the very next statement.

        Raises:
            AbortRequested: an abort closed the gate.
            OperationEnded, HarnessClosed, HarnessFault: nothing may start any more.
        """
        ...
