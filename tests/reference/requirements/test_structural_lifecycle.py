"""The commits of one compaction or branch summary, whatever asked for it (§3.2, §3.9)."""

from collections.abc import Callable
from dataclasses import dataclass

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import JsonObject, Namespace, Progress, View
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, RetrySummary, SettleSummaryRequest
from restartpoint_reference.transitions.publication import HookSummary, Summary
from restartpoint_reference.transitions.structural import StructuralFailure
from restartpoint_reference.vocabulary.states import Generating, StructuralDecision, SummaryPending
from tests.reference.requirements.writes import GONE, written
from tests.reference.walk import NOTHING, Walk, uid
from tests.reference.walks import abort, compaction, navigation, runs
from tests.reference.walks.compaction import COMPACTION, RESULT, TASK, cut, generating, requested, spent
from tests.reference.walks.navigation import ASKED, NAVIGATION

N = Namespace
FIRST, SECOND = uid(620, 1), uid(620, 2)
HOOK = HookSummary(entry_id=RESULT, summary="a question", usage_id=compaction.HOOK_ROW, usage=spent(3))
FAILURE = StructuralFailure(error_message="no words")


def manual() -> Walk:
    return compaction.asked(runs.plain_run(), cut(2))


def summarized() -> Walk:
    return navigation.summarizing(runs.plain_run(), ASKED, 0)


@dataclass(frozen=True, kw_only=True)
class Reason:
    """Who asks for a summary, and the names of what may become of it."""

    lead: Callable[[], Walk]
    operation: str
    decline: str
    hook: str
    publish: str
    fail: str
    in_run: bool = False


MANUAL = Reason(
    lead=manual, operation=COMPACTION, decline="decline_structural", hook="publish_hook_compaction",
    publish="publish_compaction", fail="fail_structural",
)  # fmt: skip
BRANCH = Reason(
    lead=summarized, operation=NAVIGATION, decline="decline_structural", hook="publish_hook_navigation",
    publish="publish_navigation", fail="fail_structural",
)  # fmt: skip
THRESHOLD = Reason(
    lead=compaction.at_threshold, operation=runs.RUN, decline="decline_threshold", in_run=True,
    hook="publish_hook_compaction_in_run", publish="publish_compaction_in_run", fail="fail_structural_in_run",
)  # fmt: skip
OVERFLOW = Reason(
    lead=compaction.overflowed, operation=runs.RUN, decline="decline_overflow", in_run=True,
    hook="publish_hook_compaction_in_run", publish="publish_compaction_in_run", fail="fail_structural_in_run",
)  # fmt: skip
REASONS = [MANUAL, BRANCH, THRESHOLD, OVERFLOW]
IN_RUN = [THRESHOLD, OVERFLOW]


def decision(walk: Walk) -> StructuralDecision:
    return View(walk.state, "main").structural


def attempt(walk: Walk) -> SummaryPending:
    match decision(walk):
        case Generating(generation=SummaryPending() as pending):
            return pending
    raise AssertionError("no attempt is under way")


def phase(walk: Walk) -> JsonObject:
    return View(walk.state, "main").run.phase.to_json()


def last_result(walk: Walk) -> JsonObject:
    held = walk.state.value(N.LANE_LAST_RESULT, "main")
    assert isinstance(held, dict)
    return held


@pytest.mark.covers("RT-3.9-01", "RT-3.9-T57")
@pytest.mark.parametrize("reason", REASONS)
def test_every_summary_decides_then_generates_by_attempts_then_publishes(reason: Reason) -> None:
    walk = reason.lead()
    assert set(Progress.of(walk.state).due("main")) == {reason.decline, reason.hook, "start_summary"}
    generating(walk)
    started, intended = walk.steps[-2:]
    assert written(started.commit) == written(intended.commit) == ["op.state"]
    assert (attempt(walk).attempt, attempt(walk).usage_ids) == (1, ())
    requested(walk, FIRST)
    assert attempt(walk).usage_ids == (FIRST,)
    walk.take(T[reason.publish], Summary(summary="a question"))
    assert walk.state.entries[RESULT].payload["fromHook"] is False


@pytest.mark.covers("RT-3.9-T60")
@pytest.mark.parametrize("reason", REASONS)
def test_an_attempt_that_failed_for_the_moment_waits_and_writes_no_usage(reason: Reason) -> None:
    walk = requested(generating(reason.lead()), FIRST)
    commit = walk.take(T["retry_summary"], RetrySummary(error_message="overloaded", not_before=5000))
    assert written(commit) == ["op.state"]
    assert decision(walk).to_json()["generation"] == {
        "status": "retry_wait", "context": attempt_context(walk), "nextAttempt": 2, "notBefore": 5000,
        "errorMessage": "overloaded",
    }  # fmt: skip


