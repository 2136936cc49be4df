"""What the model says of commits that it cannot explain, worded for a person."""

import json
from typing import cast

from restartpoint_reference import Explained, Json, JsonObject, State, Unexplained, explain
from tests.reference.walk import Step
from tests.reference.walks import runs
from tests.reference.walks.runs import RUN


def step(walk_name: str, commit: str) -> Step:
    walk = next(scenario for scenario in runs.SCENARIOS if scenario.__name__ == walk_name)()
    return next(found for found in walk.steps if found.commit.name == commit)


def copy(elements: list[Json]) -> list[JsonObject]:
    return cast("list[JsonObject]", json.loads(json.dumps(elements)))


def unexplained(before: State, elements: list[JsonObject]) -> Unexplained:
    answer = explain(before, [*elements])
    assert isinstance(answer, Unexplained), answer
    return answer


def test_a_wrong_value_is_named_with_its_path() -> None:
    found = step("plain_run", "settle_stop")
    elements = copy(found.elements)
    elements[1]["value"] = "elsewhere"
    answer = unexplained(found.before, elements)
    assert (answer.nearest, answer.section, answer.lane) == ("settle_stop", "3.7", "main")
    assert answer.differences == (f"writes[1].value: expected {runs.R2!r}, found 'elsewhere'",)
    assert str(answer).startswith("no transition makes this commit; the nearest is settle_stop (§3.7) on lane main")


def test_a_missing_and_an_extra_write_are_named_by_address() -> None:
    found = step("plain_run", "finish_run")
    elements = copy(found.elements)
    left = unexplained(found.before, elements[1:])
    assert left.differences == (f"missing at 0: delete op.meta/{RUN}",)
    again = unexplained(found.before, [*elements, {**elements[0], "seq": 99}])
    assert again.differences == (f"unexpected writes[4]: delete op.meta/{RUN}",)


def test_a_broken_guard_is_named_with_the_reason() -> None:
    found = step("parallel_tools", "settle_tool")
    elements = copy(found.elements)
    message = cast("JsonObject", elements[0]["message"])
    message["toolName"] = "read"
    answer = unexplained(found.before, elements)
    assert "result answers the call does not hold" in answer.differences[0]
    assert "expected the result of remove t1" in answer.differences[0]


def test_an_integer_that_became_a_float_is_a_difference() -> None:
    found = step("plain_run", "intend_assistant")
    elements = copy(found.elements)
    state = cast("dict[str, dict[str, dict[str, Json]]]", elements[0]["value"])
    state["phase"]["generation"]["attempt"] = 1.0
    assert isinstance(explain(found.before, [*elements]), Unexplained)


def test_unreadable_writes_are_reported_with_their_place() -> None:
    answer = unexplained(State.empty(), [{"kind": "register", "op": "set", "seq": 1, "namespace": "x", "key": "k"}])
    assert answer.nearest is None
    assert answer.differences[0].startswith("writes[0].namespace: expected one of lane.leaf")
    assert unexplained(State.empty(), []).differences == ("a transaction has at least one write",)


def test_a_commit_from_the_wrong_phase_is_unexplained() -> None:
    found = step("plain_run", "settle_stop")
    earlier = step("plain_run", "intend_assistant")
    assert isinstance(explain(earlier.before, found.elements), Unexplained)
    assert isinstance(explain(State.empty(), found.elements), Unexplained)


def test_a_commit_on_a_lane_that_does_not_exist_is_unexplained() -> None:
    elements: list[JsonObject] = [
        {"kind": "register", "op": "set", "seq": 1, "namespace": "lane.leaf", "key": "ghost", "value": None}
    ]
    answer = unexplained(runs.opened().state, elements)
    assert answer.lane == "ghost"


def test_the_settlement_that_completes_a_batch_is_told_apart_in_the_detail() -> None:
    kinds = {}
    for name in ("plain_run", "parallel_tools", "refused_tools", "truncated_tools"):
        walk = next(scenario for scenario in runs.SCENARIOS if scenario.__name__ == name)()
        found = next(found for found in walk.steps if found.commit.name.startswith("complete_"))
        answer = explain(found.before, found.elements)
        assert isinstance(answer, Explained)
        kinds[name] = answer.detail
    assert kinds == {
        "plain_run": "settle_tool",
        "parallel_tools": "settle_tool",
        "refused_tools": "refuse_tool",
        "truncated_tools": "refuse_truncated_tool",
    }
