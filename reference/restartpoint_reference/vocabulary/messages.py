"""Messages and usage: plain JSON that others shape, and the little that the model reads of it (§0.7, §2.1)."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final, TypeAlias, TypeVar

from restartpoint_reference.shapes import (
    Json,
    JsonObject,
    Refused,
    as_object,
    read_boolean,
    read_integer,
    read_string,
)  # fmt: skip

T = TypeVar("T")

Message: TypeAlias = JsonObject
"""A user, assistant, toolResult or application-defined message; unknown fields survive."""

Usage: TypeAlias = JsonObject
"""Token counts and a ``cost`` object; unknown fields survive and are not summed."""

TOKEN_COUNTS: Final = ("input", "output", "cacheRead", "cacheWrite", "totalTokens")
COSTS: Final = ("input", "output", "cacheRead", "cacheWrite", "total")


class StopReason(StrEnum):
    """Why an assistant response ended; ``pending`` is never stored (§2.1)."""

    STOP = "stop"
    LENGTH = "length"
    TOOL_USE = "toolUse"
    ERROR = "error"
    ABORTED = "aborted"
    DEFERRED = "deferred"
    PENDING = "pending"


@dataclass(frozen=True, kw_only=True)
class SourceCall:
    """A tool call in an assistant message; ``source_index`` is its position in the whole content array (§3.2)."""

    source_index: int
    id: str
    name: str


def role(message: Message) -> str:
    """The role of a message, empty when it has none."""
    found = message.get("role")
    return found if isinstance(found, str) else ""


def stop_reason(message: Message) -> StopReason:
    """The stop reason of an assistant message."""
    return StopReason(str(message.get("stopReason")))


def error_message(message: Message) -> str:
    """The error text of an assistant message, empty when there is none."""
    found = message.get("errorMessage")
    return found if isinstance(found, str) else ""


def source_calls(message: Message) -> tuple[SourceCall, ...]:
    """Every tool call of an assistant message, in ascending position (§3.2)."""
    content = message.get("content")
    if role(message) != "assistant" or not isinstance(content, list):
        return ()
    return tuple(
        SourceCall(source_index=index, id=str(block.get("id")), name=str(block.get("name")))
        for index, block in enumerate(content)
        if isinstance(block, dict) and block.get("type") == "toolCall"
    )


def text_blocks(message: Message) -> str:
    """The text of a message's text blocks, joined by nothing."""
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = (block for block in blocks if isinstance(block, dict) and block.get("type") == "text")
    return "".join(str(block.get("text")) for block in texts)


def read_message(value: Json) -> Message:
    """A message that may be stored, read as JSON before; raises ``Refused`` for a specified field's shape (§2.1)."""
    message = as_object(value)
    match _field(message, "role", read_string):
        case "user":
            _content(message, may_be_text=True)
        case "assistant":
            _read_assistant(message)
        case "toolResult":
            _content(message)
            _field(message, "toolCallId", read_string)
            _field(message, "toolName", read_string)
            _field(message, "isError", read_boolean)
        case _:
            pass
    return message


def _read_assistant(message: Message) -> None:
    _content(message)
    for key in ("api", "provider", "model"):
        _field(message, key, read_string)
    _field(message, "usage", read_usage)
    reason = _field(message, "stopReason", read_string)
    if reason not in {member.value for member in StopReason} - {StopReason.PENDING.value}:
        raise Refused(f"not a settled stop reason: {reason!r}", "stopReason")
    for call in source_calls(message):
        if not call.id or not call.name:
            raise Refused("a tool call needs an id and a name", f"content[{call.source_index}]")


def read_usage(value: Json) -> Usage:
    """Usage whose counts and costs are numbers (§1.6)."""
    usage = as_object(value)
    for key in TOKEN_COUNTS:
        _field(usage, key, read_integer)
    cost = _field(usage, "cost", as_object)
    for key in COSTS:
        _field(cost, key, _number)
    return usage


def zero_usage() -> Usage:
    """The usage of a synthetic settlement (§1.6)."""
    return {**dict.fromkeys(TOKEN_COUNTS, 0), "cost": dict.fromkeys(COSTS, 0)}


def add_usage(one: Usage, other: Usage) -> Usage:
    """The sum of two usages, field by field; the order of additions matters for costs (decision ST-1.6-13)."""
    costs, more = as_object(one["cost"]), as_object(other["cost"])
    summed: Usage = {key: _number(one[key]) + _number(other[key]) for key in TOKEN_COUNTS}
    summed["cost"] = {key: _number(costs[key]) + _number(more[key]) for key in COSTS}
    return summed


def _content(message: Message, *, may_be_text: bool = False) -> None:
    content = message.get("content")
    if may_be_text and isinstance(content, str):
        return
    if not isinstance(content, list):
        raise Refused("expected an array of content blocks", "content")
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise Refused("expected a content block with a type", f"content[{index}]")


def _field(holder: JsonObject, key: str, reader: Callable[[Json], T]) -> T:
    if key not in holder:
        raise Refused("missing", key)
    try:
        return reader(holder[key])
    except Refused as refused:
        raise refused.under(key) from None


def _number(value: Json) -> int | float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise Refused(f"expected a number, found {value!r}")
    return value
