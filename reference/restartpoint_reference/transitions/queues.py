"""Queued input for the next run, and tree writes of an idle lane (§3.11)."""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Refused, Unset
from restartpoint_reference.transitions.frame import (
    ANY,
    IDLE,
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    delete,
    insert_custom,
    insert_message,
    set_lane_state,
    set_leaf,
    transition,
)
from restartpoint_reference.vocabulary.entries import EntryType, InsertEntry, Namespace, NewEntry, SetRegister
from restartpoint_reference.vocabulary.messages import Message, role
from restartpoint_reference.vocabulary.registers import PendingCustom, PendingEntry, PendingMessage


def pending_entry(view: View, id: str) -> PendingEntry:
    """The queued content that waits under this id (§1.3)."""
    value = view.state.value(Namespace.PENDING_ENTRY, id)
    if not isinstance(value, dict):
        raise NotThis(f"pending.entry/{id} does not exist")
    try:
        return PendingCustom.from_json(value) if value.get("type") == "custom" else PendingMessage.from_json(value)
    except Refused as refused:
        raise NotThis(f"pending.entry/{id}: {refused}") from None


def placed(view: View, ids: Iterable[str], parent_id: str | None) -> tuple[InsertEntry, ...]:
    """The entries of queued ids, each under the one before it, with the content of their registers (§2.2)."""
    inserts: list[InsertEntry] = []
    for queued in ids:
        match pending_entry(view, queued):
            case PendingMessage(payload=message):
                inserts.append(insert_message(queued, parent_id, message))
            case PendingCustom(custom_type=custom_type, payload=data):
                inserts.append(insert_custom(queued, parent_id, custom_type, data))
        parent_id = queued
    return tuple(inserts)


@dataclass(frozen=True, kw_only=True)
class QueuedMessage(Inputs):
    """A minted entry id and the message that will become that entry."""

    id: str
    message: JsonObject


@dataclass(frozen=True, kw_only=True)
class QueuedId(Inputs):
    """The id of a queued item."""

    id: str


def _queued(_: View, seen: Seen) -> QueuedMessage:
    write = seen.set(Namespace.PENDING_ENTRY)
    message = seen.read(Namespace.PENDING_ENTRY, PendingMessage.from_json).payload
    return QueuedMessage(id=write.key, message=message)


def message_is_input(_: View, inputs: QueuedMessage) -> str | None:
    """Assistant messages and tool results are no input (§5.1)."""
    kind = role(inputs.message)
    return f"a message of role {kind} is not input" if kind in ("assistant", "toolResult") else None


def id_is_new(view: View, inputs: QueuedMessage) -> str | None:
    """A minted id names nothing yet (§2.2)."""
    taken = inputs.id in view.state.entries or inputs.id in view.state.usage
    queued = view.state.register(Namespace.PENDING_ENTRY, inputs.id) is not None
    return f"the id {inputs.id} is taken" if taken or queued else None


@transition(
    "T80",
    section="3.11",
    phases=ANY,
    inputs=QueuedMessage,
    guards=(message_is_input, id_is_new),
    extract=_queued,
    public=True,
)
def enqueue_next_run(view: View, inputs: QueuedMessage) -> Writes:
    """A message waits for the lane's next run, which it does not start."""
    queue = (*view.lane_state.pending_next_run, inputs.id)
    value = PendingMessage(payload=inputs.message).to_json()
    return (
        SetRegister(namespace=Namespace.PENDING_ENTRY, key=inputs.id, value=value),
        set_lane_state(view, replace(view.lane_state, pending_next_run=queue)),
    )


def _cancelled(_: View, seen: Seen) -> QueuedId:
    deleted = seen.deleted(Namespace.PENDING_ENTRY)
    if not deleted:
        raise NotThis("no queued content is removed")
    return QueuedId(id=deleted[0])


def item_is_listed(view: View, inputs: QueuedId) -> str | None:
    """The id still waits in the lane's list (§3.11)."""
    return None if inputs.id in view.lane_state.pending_next_run else f"{inputs.id} is not pending"


@transition(
    "T82",
    section="3.11",
    phases=ANY,
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


@dataclass(frozen=True, kw_only=True)
class IdleWrite(Inputs):
    """A minted id with a message, or with a custom type and its data."""

    id: str
    message: JsonObject | Unset = UNSET
    custom_type: str | Unset = UNSET
    data: Json | Unset = UNSET


def _written(_: View, seen: Seen) -> IdleWrite:
    entry = seen.first_entry()
    if entry.type is EntryType.CUSTOM:
        return IdleWrite(id=entry.id, custom_type=entry.custom_type, data=entry.payload.get("data", UNSET))
    return IdleWrite(id=entry.id, message=seen.first_message())


def write_has_one_content(_: View, inputs: IdleWrite) -> str | None:
    """A tree write is a message or a custom entry (§3.11)."""
    both = (inputs.message is UNSET) == (inputs.custom_type is UNSET)
    return "either a message or a custom entry" if both else None


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


def message_of(entry: NewEntry) -> Message:
    """The message of an inserted message entry."""
    if entry.message is None:
        raise NotThis(f"entry {entry.id} is not a message")
    return entry.message
