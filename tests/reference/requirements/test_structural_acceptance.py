"""How compactions and navigations are accepted, and what their preparation is (§3.1, §3.2, §3.6, §3.9)."""

from collections.abc import Callable

import pytest

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Commit, Explained, Json, JsonObject, Namespace, View, explain
from restartpoint_reference.transitions.publication import HookSummary
from restartpoint_reference.transitions.queues import IdleWrite, QueuedMessage
from restartpoint_reference.vocabulary.registers import LaneState
from tests.reference.walk import Walk, as_elements, uid, user
from tests.reference.walks import SCENARIOS, compaction, navigation, runs
from tests.reference.walks.compaction import COMPACTION, asked, cut
from tests.reference.walks.navigation import ASKED, NAVIGATION, moving, summarizing

N = Namespace
LATER = uid(430, 1)


def waiting() -> Walk:
    """An idle lane after a run, with input for the next one."""
    walk = runs.plain_run()
    walk.take(T["enqueue_next_run"], QueuedMessage(id=LATER, message=user("next time")))
    return walk


def written(walk: Walk) -> list[tuple[Json, Json]]:
    """Namespace and key of each write of the last commit, in order."""
    return [(write.to_json()["namespace"], write.to_json()["key"]) for write in walk.steps[-1].commit.writes]


def value(walk: Walk, namespace: Namespace, key: str) -> JsonObject:
    held = walk.state.value(namespace, key)
    assert isinstance(held, dict)
    return held


def accepted(operation: str, *, prepared: str | None) -> list[tuple[Json, Json]]:
    """The addresses that an acceptance writes (§3.6)."""
    preparation: list[tuple[Json, Json]] = [] if prepared is None else [("op.preparation", f"{operation}:{prepared}")]
    return [*preparation, ("op.meta", operation), ("op.state", operation), ("lane.state", "main")]


@pytest.mark.covers("RT-3.6-T02", "RT-3.1-03")
@pytest.mark.parametrize("instructions", [False, True])
def test_a_compaction_is_accepted_with_its_preparation_and_the_queue_of_the_lane(instructions: bool) -> None:
    walk = asked(waiting(), cut(2), instructions)
    given: JsonObject = {"customInstructions": "keep names"} if instructions else {}
    assert written(walk) == accepted(COMPACTION, prepared=compaction.TASK)
    assert value(walk, N.OP_META, COMPACTION) == {
        "operationId": COMPACTION, "lane": "main", "sourceLeafId": runs.R2, "startedAt": 950,
        "intent": {"kind": "compaction", **given},
    }  # fmt: skip
    assert value(walk, N.OP_STATE, COMPACTION) == {
        "kind": "compaction", "control": {"status": "running"}, **given,
        "structural": {"taskId": compaction.TASK, "status": "deciding"},
    }  # fmt: skip
    assert View(walk.state, "main").lane_state == LaneState(
        current_operation_id=COMPACTION, pending_next_run=(LATER,)
    )  # fmt: skip


@pytest.mark.covers("RT-3.6-T03", "RT-3.1-04")
@pytest.mark.parametrize("target, label", [(ASKED, "try again"), (ASKED, None), (None, None)])
def test_a_navigation_is_accepted_ready_to_commit(target: str | None, label: str | None) -> None:
    walk = moving(waiting(), target) if label is None else moving(waiting(), target, label)
    given: JsonObject = {} if label is None else {"label": label}
    assert written(walk) == accepted(NAVIGATION, prepared=None)
    intent: JsonObject = {"kind": "navigation", "targetId": target, "summarize": False, **given}
    assert value(walk, N.OP_META, NAVIGATION)["intent"] == intent
    assert value(walk, N.OP_STATE, NAVIGATION) == {
        "kind": "navigation", "control": {"status": "running"}, "targetId": target, **given, "summarize": False,
        "phase": {"kind": "ready_to_commit"},
    }  # fmt: skip
    assert View(walk.state, "main").lane_state.pending_next_run == (LATER,)


@pytest.mark.covers("RT-3.6-T04", "RT-3.1-04")
def test_a_summarized_navigation_is_accepted_deciding_with_its_preparation() -> None:
    walk = summarizing(waiting(), ASKED, 0)
    assert written(walk) == accepted(NAVIGATION, prepared=navigation.TASK)
    given: JsonObject = {
        "targetId": ASKED, "summarize": True, "label": "from here", "customInstructions": "be brief"
    }  # fmt: skip
    assert value(walk, N.OP_META, NAVIGATION)["intent"] == {"kind": "navigation", **given}
    phase: JsonObject = {"kind": "summary", "structural": {"taskId": navigation.TASK, "status": "deciding"}}
    assert value(walk, N.OP_STATE, NAVIGATION) == {
        "kind": "navigation", "control": {"status": "running"}, **given,
        "phase": phase,
    }  # fmt: skip
    assert View(walk.state, "main").lane_state.pending_next_run == (LATER,)


