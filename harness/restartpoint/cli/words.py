"""Values of a session in a few words for people: ids, entries, messages, usage, times."""

from __future__ import annotations

import datetime
import re
from collections.abc import Iterable
from typing import assert_never

from restartpoint.contract import (
    AgentMessage,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    LaneLastResult,
    MessagePayload,
    UnsetType,
    Usage,
    encode_json,
    role_of,
    source_calls,
    stop_reason_of,
    text_of,
)

__all__ = ["LONGEST_VALUE", "ShortIds", "at_time", "entry_words", "last_result_words", "usage_words", "value_words"]

LONGEST_VALUE = 400
"""More characters of one value are never shown; the JSON document has them all."""

_SHORTEST = 6

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")


class ShortIds:
    """Ends of ids, long enough to tell the given ids apart; an id of at most twelve characters stays whole."""

    def __init__(self, ids: Iterable[str]) -> None:
        long = {each for each in ids if len(each) > 2 * _SHORTEST}
        length = _SHORTEST
        while len({each[-length:] for each in long}) < len(long):
            length += 2
        self._length = length

    def __call__(self, id: str) -> str:
        """The short form."""
        return id if len(id) <= 2 * _SHORTEST else f"…{id[-self._length :]}"

    def within(self, text: str) -> str:
        """The text with every UUID in it in its short form."""
        return _UUID.sub(lambda found: self(found[0]), text)


def at_time(milliseconds: int) -> str:
    """A time of Unix milliseconds in UTC; the number itself when no calendar has it."""
    try:
        return datetime.datetime.fromtimestamp(milliseconds / 1000, datetime.UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
    except (ValueError, OverflowError, OSError):
        return f"{milliseconds} ms"


def value_words(value: object) -> str:
    """A durable value as JSON."""
    return encode_json(value).decode()


def usage_words(usage: Usage) -> str:
    """Tokens and cost, only the parts that are not zero."""
    names = (("input", "in"), ("output", "out"), ("cacheRead", "cache read"), ("cacheWrite", "cache write"))
    parts = [f"{usage[key]} {word}" for key, word in names if usage.get(key)]
    cost = usage.get("cost")
    total = cost.get("total") if isinstance(cost, dict) else None
    return ", ".join([*parts, *([f"cost {total}"] if total else [])]) or "nothing"


def entry_words(entry: Entry) -> tuple[str, str]:
    """What kind of entry it is, and what it says."""
    payload = entry.payload
    match payload:
        case MessagePayload():
            return message_words(payload.message)
        case CompactionPayload():
            return "compaction", payload.summary
        case BranchSummaryPayload():
            return "branch summary", payload.summary
        case CustomPayload():
            data = "" if isinstance(payload.data, UnsetType) else value_words(payload.data)
            return f"custom {payload.custom_type}", data
        case _:
            assert_never(payload)


def message_words(message: AgentMessage) -> tuple[str, str]:
    """The role of a message, and what it says and asks for."""
    role, text = role_of(message), text_of(message)
    if role == "toolResult":
        name, failed = message.get("toolName"), " (error)" if message.get("isError") else ""
        return "tool result", f"{name}{failed}: {text}"
    if role != "assistant":
        return role, text
    calls = [f"{call.name}({value_words(call.arguments)})" for call in source_calls(message)]
    reason = stop_reason_of(message)
    ended = [f"[{reason}: {message.get('errorMessage', '')}]"] if reason in {"error", "aborted", "deferred"} else []
    return role, " ".join(part for part in (text, *(f"→ {call}" for call in calls), *ended) if part)


def last_result_words(result: LaneLastResult) -> str:
    """How the latest operation of a lane ended."""
    because = "" if isinstance(result.error, UnsetType) else f": {result.error.message}"
    return f"{result.kind} {result.outcome}{because}"
