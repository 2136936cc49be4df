"""A request to a scripted model, and timers that a test holds."""

import anyio

from restartpoint.contract import AgentMessage, AssistantEvent, JsonValue, ModelRequest, RequestCallbacks, user_message
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels
from restartpoint.seams import Signal

__all__ = ["Caller", "HeldTimers", "StillClock", "conversation", "requested"]


class StillClock:
    """Always the same time."""

    def now_ms(self) -> int:
        return 1000


class HeldTimers:
    """Sleeps that end when the test says so."""

    def __init__(self) -> None:
        self.asked: list[int] = []
        self.ring = anyio.Event()

    async def sleep_ms(self, delay_ms: int) -> None:
        self.asked.append(delay_ms)
        await self.ring.wait()


class Caller:
    """The harness's side of a request, with a log of what the provider did."""

    def __init__(self, *, payload: JsonValue = None) -> None:
        self.log: list[str] = []
        self.events: list[AssistantEvent] = []
        self.signal = Signal()

    async def emit(self, event: AssistantEvent) -> None:
        self.log.append(event.kind)
        self.events.append(event)

    async def before_payload(self, payload: JsonValue) -> JsonValue:
        self.log.append("before_payload")
        return payload

    def on_response(self, status: int | None, headers: object) -> None:
        self.log.append(f"response {status}")

    async def ask(self, models: ScriptedModels, messages: list[AgentMessage]) -> AgentMessage:
        callbacks = RequestCallbacks(emit=self.emit, before_payload=self.before_payload, on_response=self.on_response)
        return await models.request(SCRIPTED_MODEL, requested(messages), callbacks, self.signal)


def requested(messages: list[AgentMessage]) -> ModelRequest:
    return ModelRequest(
        messages=messages,
        system_prompt=None,
        tools=(),
        thinking_level="off",
        stream_options={},
        max_tokens=64,
    )


def conversation(*texts: str) -> list[AgentMessage]:
    """User and assistant messages in turn, beginning with a user's."""
    return [
        user_message(text, 1) if index % 2 == 0 else {"role": "assistant", "content": text, "timestamp": 1}
        for index, text in enumerate(texts)
    ]
