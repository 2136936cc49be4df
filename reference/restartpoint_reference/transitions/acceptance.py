"""Acceptance of a run (§3.6)."""

from dataclasses import dataclass

from restartpoint_reference.shapes import UNSET, JsonObject, Record, Unset
from restartpoint_reference.transitions.frame import (
    IDLE,
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    delete,
    insert_message,
    set_leaf,
    transition,
)
from restartpoint_reference.transitions.placement import placed
from restartpoint_reference.vocabulary.entries import InsertEntry, Namespace, NewEntry, SetRegister
from restartpoint_reference.vocabulary.messages import Message
from restartpoint_reference.vocabulary.registers import LaneState, Operation, RunIntent
from restartpoint_reference.vocabulary.states import (
    EMPTY_INBOX,
    Checkpoint,
    NeedAssistant,
    Running,
    RunSettings,
    RunState,
)


@dataclass(frozen=True, kw_only=True)
class NewMessage(Record):
    """A message and the entry id that was minted for it."""

    id: str
    message: JsonObject


@dataclass(frozen=True, kw_only=True)
class Acceptance(Inputs):
    """The minted id of an operation, and the time of its acceptance in Unix milliseconds."""

    operation_id: str
    started_at: int


@dataclass(frozen=True, kw_only=True)
class AcceptRun(Acceptance):
    """What prompt() and before_run chose.

    ``captured`` is how many items of the lane's next-run queue were taken, oldest first; a later one may still wait.
    """

    captured: int
    prompts: tuple[NewMessage, ...]
    injected: tuple[NewMessage, ...]
    settings: RunSettings
    system_prompt_override: str | Unset = UNSET
    resume_data: JsonObject | Unset = UNSET


def _message_of(entry: NewEntry) -> Message:
    """The message of an inserted message entry."""
    if entry.message is None:
        raise NotThis(f"entry {entry.id} is not a message")
    return entry.message


def _accepted(_: View, seen: Seen) -> AcceptRun:
    operation = seen.read(Namespace.OP_META, Operation.from_json)
    if not isinstance(operation.intent, RunIntent):
        raise NotThis("the accepted operation is not a run")
    captured = len(seen.deleted(Namespace.PENDING_ENTRY))
    prompts = captured + len(operation.intent.prompt_entry_ids)
    made = tuple(NewMessage(id=entry.id, message=_message_of(entry)) for entry in seen.entries[captured:])
    return AcceptRun(
        operation_id=operation.operation_id,
        started_at=operation.started_at,
        captured=captured,
        prompts=made[: prompts - captured],
        injected=made[prompts - captured :],
        settings=seen.run().settings,
        system_prompt_override=operation.intent.system_prompt_override,
        resume_data=operation.intent.resume_data,
    )


def something_is_appended(_: View, inputs: AcceptRun) -> str | None:
    """Acceptance appends at least one entry, which anchors the first checkpoint (§3.6)."""
    return None if inputs.captured or inputs.prompts or inputs.injected else "nothing would be appended"


def captured_items_wait(view: View, inputs: AcceptRun) -> str | None:
    """No more items are taken than wait (§3.6)."""
    waiting = len(view.lane_state.pending_next_run)
    return None if 0 <= inputs.captured <= waiting else f"{inputs.captured} items taken of {waiting}"


def operation_is_new(view: View, inputs: Acceptance) -> str | None:
    """The operation id is that of no open operation, nor of the lane's last one (§3.1, §3.13)."""
    last = view.state.value(Namespace.LANE_LAST_RESULT, view.lane)
    ended = isinstance(last, dict) and last.get("operationId") == inputs.operation_id
    taken = ended or view.state.register(Namespace.OP_META, inputs.operation_id) is not None
    return f"operation {inputs.operation_id} exists" if taken else None


def lane_is_configured(view: View, _: Acceptance) -> str | None:
    """The lane has its total configuration (§2.3)."""
    present = view.state.register(Namespace.LANE_CONFIG, view.lane) is not None
    return None if present else f"lane {view.lane} has no configuration"


@transition(
    "T01",
    section="3.6",
    phases=IDLE,
    inputs=AcceptRun,
    guards=(lane_is_configured, something_is_appended, captured_items_wait, operation_is_new),
    extract=_accepted,
    public=True,
)
def accept_run(view: View, inputs: AcceptRun) -> Writes:
    """A prompt is accepted: its messages enter the tree and the run starts at a checkpoint that owes a turn."""
    captured = view.lane_state.pending_next_run[: inputs.captured]
    inserts: list[InsertEntry] = list(placed(view, captured, view.leaf))
    for new in (*inputs.prompts, *inputs.injected):
        inserts.append(insert_message(new.id, inserts[-1].entry.id if inserts else view.leaf, new.message))
    newest = inserts[-1].entry.id
    operation = Operation(
        operation_id=inputs.operation_id,
        lane=view.lane,
        source_leaf_id=view.leaf,
        started_at=inputs.started_at,
        intent=RunIntent(
            prompt_entry_ids=tuple(new.id for new in inputs.prompts),
            system_prompt_override=inputs.system_prompt_override,
            resume_data=inputs.resume_data,
        ),
    )
    state = RunState(
        control=Running(),
        settings=inputs.settings,
        phase=Checkpoint(
            continuation=NeedAssistant(overflow_recovery_used=False), trigger_entry_id=newest, skip_inbox_once=True
        ),
        inbox=EMPTY_INBOX,
        latest_assistant_entry_id=None,
    )
    lane_state = LaneState(
        current_operation_id=inputs.operation_id, pending_next_run=view.lane_state.pending_next_run[inputs.captured :]
    )
    return (
        *inserts,
        *delete(Namespace.PENDING_ENTRY, *captured),
        set_leaf(view, newest),
        SetRegister(namespace=Namespace.OP_META, key=inputs.operation_id, value=operation.to_json()),
        SetRegister(namespace=Namespace.OP_STATE, key=inputs.operation_id, value=state.to_json()),
        SetRegister(namespace=Namespace.LANE_STATE, key=view.lane, value=lane_state.to_json()),
    )
