"""Whatever is altered in a commit is seen, except what exists only once and could have been chosen so."""

import json
from collections.abc import Iterator

import pytest

from restartpoint_reference import ALIKE, TRANSITIONS, Commit, Explained, Json, Observed, explain
from restartpoint_reference.transitions.frame import NotThis, Seen, View
from tests.reference.walk import Step
from tests.reference.walks import FREE, SCENARIOS
from tests.reference.walks.sessions import REARRANGED


def leaves(value: Json, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """The paths of every scalar, every object and every array in a JSON value."""
    yield path
    match value:
        case dict():
            for key, item in value.items():
                yield from leaves(item, (*path, key))
        case list():
            for index, item in enumerate(value):
                yield from leaves(item, (*path, index))


def alterations(elements: list[Json]) -> Iterator[tuple[str, list[Json]]]:
    for path in leaves(elements):
        if len(path) < 2 or path[1] in ("seq", "timestamp"):
            continue
        for change in ("replace", "remove", "extend"):
            altered: list[Json] = json.loads(json.dumps(elements))
            if _alter(altered, path, change):
                yield _pattern(elements, path), altered


def _alter(root: Json, path: tuple[str | int, ...], change: str) -> bool:
    holder = root
    for step in path[:-1]:
        holder = holder[step]  # type: ignore[index]
    assert isinstance(holder, dict | list)
    value = holder[path[-1]]  # type: ignore[index]
    if change == "remove":
        del holder[path[-1]]  # type: ignore[arg-type]
        return True
    if change == "extend":
        if isinstance(value, dict):
            value["more"] = 1
            return True
        if isinstance(value, list):
            value.append("more")
            return True
        return False
    other = _other(value)
    if other is value:
        return False
    holder[path[-1]] = other  # type: ignore[index]
    return True


def _other(value: Json) -> Json:
    match value:
        case bool():
            return not value
        case str():
            return value + "x"
        case int():
            return value + 1
        case None:
            return "x"
        case _:
            return value


def _pattern(elements: list[Json], path: tuple[str | int, ...]) -> str:
    element = elements[int(path[0])]
    assert isinstance(element, dict)
    head = str(element.get("namespace", element["kind"]))
    return ".".join((head, *("*" if isinstance(step, int) else step for step in path[1:])))


WITHOUT_ITS_WORDS = frozenset({
    ("interrupt_tool", "settle_tool"), ("interrupt_cancelled_tool", "settle_cancelled_tool"),
    ("cancel_refused_tool", "settle_cancelled_tool"), ("cancel_assistant", "settle_cancelled"),
})  # fmt: skip
"""A synthetic message that is altered may be one that somebody else said."""

ALL_STEPS = tuple(step for scenario in SCENARIOS for step in scenario().steps)


@pytest.mark.parametrize("name", TRANSITIONS)
def test_every_derived_field_of_a_commit_is_checked(name: str) -> None:
    found: set[str] = set()
    for step in ALL_STEPS:
        if step.commit.name == name:
            for pattern, altered in alterations(step.elements):
                answer = explain(step.before, altered)
                if isinstance(answer, Explained):
                    assert answer.inputs != step.inputs, pattern
                    assert answer.name == name or (name, answer.name) in WITHOUT_ITS_WORDS
                    found |= {pattern} if answer.name == name else set()
    assert found == FREE.get(name, set())


@pytest.mark.parametrize("step", ALL_STEPS, ids=lambda step: step.commit.name)
def test_a_dropped_a_swapped_and_a_doubled_write_are_seen(step: Step) -> None:
    elements, count = step.elements, len(step.elements)
    edited = [elements[:at] + elements[at + 1 :] for at in range(count) if count > 1]
    edited += [[*elements[:at], elements[at], *elements[at:]] for at in range(count)]
    edited += [[*elements[:at], elements[at + 1], elements[at], *elements[at + 2 :]] for at in range(count - 1)]
    passed = [answer for altered in edited if isinstance(answer := explain(step.before, altered), Explained)]
    reports_usage = any(write.to_json()["kind"] == "usage" for write in step.commit.writes)
    may_lose_it = reports_usage and step.commit.name in ("settle_tool", "settle_cancelled_tool", "complete_batch")
    found = [answer.name for answer in passed if answer.name not in REARRANGED.get(step.commit.name, ())]
    assert found == ([step.commit.name] if may_lose_it else [])


@pytest.mark.parametrize("step", ALL_STEPS, ids=lambda step: step.commit.name)
def test_no_other_transition_makes_the_same_commit(step: Step) -> None:
    observed = Observed.from_json(step.elements)
    view, seen = View(step.before, step.commit.lane or ""), Seen(observed)
    makers: list[str] = []
    for transition in TRANSITIONS.values():
        try:
            commit = transition.commit(view, transition.extract(view, seen))
        except NotThis:
            continue
        if isinstance(commit, Commit) and commit.writes == observed.writes:
            makers.append(transition.name)
    assert step.commit.name in makers
    others = [name for name in makers if name != step.commit.name]
    assert all(frozenset({name, step.commit.name}) in ALIKE for name in others), others
