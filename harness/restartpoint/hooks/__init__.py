"""Awaited interception points: registration, and one runner per hook (§5.6)."""

from restartpoint.hooks.pipeline import BEFORE_TOOL_FAILED, BeforeRunOutcome, Hooks, Report
from restartpoint.hooks.registry import Handler, HookFailure, Registered, Registry

__all__ = [
    "BEFORE_TOOL_FAILED",
    "BeforeRunOutcome",
    "Handler",
    "HookFailure",
    "Hooks",
    "Registered",
    "Registry",
    "Report",
]
