"""What a tool function may return, as a tool result."""

from __future__ import annotations

import msgspec

from restartpoint.contract import JsonValue, ToolResult, encode_json, text_block

__all__ = ["NO_OUTPUT", "tool_result"]

NO_OUTPUT = "(no output)"
"""What the model reads when a function returns None or an empty text."""


def tool_result(value: object) -> ToolResult:
    """A ``ToolResult`` as it is; a text as one block; any other value as compact JSON, kept in ``details`` too.

    Raises:
        TypeError: the value has no JSON form.
    """
    if isinstance(value, ToolResult):
        return value
    if value is None or value == "":
        return ToolResult(content=[text_block(NO_OUTPUT)])
    if isinstance(value, str):
        return ToolResult(content=[text_block(value)])
    plain: JsonValue = msgspec.to_builtins(value, str_keys=True)
    return ToolResult(content=[text_block(encode_json(plain).decode())], details=plain)
