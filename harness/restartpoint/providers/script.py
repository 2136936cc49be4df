"""Scripts: what a scripted model answers, as values that can be written in Python or loaded from JSON."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract import AgentMessage, JsonObject, StopReason, Usage, text_of
from restartpoint.errors import InvalidOptions

__all__ = [
    "Position", "Script", "ScriptedCall", "ScriptedResponse", "Step", "asks", "fails", "load_script", "position_in",
    "says",
]  # fmt: skip


class _Value(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A part of a script; field names are camelCase in JSON."""


class ScriptedCall(_Value, frozen=True, kw_only=True):
    """A tool call. Without an ``id`` it gets ``call_<step>_<index>``, which is the same in every process."""

    name: str
    arguments: JsonObject = {}
    id: str | None = None


class ScriptedResponse(_Value, frozen=True, kw_only=True):
    """One answer of the model; ``delay_ms`` in milliseconds of the injected timers.

    The stop reason is ``error`` with ``error``, ``deferred`` with ``deferred``, ``toolUse`` with calls, else ``stop``,
    unless ``stop_reason`` says otherwise. ``raises`` makes the request raise instead of answering.
    """

    name: str = ""
    """Names the answer to ``release()``, ``reached()`` and the records."""
    text: str = ""
    chunks: list[str] = []
    """Parts of the text to stream one by one; without any, the text is streamed as one part."""
    thinking: str = ""
    calls: list[ScriptedCall] = []
    error: str | None = None
    raises: str | None = None
    deferred: JsonObject | None = None
    stop_reason: StopReason | None = None
    usage: Usage | None = None
    delay_ms: int = 0
    stall: Literal["request", "stream"] | None = None
    """Wait for ``release()`` or the signal: before the response begins, or after its first part."""
    streamed: bool = True
    """False: settle without a start event."""
    status: int = 200
    headers: dict[str, str] = {}

    @property
    def reason(self) -> StopReason:
        """The stop reason of the settled message."""
        if self.stop_reason is not None:
            return self.stop_reason
        if self.error is not None:
            return "error"
        if self.deferred is not None:
            return "deferred"
        return "toolUse" if self.calls else "stop"

    @property
    def parts(self) -> list[str]:
        """The text as it is streamed."""
        return self.chunks or ([self.text] if self.text else [])


Step: TypeAlias = ScriptedResponse | list[ScriptedResponse]
"""One answer, or one per attempt of the same step (the last one repeats)."""


class Script(_Value, frozen=True, kw_only=True):
    """What the model answers when.

    ``order="context"``: the step is the number of assistant messages that the request's context holds (since its last
    user message for ``prompts``), so that a process that resumes goes on where the killed one stopped. Failed
    responses are not in the context: give such a step a list. ``order="arrival"``: simply the next one.
    """

    steps: list[Step] = []
    prompts: dict[str, list[Step]] = {}
    """Answers by the exact text of the last user message; ``steps`` answers every other text."""
    order: Literal["context", "arrival"] = "context"


class Position(msgspec.Struct, frozen=True, kw_only=True):
    """Where a request stands: assistant messages in all, those since the last user message, and its text."""

    total: int
    since_prompt: int
    prompt: str


def position_in(messages: list[AgentMessage]) -> Position:
    """The position of a request with that context."""
    total, since, prompt = 0, None, ""
    for message in reversed(messages):
        role = message.get("role")
        if role == "assistant":
            total += 1
        elif role == "user" and since is None:
            since, prompt = total, text_of(message)
    return Position(total=total, since_prompt=total if since is None else since, prompt=prompt)


def load_script(source: bytes | str) -> Script:
    """The script that a JSON text holds.

    Raises:
        InvalidOptions: names the path of the first misfit.
    """
    try:
        return msgspec.json.decode(source, type=Script)
    except msgspec.DecodeError as error:
        raise InvalidOptions("script", str(error)) from error


def says(text: str, *, name: str = "") -> ScriptedResponse:
    """An answer of text that ends the turn."""
    return ScriptedResponse(text=text, name=name)


def asks(*calls: ScriptedCall, text: str = "", name: str = "") -> ScriptedResponse:
    """An answer that calls tools."""
    return ScriptedResponse(text=text, calls=list(calls), name=name)


def fails(error: str, *, name: str = "") -> ScriptedResponse:
    """An answer with stop reason ``error``; whether it is retryable is what its text says."""
    return ScriptedResponse(error=error, name=name)
