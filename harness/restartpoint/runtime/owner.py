"""Who owns a lane in this process: nobody, a reservation before acceptance, or one live operation (§4.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

import anyio
import msgspec

from restartpoint.contract import LANE_STATE, OP_META, OperationKind, RunOutcome, kind_of
from restartpoint.errors import LaneBusy, NoActiveOperation
from restartpoint.runtime.barrier import ActionInfo, BreakpointBarrier
from restartpoint.runtime.context import LiveContext
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.services import Services
from restartpoint.runtime.work import Work
from restartpoint.session import SessionMutator

__all__ = ["ActiveOperation", "LaneOwner", "Reservation", "Turn"]


T = TypeVar("T")


class Reservation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that is being admitted, or a callback that has the idle lane; nothing durable exists."""

    operation_id: str
    kind: OperationKind | Literal["callback"]


class ActiveOperation:
    """The one live task of a lane: its work and the promise that its callers wait for."""

    def __init__(self, work: Work) -> None:
        self.work = work
        self.completion: Promise[RunOutcome] = Promise()


class Turn:
    """A place in the queue of those who ask for a lane: entered after the one before has asked, or given up."""

    def __init__(self, before: Turn | None) -> None:
        self._before = before
        self._passed = anyio.Event()

    async def __aenter__(self) -> None:
        before, self._before = self._before, None
        if before is not None and not before._passed.is_set():
            await before._passed.wait()

    async def __aexit__(self, *_: object) -> None:
        self.pass_on()

    def pass_on(self) -> None:
        """Let the next one ask."""
        self._before = None
        self._passed.set()


class LaneOwner:
    """A lane's process-local record. It changes only inside the lane's mutation line or under the admission barrier."""

    def __init__(self, lane: str, barrier: BreakpointBarrier, context: LiveContext, *, restored: bool) -> None:
        self.lane = lane
        self.barrier = barrier
        self.context = context
        self.restored = restored
        """True while the open operation is one that this harness found when it was opened."""
        self.reservation: Reservation | None = None
        self.active: ActiveOperation | None = None
        self._arriving = 0
        self._last_turn: Turn | None = None

    def arriving(self, admission: Callable[[Turn], Awaitable[T]]) -> Callable[[], Awaitable[T]]:
        """The admission, counted from now until it ended, so that whoever asks next sees that the lane is wanted.

        Admissions get their turn at the lane in the order of these calls, whatever order their tasks start in. An
        operation that is live now refuses them, even when it frees the lane before their turn comes (§3.6).
        """
        self._arriving += 1
        turn = self._last_turn = Turn(self._last_turn)
        live = self.active

        async def counted() -> T:
            try:
                if live is not None:
                    raise self._busy_with(live)
                return await admission(turn)
            finally:
                turn.pass_on()
                self._arriving -= 1
                self.barrier.notify()

        return counted

    async def reserve(self, mutator: SessionMutator, reservation: Reservation) -> None:
        """Take the lane for an operation that is being admitted.

        Raises:
            LaneBusy: an operation is open, live, or being admitted.
        """
        await self.require_idle(mutator)
        self.reservation = reservation
        self.barrier.notify()

    async def require_idle(self, mutator: SessionMutator, *, own: Reservation | None = None) -> None:
        """Return while nobody else holds the lane.

        Raises:
            LaneBusy: names the operation that does.
        """
        self.require_unheld(own=own)
        state = await mutator.get_register(LANE_STATE, self.lane)
        open_id = None if state is None else state.value.current_operation_id
        if open_id is not None:
            meta = await mutator.get_register(OP_META, open_id)
            raise LaneBusy(self.lane, open_id, "run" if meta is None else kind_of(meta.value.intent))

    def require_unheld(self, *, own: Reservation | None = None) -> None:
        """Return while no other operation is live or being admitted in this process.

        Raises:
            LaneBusy: names the operation that is.
        """
        if self.active is not None:
            raise self._busy_with(self.active)
        if self.reservation is not None and self.reservation is not own:
            raise LaneBusy(self.lane, self.reservation.operation_id, self.reservation.kind)

    async def unreserved(self) -> None:
        """Return once no operation is being admitted and no callback has the lane.

        Raises:
            HarnessClosed, HarnessFault: the harness stopped first.
        """
        while self.reservation is not None:
            self.barrier.raise_if_closed()
            await self.barrier.changed()

    def _busy_with(self, active: ActiveOperation) -> LaneBusy:
        return LaneBusy(self.lane, active.work.operation_id, kind_of(active.work.operation.intent))

    def release(self, reservation: Reservation) -> None:
        """Give the lane back when that reservation still holds it."""
        if self.reservation is reservation:
            self.reservation = None
            self.barrier.notify()

    def install(self, active: ActiveOperation) -> None:
        """Make the operation the lane's live one; its reservation ends."""
        self.reservation = None
        self.active = active
        self.barrier.notify()

    def remove(self, active: ActiveOperation) -> None:
        """Forget the live operation once its last observation is done."""
        if self.active is active:
            self.active = None
            self.restored = False
            self.barrier.notify()

    @property
    def held(self) -> bool:
        """True while an operation or a reservation is held in this process, or an admission is on its way."""
        return self.active is not None or self.reservation is not None or self._arriving > 0

    async def require_open_operation(self, services: Services) -> None:
        """Return when the lane has an open operation.

        Raises:
            NoActiveOperation: it has none.
        """
        state = await services.session.get_register(LANE_STATE, self.lane)
        if state is None or state.value.current_operation_id is None:
            raise NoActiveOperation(self.lane)

    async def peek(self) -> ActionInfo | None:
        """The parked step once one is parked; None in automatic drive or when nobody holds the lane."""
        if not self.barrier.manual:
            return None
        while not self.barrier.waiting():
            if self.barrier.closed or not self.held:
                return None
            await self.barrier.changed()
        return self.barrier.parked

    async def wait_for_idle(self, services: Services) -> None:
        """Return once nobody holds the lane here and no operation is open durably."""

        async def settled(mutator: SessionMutator) -> bool:
            state = await mutator.get_register(LANE_STATE, self.lane)
            return state is None or state.value.current_operation_id is None

        while True:
            self.barrier.raise_if_closed()
            if not self.held and await services.session.mutate(self.lane, settled) and not self.held:
                return
            await self.barrier.changed()

    async def reserve_when_idle(self, services: Services, reservation: Reservation) -> None:
        """Take the lane for a callback as soon as nobody else has it."""
        while True:
            await self.wait_for_idle(services)
            try:
                await services.session.mutate(self.lane, lambda mutator: self.reserve(mutator, reservation))
            except LaneBusy:
                continue
            return
