"""What the harness asks of a model vendor: resolve an identity, run one request, redeem nothing else (§5.7)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Literal, Protocol, TypeAlias

import msgspec

from restartpoint.contract.configuration import ModelIdentity, StreamOptions, ThinkingLevel
from restartpoint.contract.json import JsonObject, JsonValue
from restartpoint.contract.messages import AgentMessage
from restartpoint.seams import Signal

__all__ = [
    "AssistantEvent", "Emit", "Model", "ModelRequest", "Models", "RequestCallbacks", "ToolDeclaration",
]  # fmt: skip


class Model(msgspec.Struct, frozen=True, kw_only=True):
    """A registered model. Both limits are tokens."""

    provider: str
    model_id: str
    api: str
    context_window: int
    max_tokens: int

    @property
    def identity(self) -> ModelIdentity:
        """The durable name."""
        return ModelIdentity(provider=self.provider, model_id=self.model_id)


class ToolDeclaration(msgspec.Struct, frozen=True, kw_only=True):
    """A tool as a request declares it; ``parameters`` is a JSON Schema of the arguments object."""

    name: str
    description: str
    parameters: JsonObject


class ModelRequest(msgspec.Struct, frozen=True, kw_only=True):
    """The provider-neutral content of one request. ``max_tokens`` is the output limit that is sent."""

    messages: list[AgentMessage]
    system_prompt: str | None
    tools: tuple[ToolDeclaration, ...]
    thinking_level: ThinkingLevel
    stream_options: StreamOptions
    max_tokens: int


class AssistantEvent(msgspec.Struct, frozen=True, kw_only=True):
    """One step of a streamed response: ``message`` is the draft so far; ``start`` comes first, at most once."""

    kind: Literal["start", "delta"]
    message: AgentMessage


Emit: TypeAlias = Callable[[AssistantEvent], Awaitable[None]]


class RequestCallbacks(msgspec.Struct, frozen=True, kw_only=True):
    """What the harness mounts on a request after its intent is durable."""

    emit: Emit
    before_payload: Callable[[JsonValue], Awaitable[JsonValue]]
    on_response: Callable[[int | None, Mapping[str, str]], None]


class Models(Protocol):
    """The registry of models and the way to run them."""

    def resolve(self, identity: ModelIdentity) -> Model | None:
        """The registered model of that identity, or None."""
        ...

    async def request(
        self, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        """The settled assistant message of one request: content, api, provider, model, usage, stopReason, timestamp.

        The request starts with the first step of this coroutine, before its first suspension. Expected failures come
        back as a message with stop reason ``error``; an exception is treated as one. ``aborted`` is returned only
        when ``signal`` is set.
        """
        ...
