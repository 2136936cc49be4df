"""When the conversation is compacted before it no longer fits (§3.12, decision AMB-14)."""

from dataclasses import replace

import pytest

from restartpoint_reference import NO_COMMIT, TRANSITIONS, Entry, JsonObject, Namespace, SetRegister, State, View, apply
from restartpoint_reference.threshold import context_tokens, reported_tokens, should_compact
from restartpoint_reference.transitions.compaction import threshold_is_due
from restartpoint_reference.transitions.publication import HookSummary
from restartpoint_reference.transitions.queues import IdleWrite
from restartpoint_reference.vocabulary.messages import Message
from restartpoint_reference.vocabulary.registers import CompactionSettings
from tests.reference.walk import Walk, assistant, text, uid, usage, user
from tests.reference.walks import compaction, runs

ON = CompactionSettings(enabled=True, reserve_tokens=100, keep_recent_tokens=200)
OFF = replace(ON, enabled=False)


@pytest.mark.covers("AMB-14")
@pytest.mark.parametrize(
    "tokens, window, settings, due",
    [
        (900, 1000, ON, False),
        (901, 1000, ON, True),
        (901, 1000, OFF, False),
        (901, 0, ON, False),
        (901, -1000, ON, False),
        (0, 100, ON, False),
        (1, 100, ON, True),
        (0, 50, ON, True),
        (1000, 1000, replace(ON, reserve_tokens=0), False),
        (1001, 1000, replace(ON, reserve_tokens=0), True),
    ],
)
def test_a_context_is_compacted_once_it_eats_into_the_reserve(
    tokens: int, window: int, settings: CompactionSettings, due: bool
) -> None:
    assert should_compact(tokens, window, settings) is due


@pytest.mark.parametrize(
    "message, tokens",
    [
        ({**assistant(), "usage": usage(input=3, totalTokens=9)}, 9),
        ({**assistant(), "usage": usage(input=3, output=2, cacheRead=4, cacheWrite=1)}, 10),
        ({**assistant(stop="length"), "usage": usage(totalTokens=9)}, 9),
        ({**assistant(stop="error"), "usage": usage(totalTokens=9)}, None),
        ({**assistant(stop="aborted"), "usage": usage(totalTokens=9)}, None),
        ({**assistant(stop="deferred"), "usage": usage(totalTokens=9)}, None),
        ({**assistant(), "usage": usage()}, None),
        ({**assistant(), "usage": {}}, None),
        ({**assistant(), "usage": None}, None),
        ({**user("hi"), "usage": usage(totalTokens=9)}, None),
        ({}, None),
    ],
)
def test_a_response_reports_its_context_unless_it_is_not_in_it(message: JsonObject, tokens: int | None) -> None:
    assert reported_tokens(message) == tokens


def by_letters(message: Message) -> int:
    """An estimate that tells messages apart: the letters of the first text block, and a hundred beside them."""
    content = message.get("content")
    first = content[0] if isinstance(content, list) and content else None
    return 100 + len(str(first.get("text"))) if isinstance(first, dict) else 100


def said(*messages: JsonObject) -> Walk:
    walk = runs.opened()
    for at, message in enumerate(messages):
        walk.take(TRANSITIONS["write_idle"], IdleWrite(id=uid(800, at), message=message))
    return walk


def tokens_of(walk: Walk) -> int:
    return context_tokens(walk.state, View(walk.state, walk.lane).leaf, by_letters)


REPORT: JsonObject = {**assistant(text("ok")), "usage": usage(totalTokens=40)}


@pytest.mark.covers("AMB-14")
def test_the_newest_report_counts_and_what_came_after_it_is_estimated() -> None:
    older: JsonObject = {**REPORT, "usage": usage(totalTokens=30)}
    assert tokens_of(said(user("a"), older, user("b"), REPORT)) == 40
    assert tokens_of(said(user("a"), REPORT, user("four"), user("fives"))) == 40 + 104 + 105
    failed = assistant(text("never"), stop="error", error="429")
    assert tokens_of(said(REPORT, failed, user("four"))) == 40 + 104


@pytest.mark.covers("AMB-14")
def test_without_a_report_the_whole_context_is_estimated() -> None:
    assert context_tokens(State.empty(), None, by_letters) == 0
    assert tokens_of(said(user("a"), user("four"))) == 101 + 104
    assert tokens_of(said({**REPORT, "usage": usage()}, user("four"))) == 102 + 104


@pytest.mark.covers("AMB-14")
def test_a_report_from_before_the_newest_compaction_does_not_count() -> None:
    walk = compaction.asked(said(user("a"), REPORT), compaction.cut(1))
    walk.take(TRANSITIONS["publish_hook_compaction"], HookSummary(entry_id=uid(801, 1), summary="s"))
    lead = len("The conversation before this point was compacted. Summary:\n\ns")
    assert tokens_of(walk) == 100 + lead + 102
    walk.take(TRANSITIONS["write_idle"], IdleWrite(id=uid(801, 2), message=user("four")))
    assert tokens_of(walk) == 100 + lead + 102 + 104


def test_what_a_projector_makes_of_an_entry_is_estimated_too() -> None:
    walk = compaction.with_notes()

    def one_note(_: Entry) -> list[Message]:
        return [user("a note")]

    leaf = View(walk.state, walk.lane).leaf
    assert context_tokens(walk.state, leaf, by_letters, {"note": one_note}) == 105 + 105 + 2 * 106


@pytest.mark.covers("AMB-18")
def test_a_boundary_below_the_threshold_or_checked_before_commits_nothing() -> None:
    walk = runs.prompted()
    assert threshold_is_due(View(walk.state, "main"), 901, 1000)
    assert not threshold_is_due(View(walk.state, "main"), 900, 1000)
    assert not threshold_is_due(View(walk.state, "main"), 901, 0)
    walk.take(TRANSITIONS["mark_threshold_checked"])
    assert not threshold_is_due(View(walk.state, "main"), 901, 1000)
    disabled = runs.prompted(replace(runs.SETTINGS, compaction=OFF))
    assert not threshold_is_due(View(disabled.state, "main"), 901, 1000)
    assert "no compaction is due" in NO_COMMIT["T08"]


def test_the_next_boundary_of_a_checked_run_is_checked_again() -> None:
    walk = runs.prompted()
    walk.take(TRANSITIONS["mark_threshold_checked"])
    state = walk.state.value(Namespace.OP_STATE, runs.RUN)
    assert isinstance(state, dict)
    assert isinstance(state["phase"], dict)
    moved: JsonObject = {**state, "phase": {**state["phase"], "triggerEntryId": uid(95, 1)}}
    applied = apply(walk.state, [SetRegister(namespace=Namespace.OP_STATE, key=runs.RUN, value=moved)], timestamp=1)
    assert isinstance(applied, tuple)
    assert threshold_is_due(View(applied[0], "main"), 901, 1000)
