"""What each poll of a deferred response may not do (§3.2, §4.5, §4.6)."""

import json
from collections.abc import Callable

import pytest

from restartpoint_reference import (
    NO_COMMIT,
    TRANSITIONS,
    Commit,
    Json,
    JsonObject,
    Namespace,
    Refused,
    View,
    Write,
    next_steps,
    project,
)
from restartpoint_reference.classify import handles_are_equal
from restartpoint_reference.shapes import UNSET, Unset
from restartpoint_reference.transitions.deferred import keeps_waiting
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.generation import Reservation
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleToolCalls
from restartpoint_reference.vocabulary.registers import ErrorCode, OperationError
from restartpoint_reference.vocabulary.states import DeferredPhase, FailureDrain, ResponseProvenance
from tests.reference.walk import Walk, assistant, text, uid, usage
from tests.reference.walks import deferred, runs
from tests.reference.walks.abort import abort
from tests.reference.walks.deferred import C3, C4, HANDLE, P1, P2, V1, V2, polled, suspended, waiting

OTHER: JsonObject = {**HANDLE, "id": "job-2"}
FAILED = assistant(stop="error", error="late")
ABORTED = assistant(stop="aborted", error="was pending")


@pytest.mark.covers("AMB-35")
@pytest.mark.parametrize(
    "one, other, equal",
    [
        (HANDLE, dict(reversed(HANDLE.items())), True),
        (HANDLE, OTHER, False),
        (HANDLE, {**HANDLE, "note": None}, False),
        (HANDLE, {**HANDLE, "queue": {"n": [None, 1]}}, False),
        ({"id": 1}, {"id": 1.0}, False),
        ({"id": 1}, {"id": True}, False),
        (HANDLE, UNSET, False),
        (UNSET, UNSET, False),
        (None, None, True),
        ([], {}, False),
    ],
)
def test_handles_are_equal_field_by_field(one: Json | Unset, other: Json | Unset, equal: bool) -> None:
    assert handles_are_equal(one, other) is equal
    assert handles_are_equal(other, one) is equal


@pytest.mark.parametrize(
    "walk, name, inputs, guard",
    [
        (suspended, "intend_poll", Reservation(response_entry_id=P1, usage_id=P1), "reserved_ids_are_new"),
        (suspended, "intend_poll", Reservation(response_entry_id=runs.R1, usage_id=V1), "reserved_ids_are_new"),
        (polled, "intend_poll", Reservation(response_entry_id=P2, usage_id=V2), "from_phase"),
        (suspended, "replace_unknown_poll", Reservation(response_entry_id=P2, usage_id=V2), "from_phase"),
        (polled, "replace_unknown_poll", Reservation(response_entry_id=P2, usage_id=V1), "unknown_ids_are_abandoned"),
        (polled, "settle_poll_pending", Response(response={**waiting(), "deferred": OTHER}), "poll_is_still_pending"),
        (polled, "settle_poll_pending", Response(response=assistant(stop="deferred")), "poll_is_still_pending"),
        (polled, "settle_poll_pending", Response(response=assistant(text("done"))), "poll_is_still_pending"),
        (polled, "settle_poll_ready", Response(response=waiting()), "poll_is_answered"),
        (polled, "settle_poll_ready", Response(response=FAILED), "poll_is_answered"),
        (polled, "settle_poll_ready", Response(response=ABORTED), "poll_is_answered"),
        (polled, "settle_poll_ready", Response(response=runs.two_calls()), "answer_has_no_calls"),
        (
            polled,
            "settle_poll_tool_calls",
            SettleToolCalls(response=runs.two_calls("error"), result_ids=(C3, C4)),
            "poll_is_answered",
        ),
        (
            polled,
            "settle_poll_tool_calls",
            SettleToolCalls(response=assistant(), result_ids=()),
            "answer_has_calls",
        ),
        (
            polled,
            "settle_poll_tool_calls",
            SettleToolCalls(response=runs.two_calls(), result_ids=(runs.C1, runs.C2)),
            "results_follow_the_response",
        ),
        (
            polled,
            "settle_poll_mismatch",
            SettleFailure(response={**FAILED, "deferred": HANDLE}, error_message="late"),
            "handle_differs",
        ),
        (
            polled,
            "settle_poll_mismatch",
            SettleFailure(response={**waiting(), "deferred": OTHER}, error_message="late"),
            "response_is_an_error",
        ),
        (
            polled,
            "settle_poll_failure",
            SettleFailure(response=assistant(), error_message="late"),
            "response_is_an_error",
        ),
        (polled, "cancel_poll", Response(response=ABORTED), "cancellation_is_requested"),
    ],
)
def test_a_poll_is_held_to_its_guards(walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str) -> None:
    refusal = TRANSITIONS[name](walk().state, "main", inputs)
    assert getattr(refusal, "guard", "") == guard


