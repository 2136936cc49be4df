"""The after_tool aggregate of one executed call (§5.6)."""

from __future__ import annotations

from restartpoint.contract import AfterTool, AfterToolPatch
from restartpoint.execution import ClearedToolCall, ExecutedToolCall
from restartpoint.runtime.work import Work

__all__ = ["after_tool_patch"]


async def after_tool_patch(
    work: Work, turn_id: str, call: ClearedToolCall, executed: ExecutedToolCall
) -> AfterToolPatch | None:
    """The fields that the hooks replace, or None when no hook is registered."""
    hooks, source, result = work.services.hooks, call.tool_call, executed.result
    if not hooks.registered("after_tool"):
        return None
    await work.breakpoint(
        "after_tool", "Run the after_tool hooks", turnId=turn_id, toolCallId=source.id, toolName=source.name
    )
    event = AfterTool(
        lane=work.lane,
        run_id=work.operation_id,
        tool_call_id=source.id,
        tool_name=source.name,
        args=call.args,
        content=result.content,
        is_error=result.is_error,
        details=result.details,
        usage=result.usage,
    )
    work.gate.assert_open()
    return await hooks.after_tool(event)
