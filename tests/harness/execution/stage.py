"""What the tests of the blocks stand on: a gate and an observer that keep a log, and a request that is easy to vary."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from restartpoint.contract import (
    AgentMessage,
    AssistantEvent,
    JsonObject,
    JsonValue,
    Model,
    ModelRequest,
    Replay,
    RequestCallbacks,
    SourceCall,
    ToolContext,
    ToolResult,
    text_block,
    user_message,
)
from restartpoint.execution import AbortMarker, AbortRequested, AssistantStreamConfig, Request
from restartpoint.seams import Signal

__all__ = ["MODEL", "USAGE", "Gate", "Log", "Observer", "PlainTool", "answer", "call", "configured", "prompt"]

MODEL = Model(provider="acme", model_id="m-1", api="acme-api", context_window=1000, max_tokens=64)
USAGE: JsonObject = {"input": 7, "output": 3, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 10, "cost": {"total": 1}}

Log = list[str]


class Gate:
    """A gate that is open until told otherwise; it writes each check into the log."""

    def __init__(self, log: Log | None = None) -> None:
        self.log: Log = [] if log is None else log
        self.signal = Signal()
        self.marker = AbortMarker()
        self.refusal: Exception | None = None

    def begin_abort(self) -> None:
        self.refusal = AbortRequested(self.marker)

    def assert_open(self) -> None:
        self.log.append("gate")
        if self.refusal is not None:
            raise self.refusal


class Observer:
    """Writes what it is shown into the log."""

    def __init__(self, log: Log) -> None:
        self.log = log
        self.shown: list[AgentMessage] = []
        self.last: AgentMessage | None = None

    def start(self, message: AgentMessage) -> None:
        self.log.append("start")
        self.shown.append(message)

    def update(self, message: AgentMessage, event: AssistantEvent) -> None:
        self.log.append("update")
        self.shown.append(message)

    def end(self, message: AgentMessage) -> None:
        self.log.append("end")
        self.last = message


def prompt(text: str = "hello") -> list[AgentMessage]:
    return [user_message(text, 1)]


def answer(**fields: Any) -> AgentMessage:
    """A sound response, with fields replaced."""
    sound: AgentMessage = {
        "role": "assistant",
        "content": [text_block("hi")],
        "api": MODEL.api,
        "provider": MODEL.provider,
        "model": MODEL.model_id,
        "usage": USAGE,
        "stopReason": "stop",
        "timestamp": 2,
    }
    return {**sound, **fields}


def returning(message: Any) -> Request:
    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        return message  # type: ignore[no-any-return]

    return request


def configured(
    log: Log,
    *,
    request: Request | None = None,
    returns: Any = None,
    observer: Observer | None = None,
    signal: Signal | None = None,
    **fields: Any,
) -> AssistantStreamConfig:
    """The configuration of one request."""
    return AssistantStreamConfig(
        **{
            "model": MODEL,
            "system_prompt": "be brief",
            "tools": (),
            "thinking_level": "off",
            "stream_options": {},
            "max_tokens": 64,
            "to_provider_messages": lambda messages: messages,
            "request": request or returning(answer() if returns is None else returns),
            "observer": observer or Observer(log),
            "signal": signal or Signal(),
            "now_ms": lambda: 99,
            **fields,
        }
    )


def call(name: str = "echo", arguments: JsonObject | None = None, id: str = "c1") -> SourceCall:
    return SourceCall(source_index=0, id=id, name=name, arguments={} if arguments is None else arguments)


class PlainTool:
    """A tool whose behaviour a test gives as two functions."""

    description = "for tests"
    replay: Replay = "never"
    execution_mode: Literal["parallel", "sequential"] = "parallel"

    def __init__(
        self,
        execute: Callable[[JsonObject, ToolContext], Awaitable[Any]] | None = None,
        prepare: Callable[[JsonObject], JsonObject] | None = None,
        name: str = "echo",
    ) -> None:
        self.name = name
        self.parameters: JsonObject = {"type": "object"}
        self._execute, self._prepare = execute, prepare
        self.prepared: list[JsonValue] = []

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        self.prepared.append(arguments)
        return arguments if self._prepare is None else self._prepare(arguments)

    def execute(self, arguments: JsonObject, context: ToolContext) -> Awaitable[ToolResult]:
        return self._run(arguments, context) if self._execute is None else self._execute(arguments, context)

    async def _run(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        return ToolResult(content=[text_block("ran")])
