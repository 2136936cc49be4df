"""The effect gate and the breakpoint barrier by themselves (§4.2)."""

import anyio
import pytest

from restartpoint import ActionInfo, HarnessClosed, HarnessFault
from restartpoint.errors import InvariantBroken, RestartpointError
from restartpoint.execution import AbortMarker, AbortRequested, OperationEnded
from restartpoint.runtime.barrier import BreakpointBarrier
from restartpoint.runtime.gate import EffectGate
from tests.harness.runtime.drive import calling

INFO = ActionInfo(kind="assistant_request", description="Request", details={"attempt": 1})
OTHER = ActionInfo(kind="tool_execute", description="Run", details={})


@pytest.mark.covers("RT-4.2-16", "RT-4.2-17", "RT-4.2-18")
def test_beginning_an_abort_refuses_starts_at_once_and_sets_no_signal() -> None:
    gate, marker = EffectGate(), AbortMarker()
    gate.assert_open()
    gate.begin_abort(marker)
    with pytest.raises(AbortRequested) as refused:
        gate.assert_open()
    assert refused.value.cancellation is marker
    assert not gate.signal.aborted
    gate.signal_abort()
    assert gate.signal.aborted


@pytest.mark.covers("RT-4.2-17")
@pytest.mark.parametrize("error", [HarnessClosed("x"), HarnessFault("x"), OperationEnded()])
def test_a_closed_gate_raises_what_closed_it_and_stays_closed(error: HarnessClosed | OperationEnded) -> None:
    gate = EffectGate()
    gate.begin_abort(AbortMarker())
    gate.close(error)
    gate.close(HarnessClosed("later"))
    gate.begin_abort(AbortMarker())
    with pytest.raises(type(error)) as raised:
        gate.assert_open()
    assert raised.value is error
    assert gate.signal.aborted


def test_the_first_abort_counts() -> None:
    gate, first = EffectGate(), AbortMarker()
    gate.begin_abort(first)
    gate.begin_abort(AbortMarker())
    with pytest.raises(AbortRequested) as refused:
        gate.assert_open()
    assert refused.value.cancellation is first


async def test_an_abort_marker_settles_once_for_every_waiter() -> None:
    marker = AbortMarker()
    assert not marker.settled
    marker.resolve()
    marker.reject(RuntimeError("later"))
    await marker
    await marker
    refused = AbortMarker()
    refused.reject(HarnessFault("commit failed"))
    for _ in range(2):
        with pytest.raises(HarnessFault):
            await refused


@pytest.mark.covers("RT-4.2-02")
async def test_an_automatic_barrier_returns_at_once_and_shows_nothing() -> None:
    barrier = BreakpointBarrier("automatic")
    await barrier.hit(INFO)
    assert barrier.parked is None
    assert barrier.execute() is None


@pytest.mark.covers("RT-4.2-02", "RT-4.2-01", "TEST-R1-01")
async def test_a_manual_barrier_shows_its_step_until_it_is_released() -> None:
    barrier = BreakpointBarrier("manual")
    async with calling(barrier.hit(INFO)) as parked:
        await barrier.changed()
        assert barrier.parked == INFO
        assert not parked.ended
        assert barrier.execute() == INFO
        assert barrier.execute() is None
        await parked.result()
    assert barrier.parked is None


@pytest.mark.covers("RT-4.2-03", "RACE-12a", "TIER-X-03")
async def test_an_abort_rejects_a_parked_step_that_may_be_interrupted() -> None:
    barrier, marker = BreakpointBarrier("manual"), AbortMarker()
    async with calling(barrier.hit(INFO)) as parked:
        await barrier.changed()
        barrier.interrupt(marker)
        with pytest.raises(AbortRequested) as interrupted:
            await parked.result()
    assert interrupted.value.cancellation is marker


@pytest.mark.covers("RT-4.2-03", "RT-4.2-10", "TIER-X-03", "AMB-66")
async def test_an_abort_leaves_a_step_parked_that_may_not_be_interrupted() -> None:
    barrier = BreakpointBarrier("manual")
    async with calling(barrier.hit(INFO, interruptible=False)) as parked:
        await barrier.changed()
        barrier.interrupt(AbortMarker())
        barrier.interrupt(AbortMarker())
        assert barrier.parked == INFO
        assert not parked.ended
        barrier.execute()
        await parked.result()


@pytest.mark.covers("RACE-12b")
async def test_a_released_step_can_no_longer_be_interrupted() -> None:
    barrier = BreakpointBarrier("manual")
    async with calling(barrier.hit(INFO)) as parked:
        await barrier.changed()
        barrier.execute()
        barrier.interrupt(AbortMarker())
        await parked.result()
    assert parked.error is None


@pytest.mark.covers("RT-4.2-04", "TIER-X-03")
@pytest.mark.parametrize("interruptible", [True, False])
@pytest.mark.parametrize("error", [HarnessClosed("x"), HarnessFault("x")])
async def test_a_closed_barrier_rejects_the_parked_step_and_every_later_one(
    error: RestartpointError, interruptible: bool
) -> None:
    barrier = BreakpointBarrier("manual")
    async with calling(barrier.hit(INFO, interruptible=interruptible)) as parked:
        await barrier.changed()
        barrier.close(error)
        with pytest.raises(type(error)):
            await parked.result()
    for later in (INFO, OTHER):
        with pytest.raises(type(error)):
            await barrier.hit(later)
    assert barrier.closed


async def test_a_closed_automatic_barrier_lets_no_step_pass() -> None:
    barrier = BreakpointBarrier("automatic")
    barrier.close(HarnessClosed("x"))
    with pytest.raises(HarnessClosed):
        await barrier.hit(INFO)


@pytest.mark.covers("AMB-67")
async def test_two_parked_steps_are_a_defect() -> None:
    barrier = BreakpointBarrier("manual")
    async with calling(barrier.hit(INFO)) as parked:
        await barrier.changed()
        with pytest.raises(InvariantBroken):
            await barrier.hit(OTHER)
        assert barrier.parked == INFO
        barrier.execute()
        await parked.result()


async def test_a_cancelled_step_leaves_the_barrier_free() -> None:
    barrier = BreakpointBarrier("manual")
    async with anyio.create_task_group() as group:
        group.start_soon(barrier.hit, INFO)
        await barrier.changed()
        group.cancel_scope.cancel()
    assert barrier.parked is None
    async with calling(barrier.hit(OTHER)):
        await barrier.changed()
        assert barrier.execute() == OTHER
