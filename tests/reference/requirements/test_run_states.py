"""What every state of every walk looks like, and that the newest one is enough to go on (§3.2, §3.3, §3.11, §3.12)."""

from collections.abc import Callable, Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Commit, Json, JsonObject, Namespace, Refusal, State, View, next_steps
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.queues import IdleWrite
from tests.reference.test_edges import MOVES, Move, attempt, moves_of
from tests.reference.walk import NOTHING, Walk, uid, user
from tests.reference.walks import SCENARIOS, abort, inbox, runs
from tests.reference.walks.planted import plant
from tests.reference.walks.runs import RUN

N = Namespace
WALKS = [scenario() for scenario in SCENARIOS]
MORE = RunEndFollowUp(id=uid(150, 1), message=user("and then?"))


def values(namespace: Namespace) -> Iterator[JsonObject]:
    """Every value that any commit of any walk gives a register of this namespace."""
    for walk in WALKS:
        for step in walk.steps:
            for write in step.commit.writes:
                element = write.to_json()
                if element.get("namespace") == namespace and element["op"] == "set":
                    assert isinstance(element["value"], dict)
                    yield element["value"]


def inside(value: Json, key: str) -> Iterator[Json]:
    """Everything that stands under this key, however deep."""
    match value:
        case dict():
            if key in value:
                yield value[key]
            for held in value.values():
                yield from inside(held, key)
        case list():
            for held in value:
                yield from inside(held, key)
        case _:
            pass


def phases() -> Iterator[JsonObject]:
    for state in values(N.OP_STATE):
        if state["kind"] == "run":
            assert isinstance(state["phase"], dict)
            yield state["phase"]


@pytest.mark.covers("RT-3.2-02")
def test_the_newest_state_is_enough_to_go_on_as_if_all_before_it_were_known() -> None:
    """At every step the state is written anew, from its value alone; the same step follows with the same writes."""
    gone_on = 0
    for walk in WALKS:
        for step in walk.steps:
            held = [(key, step.before.value(N.OP_STATE, key)) for key in step.before.keys(N.OP_STATE)]
            registers = [(N.OP_STATE, key, value) for key, value in held if isinstance(value, dict)]
            if not registers:
                continue
            other = plant(Walk(state=step.before), *registers)
            gone_on += 1
            transition = T[step.commit.name]
            again = transition(other.state, step.commit.lane if transition.takes_lane else None, step.inputs)
            assert isinstance(again, Commit), again
            assert again.writes == step.commit.writes
    assert gone_on > len(WALKS)


@pytest.mark.covers("RT-3.2-05", "RT-3.2-08", "RT-3.2-01")
def test_a_state_is_that_of_a_run_a_compaction_or_a_navigation_and_never_a_finished_one() -> None:
    kinds: dict[Json, set[str]] = {}
    for state in values(N.OP_STATE):
        kinds.setdefault(state["kind"], set()).update(state)
        if state["kind"] == "run":
            assert set(state) == {"kind", "control", "settings", "phase", "inbox", "latestAssistantEntryId"}
    assert set(kinds) == {"run", "compaction", "navigation"}
    found = {str(phase["kind"]): set(phase) - {"kind"} for phase in phases() if phase["kind"] != "checkpoint"}
    assert found == {
        "assistant": {"generation"},
        "tools": {"batch"},
        "compaction": {"reason", "structural", "resumeAfter"},
        "deferred": {"deferred"},
        "failure_drain": {"error", "provenance"},
    }
    ended = runs.plain_run().state
    assert (ended.keys(N.OP_STATE), ended.keys(N.OP_META)) == ([], [])


@pytest.mark.covers("RT-3.2-07", "AMB-02")
def test_an_optional_field_is_absent_or_says_something_and_a_flag_is_only_ever_true() -> None:
    required = {"kind", "continuation", "triggerEntryId"}
    shapes: set[frozenset[str]] = set()
    for phase in phases():
        if phase["kind"] == "checkpoint":
            assert required <= set(phase) <= required | {"thresholdCheckedTriggerEntryId", "skipInboxOnce"}
            shapes.add(frozenset(set(phase) - required))
    assert len(shapes) >= 3
    nullable = {"latestAssistantEntryId", "targetId"}
    for state in values(N.OP_STATE):
        assert set(inside(state, "skipInboxOnce")) <= {True}
        assert {key for key, held in flat(state) if held is None} <= nullable
    entries = [entry for walk in WALKS for entry in walk.state.entries.values()]
    assert {entry.payload["terminate"] for entry in entries if "terminate" in entry.payload} == {True}


