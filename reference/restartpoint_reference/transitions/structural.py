"""Structural work, whatever its summary is for: the decision, the failure, the recovery (§3.9, §4.5)."""

from dataclasses import dataclass, replace
from typing import TypeAlias

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Refused, Unset
from restartpoint_reference.transitions.frame import (
    DECIDING,
    GENERATING,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_state,
    transition,
)
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.registers import (
    BranchPreparation,
    CompactionPreparation,
    ErrorCode,
    LaneLastResult,
    OperationError,
    Outcome,
    Preparation,
)
from restartpoint_reference.vocabulary.states import (
    CompactionPhase,
    CompactionState,
    FailureDrain,
    Generating,
    NavigationState,
    OperationState,
    RetryPolicy,
    RunState,
    StructuralDecision,
    StructuralProvenance,
    SummaryContext,
    SummaryPending,
    SummaryPhase,
    SummaryReady,
    SummaryRetryWait,
)

SummaryGeneration: TypeAlias = SummaryReady | SummaryPending | SummaryRetryWait

# --- where the work is, and what it works on


def with_structural(view: View, structural: StructuralDecision) -> OperationState:
    """The operation's state with its compaction or summary moved on."""
    match view.operation_state:
        case RunState(phase=CompactionPhase() as phase) as run:
            return replace(run, phase=replace(phase, structural=structural))
        case CompactionState() as compaction:
            return replace(compaction, structural=structural)
        case NavigationState(phase=SummaryPhase()) as navigation:
            return replace(navigation, phase=SummaryPhase(structural=structural))
    raise NotThis("nothing structural is under way")


def set_generation(view: View, generation: SummaryGeneration) -> Writes:
    """The generation moves on, and all else of the operation stays."""
    task = view.structural.task_id
    return (set_state(view, with_structural(view, Generating(task_id=task, generation=generation))),)


def reason(view: View) -> str | Unset:
    """Why the conversation is compacted; a branch summary has no reason (§3.2)."""
    match view.operation_state:
        case RunState(phase=CompactionPhase(reason=found)):
            return found
        case CompactionState():
            return "manual"
    return UNSET


def attempt(view: View) -> SummaryPending:
    """The attempt at a summary that is under way."""
    match view.structural:
        case Generating(generation=SummaryPending() as pending):
            return pending
    raise NotThis("no summary attempt is pending")


def preparation(view: View) -> Preparation:
    """What the decision and the generator see; written once, never rebuilt (§3.2)."""
    key = f"{view.operation_id}:{view.structural.task_id}"
    register = view.state.register(Namespace.OP_PREPARATION, key)
    if register is None:
        raise NotThis(f"op.preparation/{key} does not exist")
    try:
        if isinstance(view.operation_state, NavigationState):
            return register.read(BranchPreparation.from_json)
        return register.read(CompactionPreparation.from_json)
    except Refused as refused:
        raise NotThis(f"op.preparation/{key}: {refused}") from None


def seen_structural(view: View, seen: Seen) -> StructuralDecision:
    """The compaction or summary in the state that is set."""
    match seen.read(Namespace.OP_STATE, type(view.operation_state).from_json):
        case (
            RunState(phase=CompactionPhase(structural=structural))
            | CompactionState(structural=structural)
            | NavigationState(phase=SummaryPhase(structural=structural))
        ):
            return structural
    raise NotThis("the state that is set has nothing structural")


# --- guards that attempts share


def no_request_is_open(view: View, _: Inputs) -> str | None:
    """Every request of the attempt has settled (§3.9)."""
    return None if attempt(view).request is UNSET else "a request of the attempt has not settled"


def request_is_open(view: View, inputs: Inputs) -> str | None:
    """The attempt waits for a request (§3.9)."""
    return "no request is open" if no_request_is_open(view, inputs) is None else None


def a_request_settled(view: View, _: Inputs) -> str | None:
    """The outcome of an attempt comes from a request, whose usage is durable (§3.9)."""
    return None if attempt(view).usage_ids else "the attempt made no request"


def summary_attempts_remain(view: View, _: Inputs) -> str | None:
    """The captured policy admits another attempt (§3.9)."""
    pending = attempt(view)
    left = pending.attempt < pending.context.retry_policy.max_attempts
    return None if left else "the attempts are exhausted"


def summary_attempts_are_exhausted(view: View, inputs: Inputs) -> str | None:
    """The captured policy admits no other attempt (§3.9)."""
    return "attempts remain" if summary_attempts_remain(view, inputs) is None else None


# --- decision


@transition(
    "T50",
    section="3.9",
    phases=("compact.deciding", "navigate.deciding"),
    inputs=Nothing,
    guards=(control_is_running,),
    extract=lambda _view, _seen: Nothing(),
)
def decline_structural(view: View, _: Nothing) -> Writes:
    """The hook declines: the operation ends so, and nothing moves."""
    return terminal(view, Outcome.DECLINED)