def test_a_cancelled_poll_commits_an_aborted_response_that_says_why() -> None:
    walk = abort(polled())
    silent, done = assistant(stop="aborted"), assistant(text("done"))
    for response, guard in ((done, "response_is_aborted"), (silent, "aborted_response_says_why")):
        refusal = TRANSITIONS["cancel_poll"](walk.state, "main", Response(response=response))
        assert getattr(refusal, "guard", "") == guard
    ready = TRANSITIONS["settle_poll_ready"](walk.state, "main", Response(response=assistant(text("done"))))
    assert getattr(ready, "guard", "") == "control_is_running"


@pytest.mark.parametrize("name", ["intend_poll", "replace_unknown_poll"])
def test_nothing_is_fetched_after_cancellation(name: str) -> None:
    walk = abort(suspended() if name == "intend_poll" else polled())
    inputs = Reservation(response_entry_id=P2, usage_id=V2)
    assert getattr(TRANSITIONS[name](walk.state, "main", inputs), "guard", "") == "control_is_running"


def test_polls_are_counted_from_one_and_an_unknown_one_is_not_completed() -> None:
    assert phases(deferred.answered_at_the_second_poll()) == [
        ("suspended", 0, runs.R1), ("effect_pending", 1, runs.R1), ("suspended", 1, P1), ("effect_pending", 2, P1),
    ]  # fmt: skip
    assert phases(deferred.replaced_poll()) == [
        ("suspended", 0, runs.R1), ("effect_pending", 1, runs.R1), ("effect_pending", 1, runs.R1),
        ("suspended", 1, P2),
    ]  # fmt: skip


def phases(walk: Walk) -> list[tuple[Json, Json, Json]]:
    """Status, poll number and source after every commit that left the run deferred."""
    found: list[tuple[Json, Json, Json]] = []
    for state in (*(step.before for step in walk.steps), walk.state):
        held = state.value(Namespace.OP_STATE, runs.RUN)
        if isinstance(held, dict) and isinstance(held["phase"], dict):
            poll = held["phase"].get("deferred")
            if isinstance(poll, dict):
                found.append((poll["status"], poll["poll"], poll["sourceEntryId"]))
    return found


@pytest.mark.covers("RT-3.2-T47")
def test_an_abandoned_id_appears_nowhere_any_more() -> None:
    state = deferred.replaced_poll().state
    registers = [one.to_json() for held in state.namespaces.values() for one in held.values()]
    text = json.dumps([*registers, *(entry.to_json() for entry in state.entries.values()), *state.usage])
    assert (P1 in text, V1 in text) == (False, False)
    assert (P2 in state.entries, V2 in state.usage) == (True, True)


@pytest.mark.covers("RT-3.2-36", "RT-3.2-37")
def test_a_deferred_state_has_exactly_its_fields() -> None:
    fields = {"status", "stepId", "sourceEntryId", "poll", "configuration", "streamOptions"}
    assert set(phase_of(suspended())) == fields
    assert set(phase_of(polled())) == fields | {"responseEntryId", "usageId"}
    for walk in (suspended(), polled()):
        held = phase_of(walk)
        for name in held:
            less = {key: held[key] for key in held if key != name}
            with pytest.raises(Refused):
                DeferredPhase.from_json({"kind": "deferred", "deferred": less})
        with pytest.raises(Refused, match="unknown key"):
            DeferredPhase.from_json({"kind": "deferred", "deferred": {**held, "more": 1}})


def phase_of(walk: Walk) -> JsonObject:
    held = walk.state.value(Namespace.OP_STATE, runs.RUN)
    assert isinstance(held, dict)
    assert isinstance(held["phase"], dict)
    found = held["phase"]["deferred"]
    assert isinstance(found, dict)
    return found


@pytest.mark.covers("RT-3.2-45", "RT-3.2-T43")
@pytest.mark.parametrize("field", [*HANDLE, "more"])
def test_a_pending_poll_whose_handle_differs_in_any_field_fails_the_run(field: str) -> None:
    other: JsonObject = {**HANDLE, field: "else"}
    pending = Response(response={**waiting(), "deferred": other})
    refusal = TRANSITIONS["settle_poll_pending"](polled().state, "main", pending)
    assert getattr(refusal, "guard", "") == "poll_is_still_pending"
    walk = polled()
    normalized = SettleFailure(response={**FAILED, "deferred": other}, error_message="not our handle")
    walk.take(TRANSITIONS["settle_poll_mismatch"], normalized)
    held = View(walk.state, "main").run
    assert held.phase == FailureDrain(
        error=OperationError(code=ErrorCode.DEFERRED_HANDLE_MISMATCH, message="not our handle"),
        provenance=ResponseProvenance(entry_id=P1),
    )


