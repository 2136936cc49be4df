"""The model answers whatever is committed in whatever state: it explains or refuses, and never raises."""

import pytest

from restartpoint_reference import TRANSITIONS, Commit, Explained, State, Unexplained, explain
from restartpoint_reference.transitions.frame import Nothing, NotThis, View
from tests.reference.walk import Step, Walk, as_elements
from tests.reference.walks import SCENARIOS, abort, deferred, inbox


def phase_of(step: Step) -> tuple[str, str]:
    """Where a step starts: the phase, and the control of its operation."""
    view = View(step.before, step.commit.lane or "main")
    try:
        return view.phase, type(view.operation_state.control).__name__
    except NotThis:
        return view.phase, "none"


STEPS = [step for scenario in SCENARIOS for step in scenario().steps]
STATES: dict[tuple[str, str], State] = {phase_of(step): step.before for step in STEPS}
COMMITS = {name: [step for step in STEPS if step.commit.name == name] for name in {step.commit.name for step in STEPS}}


@pytest.mark.parametrize("place", sorted(STATES), ids=" ".join)
def test_every_commit_is_answered_in_every_phase(place: tuple[str, str]) -> None:
    """The commits of all transitions, tried where another one is due, are explained or refused (§3)."""
    state = STATES[place]
    for steps in COMMITS.values():
        for step in (steps[0], steps[-1]):
            answer = explain(state, as_elements(step.commit, state.next_seq, 1000))
            assert isinstance(answer, Explained | Unexplained)
            assert str(answer)


def polled_and_aborted() -> Walk:
    """A cancelled run whose poll may be under way while a deferred write waits."""
    walk = deferred.polled()
    inbox.write_message(walk, inbox.W1)
    return abort.abort(walk)


def test_writes_are_not_applied_while_a_cancelled_poll_is_pending() -> None:
    """The very writes of T72 come too early while an effect is unsettled; its first entry is no assistant's (§4.6)."""
    state = polled_and_aborted().state
    early = Commit(
        name="apply_cancelled_writes",
        lane="main",
        inputs=Nothing(),
        writes=TRANSITIONS["apply_cancelled_writes"].build(View(state, "main"), Nothing()),
    )
    assert isinstance(explain(state, as_elements(early, state.next_seq, 1), 1), Unexplained)