@dataclass(frozen=True, kw_only=True)
class StartSummary(Inputs):
    """The id minted for the result, and the settings of the harness at that moment."""

    result_entry_id: str
    stream_options: JsonObject
    retry_policy: RetryPolicy


def _started(view: View, seen: Seen) -> StartSummary:
    match seen_structural(view, seen):
        case Generating(generation=SummaryReady(context=context)):
            return StartSummary(
                result_entry_id=context.result_entry_id,
                stream_options=context.stream_options,
                retry_policy=context.retry_policy,
            )
    raise NotThis("the state that is set has no ready summary")


def result_id_is_new(view: View, inputs: StartSummary) -> str | None:
    """The reserved id names nothing yet (§2.2)."""
    return taken(view, inputs.result_entry_id)


def taken(view: View, id: str) -> str | None:
    """Why this id cannot be reserved; None when it names nothing yet (§2.2)."""
    return f"{id} exists already" if id in view.state.entries or id in view.state.usage else None


@transition(
    "T56",
    section="3.9",
    phases=DECIDING,
    inputs=StartSummary,
    guards=(control_is_running, result_id_is_new),
    extract=_started,
)
def start_summary(view: View, inputs: StartSummary) -> Writes:
    """Generation is chosen: its settings are captured, and the decision hook never runs again."""
    context = SummaryContext(
        task_id=view.structural.task_id,
        result_entry_id=inputs.result_entry_id,
        kind="branch_summary" if reason(view) is UNSET else "compaction",
        configuration=view.configuration,
        stream_options=inputs.stream_options,
        retry_policy=inputs.retry_policy,
        reason=reason(view),
    )
    return set_generation(view, SummaryReady(context=context, next_attempt=1))


# --- failure


@dataclass(frozen=True, kw_only=True)
class StructuralFailure(Inputs):
    """The words of the operation's error; its code is prescribed (decision AMB-47)."""

    error_message: str
    error_details: Json | Unset = UNSET


def seen_failure(view: View, seen: Seen) -> StructuralFailure:
    """The error that the run drains or the operation ends with."""
    error: OperationError | Unset = UNSET
    if not isinstance(view.operation_state, RunState):
        error = seen.read(Namespace.LANE_LAST_RESULT, LaneLastResult.from_json).error
    elif isinstance(phase := seen.run().phase, FailureDrain):
        error = phase.error
    if error is UNSET:
        raise NotThis("nothing fails")
    return StructuralFailure(error_message=error.message, error_details=error.details)


def failed(view: View, code: ErrorCode, inputs: StructuralFailure) -> Writes:
    """The failure of structural work: a run drains it, an operation of its own ends with it (§3.9)."""
    error = OperationError(code=code, message=inputs.error_message, details=inputs.error_details)
    if isinstance(view.operation_state, RunState):
        provenance = StructuralProvenance(task_id=view.structural.task_id)
        return (set_state(view, replace(view.run, phase=FailureDrain(error=error, provenance=provenance))),)
    return terminal(view, Outcome.FAILED, error=error)


@transition(
    "T62",
    section="3.9",
    phases=("compact.generating", "navigate.generating"),
    inputs=StructuralFailure,
    guards=(control_is_running, no_request_is_open),
    extract=seen_failure,
)
def fail_structural(view: View, inputs: StructuralFailure) -> Writes:
    """No summary comes of it: the operation fails, the usage of its attempts stays in the ledger."""
    code = ErrorCode.BRANCH_SUMMARY_FAILED if reason(view) is UNSET else ErrorCode.COMPACTION_FAILED
    return failed(view, code, inputs)


@transition(
    "T63",
    section="3.9",
    phases=("compaction.generating",),
    inputs=StructuralFailure,
    guards=(control_is_running, no_request_is_open),
    extract=seen_failure,
)
def fail_structural_in_run(view: View, inputs: StructuralFailure) -> Writes:
    """No summary comes of it: the run that needed it fails, unless new input revives it."""
    return failed(view, ErrorCode.COMPACTION_FAILED, inputs)


# --- attempts whose process is gone


@transition(
    "T67",
    section="4.5",
    phases=GENERATING,
    inputs=Nothing,
    guards=(control_is_running, summary_attempts_remain),
    extract=lambda _view, _seen: Nothing(),
)
def recover_summary(view: View, _: Nothing) -> Writes:
    """The outcome of the attempt is unknown, settled requests included: a later one starts from nothing."""
    pending = attempt(view)
    return set_generation(view, SummaryReady(context=pending.context, next_attempt=pending.attempt + 1))


@transition(
    "T68",
    section="4.5",
    phases=GENERATING,
    inputs=StructuralFailure,
    guards=(control_is_running, summary_attempts_are_exhausted),
    extract=seen_failure,
)
def recover_exhausted_summary(view: View, inputs: StructuralFailure) -> Writes:
    """The outcome of the last admitted attempt is unknown: the work fails with that code, which tells it apart."""
    return failed(view, ErrorCode.UNKNOWN_OUTCOME, inputs)