def flat(value: Json) -> Iterator[tuple[str, Json]]:
    match value:
        case dict():
            for key, held in value.items():
                yield key, held
                yield from flat(held)
        case list():
            for held in value:
                yield from flat(held)
        case _:
            pass


@pytest.mark.covers("RT-3.2-09", "RT-3.2-12")
def test_a_failure_says_what_failed_and_by_what() -> None:
    found: set[tuple[str, ...]] = set()
    for phase in phases():
        if phase["kind"] == "failure_drain":
            error, provenance = phase["error"], phase["provenance"]
            assert isinstance(error, dict)
            assert isinstance(provenance, dict)
            assert {"code", "message"} <= set(error) <= {"code", "message", "details"}
            found.add((str(provenance["kind"]), *sorted(set(provenance) - {"kind"})))
    assert found == {("response", "entryId"), ("structural", "taskId")}


@pytest.mark.covers("RT-3.3-01")
def test_a_lane_names_its_operation_and_its_queue_and_nothing_else() -> None:
    for held in values(N.LANE_STATE):
        assert set(held) == {"currentOperationId", "pendingNextRun"}
        assert isinstance(held["pendingNextRun"], list)


def is_once(state: State, key: str) -> bool:
    """Whether queued content is in its register or in the tree or gone, never in both."""
    return not (state.register(N.PENDING_ENTRY, key) is not None and key in state.entries)


@pytest.mark.covers("RT-3.11-08")
@settings(deadline=None, max_examples=60)
@given(
    start=st.integers(0, len(WALKS) - 1), cut=st.integers(0, 12), tries=st.lists(st.sampled_from(MOVES), max_size=25)
)
def test_what_was_queued_waits_or_is_placed_or_is_gone_after_every_commit(
    start: int, cut: int, tries: list[Move]
) -> None:
    walk = Walk()
    for transition, inputs in moves_of(WALKS[start].steps)[:cut]:
        attempt(walk, transition, inputs)
    for transition, inputs in tries:
        attempt(walk, transition, inputs)
    states = [*(step.before for step in walk.steps), walk.state]
    queued = {key for state in states for key in state.keys(N.PENDING_ENTRY)}
    assert all(is_once(state, key) for state in states for key in queued)


@pytest.mark.covers("RT-3.11-T86")
@pytest.mark.parametrize("lead", [runs.opened, runs.plain_run])
def test_a_tree_write_on_an_idle_lane_is_placed_at_once_below_the_old_leaf(lead: Callable[[], Walk]) -> None:
    walk = lead()
    leaf = View(walk.state, "main").leaf
    commit = walk.take(T["write_idle"], IdleWrite(id=uid(299, 1), custom_type="mark"))
    assert [write.to_json().get("namespace", write.to_json()["kind"]) for write in commit.writes] == [
        "entry", "lane.leaf"
    ]  # fmt: skip
    assert walk.state.entries[uid(299, 1)].parent_id == leaf
    assert View(walk.state, "main").leaf == uid(299, 1)


@pytest.mark.covers("RT-3.12-T13")
def test_what_before_run_end_adds_is_dropped_when_an_abort_or_steering_came_first() -> None:
    first = inbox.answered()
    first.take(T["append_run_end_follow_up"], MORE)
    abort.abort(first)
    assert MORE.id in first.state.entries
    aborted = abort.abort(inbox.answered())
    assert refused(aborted) == "control_is_running"
    steered = inbox.answered()
    inbox.steer(steered, inbox.S1)
    assert refused(steered) == "inbox_is_empty"
    steered_later = inbox.answered()
    steered_later.take(T["append_run_end_follow_up"], MORE)
    inbox.steer(steered_later, inbox.S1)
    assert View(steered_later.state, "main").run.phase.to_json()["triggerEntryId"] == MORE.id


def refused(walk: Walk) -> str:
    found = T["append_run_end_follow_up"](walk.state, "main", MORE)
    assert isinstance(found, Refusal)
    return found.guard


@pytest.mark.covers("RT-3.12-T76")
def test_a_failure_that_nothing_revives_ends_without_a_hook_or_a_request() -> None:
    walk = inbox.failing()
    assert next_steps(View(walk.state, "main")) == ("finish_failed",)
    for name, inputs in (("append_run_end_follow_up", MORE), ("mark_threshold_checked", NOTHING)):
        assert getattr(T[name](walk.state, "main", inputs), "guard", "") == "from_phase"
    error = View(walk.state, "main").run.phase.to_json()["error"]
    walk.take(T["finish_failed"])
    assert walk.state.value(N.LANE_LAST_RESULT, "main") == {
        "operationId": RUN, "kind": "run", "leafId": runs.R1, "finalAssistantEntryId": runs.R1, "outcome": "failed",
        "error": error,
    }  # fmt: skip
