"""What the world is in a test: a log that every double writes to, tools whose work a test holds, a checked vendor."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Literal, get_args

import anyio

from restartpoint.contract import (
    UNSET,
    AgentMessage,
    ArgumentsRefused,
    EntryAddedEvent,
    EventType,
    HarnessEvent,
    JsonObject,
    MessageEndEvent,
    MessagePayload,
    MessageStartEvent,
    Model,
    ModelRequest,
    RequestCallbacks,
    RunEndEvent,
    RunSuspendEvent,
    ToolContext,
    ToolEndEvent,
    ToolResult,
    ToolStartEvent,
    UnsetType,
    Usage,
    event_type,
    role_of,
    text_block,
)
from restartpoint.events import EventBus
from restartpoint.providers import ScriptedModels, Step
from restartpoint.seams import Clock, Signal

__all__ = ["CheckedModels", "Log", "Tool", "event_words", "hear"]

Work = Callable[[JsonObject, ToolContext], Awaitable[ToolResult]]


class Log:
    """What happened, in order: commits by name and effects by the doubles in ``lines``, events as well in ``told``."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.told: list[str] = []
        self.on_tool: Callable[[str, str, JsonObject], None] = lambda name, tool_call_id, arguments: None
        """Told of every call in the step in which it starts."""
        self.excuse: Callable[[str], None] = print
        """Told what the test leaves out of its judgement, and why."""

    def note(self, line: str) -> None:
        self.lines.append(line)
        self.told.append(line)

    def count(self, line: str) -> int:
        return self.lines.count(line)


@dataclass(kw_only=True)
class Tool:
    """A tool that logs when it starts. ``hold`` makes it wait for ``release()``; ``started`` tells that it began."""

    name: str
    log: Log
    replay: Literal["never", "safe"] = "never"
    execution_mode: Literal["parallel", "sequential"] = "parallel"
    terminate: bool = False
    usage: Usage | UnsetType = UNSET
    fails: str = ""
    refuses: str = ""
    breaks: str = ""
    hold: bool = False
    work: Work | None = None
    description: str = "does what the test says"
    parameters: JsonObject = field(default_factory=lambda: {"type": "object"})
    seen: list[JsonObject] = field(default_factory=list)
    contexts: list[ToolContext] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._released, self.started = anyio.Event(), anyio.Event()

    def release(self) -> None:
        self._released.set()

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        if self.breaks:
            raise RuntimeError(self.breaks)
        if self.refuses and self.refuses in str(arguments):
            raise ArgumentsRefused(f"{self.refuses} is not allowed")
        return arguments

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        self.log.note(f"tool {self.name}")
        self.log.on_tool(self.name, context.tool_call_id, arguments)
        self.seen.append(arguments)
        self.contexts.append(context)
        self.started.set()
        if self.hold:
            await self._released.wait()
        if self.fails:
            raise RuntimeError(self.fails)
        if self.work is not None:
            return await self.work(arguments, context)
        return ToolResult(content=[text_block(f"{self.name} done")], terminate=self.terminate, usage=self.usage)


class CheckedModels(ScriptedModels):
    """The scripted vendor; each request is shown to ``on_request`` and ``check`` as it arrives."""

    def __init__(self, steps: list[Step], log: Log, clock: Clock) -> None:
        super().__init__(steps, clock=clock, record=lambda kind, facts: log.note(f"request {facts['step']}"))
        self.on_request: Callable[[Model, ModelRequest], None] = lambda model, request: None
        self.check: Callable[[ModelRequest], None] | None = lambda request: None

    async def request(
        self, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        self.on_request(model, request)
        if self.check is not None:
            self.check(request)
        return await super().request(model, request, callbacks, signal)


def hear(events: EventBus, log: Log) -> None:
    """Note every event of the harness, of whatever type."""
    for name in get_args(EventType):
        events.on(name, lambda event: log.told.append(event_words(event)))


def event_words(event: HarnessEvent) -> str:
    """The event in a few words: its type, what it is about, and whether it is shown again."""
    about = ""
    match event:
        case MessageStartEvent() | MessageEndEvent():
            about = role_of(event.message)
        case EntryAddedEvent(entry=entry) if isinstance(entry.payload, MessagePayload):
            about = role_of(entry.payload.message)
        case ToolStartEvent() | ToolEndEvent():
            about = event.tool_name
        case RunEndEvent():
            about = event.outcome
        case RunSuspendEvent():
            about = event.reason
        case _:
            pass
    again = "again" if getattr(event, "recovery", UNSET) is True else ""
    return " ".join(word for word in (event_type(event), about, again) if word)
