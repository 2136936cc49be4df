"""Messages stay plain JSON, since providers and applications shape them; this is the typed view (§0.7, §2.1)."""

from __future__ import annotations

from typing import Literal, TypeAlias, cast

import msgspec

from restartpoint.contract.json import JsonObject, JsonValue

__all__ = [
    "AgentMessage", "SourceCall", "StopReason", "image_block", "role_of", "source_call", "source_calls",
    "stop_reason_of", "text_block", "text_of", "user_message",
]  # fmt: skip

AgentMessage: TypeAlias = JsonObject

StopReason: TypeAlias = Literal["stop", "length", "toolUse", "error", "aborted", "deferred", "pending"]


class SourceCall(msgspec.Struct, frozen=True, kw_only=True):
    """A tool call as the model asked for it; ``source_index`` is its position in the message's content."""

    source_index: int
    id: str
    name: str
    arguments: JsonObject


def text_block(text: str) -> JsonObject:
    """A text content block."""
    return {"type": "text", "text": text}


def image_block(data: str, mime_type: str) -> JsonObject:
    """An image content block; ``data`` is base64."""
    return {"type": "image", "data": data, "mimeType": mime_type}


def user_message(text: str, timestamp: int, images: tuple[JsonObject, ...] = ()) -> AgentMessage:
    """A user message of one text block and any images; ``timestamp`` in Unix milliseconds."""
    blocks: list[JsonValue] = [text_block(text)] if text else []
    return {"role": "user", "content": [*blocks, *images], "timestamp": timestamp}


def role_of(message: AgentMessage) -> str:
    """The role, or "" when the message has none."""
    role = message.get("role")
    return role if isinstance(role, str) else ""


def stop_reason_of(message: AgentMessage) -> StopReason | None:
    """The stop reason of an assistant message, None on other messages."""
    return cast("StopReason | None", message.get("stopReason")) if role_of(message) == "assistant" else None


def _blocks(message: AgentMessage) -> list[JsonValue]:
    content = message.get("content")
    return content if isinstance(content, list) else []


def source_calls(message: AgentMessage) -> tuple[SourceCall, ...]:
    """Every tool call of an assistant message, by ascending position in its content."""
    found = (_call(index, block) for index, block in enumerate(_blocks(message)))
    return tuple(call for call in found if call is not None)


def source_call(message: AgentMessage, source_index: int) -> SourceCall | None:
    """The tool call at that position of the content, or None when there is none."""
    blocks = _blocks(message)
    return _call(source_index, blocks[source_index]) if 0 <= source_index < len(blocks) else None


def _call(index: int, block: JsonValue) -> SourceCall | None:
    if not isinstance(block, dict) or block.get("type") != "toolCall":
        return None
    arguments = block.get("arguments")
    return SourceCall(
        source_index=index,
        id=str(block.get("id", "")),
        name=str(block.get("name", "")),
        arguments=arguments if isinstance(arguments, dict) else {},
    )


def text_of(message: AgentMessage) -> str:
    """The text of a message: its string content, or its text blocks joined by line breaks."""
    content = message.get("content")
    if isinstance(content, str):
        return content
    texts = (block.get("text") for block in _blocks(message) if isinstance(block, dict) and block.get("type") == "text")
    return "\n".join(text for text in texts if isinstance(text, str))
