"""Every invariant holds after every commit of every scenario, and each has a state that breaks it."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_reference import (
    TRANSITIONS,
    DeleteRegister,
    Delta,
    EntryType,
    InsertUsage,
    Json,
    JsonObject,
    Namespace,
    NewUsage,
    SetRegister,
    State,
    View,
    Write,
    apply,
    invariants,
)
from restartpoint_reference.invariants import CHANGES
from restartpoint_reference.transitions.session import CreateLane
from restartpoint_reference.transitions.tools import ToolResult
from tests.reference.walk import Walk, assistant, result, uid, usage
from tests.reference.walks import compaction, deferred, inbox, navigation, runs
from tests.reference.walks.runs import C1, C2, R1, RUN, STEP, U1

N = Namespace
QUEUED = uid(300, 1)
RUNNING: JsonObject = {"status": "running"}
PENDING: JsonObject = {"type": "custom", "customType": "note"}


def after(state: State, *writes: Write) -> State:
    answer = apply(state, writes, timestamp=3)
    assert isinstance(answer, tuple), answer
    return answer[0]


def put(state: State, namespace: Namespace, key: str, value: Json) -> State:
    return after(state, SetRegister(namespace=namespace, key=key, value=value))


def dropped(state: State, namespace: Namespace, key: str) -> State:
    return after(state, DeleteRegister(namespace=namespace, key=key))


def edited(state: State, namespace: Namespace, key: str, path: str, value: Json) -> State:
    """The state with one field of one register replaced; the path's steps are keys or indices."""
    whole = state.value(namespace, key)
    return put(state, namespace, key, _edited(whole if isinstance(whole, dict) else {}, path.split("."), value))


def _edited(holder: Json, path: list[str], value: Json) -> Json:
    if not path:
        return value
    step, *rest = path
    if isinstance(holder, list):
        return [_edited(item, rest, value) if str(at) == step else item for at, item in enumerate(holder)]
    assert isinstance(holder, dict)
    return {**holder, step: _edited(holder.get(step), rest, value)}


def tools() -> State:
    """Call 1 completed, call 3 pending."""
    walk = runs.with_tools()
    runs.clear(walk, 1)
    runs.clear(walk, 3)
    walk.take(TRANSITIONS["settle_tool"], ToolResult(message=result("t1", "remove")))
    return walk.state


def misplaced_parent() -> State:
    state = runs.prompted().state
    entry = state.entries[uid(95, 2)]
    return replace(state, entries=state.entries.set(entry.id, replace(entry, parent_id="gone")))


def pending_response() -> State:
    state = runs.prompted().state
    entry = state.entries[uid(95, 2)]
    pending = replace(entry, payload={"message": assistant(stop="pending")})
    return replace(state, entries=state.entries.set(entry.id, pending))


def tailless_compaction() -> State:
    state = runs.prompted().state
    entry = state.entries[uid(95, 2)]
    bare = replace(entry, type=EntryType.COMPACTION, payload={"summary": "s"})
    cut = replace(state, entries=state.entries.set(entry.id, bare))
    return replace(cut, stats=replace(cut.stats, message_count=1))


def shared_id() -> State:
    state = runs.prompted().state
    row = NewUsage(id=uid(95, 2), adjustment=True, usage=usage())
    held = row.placed(state.next_seq)
    return replace(state, usage=state.usage.set(held.id, held), next_seq=state.next_seq + 1)


def two_lanes_one_operation() -> State:
    walk = runs.prompted()
    walk.lane = "other"
    walk.take(TRANSITIONS["create_lane"], CreateLane(configuration=runs.CONFIGURATION, anchor=None))
    return edited(walk.state, N.LANE_STATE, "other", "currentOperationId", RUN)


def unread_run() -> State:
    return runs.requested().state


def run_state(path: str, value: Json) -> Callable[[], State]:
    return lambda: edited(tools(), N.OP_STATE, RUN, path, value)


def summarizing(path: str, value: Json) -> Callable[[], State]:
    """A compaction of its own with one request of its first attempt settled, and one field of its state replaced."""

    def edit() -> State:
        walk = compaction.generating(compaction.asked(runs.plain_run(), compaction.cut(2)))
        state = compaction.requested(walk, uid(620, 1)).state
        return edited(state, N.OP_STATE, compaction.COMPACTION, path, value)

    return edit


def truncated_and_started() -> State:
    state = runs.with_tools(truncated=True).state
    call: JsonObject = {"status": "effect_pending", "sourceIndex": 1, "resultEntryId": C1, "replay": "never"}
    armed = put(state, N.OP_TOOL_ARGS, f"{RUN}:{STEP}:1", {})
    return edited(armed, N.OP_STATE, RUN, "phase.batch.calls.0", call)


