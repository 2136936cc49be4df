"""What every lane and procedure of one harness shares: ports, registries, settings, and the way to stop."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from restartpoint.contract import AgentMessage, LaneConfiguration, Models
from restartpoint.events import EventBus
from restartpoint.hooks import Hooks
from restartpoint.runtime.home import Home
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.settings import SettingsLine
from restartpoint.seams import BlockingWork, Timers
from restartpoint.session import EntryProjector, Session

__all__ = [
    "ApplicationCallbacks",
    "Services",
    "SystemPrompt",
    "ToProviderMessages",
    "ToolApplicationContext",
    "unchanged",
]

SystemPrompt: TypeAlias = str | Callable[[Any], str | Awaitable[str]] | None
ToolApplicationContext: TypeAlias = Any
ToProviderMessages: TypeAlias = Callable[[list[AgentMessage]], "list[AgentMessage] | Awaitable[list[AgentMessage]]"]


def unchanged(messages: list[AgentMessage]) -> list[AgentMessage]:
    """The messages themselves: what a provider receives when the application converts nothing."""
    return messages


@dataclass(frozen=True, kw_only=True, slots=True)
class ApplicationCallbacks:
    """Deterministic computation that the application supplies; a failure in it faults the harness (§4.8)."""

    system_prompt: SystemPrompt
    tool_context: ToolApplicationContext
    to_provider_messages: ToProviderMessages
    entry_projectors: Mapping[str, EntryProjector]

    async def evaluated_tool_context(self) -> object:
        """The tool context, computed anew when it is a function."""
        value = self.tool_context() if callable(self.tool_context) else self.tool_context
        return await value if inspect.isawaitable(value) else value

    async def evaluated_system_prompt(self) -> str | None:
        """The system prompt, computed anew when it is a function of the tool context."""
        if self.system_prompt is None or isinstance(self.system_prompt, str):
            return self.system_prompt
        value = self.system_prompt(await self.evaluated_tool_context())
        return await value if inspect.isawaitable(value) else value


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """One harness's shared parts. ``spawn`` starts a task that the harness owns and that settles the promise."""

    home: Home
    session: Session
    models: Models
    hooks: Hooks
    events: EventBus
    settings: SettingsLine
    application: ApplicationCallbacks
    seed: LaneConfiguration
    timers: Timers
    blocking: BlockingWork
    spawn: Callable[[Callable[[], Awaitable[Any]]], Promise[Any]]
    fault: Callable[[BaseException], BaseException]
    """Stop the harness because of that exception; returns the ``HarnessFault`` that every call raises from now on."""
