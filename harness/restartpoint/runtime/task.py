"""The live task of an operation: it runs the procedures, publishes the end, and frees the lane (§4.1)."""

from __future__ import annotations

from restartpoint.contract import LANE_LAST_RESULT, RunOutcome
from restartpoint.errors import InvariantBroken, NotBuiltYet
from restartpoint.execution import OperationEnded
from restartpoint.runtime.outcomes import run_outcome
from restartpoint.runtime.owner import ActiveOperation, LaneOwner
from restartpoint.runtime.procedures import Activation, run_operation
from restartpoint.runtime.services import Services
from restartpoint.session import SessionMutator

__all__ = ["start_task"]


def start_task(services: Services, owner: LaneOwner, active: ActiveOperation, activation: Activation) -> None:
    """Start the operation's task; its end settles ``active.completion`` after the lane was freed."""
    services.spawn(lambda: _run(services, owner, active, activation))


async def _run(services: Services, owner: LaneOwner, active: ActiveOperation, activation: Activation) -> None:
    try:
        try:
            outcome = await _outcome(services, active, activation)
        except NotBuiltYet as refused:  # after a settlement, so that nothing is lost; the run stays open
            await _remove(services, owner, active)
            active.completion.reject(refused)
            return
        active.work.announce.run_end(outcome)
        await _remove(services, owner, active)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - the task boundary: whatever escapes stops the harness
        owner.remove(active)
        active.completion.reject(services.fault(error))
    else:
        active.completion.resolve(outcome)


async def _outcome(services: Services, active: ActiveOperation, activation: Activation) -> RunOutcome:
    try:
        return await run_operation(active.work, activation)
    except OperationEnded as ended:
        active.work.gate.close(ended)
        result = await services.session.get_register(LANE_LAST_RESULT, active.work.lane)
        if result is None or result.value.operation_id != active.work.operation_id:
            raise InvariantBroken(f"operation {active.work.operation_id} ended without a result") from ended
        return await run_outcome(services.session, result.value)


async def _remove(services: Services, owner: LaneOwner, active: ActiveOperation) -> None:
    """A no-write job on the lane's line, so that the slot is freed in order with everything else on it."""

    async def job(_: SessionMutator) -> None:
        owner.remove(active)

    await services.session.mutate(owner.lane, job)
