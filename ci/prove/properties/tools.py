"""Tool batches and attempts: source order, one call at a time, and how a batch ends (§3.2, §3.8, §4.5)."""

from collections.abc import Callable
from dataclasses import replace
from enum import Enum
from typing import TypeAlias

from ci.prove.contract import faulty, proves
from ci.prove.states import LANE, LEAF, batch, committed, context, pending_request, run_state, session
from restartpoint_reference import Transition
from restartpoint_reference.shapes import SAFE_INTEGER, JsonObject
from restartpoint_reference.transitions.frame import Inputs, NotThis, View, Writes, set_state
from restartpoint_reference.transitions.generation import end_retry_wait, recover_assistant
from restartpoint_reference.transitions.tools import (
    ToolResult,
    complete_batch,
    complete_terminating_batch,
    next_to_settle,
    settle_tool,
    settled_call,
    tool_args_keys,
    with_call,
)
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    Checkpoint,
    CompletedCall,
    GenerationReady,
    GenerationRetryWait,
    MayFinish,
    NeedAssistant,
    PendingCall,
    PlannedCall,
    Replay,
    ToolBatch,
    ToolCall,
    ToolsPhase,
)

__all__: list[str] = []


class Status(Enum):
    """Where one call of a batch is."""

    PLANNED = "planned"
    PENDING = "pending"
    COMPLETED = "completed"
    TERMINATED = "completed, asking to end the run"

    def call(self, index: int, result: str) -> ToolCall:
        """A call of this status at this position."""
        match self:
            case Status.PLANNED:
                return PlannedCall(source_index=index, result_entry_id=result)
            case Status.PENDING:
                return PendingCall(source_index=index, result_entry_id=result, replay=Replay.SAFE)
            case Status.COMPLETED | Status.TERMINATED:
                done = self is Status.TERMINATED
                return CompletedCall(source_index=index, result_entry_id=result, terminate=done)

    @property
    def is_open(self) -> bool:
        """Whether the call has no result yet."""
        return self in (Status.PLANNED, Status.PENDING)


def _batch(*statuses: Status) -> ToolBatch:
    """A batch of these calls, at every second position of the response."""
    calls = tuple(status.call(2 * place, f"r{place}") for place, status in enumerate(statuses))
    return batch(*calls)


# --- source order

Next: TypeAlias = Callable[[ToolBatch], ToolCall]


def _running_first(batch: ToolBatch) -> ToolCall:
    """A call that is running settles before one that is only planned."""
    for call in batch.calls:
        if isinstance(call, PendingCall):
            return call
    return next_to_settle(batch)


@proves(
    next_to_settle,
    section="3.8",
    twin=_running_first,
    symbolic="three calls, each planned, pending, completed, or completed asking to end the run",
    fixed="the positions and ids",
    quick=True,
)
def first_open_call_settles_next(following: Next, first: Status, second: Status, third: Status) -> bool:
    """The next result is that of the first call without one, in source order; a batch without any has none."""
    calls = _batch(first, second, third)
    places = [place for place, status in enumerate((first, second, third)) if status.is_open]
    try:
        found = following(calls)
    except NotThis:
        return not places
    return bool(places) and found is calls.calls[places[0]]


With: TypeAlias = Callable[[ToolBatch, ToolCall], ToolBatch]


def _by_place(batch: ToolBatch, changed: ToolCall) -> ToolBatch:
    """The source index is taken for the place in the batch."""
    calls = tuple(changed if place == changed.source_index else call for place, call in enumerate(batch.calls))
    return replace(batch, calls=calls)


class Place(Enum):
    """Which call of three."""

    FIRST = 0
    SECOND = 1
    THIRD = 2


@proves(
    with_call,
    section="3.8",
    twin=_by_place,
    symbolic="three calls of every status; which of them changes, and to which status",
    fixed="the ids; the calls stand at every second position of the response",
)
def changing_a_call_changes_that_call_alone(
    changing: With, first: Status, second: Status, third: Status, place: Place, status: Status
) -> bool:
    """The changed call stands in its place, and the other calls and the rest of the batch are as they were."""
    calls = _batch(first, second, third)
    changed = status.call(2 * place.value, f"r{place.value}")
    after = changing(calls, changed)
    expected = tuple(changed if at == place.value else call for at, call in enumerate(calls.calls))
    return after.calls == expected and replace(after, calls=calls.calls) == calls


# --- the end of a batch


def _result(index: int) -> JsonObject:
    return {
        "role": "toolResult", "toolCallId": "c1" if index == 0 else "c2", "toolName": "read", "content": [],
        "isError": False, "timestamp": 3,
    }  # fmt: skip


def _some_terminate(view: View, inputs: Inputs) -> Writes:
    """One result that asks to end the run is enough."""
    if not isinstance(inputs, ToolResult):
        raise NotThis("not a result")
    calls = view.batch.calls
    asked = inputs.terminate or any(isinstance(call, CompletedCall) and call.terminate for call in calls)
    result_id = next_to_settle(view.batch).result_entry_id
    ended = Checkpoint(continuation=MayFinish(include_final_assistant=False), trigger_entry_id=result_id)
    owed = Checkpoint(continuation=NeedAssistant(overflow_recovery_used=False), trigger_entry_id=result_id)
    return settled_call(view, inputs, ended if asked else owed, *tool_args_keys(view))


