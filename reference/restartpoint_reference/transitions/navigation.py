"""Navigation: the leaf moves in one commit, with or without a summary of what it leaves (§3.6, §3.10)."""

from dataclasses import dataclass, replace

from restartpoint_reference.preparation import BranchCut, branch_cut, impossible_branch, prepared_branch
from restartpoint_reference.shapes import UNSET, JsonObject, Unset
from restartpoint_reference.transitions.acceptance import Acceptance, lane_is_configured, operation_is_new
from restartpoint_reference.transitions.compaction import set_preparation
from restartpoint_reference.transitions.frame import (
    IDLE,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_lane_state,
    set_leaf,
    transition,
)
from restartpoint_reference.transitions.publication import (
    HookSummary,
    Summary,
    generated_content,
    hook_content,
    hook_usage,
    hook_usage_is_whole,
    seen_hook_summary,
    seen_summary,
)
from restartpoint_reference.transitions.structural import (
    a_request_settled,
    attempt,
    no_request_is_open,
)
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.vocabulary.entries import EntryType, InsertEntry, Namespace, NewEntry, SetRegister
from restartpoint_reference.vocabulary.registers import BranchPreparation, NavigationIntent, Operation, Outcome
from restartpoint_reference.vocabulary.states import (
    Deciding,
    NavigationState,
    ReadyToCommit,
    Running,
    SummaryPhase,
)

# --- acceptance


@dataclass(frozen=True, kw_only=True)
class AcceptNavigation(Acceptance):
    """What navigateTree() was given."""

    target_id: str | None
    label: str | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class AcceptSummarizedNavigation(AcceptNavigation):
    """The same with the task minted for the summary, and what of the branch is summarised."""

    task_id: str
    cut: BranchCut
    custom_instructions: str | Unset = UNSET


def target_exists(view: View, inputs: AcceptNavigation) -> str | None:
    """The target is an entry or the root (§3.6)."""
    known = inputs.target_id is None or inputs.target_id in view.state.entries
    return None if known else f"no entry {inputs.target_id}"


def target_is_elsewhere(view: View, inputs: AcceptNavigation) -> str | None:
    """A navigation goes somewhere else (§3.6)."""
    return "the target is the current leaf" if inputs.target_id == view.leaf else None


def root_gets_no_label(_: View, inputs: AcceptNavigation) -> str | None:
    """Only an entry can be labelled (§3.6)."""
    labelled_root = inputs.target_id is None and inputs.label is not UNSET
    return "the root gets no label" if labelled_root else None


def both_ends_are_entries(view: View, inputs: AcceptNavigation) -> str | None:
    """A summary lies below an entry, and tells of a branch that has one (§3.6)."""
    return "nothing is summarised to or from the root" if None in (inputs.target_id, view.leaf) else None


def branch_is_summarised(view: View, inputs: AcceptSummarizedNavigation) -> str | None:
    """Something is summarised, and it is of the branch that is left, in its order (decision AMB-50)."""
    return impossible_branch(view.state, view.leaf, inputs.target_id, inputs.cut)


def _intent(seen: Seen) -> tuple[Operation, NavigationIntent]:
    operation = seen.read(Namespace.OP_META, Operation.from_json)
    if not isinstance(operation.intent, NavigationIntent):
        raise NotThis("the accepted operation is not a navigation")
    return operation, operation.intent


def _accepted(_: View, seen: Seen) -> AcceptNavigation:
    operation, intent = _intent(seen)
    return AcceptNavigation(
        operation_id=operation.operation_id,
        started_at=operation.started_at,
        target_id=intent.target_id,
        label=intent.label,
    )


def _accepted_summarized(view: View, seen: Seen) -> AcceptSummarizedNavigation:
    operation, intent = _intent(seen)
    prepared = seen.read(Namespace.OP_PREPARATION, BranchPreparation.from_json)
    if intent.target_id not in view.state.entries:
        raise NotThis(f"no entry {intent.target_id}")
    return AcceptSummarizedNavigation(
        operation_id=operation.operation_id,
        started_at=operation.started_at,
        target_id=intent.target_id,
        label=intent.label,
        task_id=seen.set(Namespace.OP_PREPARATION).key.partition(":")[2],
        cut=branch_cut(view.state, view.leaf, intent.target_id, prepared),
        custom_instructions=intent.custom_instructions,
    )


