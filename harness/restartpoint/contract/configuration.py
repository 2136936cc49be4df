"""Lane configuration and the settings that operations capture (§0.7, §2.3, §3.2)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract.json import JsonObject

__all__ = [
    "CompactionSettings", "LaneConfiguration", "ModelIdentity", "NormalizedRetryPolicy", "QueueMode", "RetryPolicy",
    "RunSettings", "StreamOptions", "ThinkingLevel", "ToolExecution",
]  # fmt: skip

ThinkingLevel: TypeAlias = Literal["off", "minimal", "low", "medium", "high", "xhigh"]
QueueMode: TypeAlias = Literal["all", "one-at-a-time"]
ToolExecution: TypeAlias = Literal["sequential", "parallel"]

StreamOptions: TypeAlias = JsonObject
"""Curated provider options as plain JSON (maxTokens, headers, deferred, ...); never a signal or a callback."""


class _Durable(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A durable value with the specified field names and no others."""


class ModelIdentity(_Durable, frozen=True, kw_only=True):
    """The durable name of a model; it is resolved anew at each request."""

    provider: str
    model_id: str


class LaneConfiguration(_Durable, frozen=True, kw_only=True):
    """The total configuration of a lane; a setter replaces all of it."""

    model: ModelIdentity
    thinking_level: ThinkingLevel
    active_tool_names: list[str]


class CompactionSettings(_Durable, frozen=True, kw_only=True):
    """When context is compacted and how much is kept; both counts are tokens."""

    enabled: bool = True
    reserve_tokens: int = 16384
    keep_recent_tokens: int = 20000


class RetryPolicy(_Durable, frozen=True, kw_only=True):
    """The public retry setting: ``max_retries`` after the first attempt, exponential from ``base_delay_ms``."""

    enabled: bool = True
    max_retries: int = 3
    base_delay_ms: int = 2000


class NormalizedRetryPolicy(_Durable, frozen=True, kw_only=True):
    """The stored retry setting: the number of attempts in all, at least one."""

    max_attempts: int
    base_delay_ms: int


class RunSettings(_Durable, frozen=True, kw_only=True):
    """What a run captures at acceptance; later setters affect later operations."""

    compaction: CompactionSettings
    steering_mode: QueueMode
    follow_up_mode: QueueMode
    tool_execution: ToolExecution
