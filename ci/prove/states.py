"""States with one open run, built from a few small choices: every one is a state that the model can be in."""

from dataclasses import replace
from enum import Enum
from typing import Final

from restartpoint_reference import Commit, Transition
from restartpoint_reference.shapes import UNSET, Json, Unset
from restartpoint_reference.store import Delta, State, Violation, apply
from restartpoint_reference.transitions.frame import Inputs, Nothing
from restartpoint_reference.vocabulary.entries import (
    Entry,
    EntryType,
    Namespace,
    Register,
)
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import (
    CompactionSettings,
    LaneConfiguration,
    LaneState,
    ModelIdentity,
    NavigationIntent,
    Operation,
    RunIntent,
)
from restartpoint_reference.vocabulary.states import (
    EMPTY_INBOX,
    AssistantPhase,
    Checkpoint,
    GenerationContext,
    GenerationPending,
    Inbox,
    MayFinish,
    NavigationState,
    OperationState,
    PendingCall,
    QueueMode,
    ReadyToCommit,
    Replay,
    RetryPolicy,
    Running,
    RunPhase,
    RunSettings,
    RunState,
    ToolBatch,
    ToolCall,
    ToolExecution,
    ToolsPhase,
)

__all__ = [
    "CONFIGURATION",
    "LANE",
    "LEAF",
    "NOTHING",
    "OPERATION",
    "Few",
    "batch",
    "committed",
    "context",
    "finishing",
    "inbox",
    "navigation",
    "pending_request",
    "run_state",
    "running_calls",
    "session",
    "with_register",
]

LANE: Final = "main"
OPERATION: Final = "op1"
LEAF: Final = "e2"
"""The entry at which the lane stands: a response with two calls."""

CONFIGURATION: Final = LaneConfiguration(
    model=ModelIdentity(provider="acme", model_id="m-1"), thinking_level="off", active_tool_names=("read",)
)


class Few(Enum):
    """How many there are of something."""

    NONE = 0
    ONE = 1
    TWO = 2


def inbox(steer: Few, follow_up: Few, writes: Few) -> Inbox:
    """An inbox of so many queued ids, oldest first."""
    return Inbox(
        steer=("s1", "s2")[: steer.value],
        follow_up=("f1", "f2")[: follow_up.value],
        writes=("w1", "w2")[: writes.value],
    )


def run_state(phase: RunPhase, waiting: Inbox = EMPTY_INBOX, mode: QueueMode = QueueMode.ALL) -> RunState:
    """The total state of a run that nobody asked to stop."""
    settings = RunSettings(
        compaction=CompactionSettings(enabled=True, reserve_tokens=1, keep_recent_tokens=1),
        steering_mode=mode,
        follow_up_mode=mode,
        tool_execution=ToolExecution.PARALLEL,
    )
    return RunState(control=Running(), settings=settings, phase=phase, inbox=waiting, latest_assistant_entry_id=LEAF)


def finishing() -> Checkpoint:
    """The checkpoint of a run that may finish."""
    return Checkpoint(continuation=MayFinish(include_final_assistant=True), trigger_entry_id=LEAF)


def context(attempts: int) -> GenerationContext:
    """The captured context of a generation that admits so many attempts."""
    return GenerationContext(
        step_id="t1",
        trigger_entry_id="e1",
        configuration=CONFIGURATION,
        stream_options={},
        retry_policy=RetryPolicy(max_attempts=attempts, base_delay_ms=10),
        overflow_recovery_used=False,
    )


def pending_request(attempt: int, attempts: int) -> AssistantPhase:
    """The phase in which this attempt of so many may have been sent."""
    pending = GenerationPending(
        context=context(attempts),
        attempt=attempt,
        response_entry_id="e9",
        usage_id="u9",
        intended_output_limit=1,
        context_window=1,
    )
    return AssistantPhase(generation=pending)


def batch(*calls: ToolCall) -> ToolBatch:
    """The batch of these calls of the response."""
    return ToolBatch(assistant_entry_id=LEAF, configuration=CONFIGURATION, turn_id="t1", calls=calls)