def _opened(view: View, inputs: AcceptNavigation, instructions: str | Unset, task_id: str | Unset) -> Writes:
    summarize = task_id is not UNSET
    operation = Operation(
        operation_id=inputs.operation_id,
        lane=view.lane,
        source_leaf_id=view.leaf,
        started_at=inputs.started_at,
        intent=NavigationIntent(
            target_id=inputs.target_id, summarize=summarize, label=inputs.label, custom_instructions=instructions
        ),
    )
    state = NavigationState(
        control=Running(),
        target_id=inputs.target_id,
        label=inputs.label,
        custom_instructions=instructions,
        summarize=summarize,
        phase=ReadyToCommit() if task_id is UNSET else SummaryPhase(structural=Deciding(task_id=task_id)),
    )
    return (
        SetRegister(namespace=Namespace.OP_META, key=inputs.operation_id, value=operation.to_json()),
        SetRegister(namespace=Namespace.OP_STATE, key=inputs.operation_id, value=state.to_json()),
        set_lane_state(view, replace(view.lane_state, current_operation_id=inputs.operation_id)),
    )


@transition(
    "T03",
    section="3.6",
    phases=IDLE,
    inputs=AcceptNavigation,
    guards=(lane_is_configured, operation_is_new, target_exists, target_is_elsewhere, root_gets_no_label),
    extract=_accepted,
    public=True,
)
def accept_navigation(view: View, inputs: AcceptNavigation) -> Writes:
    """A navigation is accepted that leaves its branch without a summary."""
    return _opened(view, inputs, UNSET, UNSET)


@transition(
    "T04",
    section="3.6",
    phases=IDLE,
    inputs=AcceptSummarizedNavigation,
    guards=(
        lane_is_configured,
        operation_is_new,
        target_exists,
        target_is_elsewhere,
        both_ends_are_entries,
        branch_is_summarised,
    ),
    extract=_accepted_summarized,
    public=True,
)
def accept_summarized_navigation(view: View, inputs: AcceptSummarizedNavigation) -> Writes:
    """A navigation is accepted with what it prepared of the branch that it leaves."""
    prepared = prepared_branch(view.state, view.leaf, inputs.target_id, inputs.cut)
    return (
        set_preparation(inputs.operation_id, inputs.task_id, prepared),
        *_opened(view, inputs, inputs.custom_instructions, inputs.task_id),
    )


# --- the one commit


def _navigation(view: View) -> NavigationState:
    match view.operation_state:
        case NavigationState() as navigation:
            return navigation
    raise NotThis("the operation is no navigation")


def _label(view: View) -> Writes:
    """The label of the target, if one was asked for (decision AMB-49)."""
    navigation = _navigation(view)
    if navigation.label is UNSET or navigation.target_id is None:
        return ()
    return (SetRegister(namespace=Namespace.FACT_LABEL, key=navigation.target_id, value=navigation.label),)


@transition(
    "T69",
    section="3.10",
    phases=("navigate.ready_to_commit",),
    inputs=Nothing,
    guards=(control_is_running,),
    extract=lambda _view, _seen: Nothing(),
)
def navigate(view: View, _: Nothing) -> Writes:
    """The leaf moves to the target, and the operation ends."""
    target = _navigation(view).target_id
    publication = (set_leaf(view, target), *_label(view))
    return terminal(view, Outcome.COMPLETED, publication=publication, leaf_id=target)


def _summarized(view: View, id: str, content: JsonObject, usage: Writes = ()) -> Writes:
    """The end of a summarized navigation: below the target lies what the left branch said, and the leaf on it."""
    target, source = _navigation(view).target_id, view.operation.source_leaf_id
    payload: JsonObject = {**content, "fromId": source}
    entry = NewEntry(id=id, parent_id=target, type=EntryType.BRANCH_SUMMARY, payload=payload)
    moves = (set_leaf(view, target), InsertEntry(entry=entry), set_leaf(view, id))
    return terminal(view, Outcome.COMPLETED, publication=(*usage, *moves, *_label(view)), leaf_id=id)


@transition(
    "T55",
    section="3.9, 3.10",
    phases=("navigate.deciding",),
    inputs=HookSummary,
    guards=(control_is_running, hook_usage_is_whole),
    extract=seen_hook_summary,
)
def publish_hook_navigation(view: View, inputs: HookSummary) -> Writes:
    """The hook supplies the summary, and the navigation ends with it."""
    return _summarized(view, inputs.entry_id, hook_content(inputs), hook_usage(inputs))


@transition(
    "T66",
    section="3.10",
    phases=("navigate.generating",),
    inputs=Summary,
    guards=(control_is_running, no_request_is_open, a_request_settled),
    extract=seen_summary,
)
def publish_navigation(view: View, inputs: Summary) -> Writes:
    """The generated summary is published, and the navigation ends with it; its usage is in the ledger already."""
    return _summarized(view, attempt(view).context.result_entry_id, generated_content(view, inputs))
