"""What a preparation takes from the tree, and what may be chosen about it (§1.3, §2.5, §3.2)."""

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint_reference import TRANSITIONS, Explained, Json, JsonObject, Namespace, View, explain, project
from restartpoint_reference.preparation import (
    BranchCut,
    CompactionCut,
    Projected,
    branch_cut,
    compaction_cut,
    compaction_places,
    file_lists,
    impossible_branch,
    impossible_cut,
    prepared_branch,
    prepared_compaction,
    previous_summary,
)
from restartpoint_reference.shapes import UNSET
from restartpoint_reference.transitions.queues import IdleWrite
from restartpoint_reference.vocabulary.registers import FileOperations
from tests.reference.test_alterations import alterations
from tests.reference.walk import Walk, assistant, call, uid, user
from tests.reference.walks import compaction, navigation, runs
from tests.reference.walks.compaction import FILES, LAST_NOTE, NOTES, SETTINGS, cut

SPENT = runs.plain_run()
NOTED = compaction.with_notes()


def leaf(walk: Walk) -> str | None:
    return View(walk.state, walk.lane).leaf


def context(walk: Walk) -> list[JsonObject]:
    return project(walk.state, leaf(walk))


@given(summarized=st.integers(0, 5), prefix=st.integers(0, 5))
def test_the_parts_of_a_compaction_are_the_context_in_its_order(summarized: int, prefix: int) -> None:
    division = cut(summarized, prefix)
    if impossible_cut(SPENT.state, leaf(SPENT), division) is not None:
        return
    made = prepared_compaction(SPENT.state, leaf(SPENT), division, SETTINGS)
    parts = (*made.messages_to_summarize, *made.turn_prefix_messages, *made.retained_tail)
    assert [*parts] == context(SPENT)
    assert made.is_split_turn == bool(made.turn_prefix_messages)
    assert compaction_cut(SPENT.state, leaf(SPENT), made) == division


@pytest.mark.parametrize(
    "walk, division, reason",
    [
        (SPENT, cut(0), "replaced"),
        (SPENT, cut(6), "replaced"),
        (SPENT, cut(3, 3), "replaced"),
        (SPENT, cut(-1, 2), "replaced"),
        (SPENT, cut(2, -1), "replaced"),
        (SPENT, cut(2, tokens=-1), "replaced"),
        (SPENT, cut(3), "begins with a tool result"),
        (SPENT, cut(2, 1), "begins with a tool result"),
        (SPENT, cut(2, 0, NOTES), "no custom entry"),
        (NOTED, cut(2, 0, replace(NOTES, messages=())), "no custom entry"),
        (NOTED, cut(2, 0, replace(NOTES, messages=(assistant(stop="aborted"),))), "no custom entry"),
        (SPENT, replace(cut(2), file_ops=replace(FILES, read=("/b", "/a"))), "not sorted: read"),
        (SPENT, replace(cut(2), file_ops=replace(FILES, edited=("/b", "/b"))), "not sorted: edited"),
        (runs.opened(), cut(1), "replaced"),
    ],
)
def test_a_cut_that_the_context_does_not_admit_is_refused(walk: Walk, division: CompactionCut, reason: str) -> None:
    assert reason in str(impossible_cut(walk.state, leaf(walk), division))


def test_a_whole_context_may_be_summarised() -> None:
    assert impossible_cut(SPENT.state, leaf(SPENT), cut(5)) is None
    assert prepared_compaction(SPENT.state, leaf(SPENT), cut(5), SETTINGS).retained_tail == ()


def test_a_later_compaction_continues_the_earlier_summary_and_divides_its_tail() -> None:
    walk = compaction.compacted_twice()
    first, second = (step for step in walk.steps if step.commit.name == "publish_compaction")
    before = next(step.before for step in reversed(walk.steps) if step.commit.name == "accept_compaction")
    assert previous_summary(first.before, View(first.before, "main").leaf) is UNSET
    assert previous_summary(before, View(before, "main").leaf) == "the user asked for changes"
    held = second.before.value(Namespace.OP_PREPARATION, f"{compaction.SECOND_COMPACTION}:{compaction.TASK}")
    assert isinstance(held, dict)
    assert held["previousSummary"] == "the user asked for changes"
    summary, *rest = project(before, View(before, "main").leaf)
    assert "the user asked for changes" in str(summary)
    assert [*_list(held["messagesToSummarize"]), *_list(held["retainedTail"])] == rest


def _list(value: Json) -> list[Json]:
    assert isinstance(value, list)
    return value


def test_a_call_without_a_result_is_stored_as_it_is() -> None:
    """Results that stand in for lost ones are for a provider; none becomes durable."""
    walk = runs.opened()
    orphan = assistant(call("t1", "read"), stop="toolUse")
    for at, message in enumerate((user("read it"), orphan, user("never mind"))):
        walk.take(TRANSITIONS["write_idle"], IdleWrite(id=uid(810, at), message=message))
    made = prepared_compaction(walk.state, leaf(walk), cut(1), SETTINGS)
    assert made.retained_tail == (orphan, user("never mind"))
    assert len(context(walk)) == 4


def test_responses_that_failed_are_neither_summarised_nor_kept() -> None:
    walk = runs.opened()
    failed = assistant(stop="error", error="429")
    for at, message in enumerate((user("a"), failed, user("b"))):
        walk.take(TRANSITIONS["write_idle"], IdleWrite(id=uid(811, at), message=message))
    made = prepared_compaction(walk.state, leaf(walk), cut(1), SETTINGS)
    assert (made.messages_to_summarize, made.retained_tail) == ((user("a"),), (user("b"),))


