"""Runs whose response comes later: polls, their outcomes, and what interrupts them."""

from collections.abc import Callable

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import JsonObject
from restartpoint_reference.transitions.generation import Reservation
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleToolCalls
from restartpoint_reference.transitions.tools import ToolResult
from tests.reference.walk import Walk, assistant, result, text, uid
from tests.reference.walks import runs
from tests.reference.walks.abort import abort
from tests.reference.walks.places import FAILURE, MESSAGE, RESPONSE, WORDS, under

HANDLE: JsonObject = {"id": "job-1", "provider": "acme", "modelId": "m-1", "api": "scripted", "queue": {"n": [1, None]}}
P1, V1, P2, V2 = uid(400, 1), uid(400, 2), uid(500, 1), uid(500, 2)
C3, C4 = uid(400, 11), uid(400, 12)


def waiting() -> JsonObject:
    """What a provider says that has no answer yet."""
    return {**assistant(stop="deferred"), "deferred": HANDLE}


def suspended() -> Walk:
    """A run that waits for its first poll."""
    walk = runs.requested()
    walk.take(T["settle_deferred"], Response(response=waiting()))
    return walk


def polled() -> Walk:
    """A run whose first poll may have been sent."""
    walk = suspended()
    walk.take(T["intend_poll"], Reservation(response_entry_id=P1, usage_id=V1))
    return walk


def answered_at_the_second_poll() -> Walk:
    """The first poll comes too early."""
    walk = polled()
    walk.take(T["settle_poll_pending"], Response(response=waiting()))
    walk.take(T["intend_poll"], Reservation(response_entry_id=P2, usage_id=V2))
    walk.take(T["settle_poll_ready"], Response(response=assistant(text("here it is"))))
    walk.take(T["finish_run"])
    return walk


def answered_with_calls() -> Walk:
    """The answer asks for tools, whose arguments live under the step of the generation that was deferred."""
    walk = polled()
    inputs = SettleToolCalls(response=runs.two_calls(), result_ids=(C3, C4))
    walk.take(T["settle_poll_tool_calls"], inputs)
    runs.clear(walk, 1)
    walk.take(T["settle_tool"], ToolResult(message=result("t1", "remove")))
    walk.take(T["complete_batch"], ToolResult(message=refused()))
    return runs.ended(walk)


def refused() -> JsonObject:
    return result("t2", "read", "blocked", error=True)


def answered_for_another_handle() -> Walk:
    """The provider mistakes the poll for another one."""
    walk = polled()
    other: JsonObject = {**assistant(stop="error", error="not our handle"), "deferred": {**HANDLE, "id": "job-2"}}
    walk.take(T["settle_poll_mismatch"], SettleFailure(response=other, error_message="not our handle"))
    walk.take(T["finish_failed"])
    return walk


def failed_poll() -> Walk:
    """Even an error of the moment ends a deferred run."""
    walk = polled()
    overloaded = assistant(stop="error", error="overloaded")
    walk.take(T["settle_poll_failure"], SettleFailure(response=overloaded, error_message="overloaded"))
    walk.take(T["finish_failed"])
    return walk


def replaced_poll() -> Walk:
    """The outcome of a poll is unknown; it is repeated under its own number."""
    walk = polled()
    walk.take(T["replace_unknown_poll"], Reservation(response_entry_id=P2, usage_id=V2))
    walk.take(T["settle_poll_pending"], Response(response=waiting()))
    return walk


def cancelled_poll() -> Walk:
    """A fetch that was really started keeps its content and usage."""
    walk = abort(polled())
    walk.take(T["cancel_poll"], Response(response=assistant(text("half"), stop="aborted", error="was stop")))
    return walk


SCENARIOS: tuple[Callable[[], Walk], ...] = (
    answered_at_the_second_poll, answered_with_calls, answered_for_another_handle, failed_poll, replaced_poll,
    cancelled_poll,
)  # fmt: skip


QUEUE = {f"{MESSAGE}.deferred.{path}" for path in ("queue", "queue.n", "queue.n.*")}
RESERVED = {f"op.state.value.phase.deferred.{name}" for name in ("responseEntryId", "usageId")}

FREE: dict[str, set[str]] = {
    # A provider's words exist once, the first handle as well; a pending poll repeats its handle, so that is seen.
    "settle_deferred": QUEUE,
    "settle_poll_pending": RESPONSE,
    "settle_poll_ready": RESPONSE | WORDS,
    "settle_poll_tool_calls": RESPONSE
    | WORDS
    | {f"{MESSAGE}.content.*.{name}" for name in ("id", "name", "arguments", "arguments.path")}
    | {"op.state.value.phase.batch.calls.*.resultEntryId"},
    "settle_poll_mismatch": FAILURE | under(f"{MESSAGE}.deferred", "id", "provider", "modelId", "api") | QUEUE,
    "settle_poll_failure": FAILURE,
    "cancel_poll": RESPONSE | WORDS | {f"{MESSAGE}.errorMessage"},
    # Reserved ids are minted outside and held in one place only.
    "intend_poll": RESERVED,
    "replace_unknown_poll": RESERVED,
}
"""Per transition, the places whose alteration nobody can see, because the commit could have been made so."""
