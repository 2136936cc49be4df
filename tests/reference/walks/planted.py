"""States that a walk starts from without having come there: registers planted as if a transition had set them."""

from dataclasses import replace

from restartpoint_reference import Json, Namespace, SetRegister, View, apply
from restartpoint_reference.vocabulary.registers import (
    CompactionIntent,
    CompactionPreparation,
    CompactionSettings,
    FileOperations,
    LaneState,
    NavigationIntent,
    Operation,
)
from restartpoint_reference.vocabulary.states import (
    Checkpoint,
    CompactionPhase,
    CompactionState,
    Deciding,
    MayFinish,
    NavigationState,
    OperationState,
    ReadyToCommit,
    Running,
    RunPhase,
)
from tests.reference.walk import Walk, uid, user
from tests.reference.walks import runs

OPERATION, TASK = uid(500, 1), uid(501, 1)
PREPARATION = CompactionPreparation(
    messages_to_summarize=(user("long ago"),), turn_prefix_messages=(), retained_tail=(user("lately"),),
    is_split_turn=False, tokens_before=900, file_ops=FileOperations(read=(), written=(), edited=()),
    settings=CompactionSettings(enabled=True, reserve_tokens=100, keep_recent_tokens=200),
)  # fmt: skip


def plant(walk: Walk, *registers: tuple[Namespace, str, Json]) -> Walk:
    """The walk with these registers set."""
    writes = [SetRegister(namespace=namespace, key=key, value=value) for namespace, key, value in registers]
    applied = apply(walk.state, writes, timestamp=1)
    assert isinstance(applied, tuple), applied
    walk.state = applied[0]
    return walk


def at(walk: Walk, phase: RunPhase) -> Walk:
    """The open run at another phase."""
    run = replace(View(walk.state, walk.lane).run, phase=phase)
    return plant(walk, (Namespace.OP_STATE, runs.RUN, run.to_json()))


def compacting_run() -> Walk:
    """A run that decides about a compaction at its threshold."""
    walk = runs.with_tools()
    leaf = View(walk.state, walk.lane).leaf
    assert leaf is not None
    after = Checkpoint(continuation=MayFinish(include_final_assistant=True), trigger_entry_id=leaf)
    phase = CompactionPhase(reason="threshold", structural=Deciding(task_id=TASK), resume_after=after)
    plant(walk, (Namespace.OP_PREPARATION, f"{runs.RUN}:{TASK}", PREPARATION.to_json()))
    return at(walk, phase)


def compaction() -> Walk:
    """A compaction by itself that is deciding."""
    return _open(CompactionIntent(), CompactionState(control=Running(), structural=Deciding(task_id=TASK)))


def navigation() -> Walk:
    """A navigation to the root that is about to move the leaf."""
    intent = NavigationIntent(target_id=None, summarize=False)
    return _open(intent, NavigationState(control=Running(), target_id=None, summarize=False, phase=ReadyToCommit()))


def _open(intent: CompactionIntent | NavigationIntent, state: OperationState) -> Walk:
    walk = runs.plain_run()
    leaf = View(walk.state, walk.lane).leaf
    operation = Operation(operation_id=OPERATION, lane=walk.lane, source_leaf_id=leaf, started_at=950, intent=intent)
    lane_state = LaneState(current_operation_id=OPERATION, pending_next_run=())
    plant(
        walk,
        (Namespace.OP_META, OPERATION, operation.to_json()),
        (Namespace.OP_STATE, OPERATION, state.to_json()),
        (Namespace.LANE_STATE, walk.lane, lane_state.to_json()),
    )
    if isinstance(state, CompactionState):
        plant(walk, (Namespace.OP_PREPARATION, f"{OPERATION}:{TASK}", PREPARATION.to_json()))
    return walk
