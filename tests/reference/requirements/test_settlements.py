"""Generation steps and their settlements, write by write (§3.2, §3.7)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Commit, Json, JsonObject, Namespace, Progress, View
from restartpoint_reference.classify import Circumstances, Verdict, classify
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration
from restartpoint_reference.transitions.queues import QueuedMessage
from restartpoint_reference.transitions.session import Configuration
from restartpoint_reference.transitions.settlement import Response, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import ToolResult
from restartpoint_reference.vocabulary.registers import ModelIdentity
from restartpoint_reference.vocabulary.states import RetryPolicy
from tests.reference.requirements.writes import written
from tests.reference.walk import Walk, assistant, call, result, text, uid, user
from tests.reference.walks import SCENARIOS, inbox, runs
from tests.reference.walks.inbox import S1
from tests.reference.walks.runs import C1, C2, CONFIGURATION, LIMIT, R1, RUN, STEP, U1

N = Namespace
POLICY = RetryPolicy(max_attempts=3, base_delay_ms=50)
START = StartGeneration(step_id=STEP, stream_options={"maxTokens": LIMIT}, retry_policy=POLICY)
SETTLED = ["entry", "lane.leaf", "usage", "op.state"]
RESPONSES = {
    "settle_tool_calls", "settle_retryable", "settle_overflow", "settle_unpreparable_overflow", "settle_deferred",
    "settle_invalid_deferred", "settle_stop", "settle_failure", "settle_cancelled", "cancel_assistant",
    "recover_exhausted_assistant", "settle_poll_pending", "settle_poll_mismatch", "settle_poll_tool_calls",
    "settle_poll_ready", "settle_poll_failure", "cancel_poll",
}  # fmt: skip
"""The transitions that settle a response of any kind."""

PLAN = SettleToolCalls(response=runs.two_calls(), result_ids=(C1, C2))


def held(walk: Walk) -> JsonObject:
    state = walk.state.value(N.OP_STATE, RUN)
    assert isinstance(state, dict)
    return state


def phase(walk: Walk) -> JsonObject:
    found = held(walk)["phase"]
    assert isinstance(found, dict)
    return found


def generation(walk: Walk) -> JsonObject:
    found = phase(walk)["generation"]
    assert isinstance(found, dict)
    return found


CONTEXT: JsonObject = {
    "stepId": STEP,
    "triggerEntryId": uid(95, 2),
    "configuration": CONFIGURATION.to_json(),
    "streamOptions": {"maxTokens": LIMIT},
    "retryPolicy": {"maxAttempts": 3, "baseDelayMs": 50},
    "overflowRecoveryUsed": False,
}


@pytest.mark.covers("RT-3.7-T11", "RT-3.2-21", "RT-3.2-23")
def test_a_step_starts_by_one_write_that_captures_what_all_its_attempts_use() -> None:
    walk = runs.prompted()
    assert phase(walk)["skipInboxOnce"] is True
    before = held(walk)
    assert written(walk.take(T["start_generation"], START)) == ["op.state"]
    ready: JsonObject = {"kind": "assistant", "generation": {"status": "ready", "context": CONTEXT, "nextAttempt": 1}}
    assert held(walk) == {**before, "phase": ready}
    walk.take(T["configure_lane"], Configuration(configuration=runs.OTHER_CONFIGURATION))
    assert generation(walk)["context"] == CONTEXT


@pytest.mark.covers("RT-3.7-T16", "RT-3.2-24", "RT-3.7-02")
def test_the_intent_reserves_two_ids_that_name_nothing_until_they_are_settled() -> None:
    walk = runs.prompted()
    walk.take(T["start_generation"], START)
    inputs = IntendAssistant(response_entry_id=R1, usage_id=U1, intended_output_limit=LIMIT, context_window=8000)
    assert written(walk.take(T["intend_assistant"], inputs)) == ["op.state"]
    assert generation(walk) == {
        "status": "effect_pending", "context": CONTEXT, "attempt": 1, "responseEntryId": R1, "usageId": U1,
        "intendedOutputLimit": LIMIT, "contextWindow": 8000,
    }  # fmt: skip
    keys = [key for space in walk.state.namespaces.values() for key in space]
    assert (R1 in walk.state.entries, U1 in walk.state.usage) == (False, False)
    assert {R1, U1}.isdisjoint(keys)


@pytest.mark.covers("RT-3.2-26")
def test_an_attempt_after_a_wait_uses_what_the_step_captured() -> None:
    walk = runs.requested()
    captured = generation(walk)["context"]
    failed = SettleRetryable(response=assistant(stop="error", error="overloaded"), not_before=5000)
    walk.take(T["settle_retryable"], failed)
    walk.take(T["configure_lane"], Configuration(configuration=runs.OTHER_CONFIGURATION))
    walk.take(T["end_retry_wait"])
    runs.intend(walk, runs.R2, runs.U2)
    assert generation(walk)["context"] == captured == CONTEXT
    assert generation(walk)["attempt"] == 2


@pytest.mark.covers("RT-3.7-T17", "RT-3.7-03", "RT-3.2-31", "AMB-12")
def test_a_response_with_calls_plans_each_where_it_stands_and_keeps_input_that_came_meanwhile() -> None:
    walk = runs.requested()
    inbox.steer(walk, S1)
    assert written(walk.take(T["settle_tool_calls"], PLAN)) == SETTLED
    assert phase(walk) == {
        "kind": "tools",
        "batch": {
            "assistantEntryId": R1, "configuration": CONFIGURATION.to_json(), "turnId": STEP,
            "calls": [
                {"status": "planned", "sourceIndex": 1, "resultEntryId": C1},
                {"status": "planned", "sourceIndex": 3, "resultEntryId": C2},
            ],
        },
    }  # fmt: skip
    assert {one.replace("-", "")[:12] for one in (C1, C2)} == {R1.replace("-", "")[:12]}
    assert held(walk)["inbox"] == {"steer": [S1], "followUp": [], "writes": []}
    assert (held(walk)["latestAssistantEntryId"], View(walk.state, "main").leaf) == (R1, R1)


@pytest.mark.covers("RT-3.7-T23", "RT-3.2-15", "AMB-26")
@pytest.mark.parametrize(
    "response",
    [
        assistant(text("done")),
        assistant(text("cut at its limit"), stop="length", output=LIMIT),
        assistant(stop="toolUse"),
    ],
)
def test_an_answer_without_calls_lets_the_run_finish_with_it(response: JsonObject) -> None:
    walk = runs.requested()
    before = held(walk)
    assert written(walk.take(T["settle_stop"], Response(response=response))) == SETTLED
    checkpoint: JsonObject = {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": True},
        "triggerEntryId": R1,
    }
    assert held(walk) == {**before, "phase": checkpoint, "latestAssistantEntryId": R1}
    assert walk.state.usage[U1].usage == response["usage"]


@pytest.mark.covers("RT-3.7-05")
@pytest.mark.parametrize("stop, error", [("error", "prompt is too long"), ("length", None), ("toolUse", None)])
def test_a_cancelled_response_is_aborted_whatever_it_looks_like(stop: str, error: str | None) -> None:
    given = Circumstances(
        cancelled=True, attempt=1, max_attempts=3, intended_output_limit=LIMIT,
        model=ModelIdentity(provider="acme", model_id="m-1"),
    )  # fmt: skip
    assert classify(assistant(call("t1", "read"), stop=stop, error=error), given) is Verdict.CANCELLED


@pytest.mark.covers("RT-3.7-18", "RT-3.7-T33")
def test_a_response_cut_at_its_limit_runs_none_of_its_calls_and_owes_a_turn() -> None:
    walk = runs.with_tools(truncated=True)
    for index in (1, 3):
        with pytest.raises(AssertionError, match="batch_is_complete"):
            runs.clear(walk.fork(), index)
    for name, tool in (("t1", "remove"), ("t2", "read")):
        last = name == "t2"
        due = {"complete_terminating_batch", "complete_batch"} if last else {"refuse_truncated_tool"}
        assert set(Progress.of(walk.state).due("main")) == due
        cut = ToolResult(message=result(name, tool, "cut: arguments may be damaged", error=True))
        commit = walk.take(T["complete_batch" if last else "refuse_truncated_tool"], cut)
        assert written(commit) == ["entry", "lane.leaf", "op.state"]
    assert [walk.state.entries[one].message["isError"] for one in (C1, C2)] == [True, True]  # type: ignore[index]
    assert phase(walk) == {
        "kind": "checkpoint",
        "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": False},
        "triggerEntryId": C2,
    }


@pytest.mark.covers("RT-3.2-13")
def test_the_newest_response_of_a_run_is_that_of_its_last_settlement() -> None:
    """In every walk: null at first, and changed by exactly the commits that insert a response of the run."""
    settled: set[str] = set()
    for scenario in SCENARIOS:
        for step in scenario().steps:
            newest = newest_of(step.commit)
            responses = [
                str(one["id"])
                for one in (write.to_json() for write in step.commit.writes)
                if one["kind"] == "entry" and isinstance(one.get("message"), dict) and is_response(one["message"])
            ]
            if step.commit.name == "accept_run":
                assert newest == [None]
            elif responses and newest:
                settled.add(step.commit.name)
                assert newest == responses
            elif newest:
                assert newest == [View(step.before, step.commit.lane or "").run.latest_assistant_entry_id]
    assert settled >= {
        "settle_tool_calls", "settle_retryable", "settle_overflow", "settle_deferred", "settle_invalid_deferred",
        "settle_stop", "settle_failure", "recover_exhausted_assistant", "cancel_assistant", "settle_cancelled",
        "settle_poll_pending", "settle_poll_ready", "settle_poll_failure", "cancel_poll",
    }  # fmt: skip


def is_response(message: Json) -> bool:
    return isinstance(message, dict) and message.get("role") == "assistant"


def newest_of(commit: Commit) -> list[Json]:
    """What the state of a run that is set calls its newest response; nothing where no such state is set."""
    states = [write.to_json() for write in commit.writes if write.to_json().get("namespace") == N.OP_STATE]
    found = [one["value"] for one in states if one["op"] == "set"]
    return [one["latestAssistantEntryId"] for one in found if isinstance(one, dict) and one["kind"] == "run"]


def steered() -> Walk:
    walk = inbox.owing()
    inbox.steer(walk, S1)
    walk.take(T["consume_steer"])
    return walk


def followed_up() -> Walk:
    walk = inbox.answered()
    walk.take(T["enqueue_follow_up"], QueuedMessage(id=S1, message=user("then")))
    walk.take(T["consume_follow_up"])
    return walk


def asked_for_more() -> Walk:
    walk = inbox.answered()
    walk.take(T["append_run_end_follow_up"], RunEndFollowUp(id=S1, message=user("and then?")))
    return walk


@pytest.mark.covers("RT-3.2-14", "RT-3.2-10")
@pytest.mark.parametrize("lead, newest", [(steered, S1), (followed_up, S1), (asked_for_more, S1), (inbox.owing, C2)])
def test_what_enters_the_context_owes_a_turn_by_the_newest_entry(lead: Callable[[], Walk], newest: str) -> None:
    walk = lead()
    assert phase(walk)["continuation"] == {"kind": "need_assistant", "overflowRecoveryUsed": False}
    assert phase(walk)["triggerEntryId"] == newest == View(walk.state, "main").leaf
    assert "entry" in written(walk.steps[-1].commit)


@pytest.mark.covers("AMB-03")
def test_every_settlement_of_a_response_and_every_acceptance_of_a_run_has_the_order_of_its_table() -> None:
    orders: dict[str, set[tuple[str, ...]]] = {}
    for scenario in SCENARIOS:
        for step in scenario().steps:
            orders.setdefault(step.commit.name, set()).add(tuple(dict.fromkeys(written(step.commit))))
    assert orders.keys() >= RESPONSES
    for name in RESPONSES:
        for order in orders[name]:
            assert [one for one in order if one != "op.preparation"] == SETTLED, name
    for order in orders["accept_run"]:
        assert [one for one in order if one != "-pending.entry"] == [
            "entry", "lane.leaf", "op.meta", "op.state", "lane.state"
        ]  # fmt: skip
