"""A model vendor that follows a script: deterministic, for tests, demos and applications under development."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeAlias, cast

import anyio
import msgspec

from restartpoint.contract import (
    AgentMessage,
    AssistantEvent,
    JsonObject,
    JsonValue,
    Model,
    ModelIdentity,
    ModelRequest,
    RequestCallbacks,
    StopReason,
    Usage,
    text_block,
    zero_usage,
)
from restartpoint.providers.script import Script, ScriptedResponse, Step, position_in
from restartpoint.seams import Clock, Signal, SystemClock, SystemTimers, Timers

__all__ = ["SCRIPTED_MODEL", "Record", "RecordedRequest", "ScriptedFailure", "ScriptedModels"]

SCRIPTED_MODEL = Model(
    provider="scripted", model_id="scripted-1", api="scripted", context_window=200_000, max_tokens=8192
)

Record: TypeAlias = Callable[[str, JsonObject], None]
"""Told of each effect at the moment it starts: its kind and a few plain facts."""


class ScriptedFailure(Exception):
    """What a scripted request raises when its answer says ``raises``."""


class RecordedRequest(msgspec.Struct, frozen=True, kw_only=True):
    """A request as it arrived."""

    model: Model
    request: ModelRequest
    signal: Signal
    answer: str
    """The name of the answer, or its position."""


class ScriptedModels:
    """Answers requests from a script, and tells ``record`` of each in the step in which it starts.

    Usage is what the answer says, else computed: 10 tokens in per message, a token out per four characters and ten
    per call. ``keep_requests=False`` keeps no request, for long runs.
    """

    def __init__(
        self,
        script: Script | Sequence[Step],
        *,
        models: Sequence[Model] = (SCRIPTED_MODEL,),
        clock: Clock | None = None,
        timers: Timers | None = None,
        record: Record | None = None,
        keep_requests: bool = True,
    ) -> None:
        self._script = script if isinstance(script, Script) else Script(steps=list(script))
        self._models = {model.identity: model for model in models}
        self._clock: Clock = clock or SystemClock()
        self._timers: Timers = timers or SystemTimers()
        self._record = record
        self._keep = keep_requests
        self._attempts: defaultdict[tuple[str, int], int] = defaultdict(int)
        self._arrivals = 0
        self._releases: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
        self._reached: defaultdict[str, anyio.Event] = defaultdict(anyio.Event)
        self.requests: list[RecordedRequest] = []

    # --- the registry ---

    def resolve(self, identity: ModelIdentity) -> Model | None:
        """The registered model of that identity, or None."""
        return self._models.get(identity)

    def register(self, model: Model) -> None:
        """Add a model, or replace the one of the same identity."""
        self._models[model.identity] = model

    def unregister(self, identity: ModelIdentity) -> None:
        """Remove a model, if it is there."""
        self._models.pop(identity, None)

    # --- what a test holds ---

    def release(self, name: str) -> None:
        """Let the answer of that name go on when it stalls, now or later."""
        self._releases[name].set()

    async def reached(self, name: str) -> None:
        """Return once the answer of that name stalls (or has stalled)."""
        await self._reached[name].wait()

    # --- requests ---

    async def request(
        self, model: Model, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal
    ) -> AgentMessage:
        """The settled message of one scripted answer (see the port)."""
        answer, number = self._next(request.messages)
        label = answer.name or str(number)
        if self._record is not None:
            self._record("assistant_request", {"answer": label, "model": model.model_id, "step": number})
        if self._keep:
            self.requests.append(RecordedRequest(model=model, request=request, signal=signal, answer=label))
        await callbacks.before_payload(_payload(model, request))
        drafts = _Drafts(answer, number, model, _usage(answer, request))
        if await self._interrupted(answer, label, "request", signal):
            return drafts.aborted(self._clock.now_ms())
        callbacks.on_response(answer.status, answer.headers)
        if answer.raises is not None:
            raise ScriptedFailure(answer.raises)
        if answer.streamed:
            await callbacks.emit(AssistantEvent(kind="start", message=drafts.draft(self._clock.now_ms())))
        for index, part in enumerate(answer.parts):
            drafts.add(part)
            if answer.streamed:
                await callbacks.emit(AssistantEvent(kind="delta", message=drafts.draft(self._clock.now_ms())))
            if await self._interrupted(answer, label, "stream" if index == 0 else None, signal):
                return drafts.aborted(self._clock.now_ms())
        return drafts.settled(self._clock.now_ms())

    def _next(self, messages: list[AgentMessage]) -> tuple[ScriptedResponse, int]:
        """The answer to a request and its step number, from 0."""
        script = self._script
        if script.order == "arrival":
            number = self._arrivals
            self._arrivals += 1
            return self._attempt(("", number), script.steps, number), number
        position = position_in(messages)
        if position.prompt in script.prompts:
            steps, index = script.prompts[position.prompt], position.since_prompt
            key = f"prompt:{position.prompt}"
        else:
            steps, index, key = script.steps, position.total, ""
        return self._attempt((key, position.total), steps, index), position.total

    def _attempt(self, key: tuple[str, int], steps: list[Step], index: int) -> ScriptedResponse:
        if index >= len(steps):
            return ScriptedResponse(error=f"the script has no answer for step {index}")
        step = steps[index]
        if isinstance(step, ScriptedResponse):
            return step
        attempt = self._attempts[key]
        self._attempts[key] += 1
        return step[min(attempt, len(step) - 1)]

    async def _interrupted(self, answer: ScriptedResponse, label: str, place: str | None, signal: Signal) -> bool:
        """Wait as the answer says for that place; whether the signal is set then."""
        if place == "request" and answer.delay_ms:
            await _first(lambda: self._timers.sleep_ms(answer.delay_ms), signal.wait)
        if place is not None and answer.stall == place:
            self._reached[label].set()
            await _first(self._releases[label].wait, signal.wait)
        return signal.aborted


class _Drafts:
    """The message of one answer as it grows."""

    def __init__(self, answer: ScriptedResponse, number: int, model: Model, usage: Usage) -> None:
        self._answer, self._number, self._model, self._usage = answer, number, model, usage
        self._text = ""

    def add(self, part: str) -> None:
        self._text += part

    def draft(self, timestamp: int) -> AgentMessage:
        return self._message(self._spoken(), "pending", zero_usage(), timestamp)

    def settled(self, timestamp: int) -> AgentMessage:
        answer = self._answer
        message = self._message([*self._spoken(), *self._calls()], answer.reason, self._usage, timestamp)
        if answer.error is not None:
            message["errorMessage"] = answer.error
        if answer.deferred is not None:
            message["deferred"] = answer.deferred
        return message

    def aborted(self, timestamp: int) -> AgentMessage:
        return self._message(self._spoken(), "aborted", self._usage, timestamp)

    def _spoken(self) -> list[JsonValue]:
        blocks: list[JsonValue] = []
        if self._answer.thinking:
            blocks.append({"type": "thinking", "thinking": self._answer.thinking})
        if self._text:
            blocks.append(text_block(self._text))
        return blocks

    def _calls(self) -> list[JsonValue]:
        return [
            {
                "type": "toolCall",
                "id": call.id or f"call_{self._number}_{index}",
                "name": call.name,
                "arguments": call.arguments,
            }
            for index, call in enumerate(self._answer.calls)
        ]

    def _message(self, content: list[JsonValue], reason: StopReason, usage: Usage, timestamp: int) -> AgentMessage:
        return {
            "role": "assistant",
            "content": content,
            "api": self._model.api,
            "provider": self._model.provider,
            "model": self._model.model_id,
            "usage": usage,
            "stopReason": reason,
            "timestamp": timestamp,
        }


def _payload(model: Model, request: ModelRequest) -> JsonValue:
    return {
        "model": model.model_id,
        "system": request.system_prompt,
        "messages": cast("list[JsonValue]", request.messages),
        "tools": [tool.name for tool in request.tools],
        "maxTokens": request.max_tokens,
        "thinkingLevel": request.thinking_level,
    }


def _usage(answer: ScriptedResponse, request: ModelRequest) -> Usage:
    if answer.usage is not None:
        return answer.usage
    spoken = len(answer.thinking) + sum(map(len, answer.parts))
    sent, received = 10 * len(request.messages), -(-spoken // 4) + 10 * len(answer.calls)
    return {**zero_usage(), "input": sent, "output": received, "totalTokens": sent + received}


async def _first(*waits: Callable[[], Awaitable[object]]) -> None:
    """Return when the first of them does; the others are cancelled."""
    async with anyio.create_task_group() as group:

        async def race(wait: Callable[[], Awaitable[object]]) -> None:
            await wait()
            group.cancel_scope.cancel()

        for wait in waits:
            group.start_soon(race, wait)
