"""What starts a run: any of captured, prompted and injected messages, each in its place (§3.6)."""

from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import InsertEntry, Refusal, State, Violation
from restartpoint_reference.store import FIRST_SEQ, Rule
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.queues import QueuedMessage
from tests.reference.walk import Walk, uid, user
from tests.reference.walks.runs import accepted, opened

FIRST, SECOND, THIRD = (NewMessage(id=uid(95, tail), message=user(str(tail))) for tail in (1, 2, 3))
WAITING = uid(80, 1)


def waiting() -> Walk:
    """An idle lane with one message for its next run."""
    walk = opened()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=WAITING, message=user("later")))
    return walk


@pytest.mark.parametrize(
    "inputs",
    [
        replace(accepted(captured=1), prompts=(), injected=()),
        replace(accepted(), injected=()),
        replace(accepted(), prompts=()),
        replace(accepted(), prompts=(FIRST, SECOND), injected=(THIRD,)),
        replace(accepted(captured=1), prompts=(FIRST,), injected=(SECOND, THIRD)),
    ],
    ids=["captured", "prompted", "injected", "two prompts", "all"],
)
def test_any_message_starts_a_run_and_each_stands_where_it_came_from(inputs: AcceptRun) -> None:
    commit = waiting().take(T["accept_run"], inputs)
    inserted = [write.entry.id for write in commit.writes if isinstance(write, InsertEntry)]
    captured = [WAITING] if inputs.captured else []
    assert inserted == [*captured, *(new.id for new in (*inputs.prompts, *inputs.injected))]


@pytest.mark.parametrize("captured", [-1, 2])
def test_no_more_is_captured_than_waits(captured: int) -> None:
    refusal = T["accept_run"](waiting().state, "main", accepted(captured=captured))
    assert isinstance(refusal, Refusal)
    assert refusal.guard == "captured_items_wait"


def test_an_empty_session_from_its_parts_begins_at_the_first_number() -> None:
    assert State.from_parts([], [], []).next_seq == FIRST_SEQ


def test_a_violation_says_which_write_is_at_fault() -> None:
    whole = Violation(rule=Rule.EMPTY, reason="nothing is written")
    assert str(whole) == "nothing is written (at_least_one_write, §1.4)"
    assert str(replace(whole, index=2)).startswith("write 2: nothing is written (")
