"""Every message that the runtime writes in somebody else's place, and its fixed words (AMB-46; §3.7, §3.8, §4.5).

One more fixed reason lives below this layer: ``restartpoint.hooks.BEFORE_TOOL_FAILED``, the reason of the block when a
``before_tool`` handler throws.
"""

from __future__ import annotations

from restartpoint.contract import (
    AgentMessage,
    JsonObject,
    Model,
    ModelIdentity,
    StopReason,
    ToolResult,
    Usage,
    error_text,
    plain_text,
    text_block,
    zero_usage,
)

__all__ = [
    "ABORTED_CALL", "ABORTED_RESPONSE", "INTERRUPTED_CALL", "INVALID_RESULT", "MODEL_GONE", "TRUNCATED_CALL",
    "UNKNOWN_OUTCOME", "arguments_refused", "blocked_call", "call_failed", "error_result", "invalid_response",
    "synthetic_response", "unknown_tool",
]  # fmt: skip

TRUNCATED_CALL = (
    "This tool call was not executed: the response reached its output limit, so the arguments may be incomplete. "
    "Call the tool again with complete arguments."
)
ABORTED_CALL = "This tool call was not executed: the run was aborted."
INTERRUPTED_CALL = (
    "This tool call was interrupted before its result was recorded. It may have taken effect, wholly or partly, and "
    "was not repeated. Check the state of things before calling the tool again."
)
ABORTED_RESPONSE = "The response was aborted."
UNKNOWN_OUTCOME = "The outcome of the request is unknown: the process ended before the response was recorded."
MODEL_GONE = "The model was no longer registered when the request was about to start."
INVALID_RESULT = "The tool returned a result that cannot be recorded"


def unknown_tool(name: str) -> str:
    """What the model reads when it calls a tool that is not active."""
    return f"There is no tool named {plain_text(name)!r}."


def arguments_refused(name: str, reason: str) -> str:
    """What the model reads when its arguments do not fit."""
    return f"The arguments of {plain_text(name)!r} were refused: {plain_text(reason)}"


def blocked_call(reason: str) -> str:
    """What the model reads when before_tool blocks its call."""
    return f"This tool call was blocked: {plain_text(reason)}"


def call_failed(error: BaseException) -> str:
    """What the model reads when the tool raises."""
    return f"The tool failed: {error_text(error)}"


def invalid_response(objection: str) -> str:
    """The error of a response that cannot be recorded as it came."""
    return f"The provider's response cannot be used: {plain_text(objection)}."


def error_result(text: str, *, terminate: bool = False) -> ToolResult:
    """An error result of one text block."""
    return ToolResult(content=[text_block(text)], is_error=True, terminate=terminate)


def synthetic_response(
    model: Model | ModelIdentity,
    *,
    api: str,
    stop_reason: StopReason,
    error: str,
    timestamp: int,
    content: list[JsonObject] | None = None,
    usage: Usage | None = None,
) -> AgentMessage:
    """An assistant message that no provider wrote: the captured model and API, and the reason in ``errorMessage``.

    Empty content and zero usage unless something real could be kept. ``timestamp`` in Unix milliseconds.
    """
    return {
        "role": "assistant",
        "content": [*(content or [])],
        "api": api,
        "provider": model.provider,
        "model": model.model_id,
        "usage": zero_usage() if usage is None else usage,
        "stopReason": stop_reason,
        "errorMessage": plain_text(error),
        "timestamp": timestamp,
    }
