"""The failure drain: a failed run takes what was accepted, and new context revives it (§3.12)."""

from dataclasses import dataclass
from enum import StrEnum

from restartpoint_reference.transitions.checkpoint import (
    Drain,
    consumed,
    counted,
    eligible,
    nothing_projects,
    something_projects,
    unprojected,
    writes_wait,
)
from restartpoint_reference.transitions.frame import (
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    transition,
)
from restartpoint_reference.vocabulary.entries import Namespace


@transition(
    "T74",
    section="3.12",
    phases=("failure_drain",),
    inputs=Drain,
    guards=(control_is_running, writes_wait, nothing_projects),
    extract=counted,
)
def apply_writes_in_failure(view: View, inputs: Drain) -> Writes:
    """Deferred writes of which none is context enter the tree; the failure stays as it is."""
    return unprojected(view, view.run.inbox.writes[: inputs.count])


class Queue(StrEnum):
    """The lists of the inbox, in the order in which the drain asks them (§3.12)."""

    WRITES = "writes"
    STEER = "steer"
    FOLLOW_UP = "followUp"


@dataclass(frozen=True, kw_only=True)
class Revival(Inputs):
    """The list that the drain came to, and how many of its items it takes, oldest first.

    A write that came after the choice of a message waits (decision AMB-87).
    """

    queue: Queue
    count: int


def waiting(view: View, queue: Queue) -> tuple[str, ...]:
    """The items of a list, oldest first."""
    inbox = view.run.inbox
    match queue:
        case Queue.WRITES:
            return inbox.writes
        case Queue.STEER:
            return inbox.steer
        case Queue.FOLLOW_UP:
            return inbox.follow_up


def _revival(view: View, seen: Seen) -> Revival:
    placed = seen.deleted(Namespace.PENDING_ENTRY)
    for queue in Queue:
        if placed[:1] and placed[0] in waiting(view, queue):
            return Revival(queue=queue, count=len(placed))
    raise NotThis("no item of the inbox is placed")


def revival_takes_its_share(view: View, inputs: Revival) -> str | None:
    """Of the writes what was evaluated and may be context, of messages what the captured mode says (§3.12)."""
    settings = view.run.settings
    match inputs.queue:
        case Queue.WRITES:
            drain = Drain(count=inputs.count)
            return writes_wait(view, drain) or something_projects(view, drain)
        case Queue.STEER:
            share = eligible(settings.steering_mode, view.run.inbox.steer)
        case Queue.FOLLOW_UP:
            share = eligible(settings.follow_up_mode, view.run.inbox.follow_up)
    return None if share and inputs.count == len(share) else f"{inputs.count} taken where one drain takes {len(share)}"


@transition(
    "T75",
    section="3.12",
    phases=("failure_drain",),
    inputs=Revival,
    guards=(control_is_running, revival_takes_its_share),
    extract=_revival,
)
def revive_from_failure(view: View, inputs: Revival) -> Writes:
    """New context enters the tree and clears the failure: the run owes a turn."""
    return consumed(view, waiting(view, inputs.queue)[: inputs.count])
