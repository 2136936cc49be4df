"""Tool calls: intent, results in source order, the end of a batch, and interrupted calls (§3.8, §4.5)."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

from restartpoint_reference.shapes import UNSET, JsonObject, Unset
from restartpoint_reference.transitions.frame import (
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    delete,
    insert_message,
    set_leaf,
    set_state,
    transition,
)
from restartpoint_reference.vocabulary.entries import InsertUsage, Namespace, NewUsage, SetRegister
from restartpoint_reference.vocabulary.messages import StopReason, role, source_calls, text_blocks
from restartpoint_reference.vocabulary.states import (
    CancelRequested,
    Checkpoint,
    CompletedCall,
    MayFinish,
    NeedAssistant,
    PendingCall,
    PlannedCall,
    Replay,
    RunPhase,
    ToolBatch,
    ToolCall,
    ToolExecution,
    ToolsPhase,
)

INTERRUPTED: Final = "This tool call was interrupted"
"""How a synthetic interrupted result begins: nothing else in the commit tells it from a tool's own error."""

NOT_EXECUTED: Final = "This tool call was not executed"
"""How a synthetic aborted result begins, for the same reason."""


def step_id(batch: ToolBatch) -> str:
    """The producing generation's step: the turn id without a poll's suffix (decision AMB-08)."""
    return batch.turn_id.partition(":poll:")[0]


def tool_args_key(view: View, source_index: int) -> str:
    """The key of a call's effective arguments (§1.3)."""
    return f"{view.operation_id}:{step_id(view.batch)}:{source_index}"


def tool_args_keys(view: View) -> list[str]:
    """The arguments of the batch that exist, ascending (decisions AMB-05, AMB-06)."""
    return view.state.keys(Namespace.OP_TOOL_ARGS, f"{view.operation_id}:{step_id(view.batch)}:")


def next_to_settle(batch: ToolBatch) -> ToolCall:
    """The first call without a result: results enter the tree in source order (§3.8)."""
    for call in batch.calls:
        if not isinstance(call, CompletedCall):
            return call
    raise NotThis("every call of the batch is completed")


def with_call(batch: ToolBatch, changed: ToolCall) -> ToolBatch:
    """The batch with one call in another status."""
    calls = tuple(changed if call.source_index == changed.source_index else call for call in batch.calls)
    return replace(batch, calls=calls)


# --- intent


@dataclass(frozen=True, kw_only=True)
class IntendTool(Inputs):
    """Which call is cleared, its effective arguments, and whether the tool may run again."""

    source_index: int
    arguments: JsonObject
    replay: Replay


def _intended(view: View, seen: Seen) -> IntendTool:
    write = seen.set(Namespace.OP_TOOL_ARGS)
    match seen.run().phase:
        case ToolsPhase(batch=batch) if isinstance(write.value, dict):
            for before, after in zip(view.batch.calls, batch.calls, strict=False):
                if isinstance(before, PlannedCall) and isinstance(after, PendingCall):
                    return IntendTool(source_index=after.source_index, arguments=write.value, replay=after.replay)
    raise NotThis("no planned call becomes pending")


def call_is_planned(view: View, inputs: IntendTool) -> str | None:
    """Only a planned call is cleared (§3.8)."""
    planned = [call.source_index for call in view.batch.calls if isinstance(call, PlannedCall)]
    return None if inputs.source_index in planned else f"call {inputs.source_index} is not planned"


def batch_is_complete(view: View, _: Inputs) -> str | None:
    """A response that was cut at its limit executes none of its calls (§3.7)."""
    return "the response was truncated" if is_truncated(view) else None


def sequence_is_kept(view: View, inputs: IntendTool) -> str | None:
    """In sequential execution every lower call is completed (§3.8)."""
    if view.run.settings.tool_execution is ToolExecution.PARALLEL:
        return None
    lower = [call for call in view.batch.calls if call.source_index < inputs.source_index]
    return None if all(isinstance(call, CompletedCall) for call in lower) else "a lower call is not completed"


def is_truncated(view: View) -> bool:
    """Whether the batch's response stopped by its output limit."""
    return view.message(view.batch.assistant_entry_id).get("stopReason") == StopReason.LENGTH


@transition(
    "T30",
    section="3.8",
    phases=("tools",),
    inputs=IntendTool,
    guards=(control_is_running, call_is_planned, batch_is_complete, sequence_is_kept),
    extract=_intended,
)
def intend_tool(view: View, inputs: IntendTool) -> Writes:
    """The intent of one call: its effective arguments and its replay declaration, before it starts."""
    for call in view.batch.calls:
        if call.source_index == inputs.source_index:
            pending = PendingCall(
                source_index=call.source_index, result_entry_id=call.result_entry_id, replay=inputs.replay
            )
            phase = ToolsPhase(batch=with_call(view.batch, pending))
            key = tool_args_key(view, call.source_index)
            return (
                SetRegister(namespace=Namespace.OP_TOOL_ARGS, key=key, value=inputs.arguments),
                set_state(view, replace(view.run, phase=phase)),
            )
    raise NotThis(f"no call {inputs.source_index}")