@pytest.mark.covers("RT-3.6-08")
@pytest.mark.parametrize("accept", [lambda walk: asked(walk, cut(2)), lambda walk: summarizing(walk, ASKED, 0)])
def test_an_acceptance_whose_preparation_was_made_at_another_leaf_is_none(accept: Callable[[Walk], Walk]) -> None:
    step = accept(runs.plain_run()).steps[-1]
    assert isinstance(explain(step.before, step.elements), Explained)
    moved = runs.plain_run()
    moved.take(T["write_idle"], IdleWrite(id=uid(299, 1), message=user("one more thing")))
    elements = as_elements(step.commit, moved.state.next_seq, 1)
    assert not isinstance(explain(moved.state, elements), Explained)


@pytest.mark.covers("RT-3.2-52", "RT-3.9-03", "ST-1.3-08")
def test_a_preparation_and_the_state_that_decides_on_it_are_one_commit() -> None:
    """In every walk: under operation and task, with sorted files, written once and never again."""
    prepared: set[str] = set()
    for scenario in SCENARIOS:
        for step in scenario().steps:
            for write in step.commit.writes:
                element = write.to_json()
                if element.get("namespace") == N.OP_PREPARATION and element["op"] == "set":
                    key = str(element["key"])
                    assert key == f"{operation_of(step.commit)}:{task_decided(step.commit)}"
                    assert step.before.register(N.OP_PREPARATION, key) is None
                    assert files_are_sorted(element["value"])
                    prepared.add(step.commit.name)
    assert prepared == {
        "accept_compaction", "accept_summarized_navigation", "begin_threshold_compaction", "settle_overflow"
    }  # fmt: skip


def files_are_sorted(preparation: Json) -> bool:
    assert isinstance(preparation, dict)
    assert isinstance(preparation["fileOps"], dict)
    lists = [[str(path) for path in paths] for paths in preparation["fileOps"].values() if isinstance(paths, list)]
    return len(lists) == 3 and all(paths == sorted(set(paths)) for paths in lists)


def operation_of(commit: Commit) -> str:
    return next(
        str(write.to_json()["key"]) for write in commit.writes if write.to_json().get("namespace") == N.OP_STATE
    )


def task_decided(commit: Commit) -> Json:
    """The task on which the state of this commit decides."""
    state = next(write.to_json()["value"] for write in commit.writes if write.to_json().get("namespace") == N.OP_STATE)
    assert isinstance(state, dict)
    holder = state.get("phase", state)
    assert isinstance(holder, dict)
    structural = holder["structural"]
    assert isinstance(structural, dict)
    assert structural["status"] == "deciding"
    return structural["taskId"]


def recovering() -> Walk:
    """A run that owes the same turn again, after an overflow that a hook compacted."""
    walk = compaction.overflowed()
    walk.take(T["publish_hook_compaction_in_run"], HookSummary(entry_id=compaction.RESULT, summary="a question"))
    return walk


@pytest.mark.covers("RT-3.9-T10", "RT-3.9-03")
@pytest.mark.parametrize(
    "lead, task, kept",
    [
        (runs.prompted, compaction.TASK, {"skipInboxOnce": True}),
        (
            recovering,
            compaction.SECOND_TASK,
            {"continuation": {"kind": "need_assistant", "overflowRecoveryUsed": True}},
        ),
    ],
)
def test_a_threshold_compaction_keeps_its_checkpoint_marked_beside_the_preparation(
    lead: Callable[[], Walk], task: str, kept: JsonObject
) -> None:
    walk = compaction.begun(lead(), 1, task)
    before = View(walk.steps[-1].before, "main").run.phase.to_json()
    assert before.items() >= kept.items()
    assert written(walk) == [("op.preparation", f"{runs.RUN}:{task}"), ("op.state", runs.RUN)]
    assert value(walk, N.OP_STATE, runs.RUN)["phase"] == {
        "kind": "compaction",
        "reason": "threshold",
        "structural": {"taskId": task, "status": "deciding"},
        "resumeAfter": {**before, "thresholdCheckedTriggerEntryId": before["triggerEntryId"]},
    }
