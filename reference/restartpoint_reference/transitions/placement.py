"""Queued content: how it is read from its register, and how it gets its place in the tree (§2.2)."""

from collections.abc import Iterable

from restartpoint_reference.shapes import UNSET, Json, Refused
from restartpoint_reference.transitions.frame import (
    NotThis,
    View,
    Writes,
    delete,
    insert_custom,
    insert_message,
    set_leaf,
)
from restartpoint_reference.vocabulary.entries import InsertEntry, Namespace
from restartpoint_reference.vocabulary.registers import PendingCustom, PendingEntry, PendingMessage
from restartpoint_reference.vocabulary.states import Inbox


def pending_entry(view: View, id: str) -> PendingEntry:
    """The queued content that waits under this id (§1.3)."""
    value = view.state.value(Namespace.PENDING_ENTRY, id)
    if value is UNSET:
        raise NotThis(f"pending.entry/{id} does not exist")
    try:
        return read_pending(value)
    except Refused as refused:
        raise NotThis(f"pending.entry/{id}: {refused}") from None


def read_pending(value: Json) -> PendingEntry:
    """The queued content that a register holds: a message or a custom entry (§1.3)."""
    custom = isinstance(value, dict) and value.get("type") == "custom"
    return PendingCustom.from_json(value) if custom else PendingMessage.from_json(value)


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


def placement(view: View, ids: tuple[str, ...]) -> Writes:
    """Queued content gets its place at the leaf: its entries appear and its registers die in one commit (§2.2)."""
    if not ids:
        raise NotThis("nothing waits")
    return (*placed(view, ids, view.leaf), *delete(Namespace.PENDING_ENTRY, *ids), set_leaf(view, ids[-1]))


def without(inbox: Inbox, ids: tuple[str, ...]) -> Inbox:
    """The inbox when these ids have left it."""

    def kept(queue: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(queued for queued in queue if queued not in ids)

    return Inbox(steer=kept(inbox.steer), follow_up=kept(inbox.follow_up), writes=kept(inbox.writes))
