"""The checkpoint procedure: what enters the tree between effects, and keeps the run going (§3.11, §3.12)."""

from dataclasses import dataclass, replace

from restartpoint_reference.shapes import JsonObject
from restartpoint_reference.transitions.frame import (
    Inputs,
    Nothing,
    Seen,
    View,
    Writes,
    control_is_running,
    insert_message,
    set_leaf,
    set_state,
    transition,
)
from restartpoint_reference.transitions.placement import pending_entry, placement, without
from restartpoint_reference.transitions.terminal import inbox_is_empty
from restartpoint_reference.tree import is_dropped
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.messages import role
from restartpoint_reference.vocabulary.registers import PendingCustom, PendingMessage
from restartpoint_reference.vocabulary.states import Checkpoint, MayFinish, NeedAssistant, QueueMode


def awaiting_assistant(trigger: str) -> Checkpoint:
    """The checkpoint after input entered the tree: a turn is owed before any more input is drained (§3.12)."""
    continuation = NeedAssistant(overflow_recovery_used=False)
    return Checkpoint(continuation=continuation, trigger_entry_id=trigger, skip_inbox_once=True)


def consumed(view: View, ids: tuple[str, ...]) -> Writes:
    """Input of the inbox enters the tree together, and a turn is owed (§3.11)."""
    placing = placement(view, ids)
    state = replace(view.run, phase=awaiting_assistant(ids[-1]), inbox=without(view.run.inbox, ids))
    return (*placing, set_state(view, state))


def eligible(mode: QueueMode, queue: tuple[str, ...]) -> tuple[str, ...]:
    """What one drain takes of a queue: everything, or only the oldest item (§3.12)."""
    return queue if mode is QueueMode.ALL else queue[:1]


def inbox_is_not_skipped(view: View, _: Inputs) -> str | None:
    """No drain has just put input before the model, which first gets its turn (§3.12)."""
    match view.run.phase:
        case Checkpoint(skip_inbox_once=True):
            return "the inbox is skipped once"
    return None


# --- deferred writes


@dataclass(frozen=True, kw_only=True)
class Drain(Inputs):
    """How many of the deferred writes were evaluated, oldest first; later arrivals wait (decision AMB-21)."""

    count: int


def counted(_: View, seen: Seen) -> Drain:
    """The number of queued items that the commit places."""
    return Drain(count=len(seen.deleted(Namespace.PENDING_ENTRY)))


def projects(view: View, id: str) -> bool | None:
    """Whether a queued write will stand in the context (§2.5); None for a custom one, of which a projector decides."""
    match pending_entry(view, id):
        case PendingMessage(payload=message):
            return not is_dropped(message)
        case PendingCustom():
            return None


def writes_wait(view: View, inputs: Drain) -> str | None:
    """At least one deferred write is taken, and no more than wait (§3.12)."""
    waiting = len(view.run.inbox.writes)
    return None if 0 < inputs.count <= waiting else f"{inputs.count} writes taken of {waiting}"


def nothing_projects(view: View, inputs: Drain) -> str | None:
    """No item of the drain is known to enter the context (§3.12, decision AMB-22)."""
    known = [queued for queued in view.run.inbox.writes[: inputs.count] if projects(view, queued)]
    return f"{', '.join(known)} enters the context" if known else None


def something_projects(view: View, inputs: Drain) -> str | None:
    """Some item of the drain may enter the context (§3.12, decision AMB-22)."""
    possible = any(projects(view, queued) is not False for queued in view.run.inbox.writes[: inputs.count])
    return None if possible else "no item enters the context"


def unprojected(view: View, ids: tuple[str, ...]) -> Writes:
    """Deferred writes enter the tree, and nothing else of the run changes (§3.12)."""
    return (*placement(view, ids), set_state(view, replace(view.run, inbox=without(view.run.inbox, ids))))


@transition(
    "T05",
    section="3.12",
    phases=("checkpoint",),
    inputs=Drain,
    guards=(control_is_running, inbox_is_not_skipped, writes_wait, nothing_projects),
    extract=counted,
)
def apply_writes(view: View, inputs: Drain) -> Writes:
    """Deferred writes of which none is context enter the tree; the checkpoint stays as it is."""
    return unprojected(view, view.run.inbox.writes[: inputs.count])


@transition(
    "T06",
    section="3.12",
    phases=("checkpoint",),
    inputs=Drain,
    guards=(control_is_running, inbox_is_not_skipped, writes_wait, something_projects),
    extract=counted,
)
def apply_projecting_writes(view: View, inputs: Drain) -> Writes:
    """Deferred writes of which some are context enter the tree, and the run owes a turn."""
    return consumed(view, view.run.inbox.writes[: inputs.count])


# --- queued messages


def steering_waits(view: View, _: Inputs) -> str | None:
    """There is something to steer by (§3.12)."""
    return None if view.run.inbox.steer else "no steering waits"


@transition(
    "T07",
    section="3.11, 3.12",
    phases=("checkpoint",),
    inputs=Nothing,
    guards=(control_is_running, inbox_is_not_skipped, steering_waits),
    extract=lambda _view, _seen: Nothing(),
)
def consume_steer(view: View, _: Nothing) -> Writes:
    """Steering enters the tree, all of it or the oldest by the captured mode, and the run owes a turn."""
    return consumed(view, eligible(view.run.settings.steering_mode, view.run.inbox.steer))


def run_may_finish(view: View, _: Inputs) -> str | None:
    """The run is at its finish boundary (§3.12)."""
    match view.run.phase:
        case Checkpoint(continuation=MayFinish()):
            return None
    return "the run may not finish"


def follow_up_waits(view: View, _: Inputs) -> str | None:
    """There is something to follow up (§3.12)."""
    return None if view.run.inbox.follow_up else "no follow-up waits"


@transition(
    "T12",
    section="3.11, 3.12",
    phases=("checkpoint",),
    inputs=Nothing,
    guards=(control_is_running, run_may_finish, follow_up_waits),
    extract=lambda _view, _seen: Nothing(),
)
def consume_follow_up(view: View, _: Nothing) -> Writes:
    """Follow-up enters the tree where the run would have finished, and the run owes a turn."""
    return consumed(view, eligible(view.run.settings.follow_up_mode, view.run.inbox.follow_up))


@dataclass(frozen=True, kw_only=True)
class RunEndFollowUp(Inputs):
    """The minted entry id, and what before_run_end answered as a user message (decision AMB-23)."""

    id: str
    message: JsonObject


def _followed_up(_: View, seen: Seen) -> RunEndFollowUp:
    return RunEndFollowUp(id=seen.first_entry().id, message=seen.first_message())


def follow_up_is_a_user_message(_: View, inputs: RunEndFollowUp) -> str | None:
    """A follow-up is user input (§3.12)."""
    return None if role(inputs.message) == "user" else "the follow-up is not a user message"


@transition(
    "T13",
    section="3.12",
    phases=("checkpoint",),
    inputs=RunEndFollowUp,
    guards=(control_is_running, run_may_finish, inbox_is_empty, follow_up_is_a_user_message),
    extract=_followed_up,
)
def append_run_end_follow_up(view: View, inputs: RunEndFollowUp) -> Writes:
    """What before_run_end adds is born placed, and the run owes another turn."""
    return (
        insert_message(inputs.id, view.leaf, inputs.message),
        set_leaf(view, inputs.id),
        set_state(view, replace(view.run, phase=awaiting_assistant(inputs.id))),
    )