def attempt_context(walk: Walk) -> JsonObject:
    """The context of the attempt before the last commit."""
    match View(walk.steps[-1].before, "main").structural:
        case Generating(generation=generation):
            return generation.context.to_json()
    raise AssertionError("no generation was under way")


@pytest.mark.covers("RT-3.9-T59", "RT-3.2-56")
@pytest.mark.parametrize("prefix, requests", [(0, 1), (1, 2)])
def test_an_ordinary_summary_takes_one_request_and_a_split_turn_two(prefix: int, requests: int) -> None:
    walk = generating(compaction.asked(runs.plain_run(), cut(1, prefix)))
    rows = (FIRST, SECOND)[:requests]
    for index, row in enumerate(rows):
        assert written(walk.take(T["intend_summary_request"], IntendSummaryRequest(usage_id=row))) == ["op.state"]
        assert attempt(walk).to_json()["request"] == {"index": index, "usageId": row}
        settled = walk.take(T["settle_summary_request"], SettleSummaryRequest(usage=spent(5)))
        assert written(settled) == ["usage", "op.state"]
        assert "request" not in attempt(walk).to_json()
        assert attempt(walk).usage_ids == rows[: index + 1]
    another = T["intend_summary_request"](walk.state, "main", IntendSummaryRequest(usage_id=uid(620, 3)))
    assert getattr(another, "guard", "") == "another_request_is_due"


@pytest.mark.covers("RT-3.2-57", "RT-4.5-T67")
def test_an_attempt_that_lost_its_process_after_the_first_request_is_made_again_from_the_first() -> None:
    walk = requested(generating(compaction.asked(runs.plain_run(), cut(1, 1))), FIRST)
    assert Progress.of(walk.state).due("main") == ("recover_summary",)
    walk.take(T["recover_summary"])
    walk.take(T["intend_summary"])
    assert (attempt(walk).attempt, attempt(walk).usage_ids) == (2, ())
    walk.take(T["intend_summary_request"], IntendSummaryRequest(usage_id=SECOND))
    assert attempt(walk).to_json()["request"] == {"index": 0, "usageId": SECOND}
    assert FIRST in walk.state.usage


@pytest.mark.covers("RT-3.9-07", "RT-3.9-T62")
@pytest.mark.parametrize("reason", [MANUAL, BRANCH])
def test_an_operation_whose_summary_failed_ends_and_keeps_what_it_spent(reason: Reason) -> None:
    walk = requested(generating(reason.lead()), FIRST)
    leaf = View(walk.state, "main").leaf
    assert written(walk.take(T["fail_structural"], FAILURE)) == GONE
    assert (last_result(walk)["outcome"], last_result(walk)["leafId"]) == ("failed", leaf)
    assert walk.state.usage[FIRST].usage == spent(5)
    assert RESULT not in walk.state.entries


@pytest.mark.covers("RT-3.9-T63")
@pytest.mark.parametrize("reason", IN_RUN)
def test_a_run_whose_summary_failed_drains_its_failure(reason: Reason) -> None:
    walk = requested(generating(reason.lead()), FIRST)
    assert written(walk.take(T["fail_structural_in_run"], FAILURE)) == ["op.state"]
    assert phase(walk) == {
        "kind": "failure_drain",
        "error": {"code": "compaction_failed", "message": "no words"},
        "provenance": {"kind": "structural", "taskId": TASK},
    }


@pytest.mark.covers("RT-3.9-T50", "RT-3.5-10")
@pytest.mark.parametrize("reason", [MANUAL, BRANCH])
def test_an_operation_that_a_hook_declines_ends_where_it_was(reason: Reason) -> None:
    walk = reason.lead()
    assert written(walk.take(T["decline_structural"])) == GONE
    assert (last_result(walk)["outcome"], last_result(walk)["leafId"]) == ("declined", runs.R2)
    assert View(walk.state, "main").leaf == runs.R2


