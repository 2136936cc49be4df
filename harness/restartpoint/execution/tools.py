"""One tool call, phase by phase at its durable boundaries; hooks and commits stand between the phases (§5.7, §3.8)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import msgspec

from restartpoint.contract import (
    UNSET,
    AfterToolPatch,
    AgentMessage,
    AgentTool,
    ArgumentsRefused,
    BeforeToolDecision,
    JsonObject,
    SourceCall,
    ToolContext,
    ToolResult,
    check_json,
    error_text,
)
from restartpoint.errors import InvalidJson
from restartpoint.execution import texts
from restartpoint.execution.gate import GateCheck
from restartpoint.seams import BlockingWork

__all__ = [
    "ClearedToolCall", "ExecutedToolCall", "FinalizedToolCall", "ImmediateToolOutcome", "PreparedToolCall",
    "apply_before_tool", "execute_tool_call", "finalize_tool_call", "prepare_tool_call", "synthetic_outcome",
    "tool_result_message",
]  # fmt: skip


class PreparedToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """The tool exists and took the arguments; before_tool comes next."""

    tool_call: SourceCall
    tool: AgentTool
    args: JsonObject


class ClearedToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """Nothing objects to the call: its intent may be committed and then it may run."""

    tool_call: SourceCall
    tool: AgentTool
    args: JsonObject


class ImmediateToolOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """The call never runs; its error result is known at once and waits for its turn in source order."""

    tool_call: SourceCall
    result: ToolResult


class ExecutedToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """What the effect gave back, before after_tool."""

    result: ToolResult


class FinalizedToolCall(msgspec.Struct, frozen=True, kw_only=True):
    """The result as it will be recorded."""

    tool_call: SourceCall
    result: ToolResult


def prepare_tool_call(call: SourceCall, tools: Mapping[str, AgentTool]) -> PreparedToolCall | ImmediateToolOutcome:
    """The call with its tool and effective arguments, or why it cannot run. Pure; may be repeated (§5.7)."""
    tool = tools.get(call.name)
    if tool is None:
        return synthetic_outcome(call, texts.unknown_tool(call.name))
    return _prepared(call, tool, call.arguments)


def apply_before_tool(
    prepared: PreparedToolCall, decision: BeforeToolDecision | None
) -> ClearedToolCall | ImmediateToolOutcome:
    """The call as the before_tool aggregate leaves it; replaced arguments are prepared and validated again."""
    call, args = prepared.tool_call, prepared.args
    if decision is not None and decision.block is not UNSET:
        return synthetic_outcome(call, texts.blocked_call(decision.block.reason), terminate=decision.block.terminate)
    if decision is not None and decision.args is not UNSET:
        again = _prepared(call, prepared.tool, decision.args)
        if isinstance(again, ImmediateToolOutcome):
            return again
        args = again.args
    return ClearedToolCall(tool_call=call, tool=prepared.tool, args=args)


async def execute_tool_call(
    call: ClearedToolCall,
    gate: GateCheck,
    on_update: Callable[[ToolResult], None],
    *,
    blocking: BlockingWork,
    application: Any = None,
) -> ExecutedToolCall:
    """The result of the real call; what the tool raises or returns amiss is an error result (§4.2, §5.7).

    Must be awaited in the task that runs the effect. Updates are passed on until the call settles.

    Raises:
        AbortRequested, OperationEnded, HarnessClosed, HarnessFault: from the gate; the tool was not invoked.
    """
    updates = _Updates(on_update)
    context = ToolContext(
        tool_call_id=call.tool_call.id,
        signal=gate.signal,
        update=updates.publish,
        blocking=blocking,
        application=application,
    )
    try:
        gate.assert_open()
        result = await _run(call, context)
    finally:
        updates.close()
    return ExecutedToolCall(result=result)


def finalize_tool_call(
    call: ClearedToolCall, executed: ExecutedToolCall, patch: AfterToolPatch | None
) -> FinalizedToolCall:
    """The executed result with every field that the after_tool aggregate gave replaced."""
    result = executed.result
    if patch is not None:
        result = ToolResult(
            content=result.content if patch.content is UNSET else patch.content,
            details=result.details if patch.details is UNSET else patch.details,
            is_error=result.is_error if patch.is_error is UNSET else patch.is_error,
            terminate=result.terminate if patch.terminate is UNSET else patch.terminate,
            usage=result.usage if patch.usage is UNSET else patch.usage,
        )
    return FinalizedToolCall(tool_call=call.tool_call, result=result)


def tool_result_message(call: FinalizedToolCall | ImmediateToolOutcome, timestamp: int) -> AgentMessage:
    """The tool result message of one call; ``timestamp`` in Unix milliseconds. It never holds ``terminate``."""
    message: AgentMessage = {
        "role": "toolResult",
        "toolCallId": call.tool_call.id,
        "toolName": call.tool_call.name,
        "content": call.result.content,
    }
    if call.result.details is not UNSET:
        message["details"] = call.result.details
    message["isError"] = call.result.is_error
    message["timestamp"] = timestamp
    return message


def synthetic_outcome(call: SourceCall, text: str, *, terminate: bool = False) -> ImmediateToolOutcome:
    """An error result of one fixed text for a call that does not run (or whose result is lost)."""
    return ImmediateToolOutcome(tool_call=call, result=texts.error_result(text, terminate=terminate))


def _prepared(call: SourceCall, tool: AgentTool, arguments: JsonObject) -> PreparedToolCall | ImmediateToolOutcome:
    try:
        args = tool.prepare_arguments(arguments)
        check_json(args)
    except (ArgumentsRefused, InvalidJson) as refused:
        return synthetic_outcome(call, texts.arguments_refused(call.name, str(refused)))
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises over its arguments goes back to the model
        return synthetic_outcome(call, texts.arguments_refused(call.name, error_text(error)))
    return PreparedToolCall(tool_call=call, tool=tool, args=args)


async def _run(call: ClearedToolCall, context: ToolContext) -> ToolResult:
    try:
        result = await call.tool.execute(call.args, context)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a tool raises is its error result
        return texts.error_result(texts.call_failed(error))
    objection = result_objection(result)
    return result if objection is None else texts.error_result(f"{texts.INVALID_RESULT}: {objection}")


def result_objection(result: object) -> str | None:
    """Why a tool's return value cannot be recorded, or None when it can."""
    if not isinstance(result, ToolResult):
        return f"it is {type(result).__name__}, not a ToolResult"
    content: object = result.content
    if not isinstance(content, list) or not all(isinstance(block, dict) for block in content):
        return "its content is not a list of blocks"
    usage: object = result.usage
    if usage is not UNSET and not isinstance(usage, dict):
        return "its usage is not an object"
    try:
        check_json(result)
    except InvalidJson as refused:
        return str(refused)
    return None


class _Updates:
    """Passes partial results on while the call runs."""

    def __init__(self, publish: Callable[[ToolResult], None]) -> None:
        self._publish: Callable[[ToolResult], None] | None = publish

    def publish(self, partial: ToolResult) -> None:
        if self._publish is not None:
            self._publish(partial)

    def close(self) -> None:
        self._publish = None
