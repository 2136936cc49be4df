"""Models, tools and timers that tell an ``EffectLog`` of each effect at the moment it starts, and pass it on."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from restartpoint.contract import (
    AgentMessage,
    AgentTool,
    JsonObject,
    Model,
    ModelIdentity,
    ModelRequest,
    Models,
    Replay,
    RequestCallbacks,
    ToolContext,
    ToolResult,
)
from restartpoint.hooks import Hooks
from restartpoint.seams import Signal, Timers
from restartpoint_oracle.effects import EffectLog

__all__ = ["LoggedModels", "LoggedTimers", "LoggedTool", "log_hooks", "logged_hook"]

E = TypeVar("E")
R = TypeVar("R")


class LoggedModels:
    """Models that tell the log of each request in the step in which it starts."""

    def __init__(self, inner: Models, log: EffectLog) -> None:
        self._inner, self._log = inner, log

    def resolve(self, identity: ModelIdentity) -> Model | None:
        return self._inner.resolve(identity)

    async def request(
        self, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        self._log.provider(model, request)
        return await self._inner.request(model, request, callbacks, signal)


class LoggedTool:
    """A tool that tells the log of each call in the step in which it starts."""

    def __init__(self, inner: AgentTool, log: EffectLog) -> None:
        self._inner, self._log = inner, log

    @property
    def name(self) -> str:
        return self._inner.name

    @property
    def description(self) -> str:
        return self._inner.description

    @property
    def parameters(self) -> JsonObject:
        return self._inner.parameters

    @property
    def replay(self) -> Replay:
        return self._inner.replay

    @property
    def execution_mode(self) -> Literal["parallel", "sequential"]:
        return self._inner.execution_mode

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        return self._inner.prepare_arguments(arguments)

    def execute(self, arguments: JsonObject, context: ToolContext) -> Awaitable[ToolResult]:
        self._log.tool(self._inner.name, context.tool_call_id, arguments)
        return self._inner.execute(arguments, context)


class LoggedTimers:
    """Timers that tell the log of each wait in the step in which it starts."""

    def __init__(self, inner: Timers, log: EffectLog) -> None:
        self._inner, self._log = inner, log

    async def sleep_ms(self, delay_ms: int) -> None:
        self._log.timer(delay_ms)
        await self._inner.sleep_ms(delay_ms)


def logged_hook(name: str, handler: Callable[[E], R], log: EffectLog) -> Callable[[E], R]:
    """A hook handler that tells the log of each call in the step in which it starts."""

    def start(event: E) -> R:
        log.hook(name)
        return handler(event)

    return start


def log_hooks(hooks: Hooks, log: EffectLog) -> None:
    """From now on, every handler that is registered tells the log of its calls."""
    register: Callable[..., Callable[[], None]] = hooks.on

    def on(name: str, handler: Callable[[object], object], *, id: str | None = None) -> Callable[[], None]:
        return register(name, logged_hook(name, handler, log), id=id)

    hooks.on = on  # type: ignore[method-assign, assignment]
