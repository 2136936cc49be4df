"""The check of a commit finds a breach exactly when the check of the whole state does, from every sound state."""

from collections import Counter
from functools import cache
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restartpoint_reference import (
    TRANSITIONS,
    Commit,
    DeleteRegister,
    Delta,
    InsertEntry,
    InsertUsage,
    Json,
    Namespace,
    SetRegister,
    State,
    Transition,
    View,
    Write,
    apply,
    invariants,
)
from restartpoint_reference.invariants import CHANGES
from restartpoint_reference.transitions.frame import NO_LANE, Inputs, NotThis
from tests.reference.walk import Step
from tests.reference.walks import SCENARIOS

OF_CHANGES = {rule.__name__ for _, rule in CHANGES}


@cache
def steps() -> tuple[Step, ...]:
    return tuple(step for scenario in SCENARIOS for step in scenario().steps)


@st.composite
def corrupted(draw: st.DrawFn) -> tuple[State, list[Write]]:
    """A sound state, and writes near a legal commit that may break anything that ``apply`` lets pass."""
    found = steps()
    step = draw(st.sampled_from(found))
    return step.before, _damaged(step.before, step.commit, draw, draw(st.integers(0, 3)))


def _damaged(state: State, commit: Commit, draw: st.DrawFn, times: int) -> list[Write]:
    """The writes of a legal commit after so many changes."""
    writes = list(commit.writes)
    for _ in range(times):
        if writes and _mostly(draw, 1):
            at = draw(st.integers(0, len(writes) - 1))
            writes[at : at + 1] = draw(st.sampled_from([[], [_altered(writes[at], draw)]]))
        else:
            writes.insert(draw(st.integers(0, len(writes))), _stray(state, draw))
    return writes


def _mostly(draw: st.DrawFn, times: int) -> bool:
    """True so many times as often as false."""
    rolled: int = draw(st.integers(0, times))
    return rolled > 0


def _altered(write: Write, draw: st.DrawFn) -> Write:
    match write:
        case SetRegister():
            return SetRegister(namespace=write.namespace, key=write.key, value=_other(write.value, draw))
        case DeleteRegister():
            key = draw(st.sampled_from([write.key, f"{write.key}x", "main"]))
            return DeleteRegister(namespace=write.namespace, key=key)
        case InsertEntry() | InsertUsage():
            return write


def _other(value: Json, draw: st.DrawFn) -> Json:
    """The value with one place in it changed, dropped or doubled."""
    match value:
        case dict() if value and _mostly(draw, 5):
            key = draw(st.sampled_from(sorted(value)))
            if not _mostly(draw, 7):
                return {name: held for name, held in value.items() if name != key}
            return {**value, key: _other(value[key], draw)}
        case list() if value and _mostly(draw, 5):
            at = draw(st.integers(0, len(value) - 1))
            rest = [*value[:at], *value[at + 1 :]]
            return draw(st.sampled_from([rest, [*value, value[at]], [*rest, _other(value[at], draw)]]))
        case _:
            return draw(st.sampled_from([None, "main", "gone", 1, True, [], {}, [value]]))


def _stray(state: State, draw: st.DrawFn) -> Write:
    """A write that has to do with what the state holds."""
    held = [register for cells in state.namespaces.values() for register in cells.values()]
    rows = [write for step in steps() for write in step.commit.writes if isinstance(write, InsertEntry | InsertUsage)]
    if not held or not _mostly(draw, 3):
        return draw(st.sampled_from(rows))
    held.sort(key=lambda register: register.seq)
    register = draw(st.sampled_from(held))
    other = draw(st.sampled_from(held))
    kind = draw(st.sampled_from(["delete", "alter", "move", "swap"]))
    match kind:
        case "delete":
            return DeleteRegister(namespace=register.namespace, key=register.key)
        case "alter":
            return SetRegister(namespace=register.namespace, key=register.key, value=_other(register.value, draw))
        case "move":
            key = draw(st.sampled_from(["main", "elsewhere", other.key, f"{other.key}:s:1"]))
            return SetRegister(namespace=register.namespace, key=key, value=register.value)
        case _:
            return SetRegister(namespace=register.namespace, key=register.key, value=other.value)


