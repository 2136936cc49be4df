"""The calls of a cancelled batch: each gets its result in source order, and none starts (§4.6).

The last result of the batch is ``complete_batch``, whatever its kind.
"""

from restartpoint_reference.transitions.cancellation import cancellation_is_requested
from restartpoint_reference.transitions.frame import View, Writes, transition
from restartpoint_reference.transitions.tools import (
    RESULT,
    ToolResult,
    batch_after,
    more_calls_are_open,
    settled_call,
    settles_as,
    tool_result,
)
from restartpoint_reference.vocabulary.states import ToolsPhase


def _settled(view: View, inputs: ToolResult) -> Writes:
    return settled_call(view, inputs, ToolsPhase(batch=batch_after(view, inputs)))


@transition(
    "T38",
    section="4.6",
    phases=("tools",),
    inputs=ToolResult,
    guards=(cancellation_is_requested, *RESULT, settles_as("cancel_planned_tool"), more_calls_are_open),
    extract=tool_result,
)
def cancel_planned_tool(view: View, inputs: ToolResult) -> Writes:
    """A call that was never cleared gets a synthetic aborted result."""
    return _settled(view, inputs)


@transition(
    "T38b",
    section="4.6",
    phases=("tools",),
    inputs=ToolResult,
    guards=(cancellation_is_requested, *RESULT, settles_as("cancel_refused_tool"), more_calls_are_open),
    extract=tool_result,
)
def cancel_refused_tool(view: View, inputs: ToolResult) -> Writes:
    """A call that was intended but never started gets a synthetic aborted result (decision AMB-40)."""
    return _settled(view, inputs)


@transition(
    "T39",
    section="4.6",
    phases=("tools",),
    inputs=ToolResult,
    guards=(cancellation_is_requested, *RESULT, settles_as("settle_cancelled_tool"), more_calls_are_open),
    extract=tool_result,
)
def settle_cancelled_tool(view: View, inputs: ToolResult) -> Writes:
    """A call that had started settles with its own result, which ends nothing."""
    return _settled(view, inputs)


@transition(
    "T40",
    section="4.6",
    phases=("tools",),
    inputs=ToolResult,
    guards=(cancellation_is_requested, *RESULT, settles_as("interrupt_cancelled_tool"), more_calls_are_open),
    extract=tool_result,
)
def interrupt_cancelled_tool(view: View, inputs: ToolResult) -> Writes:
    """A call whose outcome is unknown gets a synthetic interrupted result, also if it might run again."""
    return _settled(view, inputs)
