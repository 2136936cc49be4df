"""Responses that did not fit, and responses that come later (§3.2, §3.7)."""

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, JsonObject, Namespace, View, project
from restartpoint_reference.classify import Circumstances, Verdict, classify, has_valid_handle
from restartpoint_reference.preparation import CompactionCut
from restartpoint_reference.transitions.compaction import SettleOverflow
from restartpoint_reference.transitions.settlement import Response, SettleFailure
from restartpoint_reference.vocabulary.registers import ModelIdentity
from tests.reference.requirements.writes import written
from tests.reference.walk import Walk, assistant, text
from tests.reference.walks import compaction, deferred, runs
from tests.reference.walks.compaction import TASK, cut
from tests.reference.walks.deferred import HANDLE, P1
from tests.reference.walks.runs import R1, RUN, U1

N = Namespace
MODEL = ModelIdentity(provider="acme", model_id="m-1")
TOO_LONG = assistant(stop="error", error="context window exceeded", output=3)
SETTLED = ["entry", "lane.leaf", "usage", "op.state"]


def held(walk: Walk) -> JsonObject:
    state = walk.state.value(N.OP_STATE, RUN)
    assert isinstance(state, dict)
    return state


@pytest.mark.covers("RT-3.7-T19", "RT-3.7-19")
@pytest.mark.parametrize("kept", [cut(1), cut(2)])
def test_an_overflow_prepares_its_compaction_without_the_response_that_did_not_fit(kept: CompactionCut) -> None:
    walk = runs.requested()
    before = View(walk.state, "main").run
    overflow = SettleOverflow(task_id=TASK, cut=kept, response=TOO_LONG, cut_short=False)
    commit = walk.take(T["settle_overflow"], overflow)
    assert written(commit) == ["entry", "lane.leaf", "usage", "op.preparation", "op.state"]
    preparation = walk.state.value(N.OP_PREPARATION, f"{RUN}:{TASK}")
    assert isinstance(preparation, dict)
    prepared: list[Json] = []
    for part in ("messagesToSummarize", "turnPrefixMessages", "retainedTail"):
        messages = preparation[part]
        assert isinstance(messages, list)
        prepared.extend(messages)
    assert prepared == project(walk.state, R1)
    assert TOO_LONG not in prepared
    assert held(walk)["latestAssistantEntryId"] == R1
    assert held(walk)["phase"] == {
        "kind": "compaction",
        "reason": "overflow",
        "structural": {"taskId": TASK, "status": "deciding"},
        "resumeAfter": {
            "kind": "checkpoint",
            "continuation": {"kind": "need_assistant", "overflowRecoveryUsed": True},
            "triggerEntryId": before.phase.to_json()["generation"]["context"]["triggerEntryId"],  # type: ignore[index,call-overload]
        },
    }


@pytest.mark.covers("RT-3.7-13")
def test_a_response_that_did_not_fit_stays_in_the_tree_and_out_of_every_context() -> None:
    walk = compaction.overflow_compacted()
    assert walk.state.entries[R1].message is not None
    for entry in walk.state.entries.values():
        assert walk.state.entries[R1].message not in project(walk.state, entry.id)
    other = compaction.overflowed()
    assert project(other.state, R1) == project(other.state, walk.state.entries[R1].parent_id)


@pytest.mark.covers("AMB-31")
@pytest.mark.parametrize(
    "usage, limit, verdict",
    [
        ({"output": 99}, 100, Verdict.OVERFLOW),
        ({"output": 100}, 100, Verdict.MAY_FINISH),
        ({"output": 0}, 1, Verdict.OVERFLOW),
        ({"output": 7}, 0, Verdict.MAY_FINISH),
        ({"output": 0}, 0, Verdict.MAY_FINISH),
        ({}, 100, Verdict.MAY_FINISH),
        ({"output": None}, 100, Verdict.MAY_FINISH),
        (None, 100, Verdict.MAY_FINISH),
    ],
)
def test_an_answer_at_its_length_overflowed_only_if_it_is_known_to_be_below_its_limit(
    usage: Json, limit: int, verdict: Verdict
) -> None:
    given = Circumstances(cancelled=False, attempt=1, max_attempts=3, intended_output_limit=limit, model=MODEL)
    response: JsonObject = {**assistant(text("x"), stop="length"), "usage": usage}
    assert classify(response, given) is verdict


INVALID: list[Json] = [
    None, "job-1", {**HANDLE, "id": ""}, {**HANDLE, "id": None}, {**HANDLE, "provider": "other"},
    {**HANDLE, "modelId": "m-2"}, {**HANDLE, "api": "other"},
    {key: held for key, held in HANDLE.items() if key != "id"},
]  # fmt: skip


@pytest.mark.covers("RT-3.2-43")
@pytest.mark.parametrize("handle", INVALID)
def test_a_first_handle_counts_with_an_id_of_the_captured_model_and_api(handle: Json) -> None:
    assert has_valid_handle({**assistant(stop="deferred"), "deferred": HANDLE}, MODEL)
    assert not has_valid_handle({**assistant(stop="deferred"), "deferred": handle}, MODEL)
    assert not has_valid_handle(assistant(stop="deferred"), MODEL)


@pytest.mark.covers("RT-3.2-T22", "RT-3.2-44")
@pytest.mark.parametrize("handle", INVALID)
def test_a_response_without_a_valid_handle_is_an_error_of_the_run(handle: Json) -> None:
    deferral = Response(response={**assistant(stop="deferred"), "deferred": handle})
    walk = runs.requested()
    assert getattr(T["settle_deferred"](walk.state, "main", deferral), "guard", "") == "response_is_classified_so"
    message = assistant(stop="error", error="the deferred response has no valid handle")
    commit = walk.take(T["settle_invalid_deferred"], SettleFailure(response=message, error_message="no handle"))
    assert written(commit) == SETTLED
    assert walk.state.usage[U1].entry_id == R1
    assert held(walk)["latestAssistantEntryId"] == R1
    assert held(walk)["phase"] == {
        "kind": "failure_drain",
        "error": {"code": "deferred_handle_invalid", "message": "no handle"},
        "provenance": {"kind": "response", "entryId": R1},
    }


@pytest.mark.covers("RT-3.2-T45")
def test_a_poll_that_answers_without_calls_lets_the_run_finish() -> None:
    walk = deferred.polled()
    before = held(walk)
    commit = walk.take(T["settle_poll_ready"], Response(response=assistant(text("here it is"))))
    assert written(commit) == SETTLED
    phase: JsonObject = {
        "kind": "checkpoint",
        "continuation": {"kind": "may_finish", "includeFinalAssistant": True},
        "triggerEntryId": P1,
    }
    assert held(walk) == {**before, "phase": phase, "latestAssistantEntryId": P1}
