"""What a compaction may not do, and what it leaves (§3.6, §3.7, §3.9, §3.12)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS, JsonObject, Namespace, project
from restartpoint_reference.transitions.compaction import AcceptCompaction, Compact, SettleOverflow
from restartpoint_reference.transitions.frame import Inputs, Nothing
from restartpoint_reference.transitions.publication import HookSummary, Summary
from restartpoint_reference.transitions.session import CreateLane
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleToolCalls
from restartpoint_reference.transitions.structural import StructuralFailure
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.registers import CompactionSettings
from restartpoint_reference.vocabulary.states import RunSettings
from tests.reference.walk import Walk, assistant, result, uid
from tests.reference.walks import compaction, runs
from tests.reference.walks.compaction import (
    COMPACTION,
    RESULT,
    SETTINGS,
    TASK,
    asked,
    at_threshold,
    cut,
    generating,
    overflowed,
    requested,
    spent,
)

ASK = AcceptCompaction(operation_id=COMPACTION, task_id=TASK, started_at=1, cut=cut(2), settings=SETTINGS)
AGAIN = Compact(task_id=TASK, cut=cut(1))
TOO_LONG = assistant(stop="error", error="prompt is too long")
OVERFLOW = SettleOverflow(task_id=TASK, cut=cut(1), response=TOO_LONG)
HOOK = HookSummary(entry_id=RESULT, summary="s")
WORDS = Summary(summary="s")
ERROR = StructuralFailure(error_message="e")


def disabled() -> RunSettings:
    off = CompactionSettings(enabled=False, reserve_tokens=1, keep_recent_tokens=1)
    return replace(runs.SETTINGS, compaction=off)


def marked() -> Walk:
    walk = runs.prompted()
    walk.take(TRANSITIONS["mark_threshold_checked"])
    return walk


def compacted() -> Walk:
    """A run that compacted at its first boundary, and marked it."""
    walk = compaction.begun(runs.prompted(), 1)
    walk.take(TRANSITIONS["publish_hook_compaction_in_run"], HOOK)
    return walk


def answered() -> Walk:
    """The same run at its next boundary."""
    walk = compacted()
    runs.request(walk, runs.STEP, runs.R1, runs.U1)
    walk.take(TRANSITIONS["settle_stop"], Response(response=assistant()))
    return walk


def overflowed_again() -> Walk:
    """A run whose request did not fit after it compacted."""
    walk = overflowed()
    walk.take(TRANSITIONS["publish_hook_compaction_in_run"], HOOK)
    runs.request(walk, uid(191, 2), runs.R2, runs.U2)
    return walk


def one_request() -> Walk:
    return requested(generating(asked(runs.plain_run(), cut(2))), uid(620, 1))


def between_requests() -> Walk:
    walk = one_request()
    walk.take(TRANSITIONS["recover_summary"])
    walk.take(TRANSITIONS["intend_summary"])
    return walk


@pytest.mark.parametrize(
    "walk, name, inputs, guard",
    [
        (runs.prompted, "accept_compaction", ASK, "from_phase"),
        (runs.plain_run, "accept_compaction", replace(ASK, cut=cut(0)), "context_is_cut"),
        (runs.opened, "accept_compaction", replace(ASK, cut=cut(1)), "context_is_cut"),
        (marked, "mark_threshold_checked", Nothing(), "boundary_is_unchecked"),
        (compacted, "mark_threshold_checked", Nothing(), "boundary_is_unchecked"),
        (lambda: runs.prompted(disabled()), "mark_threshold_checked", Nothing(), "compaction_is_enabled"),
        (marked, "begin_threshold_compaction", AGAIN, "boundary_is_unchecked"),
        (compacted, "begin_threshold_compaction", AGAIN, "boundary_is_unchecked"),
        (lambda: runs.prompted(disabled()), "begin_threshold_compaction", AGAIN, "compaction_is_enabled"),
        (answered, "begin_threshold_compaction", AGAIN, "task_is_new"),
        (runs.prompted, "begin_threshold_compaction", replace(AGAIN, cut=cut(3)), "context_is_cut"),
        (lambda: runs.requested(settings=disabled()), "settle_overflow", OVERFLOW, "compaction_is_enabled"),
        (overflowed_again, "settle_overflow", replace(OVERFLOW, task_id="t"), "is_a_first_overflow"),
        (runs.requested, "settle_overflow", replace(OVERFLOW, response=assistant()), "is_a_first_overflow"),
        (
            runs.requested,
            "settle_overflow",
            replace(OVERFLOW, response=assistant(stop="error", error="429")),
            "is_a_first_overflow",
        ),
        (
            runs.requested,
            "settle_overflow",
            replace(OVERFLOW, response=assistant(stop="error", error="cut", output=100), cut_short=True),
            "is_a_first_overflow",
        ),
        (runs.requested, "settle_overflow", replace(OVERFLOW, cut=cut(0)), "context_is_cut"),
        (overflowed, "decline_threshold", Nothing(), "compacts_at_the_threshold"),
        (at_threshold, "decline_overflow", ERROR, "compacts_after_an_overflow"),
        (at_threshold, "publish_hook_compaction_in_run", replace(HOOK, usage=spent(1)), "hook_usage_is_whole"),
        (at_threshold, "publish_hook_compaction_in_run", replace(HOOK, usage_id=uid(1, 1)), "hook_usage_is_whole"),
        (between_requests, "publish_compaction", WORDS, "a_request_settled"),
    ],
)
def test_a_compaction_that_would_break_its_rules_is_refused(
    walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str
) -> None:
    refusal = TRANSITIONS[name](walk().state, "main", inputs)
    assert getattr(refusal, "guard", None) == guard


def test_an_operation_id_names_one_operation() -> None:
    walk = asked(runs.plain_run(), cut(2))
    walk.lane = "other"
    walk.take(TRANSITIONS["create_lane"], CreateLane(configuration=runs.CONFIGURATION, anchor=runs.R2))
    refusal = TRANSITIONS["accept_compaction"](walk.state, "other", ASK)
    assert getattr(refusal, "guard", None) == "operation_is_new"


@pytest.mark.covers("AMB-20")
def test_only_a_compaction_that_was_asked_for_ignores_that_compaction_is_disabled() -> None:
    assert not SETTINGS.enabled
    assert asked(runs.plain_run(), cut(2)).names[-1] == "accept_compaction"
    overflow = TRANSITIONS["settle_overflow"](runs.requested(settings=disabled()).state, "main", OVERFLOW)
    assert getattr(overflow, "guard", None) == "compaction_is_enabled"


def phase(walk: Walk) -> JsonObject:
    state = walk.state.value(Namespace.OP_STATE, runs.RUN)
    assert isinstance(state, dict)
    assert isinstance(state["phase"], dict)
    return state["phase"]


@pytest.mark.covers("AMB-15")
def test_a_threshold_compaction_resumes_at_its_boundary_with_all_that_it_held() -> None:
    before = phase(runs.prompted())
    assert before["skipInboxOnce"] is True
    assert phase(compacted()) == {**before, "thresholdCheckedTriggerEntryId": before["triggerEntryId"]}
    ended = at_threshold()
    ended.take(TRANSITIONS["decline_threshold"])
    assert phase(ended)["continuation"] == {"kind": "may_finish", "includeFinalAssistant": True}


@pytest.mark.covers("AMB-19", "RT-3.9-08")
def test_an_overflow_owes_the_same_turn_once_more_and_new_input_forgets_it() -> None:
    walk = overflowed_again()
    context = phase(walk)["generation"]
    assert isinstance(context, dict)
    assert isinstance(context["context"], dict)
    assert context["context"]["overflowRecoveryUsed"] is True
    resumed = next(step for step in walk.steps if step.commit.name == "publish_hook_compaction_in_run").commit
    assert resumed.writes[-1].to_json()["value"]["phase"] == {  # type: ignore[index,call-overload]
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": True},
        "triggerEntryId": uid(95, 2),
    }
    second = SettleFailure(response=TOO_LONG, error_message="too long")
    failed = walk.fork()
    failed.take(TRANSITIONS["settle_failure"], second)
    assert phase(failed)["kind"] == "failure_drain"
    walk.take(TRANSITIONS["settle_tool_calls"], SettleToolCalls(response=runs.two_calls(), result_ids=two_ids()))
    refused = ToolResult(message=result("t1", "remove", "no", error=True))
    walk.take(TRANSITIONS["refuse_tool"], refused)
    walk.take(TRANSITIONS["complete_batch"], replace(refused, message=result("t2", "read", "no", error=True)))
    assert phase(walk)["continuation"] == {"kind": "need_assistant", "overflowRecoveryUsed": False}


def two_ids() -> tuple[str, str]:
    return uid(200, 11), uid(200, 12)


@pytest.mark.covers("RT-3.9-09")
def test_the_tail_after_an_overflow_ends_where_the_turn_was_owed() -> None:
    walk = compaction.overflow_compacted()
    entry = walk.state.entries[RESULT]
    assert entry.parent_id == runs.R1
    assert entry.payload["retainedTail"] == [walk.state.entries[uid(95, 2)].message]
    assert entry.payload["tokensBefore"] == 900
    summary, tail = project(walk.state, RESULT)
    assert "a question" in str(summary)
    assert tail == walk.state.entries[uid(95, 2)].message


@pytest.mark.covers("RT-3.9-02", "RT-3.9-10")
def test_what_a_decline_does_depends_on_who_asked() -> None:
    manual = compaction.declined()
    assert manual.state.value(Namespace.LANE_LAST_RESULT, "main") == {
        "operationId": COMPACTION, "kind": "compaction", "leafId": runs.R2, "outcome": "declined",
    }  # fmt: skip
    threshold = at_threshold()
    threshold.take(TRANSITIONS["decline_threshold"])
    assert phase(threshold)["thresholdCheckedTriggerEntryId"] == runs.R1
    overflow = overflowed()
    overflow.take(TRANSITIONS["decline_overflow"], ERROR)
    assert phase(overflow) == {
        "kind": "failure_drain",
        "error": {"code": "compaction_declined", "message": "e"},
        "provenance": {"kind": "structural", "taskId": TASK},
    }
    unprepared = runs.overflowed_run().steps[-2].commit.writes[-1].to_json()["value"]
    assert unprepared["phase"]["provenance"] == {"kind": "response", "entryId": runs.R1}  # type: ignore[index,call-overload]


@pytest.mark.covers("RT-3.13-09")
def test_preparations_inside_a_run_live_until_its_end() -> None:
    walk = compaction.threshold_compacted_twice()
    before = walk.steps[-1].before
    keys = [f"{runs.RUN}:{TASK}", f"{runs.RUN}:{compaction.SECOND_TASK}"]
    assert before.keys(Namespace.OP_PREPARATION) == keys
    assert walk.state.keys(Namespace.OP_PREPARATION) == []


@pytest.mark.covers("AMB-11")
def test_what_a_hook_reports_is_billed_to_its_entry_before_the_entry_exists() -> None:
    walk = compaction.compacted_by_hook()
    row = walk.state.usage[compaction.HOOK_ROW]
    entry = walk.state.entries[RESULT]
    assert (row.entry_id, row.adjustment, row.usage) == (RESULT, False, entry.payload["usage"])
    assert row.seq < entry.seq
    assert "details" not in row.to_json()


def test_a_hook_that_reports_nothing_leaves_no_row_and_no_details() -> None:
    walk = compacted()
    assert not walk.state.usage
    assert set(walk.state.entries[RESULT].payload) == {"summary", "retainedTail", "tokensBefore", "fromHook"}
