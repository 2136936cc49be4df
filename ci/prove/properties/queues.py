"""Queued input: drains, withdrawals and aborts lose nothing and invent nothing (§3.11, §3.12, §3.13)."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TypeAlias

from ci.prove.contract import faulty, proves
from ci.prove.states import LANE, Few, committed, finishing, inbox, run_state, session
from restartpoint_reference import Transition
from restartpoint_reference.transitions.cancellation import Abort, abort_run
from restartpoint_reference.transitions.checkpoint import consume_follow_up, consume_steer, consumed, eligible
from restartpoint_reference.transitions.frame import Inputs, NotThis, View, Writes, set_state
from restartpoint_reference.transitions.placement import placement, without
from restartpoint_reference.transitions.queues import QueuedId, cancel_queued
from restartpoint_reference.transitions.terminal import owned_pending_ids
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.states import EMPTY_INBOX, CancelRequested, Inbox, QueueMode

__all__: list[str] = []

QUEUES = "zero to two items in each of the three lists"

# --- what one drain takes

Eligible: TypeAlias = Callable[[QueueMode, tuple[str, ...]], tuple[str, ...]]


def _newest(mode: QueueMode, queue: tuple[str, ...]) -> tuple[str, ...]:
    """One at a time, the newest item is taken."""
    return queue if mode is QueueMode.ALL else queue[-1:]


@proves(
    eligible,
    section="3.12",
    twin=_newest,
    symbolic="both modes; every queue of at most three items, whatever text they are",
    given=lambda queue: len(queue) <= 3,
    quick=True,
)
def drain_takes_all_or_the_oldest(takes: Eligible, mode: QueueMode, queue: tuple[str, ...]) -> bool:
    """What is taken and what is left make the queue again, in order; one at a time, the oldest item alone is taken."""
    taken = takes(mode, queue)
    count = len(taken)
    whole = taken + queue[count:] == queue
    return whole and count == (len(queue) if mode is QueueMode.ALL else min(len(queue), 1))


# --- withdrawal

Without: TypeAlias = Callable[[Inbox, tuple[str, ...]], Inbox]


class Item(Enum):
    """An id that may be queued."""

    STEER = "s1"
    FOLLOW_UP = "f2"
    WRITE = "w1"
    UNKNOWN = "s"


def _by_prefix(waiting: Inbox, ids: tuple[str, ...]) -> Inbox:
    """An id takes along all that begin like it."""

    def kept(queue: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(queued for queued in queue if not any(queued.startswith(gone[:1]) for gone in ids))

    return Inbox(steer=kept(waiting.steer), follow_up=kept(waiting.follow_up), writes=kept(waiting.writes))


@proves(
    without,
    section="3.11",
    twin=_by_prefix,
    symbolic=f"{QUEUES}; an id of any list, or an unknown one",
    fixed="the ids",
    quick=True,
)
def leaving_the_inbox_takes_exactly_one_item(
    left: Without, steer: Few, follow_up: Few, writes: Few, item: Item
) -> bool:
    """What is left is what waited, in order, except this item."""
    waiting = inbox(steer, follow_up, writes)
    after = left(waiting, (item.value,))
    return all(
        now == tuple(queued for queued in before if queued != item.value)
        for now, before in (
            (after.steer, waiting.steer),
            (after.follow_up, waiting.follow_up),
            (after.writes, waiting.writes),
        )
    )


def _leaving_the_register(view: View, inputs: Inputs) -> Writes:
    """The item leaves its list, but its content stays in its register."""
    return cancel_queued.build(view, inputs)[:1]


@proves(
    cancel_queued,
    section="3.11",
    twin=faulty(cancel_queued, _leaving_the_register),
    symbolic=f"{QUEUES}; an id of any list, or an unknown one",
    fixed="the run is at a checkpoint; the ids",
)
def withdrawal_removes_one_item_and_leaves_no_trace(
    transition: Transition, steer: Few, follow_up: Few, writes: Few, item: Item
) -> bool:
    """It is made if and only if the item waits; then the item leaves its list and its register, and no other does."""
    state = session(run_state(finishing(), inbox(steer, follow_up, writes)))
    before = _waiting(View(state, LANE).run.inbox)
    made = committed(state, transition, QueuedId(id=item.value))
    if made is None:
        return item.value not in before
    after, delta = made
    left = tuple(queued for queued in before if queued != item.value)
    registers = set(after.namespaces[Namespace.PENDING_ENTRY])
    return (
        item.value in before
        and _waiting(View(after, LANE).run.inbox) == left
        and registers == {*left, "n1"}
        and not delta.entries
    )


def _waiting(waiting: Inbox) -> tuple[str, ...]:
    return (*waiting.steer, *waiting.follow_up, *waiting.writes)


# --- drains


def _emptying(view: View, _: Inputs) -> Writes:
    """One at a time, the items that are not taken are forgotten as well."""
    taken = eligible(view.run.settings.steering_mode, view.run.inbox.steer)
    phase = replace(finishing(), trigger_entry_id=taken[-1], skip_inbox_once=True)
    left = replace(view.run.inbox, steer=())
    return (*placement(view, taken), set_state(view, replace(view.run, phase=phase, inbox=left)))


@proves(
    consume_steer,
    section="3.11, 3.12",
    twin=faulty(consume_steer, _emptying),
    symbolic=f"both modes; {QUEUES}",
    fixed="the run is at a checkpoint and may finish; the ids and messages",
)
def steering_conserves_items(transition: Transition, mode: QueueMode, steer: Few, follow_up: Few, writes: Few) -> bool:
    """What was queued is now placed, in order, or still queued, never both or neither; the other lists stay."""
    waiting = inbox(steer, follow_up, writes)
    return _conserves(transition, mode, waiting, "steer")


def _turning_over(view: View, _: Inputs) -> Writes:
    """Several items are placed newest first."""
    taken = eligible(view.run.settings.follow_up_mode, view.run.inbox.follow_up)
    return consumed(view, taken[::-1])


@proves(
    consume_follow_up,
    section="3.11, 3.12",
    twin=faulty(consume_follow_up, _turning_over),
    symbolic=f"both modes; {QUEUES}",
    fixed="the run is at a checkpoint and may finish; the ids and messages",
)
def follow_up_conserves_items(transition: Transition, mode: QueueMode, steer: Few, follow_up: Few, writes: Few) -> bool:
    """What was queued is now placed, in order, or still queued, never both or neither; the other lists stay."""
    waiting = inbox(steer, follow_up, writes)
    return _conserves(transition, mode, waiting, "follow_up")


def _conserves(transition: Transition, mode: QueueMode, waiting: Inbox, name: str) -> bool:
    made = committed(session(run_state(finishing(), waiting, mode)), transition)
    queue = waiting.steer if name == "steer" else waiting.follow_up
    if made is None:
        return not queue
    after, delta = made
    left = View(after, LANE).run.inbox
    still = left.steer if name == "steer" else left.follow_up
    placed = tuple(entry.id for entry in delta.entries)
    others = replace(left, steer=waiting.steer) if name == "steer" else replace(left, follow_up=waiting.follow_up)
    registers = set(after.namespaces[Namespace.PENDING_ENTRY])
    return (
        bool(queue)
        and placed + still == queue
        and len(placed) == (len(queue) if mode is QueueMode.ALL else 1)
        and others == waiting
        and registers == {*_waiting(left), "n1"}
        and View(after, LANE).leaf == placed[-1]
    )


# --- abort


def _losing_writes(view: View, inputs: Inputs) -> Writes:
    """Deferred writes are drained with the messages."""
    if not isinstance(inputs, Abort):
        raise NotThis("not an abort")
    old = view.run.inbox
    control = CancelRequested(
        requested_at=inputs.requested_at, drained_steer=old.steer, drained_follow_up=old.follow_up
    )
    return (set_state(view, replace(view.run, control=control, inbox=EMPTY_INBOX)),)


@proves(
    abort_run,
    section="3.11",
    twin=faulty(abort_run, _losing_writes),
    symbolic=QUEUES,
    fixed="the run is at a checkpoint; the ids and the time",
)
def abort_drains_messages_and_keeps_writes(transition: Transition, steer: Few, follow_up: Few, writes: Few) -> bool:
    """Steering and follow-up are drained into the control, writes still wait, and no content leaves its register."""
    waiting = inbox(steer, follow_up, writes)
    state = session(run_state(finishing(), waiting))
    made = committed(state, transition, Abort(requested_at=7))
    if made is None:
        return False
    run = View(made[0], LANE).run
    drained = run.control
    if not isinstance(drained, CancelRequested):
        return False
    kept = made[0].namespaces[Namespace.PENDING_ENTRY] == state.namespaces[Namespace.PENDING_ENTRY]
    messages = (drained.drained_steer, drained.drained_follow_up) == (waiting.steer, waiting.follow_up)
    return kept and messages and run.inbox == Inbox(steer=(), follow_up=(), writes=waiting.writes)


Owned: TypeAlias = Callable[[View], tuple[str, ...]]


def _forgetting_what_was_drained(view: View) -> tuple[str, ...]:
    """What an abort drained is owned by nobody."""
    return _waiting(view.run.inbox)


@proves(
    owned_pending_ids,
    section="3.13",
    twin=_forgetting_what_was_drained,
    symbolic=f"{QUEUES}; before or after an abort",
    fixed="the run is at a checkpoint; the lane's own queue holds one message",
)
def operation_owns_each_of_its_items_once(owned: Owned, steer: Few, follow_up: Few, writes: Few, aborted: bool) -> bool:
    """What was accepted for the run is listed exactly once, aborted or not; what waits for the next run is not."""
    waiting = inbox(steer, follow_up, writes)
    state = session(run_state(finishing(), waiting))
    if aborted:
        made = committed(state, abort_run, Abort(requested_at=7))
        if made is None:
            return False
        state = made[0]
    return sorted(owned(View(state, LANE))) == sorted(_waiting(waiting))
