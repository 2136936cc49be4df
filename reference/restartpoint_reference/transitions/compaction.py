"""Compaction: asked for, at the threshold, or after an overflow; and what it publishes (§3.6, §3.7, §3.9, §3.12)."""

from dataclasses import dataclass, replace

from restartpoint_reference.classify import says_overflow
from restartpoint_reference.preparation import CompactionCut, compaction_cut, impossible_cut, prepared_compaction
from restartpoint_reference.shapes import UNSET, JsonObject, Unset
from restartpoint_reference.threshold import should_compact
from restartpoint_reference.transitions.acceptance import Acceptance, lane_is_configured, operation_is_new
from restartpoint_reference.transitions.frame import (
    IDLE,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_lane_state,
    set_state,
    transition,
)
from restartpoint_reference.transitions.settlement import (
    PENDING,
    SettleFailure,
    first_overflow,
    response_is_an_error,
    settlement,
)
from restartpoint_reference.transitions.structural import (
    StructuralFailure,
    failed,
    seen_failure,
)
from restartpoint_reference.vocabulary.entries import Namespace, SetRegister
from restartpoint_reference.vocabulary.messages import error_message
from restartpoint_reference.vocabulary.registers import (
    CompactionIntent,
    CompactionPreparation,
    CompactionSettings,
    ErrorCode,
    Operation,
    Preparation,
)
from restartpoint_reference.vocabulary.states import (
    Checkpoint,
    CompactionPhase,
    CompactionState,
    Deciding,
    NeedAssistant,
    Running,
)

# --- preparation


@dataclass(frozen=True, kw_only=True)
class Compact(Inputs):
    """The minted task id, and where the context is cut."""

    task_id: str
    cut: CompactionCut


def _prepared(seen: Seen) -> tuple[str, CompactionPreparation]:
    write = seen.set(Namespace.OP_PREPARATION)
    found = seen.read(Namespace.OP_PREPARATION, CompactionPreparation.from_json)
    return write.key.partition(":")[2], found


def context_is_cut(view: View, inputs: Compact) -> str | None:
    """Something is summarised, results stay with their calls, and the parts are the context in its order (§3.9)."""
    return impossible_cut(view.state, view.leaf, inputs.cut)


def task_is_new(view: View, inputs: Compact) -> str | None:
    """A preparation is written once (§1.3)."""
    key = f"{view.operation_id}:{inputs.task_id}"
    return None if view.state.register(Namespace.OP_PREPARATION, key) is None else f"op.preparation/{key} exists"


def set_preparation(operation_id: str, task_id: str, prepared: Preparation) -> SetRegister:
    """The register that hook and generator will read, under its deterministic key (§1.3)."""
    key = f"{operation_id}:{task_id}"
    return SetRegister(namespace=Namespace.OP_PREPARATION, key=key, value=prepared.to_json())


def _set_run_preparation(view: View, inputs: Compact) -> SetRegister:
    prepared = prepared_compaction(view.state, view.leaf, inputs.cut, view.run.settings.compaction)
    return set_preparation(view.operation_id, inputs.task_id, prepared)


# --- a compaction of its own


@dataclass(frozen=True, kw_only=True)
class AcceptCompaction(Acceptance, Compact):
    """What compact() was given and minted, and the settings of the harness at its reservation."""

    settings: CompactionSettings
    custom_instructions: str | Unset = UNSET


def _accepted(view: View, seen: Seen) -> AcceptCompaction:
    operation = seen.read(Namespace.OP_META, Operation.from_json)
    if not isinstance(operation.intent, CompactionIntent):
        raise NotThis("the accepted operation is not a compaction")
    task, prepared = _prepared(seen)
    return AcceptCompaction(
        operation_id=operation.operation_id,
        started_at=operation.started_at,
        task_id=task,
        cut=compaction_cut(view.state, view.leaf, prepared),
        settings=prepared.settings,
        custom_instructions=operation.intent.custom_instructions,
    )


@transition(
    "T02",
    section="3.6",
    phases=IDLE,
    inputs=AcceptCompaction,
    guards=(lane_is_configured, operation_is_new, context_is_cut),
    extract=_accepted,
    public=True,
)
def accept_compaction(view: View, inputs: AcceptCompaction) -> Writes:
    """A compaction is accepted at the leaf for which it was prepared, whether or not compaction is enabled."""
    operation = Operation(
        operation_id=inputs.operation_id,
        lane=view.lane,
        source_leaf_id=view.leaf,
        started_at=inputs.started_at,
        intent=CompactionIntent(custom_instructions=inputs.custom_instructions),
    )
    state = CompactionState(
        control=Running(),
        custom_instructions=inputs.custom_instructions,
        structural=Deciding(task_id=inputs.task_id),
    )
    prepared = prepared_compaction(view.state, view.leaf, inputs.cut, inputs.settings)
    return (
        set_preparation(inputs.operation_id, inputs.task_id, prepared),
        SetRegister(namespace=Namespace.OP_META, key=inputs.operation_id, value=operation.to_json()),
        SetRegister(namespace=Namespace.OP_STATE, key=inputs.operation_id, value=state.to_json()),
        set_lane_state(view, replace(view.lane_state, current_operation_id=inputs.operation_id)),
    )


# --- at the threshold


def _boundary(view: View) -> Checkpoint:
    match view.run.phase:
        case Checkpoint() as checkpoint:
            return checkpoint
    raise NotThis("the run is at no checkpoint")


def _marked(view: View) -> Checkpoint:
    """The boundary as checked: nothing that follows can check it again (§3.2)."""
    boundary = _boundary(view)
    return replace(boundary, threshold_checked_trigger_entry_id=boundary.trigger_entry_id)


