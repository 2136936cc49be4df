"""The breakpoint barrier: in manual drive it parks before each operation step until it is released (§4.2)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import anyio
import msgspec

from restartpoint.contract import UNSET, JsonObject, UnsetType
from restartpoint.errors import InvariantBroken, RestartpointError
from restartpoint.execution import AbortMarker, AbortRequested

__all__ = ["ActionInfo", "BreakpointBarrier", "Drive"]

Drive: TypeAlias = Literal["automatic", "manual"]


class ActionInfo(msgspec.Struct, frozen=True, kw_only=True):
    """What a parked operation would do next: a stable kind, a text for people, and ids and counts only."""

    kind: str
    description: str
    details: JsonObject | UnsetType = UNSET


class _Parked:
    def __init__(self, info: ActionInfo, *, interruptible: bool) -> None:
        self.info = info
        self.interruptible = interruptible
        self.decided = anyio.Event()
        self.rejection: Exception | None = None

    def release(self, rejection: Exception | None = None) -> None:
        self.rejection = rejection
        self.decided.set()


class BreakpointBarrier:
    """One per lane. It commits nothing, calls nothing, and owns no durable state."""

    def __init__(self, drive: Drive) -> None:
        self._drive = drive
        self._parked: _Parked | None = None
        self._closed: RestartpointError | None = None
        self._changed = anyio.Event()

    @property
    def manual(self) -> bool:
        """True when steps park."""
        return self._drive == "manual"

    @property
    def closed(self) -> bool:
        """True once the harness stopped."""
        return self._closed is not None

    @property
    def parked(self) -> ActionInfo | None:
        """The step that waits now, or None."""
        return None if self._parked is None else self._parked.info

    async def hit(self, info: ActionInfo, *, interruptible: bool = True) -> None:
        """Return at once in automatic drive, after the release in manual drive.

        Raises:
            AbortRequested: an abort interrupted this interruptible barrier.
            HarnessClosed, HarnessFault: the harness stopped; the step must not run.
        """
        self.raise_if_closed()
        if self._drive == "automatic":
            return
        if self._parked is not None:
            raise InvariantBroken(f"two steps park at once: {self._parked.info.kind} and {info.kind}")
        parked = self._parked = _Parked(info, interruptible=interruptible)
        self.notify()
        try:
            await parked.decided.wait()
        finally:
            self._parked = None
            self.notify()
        if parked.rejection is not None:
            raise parked.rejection

    def raise_if_closed(self) -> None:
        """Return while steps may run; raise what closed the barrier afterwards."""
        if self._closed is not None:
            raise self._closed

    def execute(self) -> ActionInfo | None:
        """Release the parked step and return what it was; None when nothing is parked."""
        parked = self._parked
        if parked is None or parked.decided.is_set():
            return None
        parked.release()
        return parked.info

    def interrupt(self, cancellation: AbortMarker) -> None:
        """Reject the parked step with AbortRequested when it is interruptible."""
        if self._parked is not None and self._parked.interruptible and not self._parked.decided.is_set():
            self._parked.release(AbortRequested(cancellation))

    def close(self, error: RestartpointError) -> None:
        """Reject the parked step and every later one."""
        self._closed = error
        if self._parked is not None and not self._parked.decided.is_set():
            self._parked.release(error)
        self.notify()

    def notify(self) -> None:
        """Wake those who wait for a change: a step parked or left, or the lane's ownership changed."""
        changed, self._changed = self._changed, anyio.Event()
        changed.set()

    async def changed(self) -> None:
        """Return after the next change."""
        await self._changed.wait()

    def waiting(self) -> bool:
        """True while a parked step has not been released yet."""
        return self._parked is not None and not self._parked.decided.is_set()
