"""Whether a commit came in its turn, on every walk and for each way to be out of turn (§3.12, §4.5, §4.6)."""

import json
from collections.abc import Callable, Iterator
from itertools import pairwise

import pytest

from restartpoint_reference import (
    TRANSITIONS,
    Commit,
    Explained,
    Misstep,
    Namespace,
    Progress,
    SetRegister,
    State,
    View,
    apply,
    explain,
)
from restartpoint_reference.transitions.checkpoint import Drain
from restartpoint_reference.transitions.frame import Inputs, Nothing
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration
from restartpoint_reference.transitions.settlement import Response
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.walk import Step, Walk, as_elements, uid
from tests.reference.walks import SCENARIOS, abort, deferred, inbox, runs

RECOVERIES = frozenset({
    "recover_assistant", "recover_exhausted_assistant", "interrupt_tool", "replace_unknown_poll",
    "interrupt_cancelled_tool", "recover_summary", "recover_exhausted_summary",
})  # fmt: skip
INTENT = IntendAssistant(
    response_entry_id=runs.R2, usage_id=runs.U2, intended_output_limit=runs.LIMIT, context_window=8000
)
START = StartGeneration(
    step_id=uid(191, 2), stream_options={}, retry_policy=RetryPolicy(max_attempts=3, base_delay_ms=5)
)


def seen(walk: Walk) -> Iterator[tuple[Step, State]]:
    """Each step of a walk with the state that it led to."""
    for step in walk.steps:
        applied = apply(step.before, step.commit.writes, timestamp=1)
        assert isinstance(applied, tuple)
        yield step, applied[0]


def going_on(progress: Progress | Misstep) -> Progress:
    assert isinstance(progress, Progress), str(progress)
    return progress


def followed(walk: Walk) -> Progress:
    """The progress of a walk whose owner lives throughout."""
    progress = Progress.of(State.empty())
    for step, after in seen(walk):
        progress = going_on(progress.after(step.commit, after))
    return progress


def made(state: State, name: str, inputs: Inputs | None = None) -> tuple[Explained, State]:
    """A commit that the model explains, whether or not it is its turn."""
    commit = TRANSITIONS[name](state, "main", Nothing() if inputs is None else inputs)
    assert isinstance(commit, Commit), commit
    explained = explain(state, as_elements(commit, state.next_seq, 1))
    assert isinstance(explained, Explained)
    applied = apply(state, commit.writes, timestamp=1)
    assert isinstance(applied, tuple)
    return explained, applied[0]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_walk_is_in_turn_for_a_judge_that_sees_no_restart(scenario: Callable[[], Walk]) -> None:
    progress = Progress.of(State.empty(), restarts_are_seen=False)
    before = State.empty()
    for step, after in seen(scenario()):
        if step.before.next_seq != before.next_seq:
            progress = progress.reread(step.before)
        progress, before = going_on(progress.after(step.commit, after, declared=is_from_outside(step))), after


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_walk_is_in_turn_when_a_new_owner_makes_its_recoveries(scenario: Callable[[], Walk]) -> None:
    progress = Progress.of(State.empty())
    before = State.empty()
    for step, after in seen(scenario()):
        if step.before.next_seq != before.next_seq:
            progress = progress.reread(step.before)
        if step.commit.name in RECOVERIES:
            progress = progress.attached(step.before)
        progress, before = going_on(progress.after(step.commit, after, declared=is_from_outside(step))), after


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_a_step_that_is_left_out_is_named(scenario: Callable[[], Walk]) -> None:
    """Told of a step but not of the one before it, the tracker names the latter, unless both were due."""
    steps = [(step, after) for step, after in seen(scenario()) if not TRANSITIONS[step.commit.name].public]
    for (left_out, _), (step, after) in pairwise(steps):
        progress = Progress.of(left_out.before, restarts_are_seen=False)
        if step.commit.lane != left_out.commit.lane or step.commit.name in progress.due("main"):
            continue
        misstep = progress.after(step.commit, after)
        assert isinstance(misstep, Misstep)
        assert left_out.commit.name in misstep.missing


def test_a_turn_that_starts_before_the_waiting_writes_are_applied_skips_them() -> None:
    walk = inbox.owing()
    inbox.write_note(walk, inbox.W1)
    progress = Progress.of(walk.state)
    misstep = progress.after(*made(walk.state, "start_generation", START))
    assert isinstance(misstep, Misstep)
    assert misstep.missing == ("apply_writes", "apply_projecting_writes")
    assert str(misstep) == (
        "start_generation on lane main came out of turn (§3.12): "
        "apply_writes or apply_projecting_writes is due first and was skipped"
    )


