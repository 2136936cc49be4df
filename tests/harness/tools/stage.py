"""A context for executing tools outside a run."""

from collections.abc import Callable

from restartpoint.contract import ToolContext, ToolResult
from restartpoint.seams import BlockingWork, InlineWork, Signal

__all__ = ["context"]


def context(
    update: Callable[[ToolResult], None] = lambda partial: None, blocking: BlockingWork | None = None
) -> ToolContext:
    return ToolContext(
        tool_call_id="c1", signal=Signal(), update=update, blocking=blocking or InlineWork(), application="app"
    )