def running_calls() -> ToolsPhase:
    """The phase in which both calls of the response may have started."""
    calls = (
        PendingCall(source_index=index, result_entry_id=result, replay=Replay.SAFE)
        for index, result in ((0, "r0"), (2, "r1"))
    )
    return ToolsPhase(batch=batch(*calls))


def with_register(state: State, namespace: Namespace, key: str, value: Json) -> State:
    """The state with this register."""
    register = Register(namespace=namespace, key=key, value=value, seq=state.next_seq)
    namespaces = {**state.namespaces, namespace: state.namespaces[namespace].set(key, register)}
    return replace(state, namespaces=namespaces, next_seq=state.next_seq + 1)


def _message(id: str, parent: str | None, message: Json, seq: int) -> Entry:
    return Entry(id=id, parent_id=parent, type=EntryType.MESSAGE, payload={"message": message}, seq=seq, timestamp=1)


def _base() -> State:
    """A session whose main lane stands at a response with two calls, with a run open."""
    calls: list[Json] = [
        {"type": "toolCall", "id": "c1", "name": "read", "arguments": {}},
        {"type": "text", "text": "and"},
        {"type": "toolCall", "id": "c2", "name": "read", "arguments": {}},
    ]
    response: Json = {
        "role": "assistant", "content": calls, "api": "scripted", "provider": "acme", "model": "m-1",
        "usage": zero_usage(), "stopReason": "toolUse", "timestamp": 1,
    }  # fmt: skip
    made = State.empty()
    entries = made.entries.set("e1", _message("e1", None, {"role": "user", "content": "go"}, 1))
    entries = entries.set(LEAF, _message(LEAF, "e1", response, 2))
    made = replace(made, entries=entries, next_seq=3)
    operation = Operation(
        operation_id=OPERATION, lane=LANE, source_leaf_id=None, started_at=1, intent=RunIntent(prompt_entry_ids=("e1",))
    )
    lane = LaneState(current_operation_id=OPERATION, pending_next_run=("n1",))
    made = with_register(made, Namespace.LANE_LEAF, LANE, LEAF)
    made = with_register(made, Namespace.LANE_CONFIG, LANE, CONFIGURATION.to_json())
    made = with_register(made, Namespace.LANE_STATE, LANE, lane.to_json())
    made = with_register(made, Namespace.PENDING_ENTRY, "n1", _queued("n1"))
    return with_register(made, Namespace.OP_META, OPERATION, operation.to_json())


def _queued(id: str) -> Json:
    return {"type": "message", "payload": {"role": "user", "content": id}}


_BASE: Final = _base()


def session(state: OperationState) -> State:
    """The session whose open operation is in this state; whatever its inbox lists waits in its register."""
    made = with_register(_BASE, Namespace.OP_STATE, OPERATION, state.to_json())
    waiting = state.inbox if isinstance(state, RunState) else EMPTY_INBOX
    for queued in (*waiting.steer, *waiting.follow_up, *waiting.writes):
        made = with_register(made, Namespace.PENDING_ENTRY, queued, _queued(queued))
    return made


def navigation(target: str | None, label: str | Unset = UNSET) -> State:
    """The session whose open operation only has to move the leaf to this entry, or to the root."""
    intent = NavigationIntent(target_id=target, summarize=False, label=label)
    operation = Operation(operation_id=OPERATION, lane=LANE, source_leaf_id=LEAF, started_at=1, intent=intent)
    state = NavigationState(control=Running(), target_id=target, label=label, summarize=False, phase=ReadyToCommit())
    return with_register(session(state), Namespace.OP_META, OPERATION, operation.to_json())


NOTHING: Final = Nothing()


def committed(state: State, transition: Transition, inputs: Inputs = NOTHING) -> tuple[State, Delta] | None:
    """The state after the commit of this transition and what it changed; None when it may not be made."""
    commit = transition(state, LANE, inputs)
    if not isinstance(commit, Commit):
        return None
    answer = apply(state, commit.writes, timestamp=9)
    return None if isinstance(answer, Violation) else answer