@proves(
    complete_batch,
    section="3.8",
    twin=faulty(complete_batch, _some_terminate),
    symbolic="a batch of two calls: whether each result asks to end the run",
    fixed="the second call is running, nobody asked to cancel; the results",
)
def run_may_finish_only_if_every_result_asks_to_end_it(transition: Transition, first: bool, last: bool) -> bool:
    """The last result owes the model a turn, unless all ask to end the run: then the other completion is made."""
    done = Status.TERMINATED if first else Status.COMPLETED
    state = session(run_state(ToolsPhase(batch=_batch(done, Status.PENDING))))
    inputs = ToolResult(message=_result(2), terminate=last)
    owed, ended = committed(state, transition, inputs), committed(state, complete_terminating_batch, inputs)
    if (owed is None) == (ended is None):
        return False
    made = owed or ended
    phase = None if made is None else View(made[0], LANE).run.phase
    if not isinstance(phase, Checkpoint):
        return False
    finishes = phase.continuation == MayFinish(include_final_assistant=False)
    return finishes == (first and last) and (finishes or isinstance(phase.continuation, NeedAssistant))


def _out_of_order(view: View, inputs: Inputs) -> Writes:
    """The result settles the last open call instead of the first."""
    if not isinstance(inputs, ToolResult):
        raise NotThis("not a result")
    last = view.batch.calls[-1]
    done = CompletedCall(source_index=last.source_index, result_entry_id=last.result_entry_id, terminate=False)
    return settled_call(view, inputs, ToolsPhase(batch=with_call(view.batch, done)))


@proves(
    settle_tool,
    section="3.8",
    twin=faulty(settle_tool, _out_of_order),
    symbolic="a batch of two calls of every status; whether the result asks to end the run",
    fixed="nobody asked to cancel; the result answers the first call",
)
def result_completes_the_call_whose_turn_it_is(
    transition: Transition, first: Status, second: Status, terminate: bool
) -> bool:
    """If the first call is running, its result is placed under its reserved id, and only this call is completed."""
    state = session(run_state(ToolsPhase(batch=_batch(first, second))))
    made = committed(state, transition, ToolResult(message=_result(0), terminate=terminate))
    if made is None:
        return not (first is Status.PENDING and second.is_open)
    after, delta = made
    done = Status.TERMINATED if terminate else Status.COMPLETED
    placed = [(entry.id, entry.parent_id) for entry in delta.entries] == [("r0", LEAF)]
    phase = View(after, LANE).run.phase
    expected = _batch(done, second)
    return placed and first is Status.PENDING and phase == ToolsPhase(batch=expected)


# --- attempts


class Attempt(Enum):
    """The number of an attempt."""

    FIRST = 1
    SECOND = 2
    THIRD = 3


def _same_attempt(view: View, _: Inputs) -> Writes:
    """The attempt whose outcome is unknown is made again and not counted."""
    ready = GenerationReady(context=view.pending.context, next_attempt=view.pending.attempt)
    return (set_state(view, replace(view.run, phase=AssistantPhase(generation=ready))),)


@proves(
    recover_assistant,
    section="4.5",
    twin=faulty(recover_assistant, _same_attempt),
    symbolic="attempt one to three of one to three attempts",
    fixed="the captured context and the reserved ids",
)
def recovery_counts_the_lost_attempt(transition: Transition, attempt: Attempt, attempts: Attempt) -> bool:
    """It is made if and only if attempts remain; then the next one is ready with the same context, the rest stays."""
    before = run_state(pending_request(attempt.value, attempts.value))
    made = committed(session(before), transition)
    if made is None:
        return attempt.value >= attempts.value
    after, delta = made
    ready = GenerationReady(context=context(attempts.value), next_attempt=attempt.value + 1)
    kept = View(after, LANE).run == replace(before, phase=AssistantPhase(generation=ready))
    return kept and attempt.value < attempts.value and not delta.entries and not delta.usage


def _starting_over(view: View, _: Inputs) -> Writes:
    """After the wait the attempts are counted from one again."""
    match view.run.phase:
        case AssistantPhase(generation=GenerationRetryWait(context=captured)):
            ready = GenerationReady(context=captured, next_attempt=1)
            return (set_state(view, replace(view.run, phase=AssistantPhase(generation=ready))),)
    raise NotThis("no retry waits")


@proves(
    end_retry_wait,
    section="3.7, 4.5",
    twin=faulty(end_retry_wait, _starting_over),
    symbolic="a wait for attempt one to three; every time up to 2^53-1 at which it ends",
    fixed="the captured context and the error",
    given=lambda due: 0 <= due <= SAFE_INTEGER,
)
def wait_ends_with_the_attempt_that_it_waited_for(transition: Transition, attempt: Attempt, due: int) -> bool:
    """The attempt that was waited for is ready with the same context, and the rest of the run stays."""
    wait = GenerationRetryWait(
        context=context(3), next_attempt=attempt.value, not_before=due, error_message="overloaded"
    )
    before = run_state(AssistantPhase(generation=wait))
    made = committed(session(before), transition)
    if made is None:
        return False
    ready = GenerationReady(context=context(3), next_attempt=attempt.value)
    return View(made[0], LANE).run == replace(before, phase=AssistantPhase(generation=ready))
