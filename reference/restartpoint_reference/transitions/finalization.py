"""The end of an operation from outside, and what its task then finds (§4.9, decision AMB-77)."""

from dataclasses import dataclass

from restartpoint_reference.shapes import UNSET, Refused, Unset
from restartpoint_reference.transitions.frame import OPEN, Inputs, NotThis, Seen, View, Writes, transition
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.registers import (
    LaneLastResult,
    OperationError,
    OperationKind,
    Outcome,
    RunCompletion,
)
from restartpoint_reference.vocabulary.states import FailureDrain, RunState


@dataclass(frozen=True, kw_only=True)
class Finalize(Inputs):
    """The outcome that an administrator chose, with the error of a failure or the completion of a run."""

    outcome: Outcome
    error: OperationError | Unset = UNSET
    run_completion: RunCompletion | Unset = UNSET


def _finalized(_: View, seen: Seen) -> Finalize:
    result = seen.read(Namespace.LANE_LAST_RESULT, LaneLastResult.from_json)
    return Finalize(outcome=result.outcome, error=result.error, run_completion=result.run_completion)


def outcome_fits_the_operation(view: View, inputs: Finalize) -> str | None:
    """A failure has an error, a completed run says what completed it, and only structural work is declined (§3.13)."""
    run = view.operation.kind is OperationKind.RUN
    if (inputs.error is not UNSET) != (inputs.outcome is Outcome.FAILED):
        return "an error exactly on failure"
    if (inputs.run_completion is not UNSET) != (run and inputs.outcome is Outcome.COMPLETED):
        return "a completion exactly when a run completes"
    return "a run is not declined" if run and inputs.outcome is Outcome.DECLINED else None


def failure_keeps_its_error(view: View, inputs: Finalize) -> str | None:
    """A run that failed already ends with its own error (§3.12)."""
    match view.operation_state:
        case RunState(phase=FailureDrain(error=error)) if inputs.outcome is Outcome.FAILED and inputs.error != error:
            return "the run failed with another error"
    return None


@transition(
    "T87",
    section="4.9",
    phases=OPEN,
    inputs=Finalize,
    guards=(outcome_fits_the_operation, failure_keeps_its_error),
    extract=_finalized,
    public=True,
)
def finalize_externally(view: View, inputs: Finalize) -> Writes:
    """An authorized administrator ends the operation where it stands, with an outcome of their choice."""
    latest: str | None = None
    if isinstance(view.operation_state, RunState) and inputs.run_completion is not RunCompletion.TERMINATED_TOOLS:
        latest = view.run.latest_assistant_entry_id
    return terminal(
        view,
        inputs.outcome,
        final_assistant_entry_id=latest,
        error=inputs.error,
        run_completion=inputs.run_completion,
    )


def result_of_an_ended(view: View, operation_id: str) -> LaneLastResult | None:
    """What a task finds that wants to commit (T89): None while the operation is open, else the result it resolves from.

    Raises ``NotThis`` when a later operation of the lane has ended since; nobody can tell the outcome any more (§3.13).
    """
    if view.lane_state.current_operation_id == operation_id:
        return None
    value = view.state.value(Namespace.LANE_LAST_RESULT, view.lane)
    if value is UNSET:
        raise NotThis(f"no operation of lane {view.lane} has ended")
    try:
        result = LaneLastResult.from_json(value)
    except Refused as refused:
        raise NotThis(f"lane.lastResult/{view.lane}: {refused}") from None
    if result.operation_id != operation_id:
        raise NotThis(f"lane.lastResult/{view.lane} is that of {result.operation_id}")
    return result