def test_a_step_that_was_chosen_before_input_arrived_is_in_turn() -> None:
    walk = inbox.owing()
    progress = followed(walk)
    chosen = progress.due("main")
    inbox.write_note(walk, inbox.W1)
    step, after = list(seen(walk))[-1]
    progress = going_on(progress.after(step.commit, after))
    assert "start_generation" in chosen
    assert progress.due("main") == ("apply_writes", "apply_projecting_writes")
    moved = going_on(progress.after(*made(walk.state, "start_generation", START)))
    assert moved.due("main") == ("intend_assistant",)


def test_a_step_of_the_procedure_ends_what_was_chosen_before_it() -> None:
    walk = inbox.owing()
    progress = followed(walk)
    inbox.write_note(walk, inbox.W1)
    inbox.steer(walk, inbox.S1)
    for step, after in list(seen(walk))[-2:]:
        progress = going_on(progress.after(step.commit, after))
    walk.take(TRANSITIONS["apply_writes"], Drain(count=1))
    step, after = list(seen(walk))[-1]
    progress = going_on(progress.after(step.commit, after))
    misstep = progress.after(*made(after, "start_generation", START))
    assert isinstance(misstep, Misstep)
    assert misstep.missing == ("consume_steer",)


@pytest.mark.parametrize("name", ["finish_run", "finish_failed"])
def test_an_end_re_reads_the_inbox(name: str) -> None:
    """Its own guard forbids it too; here somebody else's explanation is held to the same rule."""
    walk = inbox.answered() if name == "finish_run" else inbox.failing()
    progress = followed(walk)
    assert name in progress.due("main")
    ending, idle = made(walk.state, name)
    inbox.follow_up(walk, inbox.F1)
    step, after = list(seen(walk))[-1]
    progress = going_on(progress.after(step.commit, after))
    misstep = progress.after(ending, idle)
    assert isinstance(misstep, Misstep)
    assert "re-reads the inbox" in misstep.reason


def test_a_request_whose_process_lives_is_not_recovered() -> None:
    walk = runs.requested()
    misstep = followed(walk).after(*made(walk.state, "recover_assistant"))
    assert isinstance(misstep, Misstep)
    assert "own process is alive" in misstep.reason
    moved = going_on(followed(walk).attached(walk.state).after(*made(walk.state, "recover_assistant")))
    assert moved.due("main") == ("intend_assistant",)


def test_a_request_whose_process_is_gone_does_not_settle_by_itself() -> None:
    walk = deferred.polled()
    progress = followed(walk).attached(walk.state)
    assert progress.due("main") == ("replace_unknown_poll",)
    settled = Response(response=deferred.waiting())
    misstep = progress.after(*made(walk.state, "settle_poll_pending", settled))
    assert isinstance(misstep, Misstep)
    assert "process that started the effect is gone" in misstep.reason
    unseen = Progress.of(walk.state, restarts_are_seen=False)
    going_on(unseen.after(*made(walk.state, "settle_poll_pending", settled)))


def test_what_a_new_owner_starts_is_its_own() -> None:
    walk = runs.requested()
    progress = followed(walk).attached(walk.state)
    for name, inputs in (("recover_assistant", Nothing()), ("intend_assistant", INTENT)):
        walk.take(TRANSITIONS[name], inputs)
        step, after = list(seen(walk))[-1]
        progress = going_on(progress.after(step.commit, after))
    assert "settle_stop" in progress.due("main")
    assert progress.reread(walk.state).due("main") == progress.due("main")
    assert progress.attached(walk.state).due("main") == ("recover_assistant",)


def test_only_the_calls_that_were_pending_at_a_restart_are_orphaned() -> None:
    walk = runs.with_tools()
    runs.clear(walk, 1)
    progress = followed(walk).attached(walk.state)
    assert progress.due("main") == ("intend_tool", "interrupt_tool")
    runs.clear(walk, 3)
    step, after = list(seen(walk))[-1]
    progress = going_on(progress.after(step.commit, after))
    assert progress.due("main") == ("interrupt_tool",)
    interrupted = next(step for step in runs.crash_mid_tool().steps if step.commit.name == "interrupt_tool").inputs
    progress = going_on(progress.after(*made(walk.state, "interrupt_tool", interrupted)))
    assert progress.due("main") == ("complete_terminating_batch", "complete_batch")


def test_an_idle_lane_asks_for_nothing_and_a_step_on_it_is_out_of_turn() -> None:
    walk = runs.plain_run()
    progress = followed(walk)
    assert progress.due("main") == ()
    step, after = list(seen(walk))[-1]
    misstep = progress.after(step.commit, after)
    assert isinstance(misstep, Misstep)
    assert "no operation under way" in misstep.reason
    assert walk.state.keys(Namespace.OP_META) == []