def navigating(target: str) -> State:
    state = runs.opened().state
    intent: JsonObject = {"kind": "navigation", "targetId": None, "summarize": False}
    meta: JsonObject = {"operationId": RUN, "lane": "main", "sourceLeafId": None, "startedAt": 1, "intent": intent}
    run: JsonObject = {
        "kind": "navigation", "control": {"status": "running"}, "targetId": None if target == "root" else target,
        "summarize": False, "phase": {"kind": "ready_to_commit"},
    }  # fmt: skip
    opened = edited(state, N.LANE_STATE, "main", "currentOperationId", RUN)
    return put(put(opened, N.OP_META, RUN, meta), N.OP_STATE, RUN, run)


def reworded(state: State, id: str, stop: str) -> State:
    """The state with another stop reason in one response."""
    entry = state.entries[id]
    message = entry.message
    assert message is not None
    return replace(
        state, entries=state.entries.set(id, replace(entry, payload={"message": {**message, "stopReason": stop}}))
    )


def latest(walk: Walk, stop: str) -> State:
    """The walk's state with another stop reason in its run's latest response."""
    response = View(walk.state, "main").run.latest_assistant_entry_id
    assert response is not None
    return reworded(walk.state, response, stop)


def cancelled_with_input() -> State:
    state = edited(put(unread_run(), N.PENDING_ENTRY, QUEUED, PENDING), N.OP_STATE, RUN, "inbox.steer", [QUEUED])
    control: JsonObject = {"status": "cancel_requested", "requestedAt": 5, "drainedSteer": [], "drainedFollowUp": []}
    return edited(state, N.OP_STATE, RUN, "control", control)


def misprepared() -> State:
    files: JsonObject = {"read": [], "written": [], "edited": []}
    branch: JsonObject = {"kind": "branch_summary", "messages": [], "fileOps": files, "totalTokens": 1}
    return put(
        summarizing("control", RUNNING)(), N.OP_PREPARATION, f"{compaction.COMPACTION}:{compaction.TASK}", branch
    )


def labelled(label: str) -> State:
    """A navigation to the root that has a label."""
    state = navigation.moving(runs.plain_run(), None).state
    told = edited(state, N.OP_META, navigation.NAVIGATION, "intent.label", label)
    return edited(told, N.OP_STATE, navigation.NAVIGATION, "label", label)


def from_the_root() -> State:
    """A navigation that summarizes the branch of a lane at its root."""
    state = navigation.summarizing(runs.plain_run(), navigation.ASKED, 1, 2, 3).state
    rooted = edited(state, N.OP_META, navigation.NAVIGATION, "sourceLeafId", None)
    return put(rooted, N.LANE_LEAF, "main", None)


def both_under_way() -> State:
    walk = runs.with_tools()
    runs.clear(walk, 1)
    runs.clear(walk, 3)
    return edited(walk.state, N.OP_STATE, RUN, "settings.toolExecution", "sequential")


def result_before_its_predecessor() -> State:
    first: JsonObject = {"status": "planned", "sourceIndex": 1, "resultEntryId": uid(95, 77)}
    second: JsonObject = {"status": "completed", "sourceIndex": 3, "resultEntryId": C1, "terminate": False}
    return edited(tools(), N.OP_STATE, RUN, "phase.batch.calls", [first, second])


def reused_seq() -> State:
    state = runs.prompted().state
    entry = state.entries[uid(95, 2)]
    return replace(state, entries=state.entries.set(entry.id, replace(entry, seq=entry.seq + 2)))