@given(st.lists(st.sampled_from([user("a"), user("b"), user("hello"), user("go on")]), max_size=3), st.integers(1, 2))
def test_what_stands_for_a_custom_entry_is_found_again(messages: list[JsonObject], summarized: int) -> None:
    """Even when it repeats what was said before or after it."""
    note = Projected(entry_id=uid(640, 2), messages=tuple(messages))
    division = cut(summarized, 0, *((note,) if messages else ()))
    made = prepared_compaction(NOTED.state, leaf(NOTED), division, SETTINGS)
    again = prepared_compaction(
        NOTED.state, leaf(NOTED), compaction_cut(NOTED.state, leaf(NOTED), made), SETTINGS
    )  # fmt: skip
    assert again == made


def test_nothing_may_stand_where_no_custom_entry_does() -> None:
    division = cut(2, 0, NOTES, LAST_NOTE)
    made = prepared_compaction(NOTED.state, leaf(NOTED), division, SETTINGS)
    assert compaction_cut(NOTED.state, leaf(NOTED), made) == division
    foreign = replace(made, messages_to_summarize=(user("intruder"), *made.messages_to_summarize))
    found = compaction_cut(NOTED.state, leaf(NOTED), foreign)
    assert prepared_compaction(NOTED.state, leaf(NOTED), found, SETTINGS) != foreign


def test_where_nothing_is_projected_every_message_is_held_to_the_tree() -> None:
    for scenario, name in (
        (compaction.compacted_twice, "accept_compaction"),
        (compaction.overflow_compacted, "settle_overflow"),
        (compaction.threshold_compacted_twice, "begin_threshold_compaction"),
        (navigation.summarized_across_a_compaction, "accept_summarized_navigation"),
    ):
        for step in scenario().steps:
            if step.commit.name == name:
                passed = {
                    pattern
                    for pattern, altered in alterations(step.elements)
                    if isinstance(explain(step.before, altered), Explained)
                }
                told = {pattern for pattern in passed if "essages" in pattern or "retainedTail" in pattern}
                # Of a branch, what is left out is chosen.
                assert told <= {"op.preparation.value.messages.*"}
                assert "op.preparation.value.tokensBefore" in passed or name == "accept_summarized_navigation"


# --- branches


def test_the_branch_that_is_left_ends_where_the_target_is_met() -> None:
    source = leaf(SPENT)
    chosen = BranchCut(chosen=(0, 1, 2, 3), total_tokens=1, file_ops=FILES)
    made = prepared_branch(SPENT.state, source, uid(95, 1), chosen)
    assert [*made.messages] == context(SPENT)[1:]
    assert branch_cut(SPENT.state, source, uid(95, 1), made) == chosen


@pytest.mark.parametrize(
    "walk, target, division, reason",
    [
        (SPENT, uid(95, 1), BranchCut(chosen=(), total_tokens=1, file_ops=FILES), "nothing to summarize"),
        (SPENT, uid(95, 1), BranchCut(chosen=(4,), total_tokens=1, file_ops=FILES), "not some of the 4"),
        (SPENT, uid(95, 1), BranchCut(chosen=(1, 0), total_tokens=1, file_ops=FILES), "not some of the 4"),
        (SPENT, uid(95, 1), BranchCut(chosen=(0, 0), total_tokens=1, file_ops=FILES), "not some of the 4"),
        (SPENT, uid(95, 1), BranchCut(chosen=(-1,), total_tokens=1, file_ops=FILES), "not some of the 4"),
        (SPENT, uid(95, 1), BranchCut(chosen=(0,), total_tokens=-1, file_ops=FILES), "not some of the 4"),
        (SPENT, uid(95, 1), BranchCut(chosen=(0,), total_tokens=1, file_ops=FILES, projected=(NOTES,)), "no custom"),
        (
            SPENT,
            uid(95, 1),
            BranchCut(chosen=(0,), total_tokens=1, file_ops=replace(FILES, written=("/z", "/c"))),
            "not sorted: written",
        ),
    ],
)
def test_a_branch_that_cannot_be_summarised_so_is_refused(
    walk: Walk, target: str, division: BranchCut, reason: str
) -> None:
    assert reason in str(impossible_branch(walk.state, leaf(walk), target, division))


def test_notes_of_a_branch_are_found_beside_the_messages_that_are_left_out() -> None:
    source, target = leaf(NOTED), uid(640, 1)
    both = (NOTES, LAST_NOTE)
    for chosen in ((0, 1, 2, 3), (0, 1, 3), (2, 3)):
        division = BranchCut(chosen=chosen, total_tokens=1, file_ops=FILES, projected=both)
        made = prepared_branch(NOTED.state, source, target, division)
        found = branch_cut(NOTED.state, source, target, made)
        assert impossible_branch(NOTED.state, source, target, found) is None
        assert prepared_branch(NOTED.state, source, target, found) == made


def test_of_a_branch_further_down_nothing_is_left() -> None:
    some = BranchCut(chosen=(0,), total_tokens=1, file_ops=FILES)
    assert "of the 0" in str(impossible_branch(SPENT.state, uid(95, 1), runs.R2, some))


def test_the_files_of_a_summary_are_told_apart_by_whether_they_changed() -> None:
    files = FileOperations(read=("/a", "/b", "/c"), written=("/c",), edited=("/b", "/d"))
    assert file_lists(files) == {"readFiles": ["/a"], "modifiedFiles": ["/b", "/c", "/d"]}
    assert file_lists(FileOperations(read=(), written=(), edited=())) == {"readFiles": [], "modifiedFiles": []}


def test_the_root_has_no_context_to_divide() -> None:
    assert compaction_places(SPENT.state, None) == []
