"""Whatever is altered in a commit is seen, except what exists only once and could have been chosen so."""

import json
from collections.abc import Iterator

import pytest

from restartpoint_reference import TRANSITIONS, Commit, Explained, Json, Observed, explain
from restartpoint_reference.transitions.frame import NotThis, Seen, View
from tests.reference.scenarios import SCENARIOS
from tests.reference.walk import Step


def under(head: str, *names: str) -> set[str]:
    """These fields below one place."""
    return {head, *(f"{head}.{name}" for name in names)}


MESSAGE = "entry.message"
USAGE = under("usage.usage", "input", "output", "cacheRead", "cacheWrite", "totalTokens", "cost") | {
    f"usage.usage.cost.{name}" for name in ("input", "output", "cacheRead", "cacheWrite", "total")
}
WORDS = under(MESSAGE, "content.*", "content.*.text", "content.*.type", "timestamp")
INPUT = WORDS | {f"{MESSAGE}.role"}
RESULT = WORDS | {f"{MESSAGE}.isError"}
RESPONSE = under(MESSAGE, "api", "model", "provider", "timestamp")
FAILURE = RESPONSE | {f"{MESSAGE}.errorMessage", "op.state.value.phase.error.message"}
CONFIGURATION = {f"lane.config.value.{name}" for name in ("model.modelId", "model.provider", "thinkingLevel")} | {
    "lane.config.value.activeToolNames"
}
CONTEXT = "op.state.value.phase.generation.context"

FREE: dict[str, set[str]] = {
    # What a caller, a provider or a tool said, and when, exists once; a tool reports its usage once.
    "settle_stop": RESPONSE | WORDS,
    "settle_retryable": RESPONSE | {"op.state.value.phase.generation.notBefore"},
    "settle_deferred": RESPONSE - {f"{MESSAGE}.api"} | under(f"{MESSAGE}.deferred", "id"),
    "settle_tool": RESULT | USAGE | {"usage.id"},
    "complete_batch": RESULT | USAGE | {"usage.id"},
    "complete_terminating_batch": RESULT,
    "refuse_tool": WORDS,
    "refuse_truncated_tool": WORDS,
    "interrupt_tool": WORDS - {f"{MESSAGE}.content.*.type"},
    "write_idle": INPUT | {"entry.customType"} | under("entry.data", "n"),
    "append_run_end_follow_up": WORDS,
    "enqueue_next_run": {pattern.replace(MESSAGE, "pending.entry.value.payload") for pattern in INPUT},
    "record_usage": USAGE | {"usage.id"} | under("usage.details", "invoice"),
    "set_fact": {"fact.custom.key", "fact.custom.value", "fact.label.value", "fact.name.value"},
    # The words of an error are anybody's; its code and provenance are not.
    "settle_failure": FAILURE | under("op.state.value.phase.error.details", "n"),
    "settle_invalid_deferred": FAILURE,
    "settle_unpreparable_overflow": FAILURE,
    "recover_exhausted_assistant": FAILURE - under(MESSAGE, "model", "provider"),
    # Ids are minted outside, and those that only one place holds yet could have been others.
    "intend_assistant": {f"op.state.value.phase.generation.{name}" for name in ("responseEntryId", "usageId")}
    | {f"op.state.value.phase.generation.{name}" for name in ("contextWindow", "intendedOutputLimit")},
    "settle_tool_calls": RESPONSE
    | WORDS
    | {f"{MESSAGE}.content.*.{name}" for name in ("id", "name", "arguments", "arguments.path")}
    | {"op.state.value.phase.batch.calls.*.resultEntryId"},
    # Configuration and settings are captured from outside. A prompt that op.meta does not list is a hook's message.
    "accept_run": INPUT
    | {"op.meta.value.startedAt", "op.meta.value.intent.promptEntryIds.*"}
    | {f"op.state.value.settings.compaction.{name}" for name in ("enabled", "reserveTokens", "keepRecentTokens")},
    "start_generation": {f"{CONTEXT}.retryPolicy.{name}" for name in ("maxAttempts", "baseDelayMs")}
    | {f"{CONTEXT}.stepId"}
    | under(f"{CONTEXT}.streamOptions", "maxTokens"),
    "seed_main": CONFIGURATION | {"lane.config.value.activeToolNames.*"},
    "create_lane": CONFIGURATION | {"lane.config.value.activeToolNames.*"},
    "configure_lane": CONFIGURATION,
    "intend_tool": under("op.tool_args.value", "path"),
}
"""Per transition, the places whose alteration nobody can see, because the commit could have been made so."""


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
                    assert answer.name == name or (name, answer.name) == ("interrupt_tool", "settle_tool")
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
    may_lose_it = reports_usage and step.commit.name in ("settle_tool", "complete_batch")
    assert [answer.name for answer in passed] == ([step.commit.name] if may_lose_it else [])


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
    assert makers == [step.commit.name]
