"""Queued input and tree writes: how they are accepted and withdrawn (§3.11)."""

from dataclasses import dataclass, replace
from enum import StrEnum

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.transitions.frame import (
    IDLE,
    LANE,
    RUN,
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    delete,
    insert_custom,
    insert_message,
    set_lane_state,
    set_leaf,
    set_state,
    transition,
)
from restartpoint_reference.transitions.placement import read_pending, without
from restartpoint_reference.vocabulary.entries import EntryType, Namespace, SetRegister
from restartpoint_reference.vocabulary.messages import role
from restartpoint_reference.vocabulary.registers import PendingCustom, PendingEntry, PendingMessage
from restartpoint_reference.vocabulary.states import RunState


@dataclass(frozen=True, kw_only=True)
class QueuedMessage(Inputs):
    """A minted entry id and the message that will become that entry."""

    id: str
    message: JsonObject


@dataclass(frozen=True, kw_only=True)
class QueuedId(Inputs):
    """The id of a queued item."""

    id: str


@dataclass(frozen=True, kw_only=True)
class TreeWrite(Inputs):
    """A minted id with a message, or with a custom type and its data."""

    id: str
    message: JsonObject | Unset = UNSET
    custom_type: str | Unset = UNSET
    data: Json | Unset = UNSET


# --- acceptance


def _queued(_: View, seen: Seen) -> QueuedMessage:
    write = seen.set(Namespace.PENDING_ENTRY)
    message = seen.read(Namespace.PENDING_ENTRY, PendingMessage.from_json).payload
    return QueuedMessage(id=write.key, message=message)


def message_is_input(_: View, inputs: QueuedMessage) -> str | None:
    """Assistant messages and tool results are no input (§5.1)."""
    kind = role(inputs.message)
    return f"a message of role {kind} is not input" if kind in ("assistant", "toolResult") else None


def id_is_new(view: View, inputs: QueuedMessage | TreeWrite) -> str | None:
    """A minted id names nothing yet (§2.2)."""
    taken = inputs.id in view.state.entries or inputs.id in view.state.usage
    queued = view.state.register(Namespace.PENDING_ENTRY, inputs.id) is not None
    return f"the id {inputs.id} is taken" if taken or queued else None


def _queue_message(inputs: QueuedMessage) -> SetRegister:
    value = PendingMessage(payload=inputs.message).to_json()
    return SetRegister(namespace=Namespace.PENDING_ENTRY, key=inputs.id, value=value)


@transition(
    "T77",
    section="3.11",
    phases=RUN,
    inputs=QueuedMessage,
    guards=(control_is_running, message_is_input, id_is_new),
    extract=_queued,
    public=True,
)
def enqueue_steer(view: View, inputs: QueuedMessage) -> Writes:
    """A message waits to steer the run at its next checkpoint."""
    inbox = replace(view.run.inbox, steer=(*view.run.inbox.steer, inputs.id))
    return (_queue_message(inputs), set_state(view, replace(view.run, inbox=inbox)))


@transition(
    "T78",
    section="3.11",
    phases=RUN,
    inputs=QueuedMessage,
    guards=(control_is_running, message_is_input, id_is_new),
    extract=_queued,
    public=True,
)
def enqueue_follow_up(view: View, inputs: QueuedMessage) -> Writes:
    """A message waits until the run would otherwise finish."""
    inbox = replace(view.run.inbox, follow_up=(*view.run.inbox.follow_up, inputs.id))
    return (_queue_message(inputs), set_state(view, replace(view.run, inbox=inbox)))


@transition(
    "T80",
    section="3.11",
    phases=LANE,
    inputs=QueuedMessage,
    guards=(message_is_input, id_is_new),
    extract=_queued,
    public=True,
)
def enqueue_next_run(view: View, inputs: QueuedMessage) -> Writes:
    """A message waits for the lane's next run, which it does not start."""
    queue = (*view.lane_state.pending_next_run, inputs.id)
    return (_queue_message(inputs), set_lane_state(view, replace(view.lane_state, pending_next_run=queue)))


# --- tree writes


def write_has_one_content(_: View, inputs: TreeWrite) -> str | None:
    """A tree write is a message or a custom entry (§3.11)."""
    both = (inputs.message is UNSET) == (inputs.custom_type is UNSET)
    return "either a message or a custom entry" if both else None


@dataclass(frozen=True, kw_only=True)
class DeferredWrite(TreeWrite):
    """A tree write that the run will place."""


def _deferred(_: View, seen: Seen) -> DeferredWrite:
    key = seen.set(Namespace.PENDING_ENTRY).key
    match seen.read(Namespace.PENDING_ENTRY, read_pending):
        case PendingMessage(payload=message):
            return DeferredWrite(id=key, message=message)
        case PendingCustom(custom_type=custom_type, payload=data):
            return DeferredWrite(id=key, custom_type=custom_type, data=data)


