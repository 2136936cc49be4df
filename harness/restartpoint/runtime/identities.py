"""Durable names that must be registered before the work that needs them may start (§4.4)."""

from __future__ import annotations

import msgspec

from restartpoint.contract import (
    AgentMessage,
    AssistantPhase,
    CallCompleted,
    CallEffectPending,
    CallPlanned,
    GenerationReady,
    LaneConfiguration,
    MessagePayload,
    RunState,
    ToolBatch,
    ToolCall,
    ToolsPhase,
    source_call,
    stop_reason_of,
)  # fmt: skip
from restartpoint.runtime.restore import Restored
from restartpoint.runtime.services import Services

__all__ = [
    "MissingNames", "missing_for_call", "missing_identities", "missing_models", "missing_tools", "needed_next",
]  # fmt: skip


class MissingNames(msgspec.Struct, frozen=True, kw_only=True):
    """Names that a lane's configuration uses and nobody registered."""

    tools: tuple[str, ...] = ()
    models: tuple[str, ...] = ()

    @property
    def any(self) -> bool:
        """True when something is missing."""
        return bool(self.tools or self.models)


def missing_models(services: Services, configuration: LaneConfiguration) -> tuple[str, ...]:
    """The configured model's name when no registered model has that identity."""
    model = configuration.model
    return () if services.models.resolve(model) is not None else (f"{model.provider}/{model.model_id}",)


def missing_tools(services: Services, configuration: LaneConfiguration) -> tuple[str, ...]:
    """The active tool names that no registered tool has, in the configured order."""
    tools = services.settings.current.tools
    return tuple(name for name in configuration.active_tool_names if name not in tools)


def missing_identities(services: Services, configuration: LaneConfiguration) -> MissingNames:
    """Everything that admission needs: the model and every active tool."""
    return MissingNames(tools=missing_tools(services, configuration), models=missing_models(services, configuration))


def missing_for_call(services: Services, batch: ToolBatch, message: AgentMessage, call: ToolCall) -> tuple[str, ...]:
    """The tool names whose absence keeps an open call from its next step.

    A planned call needs the whole active set, since nothing of a batch starts while one is missing; a safe replay needs
    its own tool; an interrupted or truncated call needs none.
    """
    if stop_reason_of(message) == "length":
        return ()
    missing = missing_tools(services, batch.configuration)
    if isinstance(call, CallPlanned):
        return missing
    source = source_call(message, call.source_index)
    replayed = isinstance(call, CallEffectPending) and call.replay == "safe" and source is not None
    return tuple(name for name in missing if replayed and source is not None and name == source.name)


def needed_next(services: Services, restored: Restored, state: RunState) -> MissingNames:
    """What the very next work of a restored run would invoke and cannot; recovery without effects needs nothing."""
    match state.phase:
        case AssistantPhase(generation=GenerationReady(context=context)):
            return MissingNames(models=missing_models(services, context.configuration))
        case ToolsPhase(batch=batch):
            payload = restored.entries[batch.assistant_entry_id].payload
            call = next((call for call in batch.calls if not isinstance(call, CallCompleted)), None)
            if call is None or not isinstance(payload, MessagePayload):
                return MissingNames()
            return MissingNames(tools=missing_for_call(services, batch, payload.message, call))
        case _:
            return MissingNames()
