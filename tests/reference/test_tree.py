"""Context projection and healing (§2.5)."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint_reference import (
    EntryType,
    InsertEntry,
    Json,
    JsonObject,
    Namespace,
    NewEntry,
    State,
    UnknownStart,
    apply,
    project,
)
from restartpoint_reference.tree import BRANCH_LEAD, COMPACTION_LEAD, NO_RESULT, healed
from tests.reference.walk import assistant, call, result, text, user
from tests.reference.walks import runs


def chain(*payloads: tuple[EntryType, JsonObject]) -> State:
    """A session of entries e0, e1, ... each under the one before; seqs from 1, timestamp 9."""
    writes: list[InsertEntry] = []
    for index, (kind, payload) in enumerate(payloads):
        parent = f"e{index - 1}" if index else None
        made = NewEntry(id=f"e{index}", parent_id=parent, type=kind, payload=payload)
        if kind is EntryType.CUSTOM:
            made = NewEntry(id=made.id, parent_id=parent, type=kind, custom_type="note", payload=payload)
        writes.append(InsertEntry(entry=made))
    answer = apply(State.empty(), writes, timestamp=9)
    assert isinstance(answer, tuple)
    return answer[0]


def said(message: JsonObject) -> tuple[EntryType, JsonObject]:
    return EntryType.MESSAGE, {"message": message}


def compacted(*tail: JsonObject) -> tuple[EntryType, JsonObject]:
    kept: list[Json] = [*tail]
    return EntryType.COMPACTION, {"summary": "so far", "retainedTail": kept, "tokensBefore": 9, "fromHook": False}


SUMMARY: JsonObject = {
    "role": "user",
    "content": [{"type": "text", "text": COMPACTION_LEAD + "so far"}],
    "timestamp": 9,
}


@pytest.mark.covers("ST-2.5-06")
def test_the_newest_compaction_opens_the_context_and_nothing_older_is_read() -> None:
    old, tail, new = user("old"), user("kept"), user("new")
    assert project(chain(said(old), said(new)), "e1") == [old, new]
    once = chain(said(old), compacted(tail), said(new))
    assert project(once, "e2") == [SUMMARY, tail, new]
    assert project(chain(said(old), compacted(old), compacted(tail), said(new)), "e3") == [SUMMARY, tail, new]
    assert project(once, "e1") == [SUMMARY, tail]
    assert project(once, "e0") == [old]


@pytest.mark.covers("ST-2.5-07", "ST-2.5-10", "ST-2.5-14")
@pytest.mark.parametrize("stop", ["stop", "length", "toolUse", "error", "aborted", "deferred"])
def test_unusable_responses_are_dropped_and_a_cut_one_is_kept(stop: str) -> None:
    response = assistant(text("x"), stop=stop)
    kept = [response] if stop in ("stop", "length", "toolUse") else []
    assert project(chain(said(response)), "e0") == kept
    assert project(chain(compacted(response)), "e0") == [SUMMARY, *kept]


@pytest.mark.covers("ST-2.5-08")
def test_a_custom_entry_enters_the_context_only_through_its_projector() -> None:
    state = chain((EntryType.CUSTOM, {"data": {"n": 1}}))
    assert project(state, "e0") == []
    assert project(state, "e0", {"other": lambda _: [user("no")]}) == []
    assert project(state, "e0", {"note": lambda entry: [user(str(entry.payload["data"]))]}) == [user("{'n': 1}")]
    assert project(state, "e0", {"note": lambda _: None}) == []
    assert project(state, "e0", {"note": lambda _: [assistant(stop="error")]}) == []


@pytest.mark.covers("ST-2.5-15")
def test_a_branch_summary_is_a_user_message() -> None:
    payload: JsonObject = {"fromId": "gone", "summary": "dead end", "fromHook": False}
    found = project(chain((EntryType.BRANCH_SUMMARY, payload)), "e0")
    assert found == [{"role": "user", "content": [text(BRANCH_LEAD + "dead end")], "timestamp": 9}]


@pytest.mark.covers("ST-2.5-12")
def test_the_root_has_an_empty_context_and_an_unknown_leaf_none() -> None:
    assert project(State.empty(), None) == []
    with pytest.raises(UnknownStart):
        project(State.empty(), "gone")


def synthetic(id: str, name: str) -> JsonObject:
    return {**result(id, name, NO_RESULT, error=True), "timestamp": 5}


@pytest.mark.covers("ST-2.5-16", "LOOM-43")
def test_an_orphaned_call_gets_an_error_result_directly_after_its_response() -> None:
    asking = assistant(call("t1", "read"), call("t2", "write"), call("t3", "list"), stop="toolUse")
    answered = result("t2", "write")
    later = user("go on")
    assert project(chain(said(asking), said(answered), said(later)), "e2") == [
        asking, synthetic("t1", "read"), synthetic("t3", "list"), answered, later,
    ]  # fmt: skip
    alone = assistant(call("t4", "read"), stop="toolUse")
    assert project(chain(compacted(alone), said(later)), "e1") == [SUMMARY, alone, synthetic("t4", "read"), later]


def test_a_result_before_its_call_does_not_count() -> None:
    asking = assistant(call("t1", "read"), stop="toolUse")
    early = result("t1", "read")
    assert healed([early, asking]) == [early, asking, synthetic("t1", "read")]


@given(st.lists(st.sampled_from(["user", "calls", "answer"])))
def test_healing_keeps_every_message_in_order_and_is_idempotent(kinds: list[str]) -> None:
    made: list[JsonObject] = []
    for index, kind in enumerate(kinds):
        calls = assistant(call(f"t{index}", "a"), call(f"u{index}", "b"), stop="toolUse")
        made.append({"user": user("x"), "calls": calls, "answer": result(f"t{index - 1}", "a")}[kind])
    once = healed(made)
    assert healed(once) == once
    assert [message for message in once if message in made] == made


@pytest.mark.covers("LOOM-44")
@pytest.mark.parametrize("scenario", [runs.plain_run, runs.crash_mid_tool, runs.refused_tools])
def test_settled_histories_are_not_healed_and_the_context_grows_at_its_tail(scenario: object) -> None:
    walk = scenario() if callable(scenario) else None
    assert walk is not None
    contexts = []
    for step in walk.steps:
        if step.commit.name == "start_generation":
            leaf = step.before.value(Namespace.LANE_LEAF, "main")
            contexts.append(project(step.before, leaf))
    for shorter, longer in itertools.pairwise(contexts):
        assert longer[: len(shorter)] == shorter
    assert all(NO_RESULT not in str(context) for context in contexts)
