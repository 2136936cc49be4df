"""Durable names that must be registered before the work that needs them may start (§4.4)."""

from __future__ import annotations

import msgspec

from restartpoint.contract import (
    AssistantPhase,
    CallEffectPending,
    CallPlanned,
    GenerationReady,
    LaneConfiguration,
    RunState,
    ToolsPhase,
)  # fmt: skip
from restartpoint.runtime.services import Services

__all__ = ["MissingNames", "missing_identities", "missing_models", "missing_tools", "needed_next"]


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


def needed_next(services: Services, state: RunState) -> MissingNames:
    """What the next work of a restored run would invoke and cannot.

    Recovery that writes synthetic results needs no registration. A batch resolves its whole active set before it
    starts a planned call or replays a safe one.
    """
    match state.phase:
        case AssistantPhase(generation=GenerationReady(context=context)):
            return MissingNames(models=missing_models(services, context.configuration))
        case ToolsPhase(batch=batch) if any(
            isinstance(call, CallPlanned) or (isinstance(call, CallEffectPending) and call.replay == "safe")
            for call in batch.calls
        ):
            return MissingNames(tools=missing_tools(services, batch.configuration))
        case _:
            return MissingNames()