BROKEN: list[tuple[str, Callable[[], State]]] = [
    ("ids_are_unique", shared_id),
    ("sequence_numbers_are_unique", reused_seq),
    ("sequence_numbers_are_unique", lambda: replace(runs.prompted().state, next_seq=2)),
    ("parents_come_first", misplaced_parent),
    ("stats_equal_the_ledger", lambda: replace(runs.prompted().state, stats=State.empty().stats)),
    ("responses_are_settled", pending_response),
    ("entries_carry_their_content", tailless_compaction),
    ("registers_have_their_shape", lambda: put(runs.opened().state, N.LANE_CONFIG, "main", {})),
    ("everything_is_readable", lambda: dropped(runs.prompted().state, N.LANE_LEAF, "main")),
    ("everything_is_readable", lambda: dropped(runs.prompted().state, N.OP_STATE, RUN)),
    ("everything_is_readable", lambda: edited(navigating("root"), N.OP_META, RUN, "intent", {"kind": "compaction"})),
    ("every_operation_is_owned", lambda: edited(tools(), N.LANE_STATE, "main", "currentOperationId", None)),
    ("every_operation_is_owned", lambda: edited(tools(), N.OP_META, RUN, "lane", "other")),
    ("every_operation_is_owned", lambda: put(runs.plain_run().state, N.OP_TOOL_ARGS, f"{RUN}:s:0", {})),
    ("every_operation_is_owned", two_lanes_one_operation),
    ("state_fits_the_intent", lambda: navigating("elsewhere")),
    ("queued_content_waits_once", lambda: put(runs.opened().state, N.PENDING_ENTRY, QUEUED, PENDING)),
    ("queued_content_waits_once", lambda: edited(unread_run(), N.OP_STATE, RUN, "inbox.writes", [QUEUED])),
    ("queued_content_waits_once", lambda: edited(
        put(unread_run(), N.PENDING_ENTRY, QUEUED, PENDING), N.OP_STATE, RUN, "inbox.steer", [QUEUED, QUEUED])),
    ("queued_content_waits_once", lambda: edited(
        put(unread_run(), N.PENDING_ENTRY, uid(95, 1), PENDING), N.OP_STATE, RUN, "inbox.steer", [uid(95, 1)])),
    ("leaves_exist", lambda: put(runs.opened().state, N.LANE_LEAF, "main", "gone")),
    ("named_entries_exist", lambda: edited(unread_run(), N.OP_META, RUN, "sourceLeafId", "gone")),
    ("named_entries_exist", lambda: edited(unread_run(), N.OP_META, RUN, "intent.promptEntryIds", ["gone"])),
    ("named_entries_exist", lambda: edited(runs.prompted().state, N.OP_STATE, RUN, "phase.triggerEntryId", "x")),
    ("named_entries_exist", run_state("latestAssistantEntryId", "gone")),
    ("named_registers_exist", lambda: dropped(tools(), N.OP_TOOL_ARGS, f"{RUN}:{STEP}:3")),
    ("reserved_ids_are_free", lambda: after(
        unread_run(), InsertUsage(row=NewUsage(id=U1, adjustment=True, usage=usage())))),
    ("reserved_ids_are_free", run_state("phase.batch.calls.1.resultEntryId", R1)),
    ("reserved_ids_are_free", summarizing("structural.generation.context.resultEntryId", R1)),
    ("reserved_ids_are_free", summarizing("structural.generation.request", {"index": 1, "usageId": U1})),
    ("structural_work_fits", summarizing("structural.generation.context.taskId", "another")),
    ("structural_work_fits", summarizing("structural.generation.context.reason", "overflow")),
    ("structural_work_fits", summarizing("structural.generation.usageIds", ["gone"])),
    ("structural_work_fits", lambda: put(summarizing("control", {"status": "running"})(), N.LANE_LEAF, "main", R1)),
    ("batches_are_complete", run_state("phase.batch.calls.1.sourceIndex", 2)),
    ("batches_are_complete", run_state("phase.batch.calls", [])),
    ("batches_are_complete", run_state("phase.batch.calls.1.resultEntryId", C1)),
    ("results_match_their_calls", run_state("phase.batch.calls.0.resultEntryId", R1)),
    ("results_match_their_calls", run_state("phase.batch.calls.0.terminate", True)),
    ("truncated_calls_never_start", truncated_and_started),
    ("everything_is_readable", lambda: dropped(runs.prompted().state, N.LANE_CONFIG, "main")),
    ("state_fits_the_intent", summarizing("customInstructions", "more")),
    ("results_name_ended_operations", lambda: put(
        unread_run(), N.LANE_LAST_RESULT, "main",
        {"operationId": RUN, "kind": "run", "leafId": None, "outcome": "completed"})),
    ("facts_are_about_what_exists", lambda: put(runs.opened().state, N.FACT_LABEL, "gone", "here")),
    ("facts_are_about_what_exists", lambda: put(runs.opened().state, N.FACT_NAME, "title", "a name")),
    ("reserved_ids_are_free", lambda: edited(unread_run(), N.OP_STATE, RUN, "phase.generation.usageId", R1)),
    ("reserved_ids_are_free", lambda: put(unread_run(), N.PENDING_ENTRY, R1, PENDING)),
    ("aborted_responses_stand_under_cancellation", lambda: latest(inbox.answered(), "aborted")),
    ("cancelled_runs_owe_no_input", cancelled_with_input),
    ("navigations_have_somewhere_to_go", lambda: navigating("root")),
    ("navigations_have_somewhere_to_go", lambda: labelled("here")),
    ("navigations_have_somewhere_to_go", from_the_root),
    ("preparations_are_of_their_work", misprepared),
    ("attempts_are_within_their_policy", lambda: edited(unread_run(), N.OP_STATE, RUN, "phase.generation.attempt", 99)),
    ("attempts_are_within_their_policy", lambda: edited(unread_run(), N.OP_STATE, RUN, "phase.generation.attempt", 0)),
    ("attempts_are_within_their_policy", summarizing("structural.generation.attempt", 99)),
    ("what_may_finish_has_its_response", lambda: edited(
        runs.prompted().state, N.OP_STATE, RUN, "phase.continuation",
        {"kind": "may_finish", "includeFinalAssistant": True})),
    ("deferred_sources_are_deferred", lambda: latest(deferred.suspended(), "stop")),
    ("calls_settle_in_source_order", both_under_way),
    ("calls_settle_in_source_order", result_before_its_predecessor),
]  # fmt: skip


