"""Queued input and tree writes under an open run: accepted, withdrawn, placed, and reviving a failed run."""

from collections.abc import Callable
from dataclasses import replace

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference.transitions.checkpoint import Drain
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.queues import DeferredWrite, QueuedId, QueuedMessage
from restartpoint_reference.transitions.settlement import Response, SettleFailure
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.states import QueueMode, RunSettings
from tests.reference.walk import Walk, assistant, result, text, uid, user
from tests.reference.walks import runs
from tests.reference.walks.places import INPUT, MESSAGE, under

S1, S2, F1, F2 = uid(400, 1), uid(400, 2), uid(410, 1), uid(410, 2)
W1, W2, W3 = uid(420, 1), uid(420, 2), uid(420, 3)
ONE_BY_ONE = replace(runs.SETTINGS, steering_mode=QueueMode.ONE_AT_A_TIME)
ALL = replace(runs.SETTINGS, follow_up_mode=QueueMode.ALL)


def steer(walk: Walk, *ids: str) -> None:
    for queued in ids:
        walk.take(T["enqueue_steer"], QueuedMessage(id=queued, message=user(f"rather {queued}")))


def follow_up(walk: Walk, *ids: str) -> None:
    for queued in ids:
        walk.take(T["enqueue_follow_up"], QueuedMessage(id=queued, message=user(f"then {queued}")))


def write_message(walk: Walk, id: str) -> None:
    walk.take(T["defer_write"], DeferredWrite(id=id, message=user("by the way")))


def write_note(walk: Walk, id: str) -> None:
    walk.take(T["defer_write"], DeferredWrite(id=id, custom_type="note", data={"n": 1}))


def owing(settings: RunSettings = runs.SETTINGS) -> Walk:
    """A run between its tools and its next turn, where the inbox is read."""
    walk = runs.with_tools(settings)
    walk.take(T["refuse_tool"], ToolResult(message=result("t1", "remove", "blocked", error=True)))
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read", "unknown tool", error=True)))
    return walk


def answered(settings: RunSettings = runs.SETTINGS) -> Walk:
    """A run that may finish."""
    walk = runs.requested(settings=settings)
    walk.take(T["settle_stop"], Response(response=assistant(text("done"))))
    return walk


def failing(settings: RunSettings = runs.SETTINGS) -> Walk:
    """A run that failed and drains its inbox."""
    walk = runs.requested(settings=settings)
    refused = assistant(stop="error", error="invalid api key")
    walk.take(T["settle_failure"], SettleFailure(response=refused, error_message="invalid api key"))
    return walk


def steered_run() -> Walk:
    """All steering enters at once, and what arrives then waits for a turn."""
    walk = owing()
    steer(walk, S1, S2)
    walk.take(T["consume_steer"])
    steer(walk, uid(400, 3))
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    walk.take(T["settle_stop"], Response(response=assistant(text("as you wish"))))
    walk.take(T["consume_steer"])
    return walk


def steered_one_by_one() -> Walk:
    """One item enters at the checkpoint; the other stays."""
    walk = owing(ONE_BY_ONE)
    steer(walk, S1, S2)
    walk.take(T["consume_steer"])
    return walk


def followed_up() -> Walk:
    """Follow-up that was queued early enters where the run would finish, one by one."""
    walk = runs.requested()
    follow_up(walk, F1, F2)
    walk.take(T["settle_stop"], Response(response=assistant(text("done"))))
    walk.take(T["consume_follow_up"])
    return walk


def followed_up_at_once() -> Walk:
    """The other mode takes both."""
    walk = answered(ALL)
    follow_up(walk, F1, F2)
    walk.take(T["consume_follow_up"])
    return walk


def written_beside() -> Walk:
    """Custom writes that nothing projects leave the checkpoint as it is; a later one waits for the next pass."""
    walk = answered()
    write_note(walk, W1)
    walk.take(T["defer_write"], DeferredWrite(id=W2, custom_type="mark"))
    write_note(walk, W3)
    walk.take(T["apply_writes"], Drain(count=2))
    walk.take(T["apply_writes"], Drain(count=1))
    walk.take(T["finish_run"])
    return walk


def written_into_the_context() -> Walk:
    """A message among the writes makes the run owe a turn."""
    walk = answered()
    write_note(walk, W1)
    write_message(walk, W2)
    write_note(walk, W3)
    walk.take(T["apply_projecting_writes"], Drain(count=3))
    return walk


def projected_note() -> Walk:
    """A custom write may project: the application's projector says so."""
    walk = owing()
    write_note(walk, W1)
    walk.take(T["apply_projecting_writes"], Drain(count=1))
    return walk


def withdrawn() -> Walk:
    """Whatever waits can be withdrawn, also a deferred write."""
    walk = answered()
    steer(walk, S1, S2)
    follow_up(walk, F1)
    write_note(walk, W1)
    for queued in (S1, F1, W1):
        walk.take(T["cancel_queued"], QueuedId(id=queued))
    return walk


def revived_by_a_write() -> Walk:
    """A failed run places a note and stays failed, then a message revives it."""
    walk = failing()
    write_note(walk, W1)
    walk.take(T["apply_writes_in_failure"], Drain(count=1))
    write_note(walk, W2)
    write_message(walk, W3)
    walk.take(T["revive_from_failure"], Revival(queue=Queue.WRITES, count=2))
    return walk


def revived_by_steering() -> Walk:
    """All steering revives a failed run at once."""
    walk = failing()
    steer(walk, S1, S2)
    walk.take(T["revive_from_failure"], Revival(queue=Queue.STEER, count=2))
    return walk


def revived_by_follow_up() -> Walk:
    """Follow-up revives it one by one."""
    walk = failing()
    follow_up(walk, F1, F2)
    walk.take(T["revive_from_failure"], Revival(queue=Queue.FOLLOW_UP, count=1))
    return walk


SCENARIOS: tuple[Callable[[], Walk], ...] = (
    steered_run, steered_one_by_one, followed_up, followed_up_at_once, written_beside, written_into_the_context,
    projected_note, withdrawn, revived_by_a_write, revived_by_steering, revived_by_follow_up,
)  # fmt: skip

_QUEUED = {pattern.replace(MESSAGE, "pending.entry.value.payload") for pattern in INPUT}

FREE: dict[str, set[str]] = {
    # What a caller said exists once until it is placed.
    "enqueue_steer": _QUEUED,
    "enqueue_follow_up": _QUEUED,
    "defer_write": _QUEUED | {"pending.entry.value.customType"} | under("pending.entry.value.payload", "n"),
}