def breaches(state: State, delta: Delta) -> tuple[set[str], set[str]]:
    whole = {found.name for found in invariants.check(state)}
    part = {found.name for found in invariants.check_commit(state, delta)} - OF_CHANGES
    return whole, part


@given(corrupted())
def test_a_corrupted_commit_is_found_by_both_checks_or_by_neither(case: tuple[State, list[Write]]) -> None:
    state, writes = case
    applied = apply(state, writes, timestamp=5)
    if isinstance(applied, tuple) and not invariants.check(state):
        whole, part = breaches(*applied)
        assert bool(whole) == bool(part), (whole, part, [write.to_json() for write in writes])


@pytest.mark.parametrize("namespace", Namespace, ids=str)
def test_a_register_that_vanishes_or_is_set_to_nothing_is_found_by_both_checks_or_by_neither(
    namespace: Namespace,
) -> None:
    broken = 0
    for step in steps():
        for key in step.before.keys(namespace):
            for write in (
                DeleteRegister(namespace=namespace, key=key),
                SetRegister(namespace=namespace, key=key, value=None),
            ):
                applied = apply(step.before, [write], timestamp=5)
                assert isinstance(applied, tuple)
                whole, part = breaches(*applied)
                assert bool(whole) == bool(part), (step.commit.name, write, whole, part)
                broken += bool(whole)
    assert broken > 0 or namespace in (Namespace.FACT_CUSTOM, Namespace.LANE_LAST_RESULT)


# --- along walks


@cache
def moves() -> tuple[tuple[Transition, Inputs], ...]:
    """Every transition with all the inputs that any walk gives it."""
    found = {(step.commit.name, repr(step.inputs)): step.inputs for step in steps()}
    return tuple((TRANSITIONS[name], inputs) for (name, _), inputs in found.items())


def legal(state: State) -> list[Commit]:
    """What may be committed now, with inputs that were chosen elsewhere."""
    made: list[Commit] = []
    for lane in state.keys(Namespace.LANE_STATE) or ["main"]:
        view = View(state, lane)
        try:
            phase = view.phase
        except NotThis:
            continue
        for transition, inputs in moves():
            if phase in transition.phases or (not transition.takes_lane and phase not in NO_LANE):
                commit = transition(state, lane if transition.takes_lane else None, inputs)
                made.extend([commit] if isinstance(commit, Commit) else [])
    return made


def test_both_checks_agree_along_walks_of_legal_commits_with_a_corrupted_one_now_and_then() -> None:
    """A walk goes on from each state that is still sound, whatever led to it; an id may have been used before."""
    met: Counter[str] = Counter()

    @settings(max_examples=60)
    @given(st.data())
    def walk(data: st.DataObject) -> None:
        state, draw = State.empty(), cast("st.DrawFn", data.draw)
        for _ in range(draw(st.integers(4, 24))):
            commits = legal(state)
            names = sorted({commit.name for commit in commits})
            own = [name for name in names if not TRANSITIONS[name].public and TRANSITIONS[name].takes_lane]
            name = draw(st.sampled_from(own if own and _mostly(draw, 2) else names))
            commit = draw(st.sampled_from([commit for commit in commits if commit.name == name]))
            writes = _damaged(state, commit, draw, 0 if _mostly(draw, 2) else 1)
            applied = apply(state, writes, timestamp=5)
            if not isinstance(applied, tuple):
                continue
            whole, part = breaches(*applied)
            assert bool(whole) == bool(part), (whole, part, [write.to_json() for write in writes])
            met["broken" if whole else name] += 1
            if not whole:
                state = applied[0]

    walk()
    assert met["broken"] > 20
    assert len(met) > 30, met