@pytest.mark.covers("INV-12", "INV-13", "INV-15", "ST-0.3-04")
@pytest.mark.parametrize("scenario", runs.SCENARIOS)
def test_every_invariant_holds_before_and_after_every_commit(scenario: Callable[[], Walk]) -> None:
    walk = scenario()
    assert [invariants.check(state) for state in (*(step.before for step in walk.steps), walk.state)] == [
        () for _ in range(len(walk.steps) + 1)
    ]


@pytest.mark.covers("INV-18")
@pytest.mark.parametrize("scenario", runs.SCENARIOS)
def test_a_turn_is_owed_with_unused_overflow_recovery_unless_a_compaction_came_before(
    scenario: Callable[[], Walk],
) -> None:
    used = [
        write.value["phase"]["continuation"]["overflowRecoveryUsed"]  # type: ignore[index,call-overload]
        for step in scenario().steps
        for write in step.commit.writes
        if isinstance(write, SetRegister) and "need_assistant" in str(write.value)
    ]
    assert not any(used)


@pytest.mark.covers("INV-17", "INV-20")
@pytest.mark.parametrize("name, state", BROKEN, ids=[f"{name}-{at}" for at, (name, _) in enumerate(BROKEN)])
def test_a_broken_invariant_is_found_by_name(name: str, state: Callable[[], State]) -> None:
    assert name in {broken.name for broken in invariants.check(state())}


def test_every_invariant_has_a_state_that_breaks_it_and_nothing_else() -> None:
    alone = {name for name, state in BROKEN if {broken.name for broken in invariants.check(state())} == {name}}
    assert {invariant.name for invariant in invariants.INVARIANTS} <= alone


@pytest.mark.parametrize("name, state", BROKEN, ids=[f"{name}-{at}" for at, (name, _) in enumerate(BROKEN)])
def test_a_commit_that_writes_everything_at_once_is_told_all_that_its_state_breaks(
    name: str, state: Callable[[], State]
) -> None:
    broken = state()
    held = {(space, key): (None, one) for space, cells in broken.namespaces.items() for key, one in cells.items()}
    rows = tuple(sorted(broken.usage.values(), key=lambda row: row.seq))
    entries = tuple(broken.entries.values())
    delta = Delta(before=State.empty(), timestamp=3, seqs=(), entries=entries, usage=rows, registers=held)
    changes = {rule.__name__ for _, rule in CHANGES}
    found = [one for one in invariants.check_commit(broken, delta) if one.name not in changes]
    assert sorted(map(str, found)) == sorted(map(str, invariants.check(broken)))


@pytest.mark.covers("ST-9.1-08")
@pytest.mark.parametrize("scenario", runs.SCENARIOS)
def test_without_operations_and_queues_the_conversation_and_the_ledger_are_whole(
    scenario: Callable[[], Walk],
) -> None:
    for step in scenario().steps:
        state = step.before
        for namespace in (N.OP_META, N.OP_STATE, N.OP_TOOL_ARGS, N.OP_PREPARATION, N.PENDING_ENTRY):
            for key in state.keys(namespace):
                state = dropped(state, namespace, key)
        rest = {"every_operation_is_owned", "everything_is_readable", "queued_content_waits_once"}
        assert {broken.name for broken in invariants.check(state)} <= rest
        assert dict(state.entries) == dict(step.before.entries)


def test_a_reserved_result_that_is_placed_is_no_longer_reserved() -> None:
    state = tools()
    assert C1 in state.entries
    assert C2 not in state.entries
    assert invariants.check(state) == ()
