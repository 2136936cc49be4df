"""Attempts at a summary: their requests, waits, failures and recovery (§3.2, §3.9, §4.5, §4.6)."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS, Json, JsonObject, Namespace
from restartpoint_reference.transitions.attempts import IntendSummaryRequest, RetrySummary, SettleSummaryRequest
from restartpoint_reference.transitions.frame import Inputs, Nothing
from restartpoint_reference.transitions.publication import Summary
from restartpoint_reference.transitions.session import Configuration
from restartpoint_reference.transitions.structural import StartSummary, StructuralFailure
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.walk import Walk, uid
from tests.reference.walks import compaction, navigation, runs
from tests.reference.walks.compaction import COMPACTION, RESULT, asked, cut, generating, overflowed, requested, spent
from tests.reference.walks.planted import plant

NOTHING = Nothing()
START = StartSummary(
    result_entry_id=RESULT, stream_options={}, retry_policy=RetryPolicy(max_attempts=2, base_delay_ms=50)
)
ROW, OTHER_ROW = uid(620, 1), uid(620, 2)
REQUEST = IntendSummaryRequest(usage_id=ROW)
RETRY = RetrySummary(error_message="overloaded", not_before=5000)
ERROR = StructuralFailure(error_message="e")
WORDS = Summary(summary="s")
USED = SettleSummaryRequest(usage=spent(1))


def deciding() -> Walk:
    return asked(runs.plain_run(), cut(2))


def ready() -> Walk:
    walk = deciding()
    walk.take(TRANSITIONS["start_summary"], START)
    return walk


def begun() -> Walk:
    return generating(deciding())


def waiting() -> Walk:
    """An attempt whose request may have been sent."""
    walk = begun()
    walk.take(TRANSITIONS["intend_summary_request"], REQUEST)
    return walk


def settled() -> Walk:
    return requested(begun(), ROW)


def last_attempt() -> Walk:
    return requested(generating(deciding(), attempts=1), ROW)


def in_run() -> Walk:
    walk = generating(overflowed())
    walk.take(TRANSITIONS["intend_summary_request"], REQUEST)
    return walk


def resting() -> Walk:
    walk = settled()
    walk.take(TRANSITIONS["retry_summary"], RETRY)
    return walk


def cancelled(walk: Walk, operation: str = COMPACTION) -> Walk:
    """The same operation after an abort that is written here by hand."""
    held = walk.state.value(Namespace.OP_STATE, operation)
    assert isinstance(held, dict)
    control: Json = {"status": "cancel_requested", "requestedAt": 9, "drainedSteer": [], "drainedFollowUp": []}
    return plant(walk, (Namespace.OP_STATE, operation, {**held, "control": control}))


@pytest.mark.parametrize(
    "walk, name, inputs, guard",
    [
        (deciding, "start_summary", replace(START, result_entry_id=runs.R1), "result_id_is_new"),
        (deciding, "start_summary", replace(START, result_entry_id=runs.U1), "result_id_is_new"),
        (ready, "start_summary", START, "from_phase"),
        (ready, "decline_structural", NOTHING, "from_phase"),
        (begun, "intend_summary", NOTHING, "state_is_readable"),
        (ready, "intend_summary_request", REQUEST, "state_is_readable"),
        (waiting, "intend_summary_request", REQUEST, "no_request_is_open"),
        (settled, "intend_summary_request", IntendSummaryRequest(usage_id=OTHER_ROW), "another_request_is_due"),
        (begun, "intend_summary_request", IntendSummaryRequest(usage_id=RESULT), "usage_id_is_new"),
        (begun, "intend_summary_request", IntendSummaryRequest(usage_id=runs.U1), "usage_id_is_new"),
        (begun, "settle_summary_request", USED, "request_is_open"),
        (settled, "settle_summary_request", USED, "request_is_open"),
        (waiting, "retry_summary", RETRY, "no_request_is_open"),
        (begun, "retry_summary", RETRY, "a_request_settled"),
        (last_attempt, "retry_summary", RETRY, "summary_attempts_remain"),
        (settled, "retry_summary", replace(RETRY, error_message="prompt is too long"), "error_is_of_the_moment"),
        (settled, "retry_summary", replace(RETRY, not_before=49), "summary_delay_is_kept"),
        (settled, "end_summary_retry_wait", NOTHING, "state_is_readable"),
        (waiting, "fail_structural", ERROR, "no_request_is_open"),
        (in_run, "fail_structural_in_run", ERROR, "no_request_is_open"),
        (waiting, "publish_compaction", WORDS, "no_request_is_open"),
        (in_run, "publish_compaction_in_run", WORDS, "no_request_is_open"),
        (last_attempt, "recover_summary", NOTHING, "summary_attempts_remain"),
        (settled, "recover_exhausted_summary", ERROR, "summary_attempts_are_exhausted"),
        (resting, "recover_summary", NOTHING, "state_is_readable"),
        (resting, "recover_exhausted_summary", ERROR, "state_is_readable"),
    ],
)
def test_a_step_of_a_summary_that_is_not_its_turn_is_refused(
    walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str
) -> None:
    refusal = TRANSITIONS[name](walk().state, "main", inputs)
    assert getattr(refusal, "guard", None) == guard


@pytest.mark.parametrize(
    "walk, name, inputs",
    [
        (deciding, "decline_structural", NOTHING),
        (deciding, "start_summary", START),
        (ready, "intend_summary", NOTHING),
        (begun, "intend_summary_request", REQUEST),
        (settled, "retry_summary", RETRY),
        (resting, "end_summary_retry_wait", NOTHING),
        (settled, "fail_structural", ERROR),
        (settled, "publish_compaction", WORDS),
        (settled, "recover_summary", NOTHING),
        (last_attempt, "recover_exhausted_summary", ERROR),
    ],
)
def test_under_cancelled_control_no_summary_moves_on(walk: Callable[[], Walk], name: str, inputs: Inputs) -> None:
    refusal = TRANSITIONS[name](cancelled(walk()).state, "main", inputs)
    assert getattr(refusal, "guard", None) == "control_is_running"


@pytest.mark.covers("AMB-44")
def test_a_request_that_returns_after_an_abort_is_still_accounted_for() -> None:
    for walk, operation in ((waiting(), COMPACTION), (in_run(), runs.RUN)):
        cancelled(walk, operation).take(TRANSITIONS["settle_summary_request"], USED)
        assert walk.state.usage[ROW].usage == spent(1)
        refusal = TRANSITIONS["intend_summary_request"](walk.state, "main", IntendSummaryRequest(usage_id=OTHER_ROW))
        assert getattr(refusal, "guard", None) == "control_is_running"


def generation(walk: Walk) -> JsonObject:
    state = walk.state.value(Namespace.OP_STATE, COMPACTION)
    assert isinstance(state, dict)
    assert isinstance(state["structural"], dict)
    held = state["structural"]["generation"]
    assert isinstance(held, dict)
    return held


@pytest.mark.covers("AMB-13")
def test_requests_are_numbered_from_zero_and_a_split_turn_makes_two() -> None:
    walk = generating(asked(runs.plain_run(), cut(1, 1)))
    for index, row in enumerate((ROW, OTHER_ROW)):
        walk.take(TRANSITIONS["intend_summary_request"], IntendSummaryRequest(usage_id=row))
        assert generation(walk)["request"] == {"index": index, "usageId": row}
        walk.take(TRANSITIONS["settle_summary_request"], USED)
    refusal = TRANSITIONS["intend_summary_request"](walk.state, "main", IntendSummaryRequest(usage_id=uid(620, 3)))
    assert getattr(refusal, "guard", None) == "another_request_is_due"


@pytest.mark.covers("AMB-11")
def test_the_row_of_a_request_has_the_reserved_id_and_no_entry() -> None:
    row = settled().state.usage[ROW]
    assert row.to_json() == {"id": ROW, "adjustment": False, "usage": spent(5), "seq": row.seq}


def test_an_entry_shows_what_its_own_attempt_cost_and_the_ledger_what_all_did() -> None:
    walk = settled()
    walk.take(TRANSITIONS["recover_summary"])
    walk.take(TRANSITIONS["intend_summary"])
    requested(walk, OTHER_ROW, 7)
    walk.take(TRANSITIONS["publish_compaction"], WORDS)
    assert walk.state.entries[RESULT].payload["usage"] == spent(7)
    assert {ROW, OTHER_ROW} <= {*walk.state.usage}
    twice = requested(requested(generating(asked(runs.plain_run(), cut(1, 1))), ROW, 5), OTHER_ROW, 7)
    twice.take(TRANSITIONS["publish_compaction"], WORDS)
    shown = twice.state.entries[RESULT].payload["usage"]
    assert isinstance(shown, dict)
    assert (shown["input"], shown["totalTokens"]) == (12, 12)
    assert shown["cost"] == {"input": 2, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 2}


def test_a_generated_entry_tells_the_files_of_its_preparation() -> None:
    walk = settled()
    walk.take(TRANSITIONS["publish_compaction"], WORDS)
    payload = walk.state.entries[RESULT].payload
    assert payload["details"] == {"readFiles": ["/a"], "modifiedFiles": ["/b", "/c"]}
    assert payload["fromHook"] is False


@pytest.mark.covers("ST-2.1-10")
def test_an_entry_says_whether_a_hook_supplied_it() -> None:
    supplied = {RESULT: True, compaction.SECOND_RESULT: False}
    walk = compaction.threshold_compacted_twice()
    assert {key: walk.state.entries[key].payload["fromHook"] for key in supplied} == supplied
    assert navigation.summarized_by_hook().state.entries[RESULT].payload["fromHook"] is True
    assert navigation.summarized().state.entries[RESULT].payload["fromHook"] is False


PREPARED, ACCEPTED = ["op.preparation"], ["op.meta", "op.state", "lane.state"]
TERMINAL = ["-op.meta", "-op.state", "lane.lastResult", "lane.state"]
TERMINAL_PREPARED = ["-op.meta", "-op.state", "-op.preparation", "lane.lastResult", "lane.state"]


@pytest.mark.parametrize(
    "scenario, name, written",
    [
        (compaction.compacted_twice, "accept_compaction", [*PREPARED, *ACCEPTED]),
        (navigation.moved, "accept_navigation", ACCEPTED),
        (navigation.summarized, "accept_summarized_navigation", [*PREPARED, *ACCEPTED]),
        (compaction.threshold_declined, "begin_threshold_compaction", [*PREPARED, "op.state"]),
        (
            compaction.overflow_compacted,
            "settle_overflow",
            ["entry", "lane.leaf", "usage", "op.preparation", "op.state"],
        ),
        (compaction.compacted_twice, "settle_summary_request", ["usage", "op.state"]),
        (compaction.declined, "decline_structural", TERMINAL_PREPARED),
        (compaction.compacted_by_hook, "publish_hook_compaction", ["usage", "entry", "lane.leaf", *TERMINAL_PREPARED]),
        (
            compaction.threshold_compacted_twice,
            "publish_hook_compaction_in_run",
            ["entry", "lane.leaf", "op.state"],
        ),
        (compaction.compacted_twice, "publish_compaction", ["entry", "lane.leaf", *TERMINAL_PREPARED]),
        (compaction.overflow_compacted, "publish_compaction_in_run", ["entry", "lane.leaf", "op.state"]),
        (
            navigation.summarized_by_hook,
            "publish_hook_navigation",
            ["usage", "lane.leaf", "entry", "lane.leaf", "fact.label", *TERMINAL_PREPARED],
        ),
        (
            navigation.summarized,
            "publish_navigation",
            ["lane.leaf", "entry", "lane.leaf", "fact.label", *TERMINAL_PREPARED],
        ),
        (navigation.moved, "navigate", ["lane.leaf", "fact.label", *TERMINAL]),
    ],
)
def test_the_writes_of_a_commit_are_those_listed_in_their_order(
    scenario: Callable[[], Walk], name: str, written: list[str]
) -> None:
    commit = next(step.commit for step in scenario().steps if step.commit.name == name)
    assert [_short(write.to_json()) for write in commit.writes] == written


def _short(write: JsonObject) -> str:
    deleted = "-" if write.get("op") == "delete" else ""
    return f"{deleted}{write.get('namespace', write['kind'])}"


@pytest.mark.covers("AMB-32")
def test_a_wait_ends_ready_and_the_intent_is_another_commit() -> None:
    walk = resting()
    walk.take(TRANSITIONS["end_summary_retry_wait"])
    assert (generation(walk)["status"], generation(walk)["nextAttempt"]) == ("ready", 2)
    walk.take(TRANSITIONS["intend_summary"])
    assert (generation(walk)["status"], generation(walk)["usageIds"]) == ("effect_pending", [])


def test_what_generation_captured_stays_through_all_attempts() -> None:
    walk = settled()
    captured = generation(walk)["context"]
    walk.take(TRANSITIONS["configure_lane"], Configuration(configuration=runs.OTHER_CONFIGURATION))
    walk.take(TRANSITIONS["retry_summary"], RETRY)
    walk.take(TRANSITIONS["end_summary_retry_wait"])
    walk.take(TRANSITIONS["intend_summary"])
    assert generation(walk)["context"] == captured


@pytest.mark.parametrize(
    "walk, context",
    [
        (ready, {"kind": "compaction", "reason": "manual"}),
        (lambda: start(compaction.at_threshold()), {"kind": "compaction", "reason": "threshold"}),
        (lambda: start(overflowed()), {"kind": "compaction", "reason": "overflow"}),
        (
            lambda: start(navigation.summarizing(runs.plain_run(), navigation.ASKED, 0)),
            {"kind": "branch_summary"},
        ),
    ],
)
def test_a_summary_knows_what_it_is_for(walk: Callable[[], Walk], context: JsonObject) -> None:
    state = walk().steps[-1].commit.writes[-1].to_json()["value"]
    assert isinstance(state, dict)
    inner = state.get("phase", state)
    held = inner["structural"]["generation"]["context"]  # type: ignore[index,call-overload]
    assert {key: value for key, value in held.items() if key in ("kind", "reason")} == context  # type: ignore[union-attr]


def start(walk: Walk) -> Walk:
    walk.take(TRANSITIONS["start_summary"], START)
    return walk


@pytest.mark.covers("AMB-47")
@pytest.mark.parametrize(
    "walk, code",
    [
        (compaction.failed_after_a_retry, "compaction_failed"),
        (navigation.failed, "branch_summary_failed"),
        (compaction.overflow_failed, "compaction_failed"),
        (compaction.orphaned, "unknown_outcome"),
        (compaction.overflow_orphaned, "unknown_outcome"),
    ],
)
def test_a_failure_is_told_by_its_code(walk: Callable[[], Walk], code: str) -> None:
    result = walk().state.value(Namespace.LANE_LAST_RESULT, "main")
    assert isinstance(result, dict)
    assert isinstance(result["error"], dict)
    assert (result["outcome"], result["error"]["code"]) == ("failed", code)


@pytest.mark.covers("RT-4.5-T68")
def test_a_request_whose_outcome_is_unknown_leaves_no_row() -> None:
    walk = compaction.orphaned()
    assert ROW in walk.state.usage
    assert OTHER_ROW not in walk.state.usage
    assert not {RESULT} & {*walk.state.entries}


def test_the_prepared_input_is_never_written_again() -> None:
    for scenario in (*compaction.SCENARIOS, *navigation.SCENARIOS):
        steps = scenario().steps
        prepared = [
            write.to_json()["key"]
            for step in steps
            for write in step.commit.writes
            if write.to_json().get("namespace") == "op.preparation" and write.to_json()["op"] == "set"
        ]
        starts = [step for step in steps if step.commit.name in STARTS]
        assert len(prepared) == len(starts)


STARTS = (
    "accept_compaction", "accept_summarized_navigation", "begin_threshold_compaction", "settle_overflow",
)  # fmt: skip
