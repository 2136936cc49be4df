"""The tasks of one harness: who owns them, and the one way in which all of them stop (§4.7, §4.8)."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import TypeVar

import anyio
import anyio.abc

from restartpoint.contract import FaultEvent, HandlerErrorEvent
from restartpoint.errors import HarnessClosed, HarnessFault, InvariantBroken, Rejected, SessionError, StorageClosed
from restartpoint.events import EventBus
from restartpoint.execution import AbortRequested, OperationEnded
from restartpoint.hooks import HookFailure
from restartpoint.runtime.barrier import BreakpointBarrier, Drive
from restartpoint.runtime.context import LiveContext
from restartpoint.runtime.owner import LaneOwner
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.services import Services

__all__ = ["Runner"]

T = TypeVar("T")


class Runner:
    """Starts every task under a cancel scope of its own, so that closing never cancels the caller who closes."""

    def __init__(self, group: anyio.abc.TaskGroup) -> None:
        self._group = group
        self._owners: list[LaneOwner] = []
        self._scopes: set[anyio.CancelScope] = set()
        self._stopped: HarnessClosed | HarnessFault | None = None
        self.events = EventBus()
        self.events.start(group)

    def owner(self, services: Services, lane: str, drive: Drive, *, restored: bool) -> LaneOwner:
        """A new lane's process-local record."""
        context = LiveContext(services.session, services.application.entry_projectors)
        owner = LaneOwner(lane, BreakpointBarrier(drive), context, restored=restored)
        self._owners.append(owner)
        return owner

    def spawn(self, work: Callable[[], Awaitable[T]]) -> Promise[T]:
        """Start a task that settles the promise; an exception settles it too and goes nowhere else.

        Once the harness stopped, nothing starts and the promise says why.
        """
        promise: Promise[T] = Promise()
        if self._stopped is None:
            self._group.start_soon(self._settle, work, promise)
        else:
            promise.reject(self._stopped)
        return promise

    async def _settle(self, work: Callable[[], Awaitable[T]], promise: Promise[T]) -> None:
        if self._stopped is not None:
            promise.reject(self._stopped)
            return
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                promise.resolve(await work())
            except StorageClosed as error:
                promise.reject(self._reason(error))
            except (Rejected, SessionError, AbortRequested, OperationEnded) as expected:
                promise.reject(expected)
            except (Exception, SystemExit) as error:  # noqa: BLE001 - a commit failed, or trusted computation (§4.8)
                promise.reject(self.fault(error))
            except anyio.get_cancelled_exc_class():
                if anyio.current_effective_deadline() == -math.inf:
                    raise
                # The task group would take it for its own and end the block of the harness without an error.
                promise.reject(self.fault(InvariantBroken("a tool, provider or hook let a foreign cancellation out")))
            finally:
                self._scopes.discard(scope)
        if scope.cancelled_caught:
            promise.reject(self._reason(HarnessClosed("the harness was closed")))

    def _reason(self, otherwise: Exception) -> Exception:
        """What stopped this harness, or the given exception when nothing has."""
        return otherwise if self._stopped is None else self._stopped

    def fault(self, cause: BaseException) -> HarnessFault | HarnessClosed:
        """Stop everything because of a failed commit or a broken invariant (§4.8).

        What stopped this harness before is returned as it is; before that, nothing of the kind can be this harness's.
        """
        if self._stopped is not None and isinstance(cause, HarnessClosed | HarnessFault):
            return self._stopped
        fault = HarnessFault(f"the harness stopped: {cause}; open the session again")
        fault.__cause__ = cause
        if self._stopped is None:
            self.events.publish(FaultEvent(code=type(cause).__name__, message=str(cause)))
        self.stop(fault)
        return fault

    def stop(self, error: HarnessClosed | HarnessFault) -> None:
        """Seal, reject parked steps and open promises, tell started work to stop, cancel what this harness owns.

        Commits that were admitted before go on to their end under their own shield.
        """
        if self._stopped is not None:
            return
        self._stopped = error
        for owner in self._owners:
            owner.barrier.close(error)
            if (active := owner.active) is not None:
                active.work.gate.close(error)
                active.completion.reject(error)
                owner.remove(active)
        for scope in self._scopes:
            scope.cancel()

    def report_hook(self, failure: HookFailure) -> None:
        """Publish that a hook handler failed and was skipped."""
        self.events.publish(
            HandlerErrorEvent(lane=failure.lane, kind="hook", hook=failure.hook, error=str(failure.error))
        )
