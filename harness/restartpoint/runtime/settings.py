"""Harness-wide settings on a line of their own, so that a step start and a setter have one order (§4.3)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from types import MappingProxyType

import anyio
import msgspec
from msgspec.structs import replace

from restartpoint.contract import (
    AgentTool,
    CompactionSettings,
    QueueMode,
    Resources,
    RetryPolicy,
    RunSettings,
    StreamOptions,
    ToolExecution,
    check_compaction_settings,
    check_json,
    check_readable,
    check_retry_policy,
)  # fmt: skip
from restartpoint.errors import InvalidJson, InvalidOptions, NotBuiltYet

__all__ = [
    "NO_COMPACTION", "NO_RESOURCES", "ONE_ATTEMPT", "Settings", "SettingsLine", "checked_compaction", "checked_retry",
    "checked_settings", "checked_stream_options", "checked_tools",
]  # fmt: skip


NO_RESOURCES = Resources()
ONE_ATTEMPT = RetryPolicy(enabled=False)
NO_COMPACTION = CompactionSettings(enabled=False)


class Settings(msgspec.Struct, frozen=True, kw_only=True):
    """One consistent view of every harness-wide setting; ``revision`` grows with each change."""

    tools: Mapping[str, AgentTool] = MappingProxyType({})
    stream_options: StreamOptions = {}
    retry: RetryPolicy = ONE_ATTEMPT
    compaction: CompactionSettings = NO_COMPACTION
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    tool_execution: ToolExecution = "parallel"
    resources: Resources = NO_RESOURCES
    revision: int = 0

    def captured(self) -> RunSettings:
        """What a run captures at acceptance."""
        return RunSettings(
            compaction=self.compaction,
            steering_mode=self.steering_mode,
            follow_up_mode=self.follow_up_mode,
            tool_execution=self.tool_execution,
        )


class SettingsLine:
    """Serializes setters and snapshots. It is always taken before a lane's line, never inside one."""

    def __init__(self, settings: Settings) -> None:
        self._current = settings
        self._lock = anyio.Lock(fast_acquire=True)

    @property
    def current(self) -> Settings:
        """The settings as of now."""
        return self._current

    @asynccontextmanager
    async def held(self) -> AsyncIterator[Settings]:
        """The settings, unchanged until the block ends."""
        async with self._lock:
            yield self._current

    async def change(self, **fields: object) -> Settings:
        """Replace fields and return the settings from before.

        Raises:
            InvalidOptions: a run could not be stored with them; nothing was changed.
        """
        async with self._lock:
            before = self._current
            self._current = checked_settings(replace(before, revision=before.revision + 1, **fields))
        return before


def checked_settings(settings: Settings) -> Settings:
    """The settings, when what a run captures of them can be read back from a file."""
    check_readable("settings", settings.captured())
    return settings


def checked_retry(policy: RetryPolicy) -> RetryPolicy:
    """The policy, when it is valid and this version can honour it."""
    check_retry_policy(policy)
    if policy.enabled and policy.max_retries > 0:
        raise NotBuiltYet("3.7", "retrying a failed request; pass retry=RetryPolicy(enabled=False)")
    return policy


def checked_compaction(settings: CompactionSettings) -> CompactionSettings:
    """The settings, when they are valid and this version can honour them."""
    check_compaction_settings(settings)
    if settings.enabled:
        raise NotBuiltYet("3.9", "automatic compaction; pass compaction=CompactionSettings(enabled=False)")
    return settings


def checked_stream_options(options: StreamOptions) -> StreamOptions:
    """The options, when they are plain JSON, hold nothing that the harness owns, and this version can honour them."""
    try:
        check_json(options, "stream_options")
    except InvalidJson as error:
        raise InvalidOptions("stream_options", str(error)) from error
    if options.get("deferred") not in (None, False):
        raise NotBuiltYet("3.2", "deferred generation; leave out stream_options['deferred']")
    return options


def checked_tools(tools: Sequence[AgentTool]) -> Mapping[str, AgentTool]:
    """The tools by name; two of one name are refused."""
    by_name: dict[str, AgentTool] = {}
    for tool in tools:
        if not tool.name:
            raise InvalidOptions("tools", "a tool needs a name")
        if tool.name in by_name:
            raise InvalidOptions("tools", f"two tools are named {tool.name!r}")
        if tool.replay not in ("never", "safe") or tool.execution_mode not in ("parallel", "sequential"):
            reason = f"{tool.name!r} needs replay 'never' or 'safe' and execution_mode 'parallel' or 'sequential'"
            raise InvalidOptions("tools", reason)
        by_name[tool.name] = tool
    return MappingProxyType(by_name)