# --- results


@dataclass(frozen=True, kw_only=True)
class ToolResult(Inputs):
    """The result of the next call in source order: its message, whether it asks to end the run, reported usage."""

    message: JsonObject
    terminate: bool = False
    usage_id: str | Unset = UNSET
    usage: JsonObject | Unset = UNSET


def tool_result(_: View, seen: Seen) -> ToolResult:
    """The inputs of any settlement of a call."""
    entry = seen.first_entry()
    row = seen.usage[0] if seen.usage else None
    return ToolResult(
        message=seen.first_message(),
        terminate="terminate" in entry.payload,
        usage_id=UNSET if row is None else row.id,
        usage=UNSET if row is None else row.usage,
    )


def result_answers_the_call(view: View, inputs: ToolResult) -> str | None:
    """The message is the result of the call whose turn it is, by provider id and tool name (§3.3)."""
    index = next_to_settle(view.batch).source_index
    for source in source_calls(view.message(view.batch.assistant_entry_id)):
        if source.source_index == index:
            answered = (inputs.message.get("toolCallId"), inputs.message.get("toolName"))
            if role(inputs.message) == "toolResult" and answered == (source.id, source.name):
                return None
            return f"expected the result of {source.name} {source.id} at {index}, found that of {answered}"
    return f"the response has no call at {index}"


def usage_is_whole(_: View, inputs: ToolResult) -> str | None:
    """A reported usage has a row id (§1.6)."""
    return "a usage row has an id and a usage" if (inputs.usage is UNSET) != (inputs.usage_id is UNSET) else None


def kind_of_settlement(view: View, inputs: ToolResult) -> str:
    """Which way the next call settles: the name of the transition that it would be in mid-batch.

    A pending call's error that begins with agreed words, reports no usage and ends nothing is a synthetic one.
    """
    words = text_blocks(inputs.message) if _is_plain_error(inputs) else ""
    cancelled = isinstance(view.run.control, CancelRequested)
    match next_to_settle(view.batch):
        case PlannedCall() if cancelled:
            return "cancel_planned_tool"
        case PlannedCall():
            return "refuse_truncated_tool" if is_truncated(view) else "refuse_tool"
        case _ if words.startswith(INTERRUPTED):
            return "interrupt_cancelled_tool" if cancelled else "interrupt_tool"
        case _ if cancelled:
            return "cancel_refused_tool" if words.startswith(NOT_EXECUTED) else "settle_cancelled_tool"
        case _:
            return "settle_tool"


def _is_plain_error(inputs: ToolResult) -> bool:
    return inputs.message.get("isError") is True and not inputs.terminate and inputs.usage is UNSET


def result_fits_the_call(view: View, inputs: ToolResult) -> str | None:
    """A call that never ran gets an error and no usage; only an intentional block may end the run (§3.8, §4.6)."""
    match kind_of_settlement(view, inputs):
        case "settle_tool":
            return None
        case "settle_cancelled_tool":
            return "a cancelled run is not ended by a tool" if inputs.terminate else None
        case "refuse_tool":
            if inputs.message.get("isError") is not True or inputs.usage is not UNSET:
                return "a refused call gets an error result without usage"
        case _ if not _is_plain_error(inputs):
            return "a call that did not run gets an error result that ends nothing"
    return None


def batch_after(view: View, inputs: ToolResult) -> ToolBatch:
    """The batch with the next call completed."""
    call = next_to_settle(view.batch)
    done = CompletedCall(
        source_index=call.source_index, result_entry_id=call.result_entry_id, terminate=inputs.terminate
    )
    return with_call(view.batch, done)


def _is_last(view: View) -> bool:
    return sum(not isinstance(call, CompletedCall) for call in view.batch.calls) == 1


def _all_terminate(view: View, inputs: ToolResult) -> bool:
    calls = batch_after(view, inputs).calls
    return all(isinstance(call, CompletedCall) and call.terminate for call in calls)


def settled_call(view: View, inputs: ToolResult, phase: RunPhase, *deleted: str) -> Writes:
    """The writes of every settlement of a call: its result, reported usage, and the next state (§3.8)."""
    result_id = next_to_settle(view.batch).result_entry_id
    usage: Writes = ()
    if inputs.usage is not UNSET and inputs.usage_id is not UNSET:
        row = NewUsage(id=inputs.usage_id, entry_id=result_id, adjustment=False, usage=inputs.usage)
        usage = (InsertUsage(row=row),)
    return (
        insert_message(result_id, view.leaf, inputs.message, terminate=inputs.terminate),
        set_leaf(view, result_id),
        *usage,
        *delete(Namespace.OP_TOOL_ARGS, *deleted),
        set_state(view, replace(view.run, phase=phase)),
    )


