"""One assistant request, from context to settled message (§5.7). Knows no lane, no state, no storage, no retry."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from restartpoint.contract import (
    UNSET,
    AgentMessage,
    AgentTool,
    AssistantEvent,
    JsonValue,
    Model,
    ModelRequest,
    RequestCallbacks,
    StreamOptions,
    ThinkingLevel,
    ToolDeclaration,
    UnsetType,
    error_text,
    reported_usage,
    response_objection,
)
from restartpoint.execution import texts
from restartpoint.execution.gate import CONTROL_FLOW, AbortRequested
from restartpoint.seams import Signal

__all__ = ["AssistantObserver", "AssistantStreamConfig", "Request", "ResponseMetadata", "stream_assistant"]

Request: TypeAlias = Callable[[ModelRequest, RequestCallbacks, Signal], Awaitable[AgentMessage]]
"""Resolves the captured model, asserts the gate, and awaits ``Models.request`` with nothing between (§4.2)."""


@dataclass(frozen=True, kw_only=True, slots=True)
class ResponseMetadata:
    """What the transport said before the response's body: HTTP status and headers, when there were any."""

    status: int | None = None
    headers: Mapping[str, str]


class AssistantObserver(Protocol):
    """Follows one response: ``start`` once, ``update`` any number of times, ``end`` once. Must not raise or wait."""

    def start(self, message: AgentMessage) -> None:
        """The first draft."""
        ...

    def update(self, message: AgentMessage, event: AssistantEvent) -> None:
        """A later draft, with the event that made it."""
        ...

    def end(self, message: AgentMessage) -> None:
        """The final message, which is not recorded yet."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class AssistantStreamConfig:
    """Everything that one request needs, as executable values. ``max_tokens`` is the output limit that is sent."""

    model: Model
    system_prompt: str | None
    tools: Sequence[AgentTool]
    thinking_level: ThinkingLevel
    stream_options: StreamOptions
    max_tokens: int
    to_provider_messages: Callable[[list[AgentMessage]], list[AgentMessage] | Awaitable[list[AgentMessage]]]
    request: Request
    observer: AssistantObserver
    signal: Signal
    now_ms: Callable[[], int]
    transform_context: Callable[[list[AgentMessage], Signal], Awaitable[list[AgentMessage]]] | None = None
    before_payload: Callable[[JsonValue, Model], Awaitable[JsonValue | UnsetType]] | None = None
    """Returns the payload to send, or UNSET to keep it."""
    after_response: Callable[[AgentMessage, ResponseMetadata], Awaitable[AgentMessage]] | None = None


async def stream_assistant(messages: list[AgentMessage], config: AssistantStreamConfig) -> AgentMessage:
    """The settled assistant message of one request; ``messages`` is never changed.

    Whatever the provider raises or returns amiss comes back as a message with stop reason ``error`` (``aborted`` when
    the signal is set), with the usage that was reported.

    Raises:
        AbortRequested, OperationEnded, HarnessClosed, HarnessFault: an adapter was refused before the request began,
            or the harness ended under it.
        Exception: whatever ``to_provider_messages`` raises; it is trusted computation of the application (§4.8).
    """
    if config.transform_context is not None:
        messages = await config.transform_context(messages, config.signal)
    stream = _Stream(config)
    settled = await _settled(messages, config, stream)
    stream.close()
    final = await _after_response(settled, config, stream.metadata)
    if not stream.started:
        config.observer.start(final)
    config.observer.end(final)
    return final


async def _settled(messages: list[AgentMessage], config: AssistantStreamConfig, stream: _Stream) -> AgentMessage:
    callbacks = RequestCallbacks(emit=stream.emit, before_payload=stream.before_payload, on_response=stream.on_response)
    request = await _request(messages, config)
    try:
        message = await config.request(request, callbacks, config.signal)
    except CONTROL_FLOW:
        raise
    except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a provider raises is a failed response (§5.7)
        stream.raise_failure()
        return _failed(config, error_text(error))
    stream.raise_failure()
    objection = response_objection(message)
    return message if objection is None else _salvaged(message, objection, config)


async def _request(messages: list[AgentMessage], config: AssistantStreamConfig) -> ModelRequest:
    converted = config.to_provider_messages(messages)
    return ModelRequest(
        messages=await converted if inspect.isawaitable(converted) else converted,
        system_prompt=config.system_prompt,
        tools=tuple(
            ToolDeclaration(name=tool.name, description=tool.description, parameters=tool.parameters)
            for tool in config.tools
        ),
        thinking_level=config.thinking_level,
        stream_options=config.stream_options,
        max_tokens=config.max_tokens,
    )


async def _after_response(
    settled: AgentMessage, config: AssistantStreamConfig, metadata: ResponseMetadata
) -> AgentMessage:
    if config.after_response is None:
        return settled
    try:
        return await config.after_response(settled, metadata)
    except AbortRequested as interrupted:
        await interrupted.cancellation
        return settled


def _failed(config: AssistantStreamConfig, error: str) -> AgentMessage:
    return texts.synthetic_response(
        config.model,
        api=config.model.api,
        stop_reason="aborted" if config.signal.aborted else "error",
        error=error,
        timestamp=config.now_ms(),
    )


def _salvaged(message: object, objection: str, config: AssistantStreamConfig) -> AgentMessage:
    """An error response that keeps the reported usage, since the request was billed (§3.7)."""
    return texts.synthetic_response(
        config.model,
        api=config.model.api,
        stop_reason="error",
        error=texts.invalid_response(objection),
        timestamp=config.now_ms(),
        usage=reported_usage(message),
    )


class _Stream:
    """The callbacks of one request. Nothing of the harness travels through the provider: it is raised afterwards."""

    def __init__(self, config: AssistantStreamConfig) -> None:
        self._config = config
        self._failure: Exception | None = None
        self._open = True
        self.started = False
        self.metadata = ResponseMetadata(headers={})

    async def emit(self, event: AssistantEvent) -> None:
        if not self._open:
            return
        try:
            if self.started:
                self._config.observer.update(event.message, event)
            else:
                self.started = True
                self._config.observer.start(event.message)
        except Exception as error:
            self._failure = self._failure or error
            raise

    async def before_payload(self, payload: JsonValue) -> JsonValue:
        hook = self._config.before_payload
        if hook is None or not self._open:
            return payload
        try:
            replaced = await hook(payload, self._config.model)
        except AbortRequested as interrupted:
            await self._cancelled(interrupted)
            return payload
        except Exception as error:
            self._failure = self._failure or error
            raise
        return payload if replaced is UNSET else replaced

    def on_response(self, status: int | None, headers: Mapping[str, str]) -> None:
        self.metadata = ResponseMetadata(status=status, headers=dict(headers))

    def close(self) -> None:
        self._open = False

    def raise_failure(self) -> None:
        if self._failure is not None:
            raise self._failure

    async def _cancelled(self, interrupted: AbortRequested) -> None:
        try:
            await interrupted.cancellation
        except Exception as error:
            self._failure = self._failure or error
            raise
