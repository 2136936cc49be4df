"""What may follow a state, on every walk and in the order of a checkpoint and a failure drain (§3.12)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS, Namespace, SetRegister, State, View, apply, next_steps
from restartpoint_reference.shapes import UNSET
from restartpoint_reference.vocabulary.states import (
    Checkpoint,
    FailureDrain,
    Inbox,
    MayFinish,
    NeedAssistant,
    RunPhase,
    RunState,
)
from tests.reference.walk import Walk
from tests.reference.walks import SCENARIOS, runs
from tests.reference.walks.runs import RUN

RECOVERIES = frozenset({
    "recover_assistant", "recover_exhausted_assistant", "interrupt_tool", "replace_unknown_poll", "cancel_assistant",
    "interrupt_cancelled_tool", "recover_summary", "recover_exhausted_summary",
})  # fmt: skip


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_every_step_of_a_walk_was_a_next_step(scenario: Callable[[], Walk]) -> None:
    for step in scenario().steps:
        if not TRANSITIONS[step.commit.name].public:
            orphaned = step.commit.name in RECOVERIES
            assert step.commit.name in next_steps(View(step.before, "main"), orphaned=orphaned)


def test_nothing_follows_on_an_idle_lane() -> None:
    assert next_steps(View(runs.opened().state, "main")) == ()
    assert next_steps(View(runs.plain_run().state, "main")) == ()
    assert next_steps(View(State.empty(), "main")) == ()


NEED, END = NeedAssistant(overflow_recovery_used=False), MayFinish(include_final_assistant=True)
SKIPPING = Checkpoint(continuation=NEED, trigger_entry_id="e", skip_inbox_once=True)
OWING, ENDING = replace(SKIPPING, skip_inbox_once=UNSET), Checkpoint(continuation=END, trigger_entry_id="e")
CHECKED = replace(ENDING, threshold_checked_trigger_entry_id="e")
THRESHOLD = ("mark_threshold_checked", "begin_threshold_compaction")
FULL = Inbox(steer=("s",), follow_up=("f",), writes=("w",))
STEER, FOLLOW, NONE = (
    replace(FULL, writes=()),
    replace(FULL, writes=(), steer=()),
    Inbox(steer=(), follow_up=(), writes=()),
)


def failed() -> FailureDrain:
    drained = runs.exhausted_run().steps[-1].before.value(Namespace.OP_STATE, RUN)
    phase = RunState.from_json({} if drained is UNSET else drained).phase
    assert isinstance(phase, FailureDrain)
    return phase


TABLE: list[tuple[RunPhase, Inbox, tuple[str, ...]]] = [
    (OWING, FULL, ("apply_writes", "apply_projecting_writes")),
    (OWING, STEER, ("consume_steer",)),
    (OWING, FOLLOW, (*THRESHOLD, "start_generation")),
    (SKIPPING, FULL, (*THRESHOLD, "start_generation")),
    (ENDING, FULL, ("apply_writes", "apply_projecting_writes")),
    (ENDING, STEER, ("consume_steer",)),
    (ENDING, FOLLOW, (*THRESHOLD, "consume_follow_up")),
    (ENDING, NONE, (*THRESHOLD, "append_run_end_follow_up", "finish_run")),
    (CHECKED, NONE, ("append_run_end_follow_up", "finish_run")),
    (replace(CHECKED, continuation=MayFinish(include_final_assistant=False)), NONE,
     ("append_run_end_follow_up", "finish_terminated_tools")),
    (failed(), FULL, ("apply_writes_in_failure", "revive_from_failure")),
    (failed(), STEER, ("revive_from_failure",)),
    (failed(), FOLLOW, ("revive_from_failure",)),
    (failed(), NONE, ("finish_failed",)),
]  # fmt: skip


def with_run(state: State, **fields: object) -> State:
    held = state.value(Namespace.OP_STATE, RUN)
    run = replace(RunState.from_json({} if held is UNSET else held), **fields)  # type: ignore[arg-type]
    answer = apply(state, [SetRegister(namespace=Namespace.OP_STATE, key=RUN, value=run.to_json())], timestamp=1)
    assert isinstance(answer, tuple)
    return answer[0]


@pytest.mark.parametrize("phase, inbox, names", TABLE)
def test_a_checkpoint_and_a_failure_drain_take_input_in_the_stated_order(
    phase: RunPhase, inbox: Inbox, names: tuple[str, ...]
) -> None:
    state = with_run(runs.prompted().state, phase=phase, inbox=inbox)
    assert next_steps(View(state, "main")) == names