def test_a_state_that_cannot_be_read_asks_for_nothing_and_accuses_nobody() -> None:
    walk = runs.with_tools()
    held = walk.state.value(Namespace.OP_STATE, runs.RUN)
    text = json.dumps(held).replace(f'"assistantEntryId": "{runs.R1}"', f'"assistantEntryId": "{uid(9, 9)}"')
    lost = apply(
        walk.state, [SetRegister(namespace=Namespace.OP_STATE, key=runs.RUN, value=json.loads(text))], timestamp=1
    )
    assert isinstance(lost, tuple)
    progress = Progress.of(lost[0])
    assert progress.due("main") == ()
    step, after = list(seen(runs.refused_tools()))[-2]
    going_on(progress.after(step.commit, after))


OUT_OF_TURN = {
    "consume_steer": {("apply_writes", "apply_projecting_writes")},
    "mark_threshold_checked": {("apply_writes", "apply_projecting_writes"), ("consume_steer",)},
    "begin_threshold_compaction": {("apply_writes", "apply_projecting_writes"), ("consume_steer",)},
    "start_generation": {("apply_writes", "apply_projecting_writes"), ("consume_steer",)},
    "consume_follow_up": {("apply_writes", "apply_projecting_writes"), ("consume_steer",)},
}
"""The steps that their own guards let pass although others are due first: the order of a checkpoint (§3.12)."""


def test_a_step_that_its_guards_let_pass_too_early_is_found() -> None:
    """Every step of every walk is tried in every state of all walks."""
    steps = [step for scenario in SCENARIOS for step in scenario().steps]
    moves = {(step.commit.name, repr(step.inputs)): step.inputs for step in steps if not is_public(step)}
    found: dict[str, set[tuple[str, ...]]] = {}
    for step in steps:
        progress = Progress.of(step.before, restarts_are_seen=False)
        view = View(step.before, step.commit.lane or "main")
        for (name, _), inputs in moves.items():
            if view.phase not in TRANSITIONS[name].phases or name in progress.due(view.lane):
                continue
            commit = TRANSITIONS[name].commit(view, inputs)
            if isinstance(commit, Commit):
                misstep = progress.after(commit, step.before)
                assert isinstance(misstep, Misstep)
                assert misstep.section == "3.12" or misstep.section.endswith("3.12")
                found.setdefault(name, set()).add(misstep.missing)
    assert found == OUT_OF_TURN


def is_public(step: Step) -> bool:
    return TRANSITIONS[step.commit.name].public


# --- from outside


def is_from_outside(step: Step) -> bool:
    return step.commit.name == "finalize_externally"


FROM_OUTSIDE = [abort.ended_from_outside, abort.failed_from_outside, abort.completed_from_outside]


@pytest.mark.parametrize("scenario", FROM_OUTSIDE)
def test_an_end_from_outside_that_nobody_declared_is_a_misstep(scenario: Callable[[], Walk]) -> None:
    *_, (last, after) = seen(scenario())
    progress = Progress.of(last.before)
    due = progress.due("main")
    misstep = progress.after(last.commit, after)
    assert isinstance(misstep, Misstep)
    assert (misstep.name, misstep.section, misstep.missing) == ("finalize_externally", "4.9", due)
    assert "an external finalization (§4.9) that nobody declared" in str(misstep)


@pytest.mark.parametrize("scenario", FROM_OUTSIDE)
def test_an_end_from_outside_that_somebody_declared_or_admitted_is_none(scenario: Callable[[], Walk]) -> None:
    *_, (last, after) = seen(scenario())
    assert going_on(Progress.of(last.before).after(last.commit, after, declared=True)).due("main") == ()
    admitting = Progress.of(last.before, finalizations_admitted=True)
    for progress in (admitting, admitting.attached(last.before), admitting.reread(last.before)):
        assert going_on(progress.after(last.commit, after)).due("main") == ()


def test_an_end_that_looks_like_the_procedure_s_own_may_come_out_of_turn_only_from_outside() -> None:
    walk = inbox.answered()
    ending, idle = made(walk.state, "finish_run")
    inbox.follow_up(walk, inbox.F1)
    progress = Progress.of(walk.state)
    assert isinstance(progress.after(ending, idle), Misstep)
    going_on(progress.after(ending, idle, declared=True))
    going_on(Progress.of(walk.state, finalizations_admitted=True).after(ending, idle))


def test_a_declaration_excuses_no_other_step() -> None:
    walk = runs.requested()
    recovery = made(walk.state, "recover_assistant")
    admitting = Progress.of(State.empty(), finalizations_admitted=True)
    for step, after in seen(walk):
        admitting = going_on(admitting.after(step.commit, after))
    assert isinstance(admitting.after(*recovery), Misstep)
    assert isinstance(admitting.after(*recovery, declared=True), Misstep)
