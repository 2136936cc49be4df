"""A durable runtime for agent conversations."""

from restartpoint.contract import (
    UNSET,
    CompactionSettings,
    MissingIdentitySuspension,
    Model,
    Models,
    RetryPolicy,
    RunAborted,
    RunCompleted,
    RunDeferred,
    RunFailed,
    RunOutcome,
    SuspendedOperation,
    ToolContext,
    ToolResult,
)
from restartpoint.errors import HarnessClosed, HarnessFault, NotBuiltYet, Rejected, RestartpointError
from restartpoint.repo import JsonlRepository, MemoryRepository, SqliteRepository
from restartpoint.runtime import ActionInfo, AgentHarness, AgentLane, HarnessOptions
from restartpoint.session import Session, SessionTree

__all__ = [
    "UNSET",
    "ActionInfo",
    "AgentHarness",
    "AgentLane",
    "CompactionSettings",
    "HarnessClosed",
    "HarnessFault",
    "HarnessOptions",
    "JsonlRepository",
    "MemoryRepository",
    "MissingIdentitySuspension",
    "Model",
    "Models",
    "NotBuiltYet",
    "Rejected",
    "RestartpointError",
    "RetryPolicy",
    "RunAborted",
    "RunCompleted",
    "RunDeferred",
    "RunFailed",
    "RunOutcome",
    "Session",
    "SessionTree",
    "SqliteRepository",
    "SuspendedOperation",
    "ToolContext",
    "ToolResult",
]
