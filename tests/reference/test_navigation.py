"""What a navigation may not do, and where it ends (§3.6, §3.10)."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import TRANSITIONS, Explained, JsonObject, Namespace, explain
from restartpoint_reference.preparation import BranchCut
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.navigation import AcceptNavigation, AcceptSummarizedNavigation
from restartpoint_reference.transitions.publication import HookSummary, Summary
from restartpoint_reference.transitions.session import CreateLane
from tests.reference.walk import Walk, uid
from tests.reference.walks import navigation, runs
from tests.reference.walks.compaction import FILES, RESULT, generating, requested, spent
from tests.reference.walks.navigation import ASKED, NAVIGATION, moving, summarizing

GO = AcceptNavigation(operation_id=NAVIGATION, started_at=1, target_id=ASKED)
LEFT = BranchCut(chosen=(0,), total_tokens=1, file_ops=FILES)
TELL = AcceptSummarizedNavigation(operation_id=NAVIGATION, started_at=1, target_id=ASKED, task_id="t", cut=LEFT)


def at_root() -> Walk:
    walk = moving(runs.plain_run(), None, id=navigation.SECOND_NAVIGATION)
    walk.take(TRANSITIONS["navigate"])
    return walk


def deciding() -> Walk:
    return summarizing(runs.plain_run(), ASKED, 0)


@pytest.mark.parametrize(
    "walk, name, inputs, guard",
    [
        (runs.prompted, "accept_navigation", GO, "from_phase"),
        (runs.plain_run, "accept_navigation", replace(GO, target_id="gone"), "target_exists"),
        (runs.plain_run, "accept_navigation", replace(GO, target_id=runs.R2), "target_is_elsewhere"),
        (at_root, "accept_navigation", replace(GO, target_id=None), "target_is_elsewhere"),
        (runs.plain_run, "accept_navigation", replace(GO, target_id=None, label="l"), "root_gets_no_label"),
        (runs.plain_run, "accept_summarized_navigation", replace(TELL, target_id="gone"), "target_exists"),
        (runs.plain_run, "accept_summarized_navigation", replace(TELL, target_id=runs.R2), "target_is_elsewhere"),
        (runs.plain_run, "accept_summarized_navigation", replace(TELL, target_id=None), "both_ends_are_entries"),
        (at_root, "accept_summarized_navigation", TELL, "both_ends_are_entries"),
        (
            runs.plain_run,
            "accept_summarized_navigation",
            replace(TELL, cut=replace(LEFT, chosen=())),
            "branch_is_summarised",
        ),
        (
            deciding,
            "publish_hook_navigation",
            HookSummary(entry_id=RESULT, summary="s", usage=spent(1)),
            "hook_usage_is_whole",
        ),
        (lambda: generating(deciding()), "publish_navigation", Summary(summary="s"), "a_request_settled"),
    ],
)
def test_a_navigation_that_would_break_its_rules_is_refused(
    walk: Callable[[], Walk], name: str, inputs: Inputs, guard: str
) -> None:
    refusal = TRANSITIONS[name](walk().state, "main", inputs)
    assert getattr(refusal, "guard", None) == guard


@pytest.mark.parametrize("name, inputs", [("accept_navigation", GO), ("accept_summarized_navigation", TELL)])
def test_an_operation_id_names_one_operation(name: str, inputs: Inputs) -> None:
    walk = deciding()
    walk.lane = "other"
    walk.take(TRANSITIONS["create_lane"], CreateLane(configuration=runs.CONFIGURATION, anchor=runs.R2))
    refusal = TRANSITIONS[name](walk.state, "other", inputs)
    assert getattr(refusal, "guard", None) == "operation_is_new"


def last_result(walk: Walk) -> JsonObject:
    value = walk.state.value(Namespace.LANE_LAST_RESULT, "main")
    assert isinstance(value, dict)
    return value


@pytest.mark.covers("AMB-49")
def test_a_label_is_that_of_the_target_with_and_without_a_summary() -> None:
    assert navigation.moved().state.value(Namespace.FACT_LABEL, ASKED) == "try again"
    walk = navigation.summarized()
    assert walk.state.keys(Namespace.FACT_LABEL) == [ASKED]
    assert walk.state.value(Namespace.FACT_LABEL, ASKED) == "from here"


def test_a_navigation_to_the_root_empties_the_lane_and_keeps_the_tree() -> None:
    walk = at_root()
    assert walk.state.value(Namespace.LANE_LEAF, "main") is None
    assert last_result(walk) == {
        "operationId": navigation.SECOND_NAVIGATION, "kind": "navigation", "leafId": None, "outcome": "completed",
    }  # fmt: skip
    assert runs.R2 in walk.state.entries


@pytest.mark.covers("RT-3.10-01")
def test_a_summary_lies_below_the_target_and_tells_from_where_it_was_left() -> None:
    walk = navigation.summarized()
    entry = walk.state.entries[RESULT]
    assert (entry.parent_id, entry.payload["fromId"]) == (ASKED, runs.R2)
    assert walk.state.value(Namespace.LANE_LEAF, "main") == RESULT
    assert last_result(walk)["leafId"] == RESULT


@pytest.mark.covers("RT-3.10-02")
def test_a_generated_summary_shows_its_usage_and_bills_nothing_again() -> None:
    walk = navigation.summarized()
    published = walk.steps[-1]
    assert len(walk.state.usage) == len(published.before.usage)
    assert walk.state.entries[RESULT].payload["usage"] == spent(5)


def test_a_navigation_without_a_summary_makes_neither_entry_nor_preparation() -> None:
    walk = moving(runs.plain_run(), ASKED)
    assert walk.state.keys(Namespace.OP_PREPARATION) == []
    entries = len(walk.state.entries)
    walk.take(TRANSITIONS["navigate"])
    assert len(walk.state.entries) == entries


@pytest.mark.parametrize("scenario", [navigation.declined, navigation.failed])
def test_a_navigation_that_comes_to_nothing_moves_nothing(scenario: Callable[[], Walk]) -> None:
    walk = scenario()
    assert walk.state.value(Namespace.LANE_LEAF, "main") == runs.R2
    assert last_result(walk)["leafId"] == runs.R2
    assert walk.state.keys(Namespace.FACT_LABEL) == []
    assert walk.state.keys(Namespace.OP_PREPARATION) == []


def test_a_navigation_that_is_told_of_a_missing_target_is_explained_as_none() -> None:
    """The observed commit names an entry that does not exist: an answer, not an exception."""
    walk = runs.plain_run()
    step = summarizing(walk, ASKED, 0).steps[-1]
    elements = json.loads(json.dumps(step.elements).replace(ASKED, uid(1, 1)))
    assert not isinstance(explain(step.before, elements), Explained)


def test_the_summary_of_a_lane_may_be_the_target_of_another_navigation() -> None:
    walk = navigation.summarized()
    summarizing(walk, runs.R1, 0, id=navigation.SECOND_NAVIGATION)
    requested(generating(walk, uid(730, 1)), uid(730, 2))
    walk.take(TRANSITIONS["publish_navigation"], Summary(summary="told of the tale"))
    entry = walk.state.entries[uid(730, 1)]
    assert (entry.parent_id, entry.payload["fromId"]) == (runs.R1, RESULT)
