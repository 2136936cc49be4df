"""What the world says in an exploration: a handful of messages, and the settings and limits of operations."""

from dataclasses import dataclass
from typing import Final

from restartpoint_reference.shapes import Json, JsonObject
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import CompactionSettings, LaneConfiguration, ModelIdentity
from restartpoint_reference.vocabulary.states import QueueMode, Replay, RetryPolicy, RunSettings, ToolExecution

MODEL: Final = ModelIdentity(provider="acme", model_id="m-1")
CONFIGURATION: Final = LaneConfiguration(model=MODEL, thinking_level="off", active_tool_names=("look",))
OTHER_CONFIGURATION: Final = LaneConfiguration(model=MODEL, thinking_level="high", active_tool_names=())
COMPACTION: Final = CompactionSettings(enabled=True, reserve_tokens=10, keep_recent_tokens=10)
SETTINGS: Final = RunSettings(
    compaction=COMPACTION,
    steering_mode=QueueMode.ALL,
    follow_up_mode=QueueMode.ONE_AT_A_TIME,
    tool_execution=ToolExecution.PARALLEL,
)
LIMIT: Final = 10
"""The output limit of every request, in tokens."""


@dataclass(frozen=True, kw_only=True)
class Result:
    """What a tool call comes to: an error or not, whether it asks to end the run, whether it reports usage."""

    text: str = "done"
    error: bool = False
    terminate: bool = False
    usage: bool = False


@dataclass(frozen=True, kw_only=True)
class Alphabet:
    """The responses of providers, the results of tools, what tree writes hold, and the settings of operations.

    ``attempts`` is how many attempts every retry policy admits; a slice sets it by its bounds.
    """

    responses: tuple[JsonObject, ...] = ()
    results: tuple[Result, ...] = (Result(),)
    replays: tuple[Replay, ...] = (Replay.NEVER,)
    custom_writes: tuple[bool, ...] = (True,)
    settings: RunSettings = SETTINGS
    attempts: int = 1

    @property
    def policy(self) -> RetryPolicy:
        """The retry policy that every generation captures."""
        return RetryPolicy(max_attempts=self.attempts, base_delay_ms=1)


def user(text: str) -> JsonObject:
    """A user message."""
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": 0}


def response(stop: str, *, calls: int = 0, error: str = "", output: int = LIMIT, handle: str = "") -> JsonObject:
    """An assistant message that stopped so, with this many tool calls, an error, or the handle of a later answer."""
    content: list[Json] = [
        {"type": "toolCall", "id": f"call-{index}", "name": "look", "arguments": {}} for index in range(calls)
    ]
    message: JsonObject = {
        "role": "assistant", "content": content, "api": "scripted", "provider": MODEL.provider,
        "model": MODEL.model_id, "usage": usage(output), "stopReason": stop, "timestamp": 0,
    }  # fmt: skip
    if error:
        message["errorMessage"] = error
    if handle:
        message["deferred"] = {
            "id": handle, "provider": MODEL.provider, "modelId": MODEL.model_id, "api": "scripted",
        }  # fmt: skip
    return message


def tool_result(call_id: str, name: str, result: Result) -> JsonObject:
    """The message of a tool's result."""
    return {
        "role": "toolResult", "toolCallId": call_id, "toolName": name,
        "content": [{"type": "text", "text": result.text}], "isError": result.error, "timestamp": 0,
    }  # fmt: skip


def usage(output: int) -> JsonObject:
    """A usage of so many output tokens."""
    return {**zero_usage(), "output": output}