@pytest.mark.covers("RT-3.2-46")
def test_every_settlement_of_a_poll_is_one_commit_of_response_leaf_usage_and_state() -> None:
    names = {name for name in TRANSITIONS if name.startswith("settle_poll")} | {"cancel_poll"}
    settled: set[str] = set()
    for scenario in deferred.SCENARIOS:
        for step in scenario().steps:
            if step.commit.name in names:
                settled.add(step.commit.name)
                assert [address(write) for write in step.commit.writes] == ["entry", "lane.leaf", "usage", "op.state"]
                state = step.commit.writes[3].to_json()["value"]
                assert isinstance(state, dict)
                assert state["latestAssistantEntryId"] == step.commit.writes[0].to_json()["id"]
    assert settled == names


def address(write: Write) -> str:
    element = write.to_json()
    return str(element.get("namespace", element["kind"]))


@pytest.mark.covers("RT-3.2-42")
def test_fifty_pending_polls_suspend_the_run_fifty_times_and_never_wait() -> None:
    walk = suspended()
    for poll in range(1, 51):
        reserved = Reservation(response_entry_id=uid(9000 + poll, 1), usage_id=uid(9000 + poll, 2))
        walk.take(TRANSITIONS["intend_poll"], reserved)
        walk.take(TRANSITIONS["settle_poll_pending"], Response(response=waiting()))
        assert (phase_of(walk)["status"], phase_of(walk)["poll"]) == ("suspended", poll)


@pytest.mark.covers("RT-3.2-T46")
def test_a_poll_that_fails_for_the_moment_is_not_retried() -> None:
    walk = polled()
    overloaded = SettleFailure(response=assistant(stop="error", error="overloaded"), error_message="overloaded")
    walk.take(TRANSITIONS["settle_poll_failure"], overloaded)
    assert next_steps(View(walk.state, "main")) == ("finish_failed",)


@pytest.mark.covers("AMB-33")
@pytest.mark.parametrize(
    "response, name",
    [
        (assistant(stop="error", error="prompt is too long"), "settle_poll_failure"),
        (runs.two_calls("length", 1), "settle_poll_tool_calls"),
        (assistant(text("cut"), stop="length", output=1), "settle_poll_ready"),
        (assistant(stop="toolUse"), "settle_poll_ready"),
    ],
)
def test_an_overflow_is_an_error_and_a_short_answer_is_an_answer(response: JsonObject, name: str) -> None:
    walk = polled()
    inputs: dict[str, Inputs] = {
        "settle_poll_failure": SettleFailure(response=response, error_message="too long"),
        "settle_poll_tool_calls": SettleToolCalls(response=response, result_ids=(C3, C4)),
        "settle_poll_ready": Response(response=response),
    }
    assert walk.take(TRANSITIONS[name], inputs[name]).name == name
    others = [other for other in inputs if other != name]
    assert not any(isinstance(TRANSITIONS[other](polled().state, "main", inputs[other]), Commit) for other in others)


@pytest.mark.covers("AMB-34")
def test_a_pending_poll_is_stored_as_deferred_and_stays_out_of_the_context() -> None:
    walk = polled()
    before = project(walk.state, View(walk.state, "main").leaf)
    walk.take(TRANSITIONS["settle_poll_pending"], Response(response=waiting()))
    assert (walk.state.entries[P1].message or {})["stopReason"] == "deferred"
    assert project(walk.state, P1) == before


@pytest.mark.covers("AMB-08")
def test_the_arguments_of_a_polled_batch_live_under_the_step_that_was_deferred() -> None:
    walk = deferred.answered_with_calls()
    step = next(step for step in walk.steps if step.commit.name == "intend_tool")
    assert step.commit.writes[0].to_json()["key"] == f"{runs.RUN}:{runs.STEP}:1"


@pytest.mark.covers("RT-3.2-T48", "AMB-37")
def test_a_cancelled_poll_keeps_the_usage_of_a_live_fetch_and_has_none_otherwise() -> None:
    live = deferred.cancelled_poll()
    assert live.steps[-1].commit.detail == "live"
    walk = abort(polled())
    silent: JsonObject = {**assistant(stop="aborted", error="aborted"), "usage": usage()}
    walk.take(TRANSITIONS["cancel_poll"], Response(response=silent))
    assert walk.steps[-1].commit.detail == "synthetic"
    assert walk.state.usage[V1].usage == usage()


def test_an_activation_without_a_permit_leaves_a_deferred_run_as_it_is() -> None:
    assert "T88" in NO_COMMIT
    assert keeps_waiting(View(suspended().state, "main"))
    assert keeps_waiting(View(polled().state, "main"))
    assert not keeps_waiting(View(abort(polled()).state, "main"))
    assert not keeps_waiting(View(runs.requested().state, "main"))
