"""The checkpoint procedure, driven with all inputs present (§3.12)."""

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import View, next_steps, project
from restartpoint_reference.transitions.checkpoint import Drain, RunEndFollowUp
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration
from restartpoint_reference.transitions.queues import QueuedId
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.walk import NOTHING, Walk, assistant, text, uid, user
from tests.reference.walks import inbox
from tests.reference.walks.inbox import F1, S1, W1, W2, W3

POLICY = RetryPolicy(max_attempts=3, base_delay_ms=50)


class Driver:
    """Takes the first step that is due and that an outside world without surprises answers, until the run has ended.

    Requests stop with an answer, nothing is over the threshold, and ``before_run_end`` asks for more once.
    """

    def __init__(self, walk: Walk) -> None:
        self.walk = walk
        self.turns = 0
        self.asks_for_more = True

    def run(self) -> list[str]:
        """The names of the steps, in the order in which they were due."""
        taken: list[str] = []
        while steps := next_steps(View(self.walk.state, "main")):
            name = next(step for step in steps if self.inputs(step) is not None)
            inputs = self.inputs(name)
            assert inputs is not None
            self.asks_for_more = self.asks_for_more and name != "append_run_end_follow_up"
            self.turns += name == "start_generation"
            self.walk.take(T[name], inputs)
            taken.append(name)
        return taken

    def inputs(self, name: str) -> Inputs | None:
        """What the outside answers to a step; None for one that it does not ask for."""
        minted = 2000 + self.turns
        match name:
            case "apply_writes":
                return Drain(count=len(View(self.walk.state, "main").run.inbox.writes))
            case "append_run_end_follow_up" if self.asks_for_more:
                return RunEndFollowUp(id=uid(3000, 1), message=user("and then?"))
            case "start_generation":
                return StartGeneration(step_id=uid(minted, 1), stream_options={}, retry_policy=POLICY)
            case "intend_assistant":
                return IntendAssistant(
                    response_entry_id=uid(minted, 2), usage_id=uid(minted, 3), intended_output_limit=1,
                    context_window=8000,
                )  # fmt: skip
            case "settle_stop":
                return Response(response=assistant(text("done")))
            case "mark_threshold_checked" | "consume_steer" | "consume_follow_up" | "finish_run":
                return NOTHING
            case _:
                return None


TURN = ["mark_threshold_checked", "start_generation", "intend_assistant", "settle_stop"]


@pytest.mark.covers("RT-3.12-01")
def test_with_all_inputs_present_the_steps_come_in_the_order_of_the_procedure() -> None:
    walk = inbox.owing()
    inbox.follow_up(walk, F1)
    inbox.steer(walk, S1)
    inbox.write_note(walk, W1)
    taken = Driver(walk).run()
    assert taken == [
        "apply_writes", "consume_steer", *TURN,
        "mark_threshold_checked", "consume_follow_up", *TURN,
        "mark_threshold_checked", "append_run_end_follow_up", *TURN,
        "mark_threshold_checked", "finish_run",
    ]  # fmt: skip


def test_a_drain_takes_what_was_evaluated_and_still_waits_and_leaves_what_came_later() -> None:
    """Two writes are evaluated; one is withdrawn and a third arrives before the commit (decision AMB-21)."""
    walk = inbox.answered()
    inbox.write_note(walk, W1)
    inbox.write_note(walk, W2)
    walk.take(T["cancel_queued"], QueuedId(id=W1))
    inbox.write_note(walk, W3)
    walk.take(T["apply_writes"], Drain(count=1))
    assert [one in walk.state.entries for one in (W1, W2, W3)] == [False, True, False]
    assert next_steps(View(walk.state, "main")) == ("apply_writes", "apply_projecting_writes")


def test_a_note_is_in_the_context_exactly_when_a_projector_answers_with_messages() -> None:
    walk = inbox.answered()
    inbox.write_note(walk, W1)
    before = project(walk.state, View(walk.state, "main").leaf)
    walk.take(T["apply_projecting_writes"], Drain(count=1))
    said = user("a note")
    assert project(walk.state, W1) == before
    assert project(walk.state, W1, {"note": lambda _entry: []}) == before
    assert project(walk.state, W1, {"note": lambda _entry: [said]}) == [*before, said]
