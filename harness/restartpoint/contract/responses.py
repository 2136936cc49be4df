"""What a settled assistant response must be before anything durable may rest on it (§3.7, §5.7)."""

from __future__ import annotations

from restartpoint.contract.json import JsonValue, check_json
from restartpoint.contract.messages import AgentMessage, role_of
from restartpoint.contract.usage import Usage, zero_usage
from restartpoint.errors import InvalidJson

__all__ = ["reported_usage", "response_objection", "sound_usage"]

_SETTLED = frozenset({"stop", "length", "toolUse", "error", "aborted", "deferred"})


def response_objection(message: object) -> str | None:
    """Why ``message`` cannot be taken as a settled assistant response, or None when it can.

    It must be representable JSON of role ``assistant`` with a settled stop reason, a list of content blocks, usage
    that is an object when present, and tool calls with distinct non-empty ids, names and argument objects.
    """
    if not isinstance(message, dict):
        return f"it is {type(message).__name__}, not a message"
    try:
        check_json(message)
    except InvalidJson as refused:
        return str(refused)
    return _shape_objection(message) or _content_objection(message.get("content"))


def _shape_objection(message: AgentMessage) -> str | None:
    if role_of(message) != "assistant":
        return f"its role is {message.get('role')!r}, not 'assistant'"
    reason = message.get("stopReason")
    if not isinstance(reason, str) or reason not in _SETTLED:
        return "it has no stop reason" if reason is None else f"its stop reason {reason!r} is not a settled one"
    if not isinstance(message.get("usage", {}), dict):
        return "its usage is not an object"
    return None


def _content_objection(content: JsonValue) -> str | None:
    if not isinstance(content, list):
        return "its content is not a list of blocks"
    seen: set[str] = set()
    for index, block in enumerate(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            return f"content[{index}] is not a block"
        if block["type"] != "toolCall":
            continue
        call_id, name = block.get("id"), block.get("name")
        if not isinstance(call_id, str) or not call_id or not isinstance(name, str) or not name:
            return f"the tool call at content[{index}] has no id or no name"
        if not isinstance(block.get("arguments"), dict):
            return f"the arguments of the tool call at content[{index}] are not an object"
        if call_id in seen:
            return f"two tool calls share the id {call_id!r}"
        seen.add(call_id)
    return None


def sound_usage(value: object) -> bool:
    """Whether ``value`` is an object of representable JSON, so that the ledger can hold it."""
    if not isinstance(value, dict):
        return False
    try:
        check_json(value)
    except InvalidJson:
        return False
    return True


def reported_usage(message: object) -> Usage:
    """The usage that a response reports when it is sound, else zero usage."""
    usage = message.get("usage") if isinstance(message, dict) else None
    return usage if isinstance(usage, dict) and sound_usage(usage) else zero_usage()