@transition(
    "T79",
    section="3.11",
    phases=RUN,
    inputs=DeferredWrite,
    guards=(write_has_one_content, id_is_new),
    extract=_deferred,
    public=True,
)
def defer_write(view: View, inputs: DeferredWrite) -> Writes:
    """A tree write under an open run waits for a checkpoint, whatever the control; it survives an abort."""
    content: PendingEntry
    if inputs.message is not UNSET:
        content = PendingMessage(payload=inputs.message)
    else:
        content = PendingCustom(custom_type=str(inputs.custom_type), payload=inputs.data)
    inbox = replace(view.run.inbox, writes=(*view.run.inbox.writes, inputs.id))
    return (
        SetRegister(namespace=Namespace.PENDING_ENTRY, key=inputs.id, value=content.to_json()),
        set_state(view, replace(view.run, inbox=inbox)),
    )


@dataclass(frozen=True, kw_only=True)
class IdleWrite(TreeWrite):
    """A tree write that is placed at once."""


def _written(_: View, seen: Seen) -> IdleWrite:
    entry = seen.first_entry()
    if entry.type is EntryType.CUSTOM:
        return IdleWrite(id=entry.id, custom_type=entry.custom_type, data=entry.payload.get("data", UNSET))
    return IdleWrite(id=entry.id, message=seen.first_message())


@transition(
    "T86",
    section="3.11",
    phases=IDLE,
    inputs=IdleWrite,
    guards=(write_has_one_content,),
    extract=_written,
    public=True,
)
def write_idle(view: View, inputs: IdleWrite) -> Writes:
    """A tree write on an idle lane is born placed."""
    if inputs.message is not UNSET:
        insert = insert_message(inputs.id, view.leaf, inputs.message)
    else:
        insert = insert_custom(inputs.id, view.leaf, str(inputs.custom_type), inputs.data)
    return (insert, set_leaf(view, inputs.id))


def admission_of_a_write(view: View) -> str | None:
    """The transition by which a tree write is admitted now; None while it waits for a structural operation (T90)."""
    if view.phase in IDLE:
        return "write_idle"
    return "defer_write" if view.phase in RUN else None


# --- withdrawal


class Triage(StrEnum):
    """What cancelQueued answers (§3.11)."""

    CANCELLED = "cancelled"
    ALREADY_CONSUMED = "already_consumed"
    NOT_FOUND = "not_found"


def triage(view: View, id: str) -> Triage:
    """The answer of cancelQueued on this lane now; only ``cancelled`` commits anything, by T81 or T82.

    A deferred write can be withdrawn like a message, what an abort drained cannot (decision AMB-54).
    """
    if id in _in_the_inbox(view) or id in view.lane_state.pending_next_run:
        return Triage.CANCELLED
    return Triage.ALREADY_CONSUMED if id in view.state.entries else Triage.NOT_FOUND


def _in_the_inbox(view: View) -> tuple[str, ...]:
    if view.lane_state.current_operation_id is None or not isinstance(view.operation_state, RunState):
        return ()
    inbox = view.run.inbox
    return (*inbox.steer, *inbox.follow_up, *inbox.writes)


def _cancelled(_: View, seen: Seen) -> QueuedId:
    deleted = seen.deleted(Namespace.PENDING_ENTRY)
    if not deleted:
        raise NotThis("no queued content is removed")
    return QueuedId(id=deleted[0])


def item_is_in_the_inbox(view: View, inputs: QueuedId) -> str | None:
    """The id still waits in one of the run's lists (§3.11)."""
    return None if inputs.id in _in_the_inbox(view) else f"{inputs.id} is not pending"


@transition(
    "T81",
    section="3.11",
    phases=RUN,
    inputs=QueuedId,
    guards=(item_is_in_the_inbox,),
    extract=_cancelled,
    public=True,
)
def cancel_queued(view: View, inputs: QueuedId) -> Writes:
    """What waits in the run's inbox is withdrawn and leaves no trace."""
    state = replace(view.run, inbox=without(view.run.inbox, (inputs.id,)))
    return (set_state(view, state), *delete(Namespace.PENDING_ENTRY, inputs.id))


def item_is_listed(view: View, inputs: QueuedId) -> str | None:
    """The id still waits in the lane's list (§3.11)."""
    return None if inputs.id in view.lane_state.pending_next_run else f"{inputs.id} is not pending"


@transition(
    "T82",
    section="3.11",
    phases=LANE,
    inputs=QueuedId,
    guards=(item_is_listed,),
    extract=_cancelled,
    public=True,
)
def cancel_next_run(view: View, inputs: QueuedId) -> Writes:
    """A message that waits for the next run is withdrawn and leaves no trace."""
    queue = tuple(queued for queued in view.lane_state.pending_next_run if queued != inputs.id)
    state = replace(view.lane_state, pending_next_run=queue)
    return (set_lane_state(view, state), *delete(Namespace.PENDING_ENTRY, inputs.id))
