"""A navigation moves at once or not at all (§3.10), and which ends structural operations have (§3.5)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Namespace, Progress, View
from restartpoint_reference.transitions.publication import Summary
from restartpoint_reference.vocabulary.registers import LaneLastResult
from tests.reference.requirements.writes import GONE, written
from tests.reference.walk import Walk, uid
from tests.reference.walks import SCENARIOS, navigation, runs
from tests.reference.walks.abort import ABORT
from tests.reference.walks.compaction import RESULT, generating, requested
from tests.reference.walks.navigation import ASKED, NAVIGATION, moving, summarizing

N = Namespace
ROW = uid(720, 1)


def summarized() -> Walk:
    """A summarized navigation whose summary has just been made."""
    return requested(generating(summarizing(runs.plain_run(), ASKED, 0)), ROW)


@pytest.mark.covers("RT-3.10-T69", "RT-3.10-05")
def test_a_navigation_without_a_summary_is_one_commit_also_for_the_next_process() -> None:
    walk = moving(runs.plain_run(), ASKED, "try again")
    assert Progress.of(walk.state).due("main") == ("navigate",)
    commit = walk.take(T["navigate"])
    ended = [name for name in GONE if name != "-op.preparation"]
    assert written(commit) == ["lane.leaf", "fact.label", *ended]
    assert View(walk.state, "main").leaf == ASKED
    assert walk.state.value(N.LANE_LAST_RESULT, "main") == {
        "operationId": NAVIGATION, "kind": "navigation", "leafId": ASKED, "outcome": "completed"
    }  # fmt: skip


@pytest.mark.covers("RT-3.10-T66", "RT-3.10-05", "RT-3.9-T55")
@pytest.mark.parametrize("by_hook", [False, True])
def test_a_summary_its_label_and_the_move_are_one_commit_and_only_a_hook_is_billed_in_it(by_hook: bool) -> None:
    walk = navigation.summarized_by_hook() if by_hook else navigation.summarized()
    name = "publish_hook_navigation" if by_hook else "publish_navigation"
    step = next(step for step in walk.steps if step.commit.name == name)
    billed = ["usage"] if by_hook else []
    assert written(step.commit) == [*billed, "lane.leaf", "entry", "lane.leaf", "fact.label", *GONE]
    moves = [
        write.to_json()["value"] for write in step.commit.writes if write.to_json().get("namespace") == N.LANE_LEAF
    ]
    entry = walk.state.entries[RESULT]
    assert moves == [entry.parent_id, RESULT]
    assert entry.payload["fromId"] == View(step.before, "main").leaf
    assert entry.payload["fromHook"] is by_hook


@pytest.mark.covers("RT-3.10-03")
@pytest.mark.parametrize(
    "scenario", [navigation.summarized, navigation.summarized_by_hook, navigation.summarized_across_a_compaction]
)
def test_every_commit_of_a_navigation_leaves_the_source_untouched_or_the_move_complete(
    scenario: Callable[[], Walk],
) -> None:
    """Whatever the commit after which the process is lost."""
    walk = scenario()
    names = walk.names
    first = names.index("accept_summarized_navigation")
    end = next(at for at, name in enumerate(names) if "publish" in name and "navigation" in name)
    source = walk.steps[first].before
    for step in walk.steps[first + 1 : end + 1]:
        assert View(step.before, "main").leaf == View(source, "main").leaf
        assert set(step.before.entries) == set(source.entries)
        assert step.before.keys(N.FACT_LABEL) == source.keys(N.FACT_LABEL)
        assert Progress.of(step.before).due("main") != ()
    after = walk.steps[end + 1].before if end + 1 < len(walk.steps) else walk.state
    assert len(after.entries) == len(source.entries) + 1
    assert View(after, "main").lane_state.current_operation_id is None
    assert Progress.of(after).due("main") == ()


@pytest.mark.covers("RT-3.10-04")
@pytest.mark.parametrize(
    "lead, publication, summary",
    [(lambda: moving(runs.plain_run(), ASKED), "navigate", None), (summarized, "publish_navigation", "a dead end")],
)
def test_an_abort_before_the_move_ends_without_it_and_after_it_finds_nothing_to_abort(
    lead: Callable[[], Walk], publication: str, summary: str | None
) -> None:
    inputs = () if summary is None else (Summary(summary=summary),)
    moved, aborted = lead(), lead()
    moved.take(T[publication], *inputs)
    assert outcome(moved) == "completed"
    assert getattr(T["abort_structural"](moved.state, "main", ABORT), "guard", "") == "from_phase"
    entries = set(aborted.state.entries)
    aborted.take(T["abort_structural"], ABORT)
    with pytest.raises(AssertionError, match="control_is_running"):
        aborted.take(T[publication], *inputs)
    aborted.take(T["finish_aborted_structural"])
    assert (outcome(aborted), View(aborted.state, "main").leaf) == ("aborted", runs.R2)
    assert set(aborted.state.entries) == entries


def outcome(walk: Walk) -> str:
    held = walk.state.value(N.LANE_LAST_RESULT, "main")
    assert isinstance(held, dict)
    return LaneLastResult.from_json(held).outcome.value


def edges(*prefixes: str) -> set[tuple[str, str]]:
    """From phase to phase, or to the outcome of the end, in every walk; without what an abort or administrator ends."""
    found: set[tuple[str, str]] = set()
    for scenario in SCENARIOS:
        walk = scenario()
        afters = [*(step.before for step in walk.steps[1:]), walk.state]
        for step, after in zip(walk.steps, afters, strict=True):
            before = View(step.before, step.commit.lane or "main")
            if step.commit.name == "finalize_externally" or not before.phase.startswith(prefixes):
                continue
            now = View(after, before.lane).phase
            held = after.value(N.LANE_LAST_RESULT, before.lane)
            ended = str(held["outcome"]) if now == "idle" and isinstance(held, dict) else now
            if ended != before.phase:
                found.add((before.phase, ended))
    return found


def unaborted(found: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """Without the ends by abort, which any phase has (decision AMB-43)."""
    return {(before, after) for before, after in found if after != "aborted"}


@pytest.mark.covers("RT-3.5-07")
def test_a_compaction_by_itself_is_decided_or_generated_and_ends() -> None:
    assert unaborted(edges("compact.")) == {
        ("compact.deciding", "compact.generating"), ("compact.deciding", "declined"),
        ("compact.deciding", "completed"), ("compact.generating", "completed"), ("compact.generating", "failed"),
    }  # fmt: skip


@pytest.mark.covers("RT-3.5-08")
def test_a_navigation_moves_at_once_or_is_decided_or_generated_and_ends() -> None:
    assert unaborted(edges("navigate.")) == {
        ("navigate.ready_to_commit", "completed"),
        ("navigate.deciding", "navigate.generating"), ("navigate.deciding", "declined"),
        ("navigate.deciding", "completed"), ("navigate.generating", "completed"), ("navigate.generating", "failed"),
    }  # fmt: skip


@pytest.mark.covers("RT-3.5-04")
def test_a_compaction_inside_a_run_resumes_it_fails_it_or_is_aborted() -> None:
    assert edges("compaction.") == {
        ("compaction.deciding", "compaction.generating"), ("compaction.deciding", "checkpoint"),
        ("compaction.deciding", "failure_drain"), ("compaction.deciding", "aborted"),
        ("compaction.generating", "checkpoint"), ("compaction.generating", "failure_drain"),
        ("compaction.generating", "aborted"),
    }  # fmt: skip


@pytest.mark.covers("RT-3.5-05")
def test_a_deferred_run_is_polled_until_it_is_answered_fails_or_is_aborted() -> None:
    assert edges("deferred.") == {
        ("deferred.suspended", "deferred.effect_pending"), ("deferred.effect_pending", "deferred.suspended"),
        ("deferred.effect_pending", "tools"), ("deferred.effect_pending", "checkpoint"),
        ("deferred.effect_pending", "failure_drain"), ("deferred.suspended", "aborted"),
    }  # fmt: skip