@pytest.mark.covers("RT-3.9-T51", "RT-3.2-18")
def test_a_boundary_is_checked_once_whatever_became_of_it() -> None:
    """Declined, marked or compacted, and read by another process: it is not compacted again."""
    declined, hooked, generated, marked = (compaction.at_threshold() for _ in range(4))
    assert written(declined.take(T["decline_threshold"])) == ["op.state"]
    hooked.take(T["publish_hook_compaction_in_run"], HOOK)
    requested(generating(generated), FIRST).take(T["publish_compaction_in_run"], Summary(summary="a question"))
    marked.state = marked.steps[-1].before
    marked.take(T["mark_threshold_checked"])
    for walk in (declined, hooked, generated, marked):
        assert phase(walk)["thresholdCheckedTriggerEntryId"] == phase(walk)["triggerEntryId"] == runs.R1
        assert {"mark_threshold_checked", "begin_threshold_compaction"}.isdisjoint(Progress.of(walk.state).due("main"))
        assert getattr(T["mark_threshold_checked"](walk.state, "main", NOTHING), "guard", "") == "boundary_is_unchecked"


@pytest.mark.covers("RT-3.9-T52")
def test_an_overflow_whose_compaction_a_hook_declines_fails_the_run() -> None:
    walk = compaction.overflowed()
    assert written(walk.take(T["decline_overflow"], FAILURE)) == ["op.state"]
    assert phase(walk)["provenance"] == {"kind": "structural", "taskId": TASK}


@pytest.mark.covers("RT-3.9-T53")
def test_a_hook_that_supplies_a_compaction_ends_the_operation_with_it() -> None:
    walk = manual()
    assert written(walk.take(T["publish_hook_compaction"], HOOK)) == ["usage", "entry", "lane.leaf", *GONE]
    assert walk.state.entries[RESULT].payload["fromHook"] is True
    assert walk.state.usage[compaction.HOOK_ROW].entry_id == View(walk.state, "main").leaf == RESULT
    assert last_result(walk) == {
        "operationId": COMPACTION, "kind": "compaction", "leafId": RESULT, "outcome": "completed"
    }  # fmt: skip


@pytest.mark.covers("RT-3.9-T54")
@pytest.mark.parametrize("reason", IN_RUN)
def test_a_hook_that_supplies_a_compaction_in_a_run_resumes_it_and_the_preparation_stays(reason: Reason) -> None:
    walk = reason.lead()
    resumed = phase(walk)["resumeAfter"]
    commit = walk.take(T["publish_hook_compaction_in_run"], HOOK)
    assert written(commit) == ["usage", "entry", "lane.leaf", "op.state"]
    assert phase(walk) == resumed
    assert walk.state.keys(N.OP_PREPARATION) == [f"{runs.RUN}:{TASK}"]
    walk.take(T["abort_run"], abort.ABORT)
    walk.take(T["finish_aborted_run"])
    assert walk.state.keys(N.OP_PREPARATION) == []


@pytest.mark.covers("RT-3.9-T64")
def test_a_generated_compaction_ends_the_operation_with_it() -> None:
    walk = requested(generating(manual()), FIRST)
    commit = walk.take(T["publish_compaction"], Summary(summary="a question"))
    assert written(commit) == ["entry", "lane.leaf", *GONE]
    entry = walk.state.entries[RESULT]
    assert (entry.parent_id, entry.payload["fromHook"], entry.payload["usage"]) == (runs.R2, False, spent(5))
    assert last_result(walk)["outcome"] == "completed"


@pytest.mark.covers("RT-3.9-T65")
@pytest.mark.parametrize("reason", IN_RUN)
def test_a_generated_compaction_in_a_run_restores_the_stored_checkpoint(reason: Reason) -> None:
    walk = reason.lead()
    resumed = phase(walk)["resumeAfter"]
    requested(generating(walk), FIRST)
    commit = walk.take(T["publish_compaction_in_run"], Summary(summary="a question"))
    assert written(commit) == ["entry", "lane.leaf", "op.state"]
    assert phase(walk) == resumed


@pytest.mark.covers("RT-3.9-T70")
@pytest.mark.parametrize("reason", [MANUAL, BRANCH])
@pytest.mark.parametrize("spends", [False, True])
def test_a_cancelled_operation_publishes_nothing_and_keeps_what_it_spent(reason: Reason, spends: bool) -> None:
    walk = requested(generating(reason.lead()), FIRST) if spends else reason.lead()
    entries, rows, leaf = set(walk.state.entries), set(walk.state.usage), View(walk.state, "main").leaf
    walk.take(T["abort_structural"], abort.ABORT)
    assert written(walk.take(T["finish_aborted_structural"])) == GONE
    assert (set(walk.state.entries), set(walk.state.usage), View(walk.state, "main").leaf) == (entries, rows, leaf)
    assert last_result(walk)["outcome"] == "aborted"
