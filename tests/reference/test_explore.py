"""The search visits what the world can bring about, each state once, and stops at a commit that does not hold."""

from collections.abc import Iterator
from dataclasses import replace
from importlib import import_module

import pytest

from restartpoint_reference import TRANSITIONS, Json, State, Unexplained, apply, explain, invariants
from restartpoint_reference.explore import SLICES, Report, Slice, search
from restartpoint_reference.explore.choices import CHOICES
from restartpoint_reference.explore.sameness import fingerprint
from restartpoint_reference.explore.search import Node, opened, steps
from restartpoint_reference.vocabulary.entries import Observed
from tests.reference.walk import Walk
from tests.reference.walks import runs

SEARCH = import_module("restartpoint_reference.explore.search")
TABLE = import_module("restartpoint_reference.explore.choices.table")
NARROW: dict[str, dict[str, int]] = {
    "run-with-tools": {"turns": 1},
    "sequential-tools": {"turns": 1, "items": 0, "crash": 0},
    "inbox": {"items": 1},
    "abort": {},
    "retry-and-failure": {"aborts": 0},
    "deferred": {"polls": 1},
    "structural": {"turns": 1, "items": 1},
    "navigation": {"operations": 1},
    "two-lanes": {"turns": 1, "items": 0},
    "session": {"creations": 1, "facts": 1},
}
"""Limits that keep the whole of this module to some seconds; `restartpoint explore` has the wider ones."""


def narrow(name: str) -> Slice:
    (found,) = (part for part in SLICES if part.name == name)
    return replace(found, bounds={**found.bounds, **NARROW[name]})


def last(reports: Iterator[Report]) -> Report:
    *_, found = reports
    return found


@pytest.fixture(scope="module")
def explored() -> dict[str, Report]:
    return {part.name: last(search(narrow(part.name))) for part in SLICES}


def test_nothing_that_is_reached_breaks_anything(explored: dict[str, Report]) -> None:
    assert [str(report.counterexample) for report in explored.values() if report.counterexample] == []
    assert all(report.states > 20 for report in explored.values())


def test_the_slices_take_every_transition_of_the_table(explored: dict[str, Report]) -> None:
    taken = {name for report in explored.values() for name in report.taken}
    assert [name for name in TRANSITIONS if name not in taken] == []
    assert taken - TRANSITIONS.keys() == {"crash"}


def test_wider_bounds_reach_more(explored: dict[str, Report]) -> None:
    part = narrow("run-with-tools")
    wider = last(search(replace(part, bounds={**part.bounds, "crash": 2})))
    assert wider.states > explored["run-with-tools"].states


def test_a_search_is_the_same_each_time(explored: dict[str, Report]) -> None:
    assert last(search(narrow("deferred"))) == explored["deferred"]


def test_a_commit_that_is_not_explained_ends_the_search_with_a_shortest_path(monkeypatch: pytest.MonkeyPatch) -> None:
    def blind(state: State, observed: Observed) -> object:
        found = explain(state, observed)
        if getattr(found, "name", "") != "complete_batch":
            return found
        return Unexplained(nearest=None, section="3", lane=None, differences=("seeded",))

    monkeypatch.setattr(SEARCH, "explain", blind)
    report = last(search(narrow("two-lanes")))
    assert report.counterexample is not None
    assert report.counterexample.path == (
        "accept_run", "start_generation", "intend_assistant", "settle_tool_calls", "complete_batch",
    )  # fmt: skip
    assert "seeded" in str(report.counterexample)


def test_a_broken_invariant_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        invariants, "check_commit", lambda state, _delta: ("seeded",) if len(state.usage) == 1 else ()
    )  # fmt: skip
    report = last(search(narrow("deferred")))
    assert report.counterexample is not None
    assert "breaks seeded" in report.counterexample.problem
    assert len(report.counterexample.path) == 4


def test_a_state_after_which_nothing_can_follow_ends_the_search(monkeypatch: pytest.MonkeyPatch) -> None:
    forgetful = {name: choice for name, choice in CHOICES.items() if name != "intend_poll"}
    monkeypatch.setattr(TABLE, "CHOICES", {**forgetful, "intend_poll": lambda _: ()})
    part = narrow("deferred")
    report = last(search(replace(part, public=("accept_run",))))
    assert report.counterexample is not None
    assert report.counterexample.problem.startswith("no step can follow on lane main at deferred.suspended, where int")
    assert report.counterexample.path[-2:] == ("settle_deferred", "nothing")


def test_a_step_that_was_due_before_input_arrived_is_taken_too() -> None:
    (inbox,) = (part for part in SLICES if part.name == "inbox")
    start = ("accept_run", "enqueue_steer", "start_generation", "intend_assistant", "settle_stop")
    (late,) = _reached(inbox, *start, "defer_write")[:1]
    names = {name for name, _ in steps(inbox, late)}
    assert {"consume_steer", "apply_writes"} & names == {"consume_steer", "apply_writes"}
    assert "finish_run" not in names  # the end re-reads the inbox


def _reached(part: Slice, *path: str) -> list[Node]:
    nodes = [opened(part)]
    for name in path:
        after = (step for node in nodes for step in steps(part, node))
        nodes = [found for taken, found in after if taken == name and isinstance(found, Node)]
    return nodes


# --- sameness


def shifted(walk: Walk, by: int) -> State:
    """The state that the same commits make when every id was minted later and sequence numbers were lost."""
    state = State.empty()
    for step in walk.steps:
        writes = Observed.from_json(_renamed(step.elements, by)).writes
        first = state.next_seq + by
        applied = apply(state, writes, timestamp=77, seqs=range(first, first + len(writes)))
        assert isinstance(applied, tuple), applied
        state = applied[0]
    return state


def _renamed(value: Json, by: int) -> Json:
    match value:
        case str() if len(value) >= 36 and "-7000-8000-" in value:
            return ":".join(_later(part, by) if "-7000-8000-" in part else part for part in value.split(":"))
        case list():
            return [_renamed(item, by) for item in value]
        case dict():
            return {key: _renamed(item, by) for key, item in value.items()}
    return value


def _later(id: str, by: int) -> str:
    time = int(id.replace("-", "")[:12], 16) + by
    return f"{time:012x}"[:8] + "-" + f"{time:012x}"[8:] + id[13:]


@pytest.mark.parametrize("scenario", runs.SCENARIOS)
def test_states_that_differ_in_minted_ids_and_numbers_only_are_one(scenario: object) -> None:
    walk = scenario()  # type: ignore[operator]
    assert fingerprint(shifted(walk, 5)) == fingerprint(walk.state)


def test_states_that_differ_in_anything_else_are_two() -> None:
    marks = [fingerprint(step.before) for step in runs.plain_run().steps]
    assert len(set(marks)) == len(marks)
    state = runs.plain_run().state
    assert fingerprint(state, 1) != fingerprint(state, 2)
