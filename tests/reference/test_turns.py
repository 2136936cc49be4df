"""What may follow in every phase of every operation: live, orphaned, and cancelled (§3.9, §3.10, §4.5, §4.6)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, Namespace, View, next_steps
from restartpoint_reference.procedure import POLL_SETTLEMENTS, SETTLEMENTS, Names, pending_effects
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, RetrySummary
from restartpoint_reference.transitions.settlement import SettleRetryable
from restartpoint_reference.vocabulary.states import Replay
from tests.reference.walk import Walk, assistant, uid
from tests.reference.walks import SCENARIOS, compaction, deferred, inbox, navigation, runs
from tests.reference.walks.planted import plant

ABORTED, ABORTED_RUN = ("finish_aborted_structural",), ("finish_aborted_run",)
ABORTED_COMPACTION = ("finish_aborted_compaction_in_run",)
THRESHOLD = ("mark_threshold_checked", "begin_threshold_compaction")
CALLS = ("complete_terminating_batch", "complete_batch")


def ready() -> Walk:
    walk = runs.requested()
    walk.take(T["recover_assistant"])
    return walk


def retrying() -> Walk:
    walk = runs.requested()
    failed = assistant(stop="error", error="overloaded")
    walk.take(T["settle_retryable"], SettleRetryable(response=failed, not_before=5000))
    return walk


def running_calls(*replay: Replay) -> Walk:
    """A batch of two whose first calls are under way."""
    walk = runs.with_tools()
    for index, declared in zip((1, 3), replay, strict=False):
        runs.clear(walk, index, declared)
    return walk


def asked() -> Walk:
    return compaction.asked(runs.plain_run(), compaction.cut(2))


def generating(*, attempts: int = 2) -> Walk:
    return compaction.generating(asked(), attempts=attempts)


def requesting() -> Walk:
    walk = generating()
    walk.take(T["intend_summary_request"], IntendSummaryRequest(usage_id=uid(620, 1)))
    return walk


def summarised(*, attempts: int = 2) -> Walk:
    return compaction.requested(generating(attempts=attempts), uid(620, 1))


def half_summarised() -> Walk:
    """The first of the two requests of a split turn is settled."""
    walk = compaction.generating(compaction.asked(runs.plain_run(), compaction.cut(1, 1)))
    return compaction.requested(walk, uid(620, 1))


def waiting() -> Walk:
    walk = summarised()
    walk.take(T["retry_summary"], RetrySummary(error_message="overloaded", not_before=5000))
    return walk


def begun() -> Walk:
    walk = asked()
    begin = next(step for step in compaction.generating(asked()).steps if step.commit.name == "start_summary")
    walk.take(T["start_summary"], begin.inputs)
    return walk


def in_run(*, requested: bool = False, settled: bool = False) -> Walk:
    walk = compaction.generating(compaction.at_threshold())
    if requested:
        walk.take(T["intend_summary_request"], IntendSummaryRequest(usage_id=uid(620, 1)))
    return compaction.requested(walk, uid(620, 1)) if settled else walk


def until(scenario: Callable[[], Walk], name: str) -> Callable[[], Walk]:
    """The scenario cut right before the first commit of this name."""

    def cut() -> Walk:
        walk = scenario()
        walk.state = next(step.before for step in walk.steps if step.commit.name == name)
        return walk

    cut.__name__ = f"{scenario.__name__}_until_{name}"
    return cut


def cancelled(walk: Walk) -> Walk:
    """The same operation after an abort."""
    key = View(walk.state, walk.lane).operation_id
    held = walk.state.value(Namespace.OP_STATE, key)
    assert isinstance(held, dict)
    control: Json = {"status": "cancel_requested", "requestedAt": 9, "drainedSteer": [], "drainedFollowUp": []}
    return plant(walk, (Namespace.OP_STATE, key, {**held, "control": control}))


def without(names: Names, *left_out: str) -> Names:
    return tuple(name for name in names if name not in left_out)


TABLE: list[tuple[Callable[[], Walk], Names, Names, Names, Names]] = [
    (runs.prompted, (*THRESHOLD, "start_generation"), (*THRESHOLD, "start_generation"), ABORTED_RUN, ABORTED_RUN),
    (ready, ("intend_assistant",), ("intend_assistant",), ABORTED_RUN, ABORTED_RUN),
    (retrying, ("end_retry_wait",), ("end_retry_wait",), ABORTED_RUN, ABORTED_RUN),
    (runs.requested, SETTLEMENTS, ("recover_assistant",), ("settle_cancelled", "cancel_assistant"),
     ("cancel_assistant",)),
    (lambda: runs.requested(attempts=1), without(SETTLEMENTS, "settle_retryable"), ("recover_exhausted_assistant",),
     ("settle_cancelled", "cancel_assistant"), ("cancel_assistant",)),
    (runs.with_tools, ("intend_tool", "refuse_tool"), ("intend_tool", "refuse_tool"), ("cancel_planned_tool",),
     ("cancel_planned_tool",)),
    (lambda: runs.with_tools(truncated=True), ("refuse_truncated_tool",), ("refuse_truncated_tool",),
     ("cancel_planned_tool",), ("cancel_planned_tool",)),
    (lambda: running_calls(Replay.NEVER), ("intend_tool", "settle_tool"), ("intend_tool", "interrupt_tool"),
     ("settle_cancelled_tool", "cancel_refused_tool"), ("interrupt_cancelled_tool",)),
    (lambda: running_calls(Replay.SAFE, Replay.SAFE), ("settle_tool",), ("settle_tool", "interrupt_tool"),
     ("settle_cancelled_tool", "cancel_refused_tool"), ("settle_cancelled_tool", "interrupt_cancelled_tool")),
    (until(runs.plain_run, "complete_batch"), CALLS, CALLS, ("complete_batch",), ("complete_batch",)),
    (deferred.suspended, ("intend_poll",), ("intend_poll",), ("finish_aborted_deferred",),
     ("finish_aborted_deferred",)),
    (deferred.polled, POLL_SETTLEMENTS, ("replace_unknown_poll",), ("cancel_poll",), ("cancel_poll",)),
    (inbox.failing, ("finish_failed",), ("finish_failed",), ABORTED_RUN, ABORTED_RUN),
    (compaction.at_threshold, ("decline_threshold", "publish_hook_compaction_in_run", "start_summary"),
     ("decline_threshold", "publish_hook_compaction_in_run", "start_summary"), ABORTED_COMPACTION, ABORTED_COMPACTION),
    (compaction.overflowed, ("decline_overflow", "publish_hook_compaction_in_run", "start_summary"),
     ("decline_overflow", "publish_hook_compaction_in_run", "start_summary"), ABORTED_COMPACTION, ABORTED_COMPACTION),
    (in_run, ("intend_summary_request", "fail_structural_in_run"), ("recover_summary",), ABORTED_COMPACTION,
     ABORTED_COMPACTION),
    (lambda: in_run(requested=True), ("settle_summary_request",), ("recover_summary",),
     ("settle_summary_request", *ABORTED_COMPACTION), ABORTED_COMPACTION),
    (lambda: in_run(settled=True), ("retry_summary", "fail_structural_in_run", "publish_compaction_in_run"),
     ("recover_summary",), ABORTED_COMPACTION, ABORTED_COMPACTION),
    (asked, ("decline_structural", "publish_hook_compaction", "start_summary"),
     ("decline_structural", "publish_hook_compaction", "start_summary"), ABORTED, ABORTED),
    (begun, ("intend_summary",), ("intend_summary",), ABORTED, ABORTED),
    (generating, ("intend_summary_request", "fail_structural"), ("recover_summary",), ABORTED, ABORTED),
    (requesting, ("settle_summary_request",), ("recover_summary",), ("settle_summary_request", *ABORTED), ABORTED),
    (half_summarised, ("intend_summary_request", "retry_summary", "fail_structural", "publish_compaction"),
     ("recover_summary",), ABORTED, ABORTED),
    (summarised, ("retry_summary", "fail_structural", "publish_compaction"), ("recover_summary",), ABORTED, ABORTED),
    (lambda: summarised(attempts=1), ("fail_structural", "publish_compaction"), ("recover_exhausted_summary",), ABORTED,
     ABORTED),
    (waiting, ("end_summary_retry_wait",), ("end_summary_retry_wait",), ABORTED, ABORTED),
    (until(navigation.moved, "navigate"), ("navigate",), ("navigate",), ABORTED, ABORTED),
    (until(navigation.declined, "decline_structural"),
     ("decline_structural", "publish_hook_navigation", "start_summary"),
     ("decline_structural", "publish_hook_navigation", "start_summary"), ABORTED, ABORTED),
    (until(navigation.summarized, "publish_navigation"), ("retry_summary", "fail_structural", "publish_navigation"),
     ("recover_summary",), ABORTED, ABORTED),
]  # fmt: skip
"""Per state: its next steps live, with the effect orphaned, cancelled, and cancelled with the effect orphaned."""


@pytest.mark.parametrize("start, live, orphaned, aborted, abandoned", TABLE)
def test_the_next_steps_of_every_phase(
    start: Callable[[], Walk], live: Names, orphaned: Names, aborted: Names, abandoned: Names
) -> None:
    walk = start()
    assert next_steps(View(walk.state, "main")) == live
    assert next_steps(View(walk.state, "main"), orphaned=True) == orphaned
    cancelled(walk)
    assert next_steps(View(walk.state, "main")) == aborted
    assert next_steps(View(walk.state, "main"), orphaned=True) == abandoned


@pytest.mark.parametrize("start", [deferred.suspended, compaction.at_threshold, ready, retrying, inbox.failing])
def test_cancelled_writes_are_applied_before_a_run_ends(start: Callable[[], Walk]) -> None:
    walk = start()
    inbox.write_note(walk, inbox.W1)
    cancelled(walk)
    assert next_steps(View(walk.state, "main")) == ("apply_cancelled_writes",)


@pytest.mark.parametrize("start", [runs.requested, runs.with_tools, deferred.polled])
def test_what_is_under_way_settles_before_cancelled_writes(start: Callable[[], Walk]) -> None:
    walk = start()
    inbox.write_note(walk, inbox.W1)
    cancelled(walk)
    assert "apply_cancelled_writes" not in next_steps(View(walk.state, "main"))


def test_a_deferred_run_without_a_permit_stays_as_it_is() -> None:
    for walk in (deferred.suspended(), deferred.polled()):
        assert next_steps(View(walk.state, "main"), orphaned=True, permit=False) == ()
        cancelled(walk)
        assert next_steps(View(walk.state, "main"), orphaned=True, permit=False) != ()


def test_compaction_that_is_disabled_is_never_due() -> None:
    walk = runs.requested()
    held = walk.state.value(Namespace.OP_STATE, runs.RUN)
    assert isinstance(held, dict)
    assert isinstance(held["settings"], dict)
    settings: Json = {**held["settings"], "compaction": {"enabled": False, "reserveTokens": 0, "keepRecentTokens": 0}}
    plant(walk, (Namespace.OP_STATE, runs.RUN, {**held, "settings": settings}))
    assert next_steps(View(walk.state, "main")) == without(SETTLEMENTS, "settle_overflow")


@pytest.mark.parametrize(
    "start, effects",
    [
        (runs.requested, {runs.R1}),
        (deferred.polled, {deferred.P1}),
        (lambda: running_calls(Replay.NEVER, Replay.SAFE), {runs.C1, runs.C2}),
        (generating, {f"{compaction.RESULT}:1"}),
        (in_run, {f"{compaction.RESULT}:1"}),
        (ready, set()),
        (begun, set()),
        (asked, set()),
        (until(navigation.moved, "navigate"), set()),
        (runs.prompted, set()),
    ],
)
def test_the_effects_that_may_be_under_way(start: Callable[[], Walk], effects: set[str]) -> None:
    assert pending_effects(View(start().state, "main")) == effects


VIEWS = [View(step.before, step.commit.lane or "main") for scenario in SCENARIOS for step in scenario().steps]


def test_every_step_starts_from_the_phase_in_which_it_is_due() -> None:
    for view in VIEWS:
        for orphaned in (False, True):
            for name in next_steps(view, orphaned=orphaned):
                assert view.phase in T[name].phases, name


def test_every_step_of_the_table_is_due_somewhere_and_no_public_call_is() -> None:
    due = {name for view in VIEWS for orphaned in (False, True) for name in next_steps(view, orphaned=orphaned)}
    assert due == {name for name, found in T.items() if not found.public}