def boundary_is_unchecked(view: View, _: Inputs) -> str | None:
    """The threshold is checked at most once for each trigger (§3.12)."""
    checked = _boundary(view) == _marked(view)
    return "this boundary was already checked" if checked else None


def compaction_is_enabled(view: View, _: Inputs) -> str | None:
    """The settings that the run captured admit compaction on its own account (decisions AMB-14, AMB-20)."""
    return None if view.run.settings.compaction.enabled else "compaction is disabled"


def threshold_is_due(view: View, context_tokens: int, context_window: int) -> bool:
    """Whether step 3 of the checkpoint procedure has to prepare a compaction; otherwise it commits nothing (T08)."""
    unchecked = boundary_is_unchecked(view, Nothing()) is None
    return unchecked and should_compact(context_tokens, context_window, view.run.settings.compaction)


@transition(
    "T09",
    section="3.9, 3.12",
    phases=("checkpoint",),
    inputs=Nothing,
    guards=(control_is_running, boundary_is_unchecked, compaction_is_enabled),
    extract=lambda _view, _seen: Nothing(),
)
def mark_threshold_checked(view: View, _: Nothing) -> Writes:
    """The context is over the threshold and there is nothing to summarise: the boundary counts as checked."""
    return (set_state(view, replace(view.run, phase=_marked(view))),)


def _threshold(view: View, seen: Seen) -> Compact:
    task, prepared = _prepared(seen)
    return Compact(task_id=task, cut=compaction_cut(view.state, view.leaf, prepared))


@transition(
    "T10",
    section="3.9, 3.12",
    phases=("checkpoint",),
    inputs=Compact,
    guards=(control_is_running, boundary_is_unchecked, compaction_is_enabled, task_is_new, context_is_cut),
    extract=_threshold,
)
def begin_threshold_compaction(view: View, inputs: Compact) -> Writes:
    """The context is over the threshold: the run compacts, and then continues at this boundary, marked."""
    deciding = Deciding(task_id=inputs.task_id)
    phase = CompactionPhase(reason="threshold", structural=deciding, resume_after=_marked(view))
    return (_set_run_preparation(view, inputs), set_state(view, replace(view.run, phase=phase)))


# --- after an overflow


@dataclass(frozen=True, kw_only=True)
class SettleOverflow(Compact):
    """The response as committed, whether it was an answer cut below its limit, and the compaction that it causes."""

    response: JsonObject
    cut_short: bool = False


def _overflow(view: View, seen: Seen) -> SettleOverflow:
    task, prepared = _prepared(seen)
    response = seen.first_message()
    return SettleOverflow(
        task_id=task,
        cut=compaction_cut(view.state, view.leaf, prepared),
        response=response,
        cut_short=not says_overflow(error_message(response)),
    )


def is_a_first_overflow(view: View, inputs: SettleOverflow) -> str | None:
    """The response is committed as an error, did not fit, and overflow recovery was not spent (§3.7, §3.9)."""
    settled = SettleFailure(response=inputs.response, error_message="", cut_short=inputs.cut_short)
    return response_is_an_error(view, settled) or first_overflow(view, settled)


@transition(
    "T19",
    section="3.7, 3.9",
    phases=PENDING,
    inputs=SettleOverflow,
    guards=(control_is_running, is_a_first_overflow, compaction_is_enabled, task_is_new, context_is_cut),
    extract=_overflow,
)
def settle_overflow(view: View, inputs: SettleOverflow) -> Writes:
    """The request did not fit: the run compacts what it was made of, and then owes the same turn for the last time."""
    owed = NeedAssistant(overflow_recovery_used=True)
    resume_after = Checkpoint(continuation=owed, trigger_entry_id=view.pending.context.trigger_entry_id)
    deciding = Deciding(task_id=inputs.task_id)
    phase = CompactionPhase(reason="overflow", structural=deciding, resume_after=resume_after)
    *settled, state = settlement(view, inputs.response, phase)
    return (*settled, _set_run_preparation(view, inputs), state)


# --- declined inside a run


def compacting(view: View) -> CompactionPhase:
    """The compaction that the run is in."""
    match view.run.phase:
        case CompactionPhase() as phase:
            return phase
    raise NotThis("the run does not compact")


def compacts_at_the_threshold(view: View, _: Inputs) -> str | None:
    """The compaction was begun because the context grew (§3.9)."""
    return None if compacting(view).reason == "threshold" else "the compaction follows an overflow"


def compacts_after_an_overflow(view: View, _: Inputs) -> str | None:
    """The compaction was begun because a request did not fit (§3.9)."""
    return None if compacting(view).reason == "overflow" else "the compaction was begun at the threshold"


def resumed(view: View) -> SetRegister:
    """The run continues at the checkpoint where it began to compact (§3.9)."""
    return set_state(view, replace(view.run, phase=compacting(view).resume_after))


@transition(
    "T51",
    section="3.9",
    phases=("compaction.deciding",),
    inputs=Nothing,
    guards=(control_is_running, compacts_at_the_threshold),
    extract=lambda _view, _seen: Nothing(),
)
def decline_threshold(view: View, _: Nothing) -> Writes:
    """The hook declines: the run continues at its marked boundary with the context as it is."""
    return (resumed(view),)


@transition(
    "T52",
    section="3.9",
    phases=("compaction.deciding",),
    inputs=StructuralFailure,
    guards=(control_is_running, compacts_after_an_overflow),
    extract=seen_failure,
)
def decline_overflow(view: View, inputs: StructuralFailure) -> Writes:
    """The hook declines: the request cannot be made to fit, and the run fails."""
    return failed(view, ErrorCode.COMPACTION_DECLINED, inputs)