def more_calls_are_open(view: View, _: Inputs) -> str | None:
    """This is not the last result of the batch (§3.8)."""
    return "the last result completes the batch" if _is_last(view) else None


def call_is_last(view: View, _: Inputs) -> str | None:
    """This is the last result of the batch (§3.8)."""
    return None if _is_last(view) else "calls remain open"


def settles_as(name: str) -> Callable[[View, ToolResult], str | None]:
    """The guard that the next call settles in this way, by its status, the control and the result (§3.8, §4.6)."""

    def call_settles_so(view: View, inputs: ToolResult) -> str | None:
        kind = kind_of_settlement(view, inputs)
        return None if kind == name else f"the call settles by {kind}"

    return call_settles_so


def every_result_terminates(view: View, inputs: ToolResult) -> str | None:
    """Every result of the batch asks to end the run (§3.8)."""
    return None if _all_terminate(view, inputs) else "a result does not ask to end the run"


def some_result_continues(view: View, inputs: ToolResult) -> str | None:
    """Some result of the batch does not ask to end the run (§3.8)."""
    return "every result asks to end the run" if _all_terminate(view, inputs) else None


RESULT: Final = (result_answers_the_call, usage_is_whole, result_fits_the_call)
"""What is asked of every result."""


@transition(
    "T31",
    section="3.8",
    phases=("tools",),
    inputs=ToolResult,
    guards=(control_is_running, *RESULT, settles_as("settle_tool"), more_calls_are_open),
    extract=tool_result,
)
def settle_tool(view: View, inputs: ToolResult) -> Writes:
    """A call that ran settles with its result, reported usage, and next state."""
    return settled_call(view, inputs, ToolsPhase(batch=batch_after(view, inputs)))


@transition(
    "T32",
    section="3.8",
    phases=("tools",),
    inputs=ToolResult,
    guards=(control_is_running, *RESULT, settles_as("refuse_tool"), more_calls_are_open),
    extract=tool_result,
)
def refuse_tool(view: View, inputs: ToolResult) -> Writes:
    """A call that may not run, unknown, invalid or blocked, gets an error result at its source position."""
    return settled_call(view, inputs, ToolsPhase(batch=batch_after(view, inputs)))


@transition(
    "T33",
    section="3.7, 3.8",
    phases=("tools",),
    inputs=ToolResult,
    guards=(control_is_running, *RESULT, settles_as("refuse_truncated_tool"), more_calls_are_open),
    extract=tool_result,
)
def refuse_truncated_tool(view: View, inputs: ToolResult) -> Writes:
    """A call of a response that was cut at its limit gets an error result that explains it."""
    return settled_call(view, inputs, ToolsPhase(batch=batch_after(view, inputs)))


@transition(
    "T36",
    section="4.5",
    phases=("tools",),
    inputs=ToolResult,
    guards=(control_is_running, *RESULT, settles_as("interrupt_tool"), more_calls_are_open),
    extract=tool_result,
)
def interrupt_tool(view: View, inputs: ToolResult) -> Writes:
    """A call whose outcome is unknown, and that may not run again, gets a synthetic interrupted result."""
    return settled_call(view, inputs, ToolsPhase(batch=batch_after(view, inputs)))


@transition(
    "T34",
    section="3.8",
    phases=("tools",),
    inputs=ToolResult,
    guards=(control_is_running, *RESULT, call_is_last, every_result_terminates),
    extract=tool_result,
    detail=kind_of_settlement,
)
def complete_terminating_batch(view: View, inputs: ToolResult) -> Writes:
    """The last result settles and all ask to end the run: it may finish without another turn."""
    result_id = next_to_settle(view.batch).result_entry_id
    phase = Checkpoint(continuation=MayFinish(include_final_assistant=False), trigger_entry_id=result_id)
    return settled_call(view, inputs, phase, *tool_args_keys(view))


@transition(
    "T35",
    section="3.8",
    phases=("tools",),
    inputs=ToolResult,
    guards=(*RESULT, call_is_last, some_result_continues),
    extract=tool_result,
    detail=kind_of_settlement,
)
def complete_batch(view: View, inputs: ToolResult) -> Writes:
    """The last result settles: the results go to the model, which owes a turn unless the run is cancelled."""
    result_id = next_to_settle(view.batch).result_entry_id
    phase = Checkpoint(continuation=NeedAssistant(overflow_recovery_used=False), trigger_entry_id=result_id)
    return settled_call(view, inputs, phase, *tool_args_keys(view))
