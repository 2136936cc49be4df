"""Tools as the harness runs them: arguments in, one result out (§3.8, §5.7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, Protocol

import msgspec

from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.states import Replay
from restartpoint.contract.usage import Usage
from restartpoint.seams import BlockingWork, Signal

__all__ = ["AgentTool", "ArgumentsRefused", "ToolContext", "ToolResult"]


class ToolResult(msgspec.Struct, frozen=True, kw_only=True):
    """What a tool call gives back: content blocks for the model, and optional details, usage and control."""

    content: list[JsonValue]
    details: JsonValue | UnsetType = UNSET
    is_error: bool = False
    terminate: bool = False
    usage: Usage | UnsetType = UNSET


class ToolContext(msgspec.Struct, frozen=True, kw_only=True):
    """What one execution may use. ``application`` is the harness's tool context."""

    tool_call_id: str
    signal: Signal
    update: Callable[[ToolResult], None]
    blocking: BlockingWork
    application: Any = None


class ArgumentsRefused(Exception):
    """The model's arguments do not fit the tool; the text goes back to the model."""


class AgentTool(Protocol):
    """A named action that a model may call."""

    @property
    def name(self) -> str:
        """The name that the model uses."""
        ...

    @property
    def description(self) -> str:
        """What the model is told about the tool."""
        ...

    @property
    def parameters(self) -> JsonObject:
        """JSON Schema of the arguments object."""
        ...

    @property
    def replay(self) -> Replay:
        """``safe`` when a call of unknown outcome may run again with the same arguments; else ``never``."""
        ...

    @property
    def execution_mode(self) -> Literal["parallel", "sequential"]:
        """``sequential`` makes every batch that calls this tool run one call at a time."""
        ...

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """The effective arguments: pure, may be repeated; raises ``ArgumentsRefused`` when they do not fit."""
        ...

    def execute(self, arguments: JsonObject, context: ToolContext) -> Awaitable[ToolResult]:
        """The result of one call; an exception becomes an error result."""
        ...
