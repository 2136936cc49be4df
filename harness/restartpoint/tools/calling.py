"""How the function behind a tool is called: async ones in place, plain ones through the port for blocking work."""

from __future__ import annotations

import inspect
from collections.abc import Callable

import msgspec

from restartpoint.contract import ToolContext, ToolResult
from restartpoint.tools.results import tool_result

__all__ = ["call_function"]


async def call_function(
    function: Callable[..., object], call: Callable[[ToolContext], object], context: ToolContext
) -> ToolResult:
    """The result of ``call``, which calls ``function`` with the context that it is given (§3.8, AMB-89)."""
    if inspect.iscoroutinefunction(function):
        returned = call(context)
    else:
        inside = _for_a_thread(context)
        returned = await context.blocking.run(lambda: call(inside))
    return tool_result(await returned if inspect.isawaitable(returned) else returned)


def _for_a_thread(context: ToolContext) -> ToolContext:
    """The context as code on a worker thread may use it: updates are published where the event loop runs."""

    def update(partial: ToolResult) -> None:
        context.blocking.call_back(lambda: context.update(partial))

    return msgspec.structs.replace(context, update=update)
