"""Resources, per-attempt option patches, and the validation of settings before anyone sees them (§0.7, §5.2)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

import msgspec

from restartpoint.contract.configuration import (
    CompactionSettings,
    NormalizedRetryPolicy,
    RetryPolicy,
    StreamOptions,
)  # fmt: skip
from restartpoint.contract.json import MAX_SAFE_INTEGER, UNSET, JsonObject, JsonValue, UnsetType, check_json
from restartpoint.errors import InvalidJson, InvalidOptions

__all__ = [
    "PromptTemplate", "Resources", "Skill", "StreamOptionsPatch", "check_compaction_settings", "check_readable",
    "check_retry_policy",
    "normalized_retry", "patched_options",
]  # fmt: skip

StreamOptionsPatch: TypeAlias = Mapping[str, "JsonValue | UnsetType | Mapping[str, JsonValue | UnsetType]"]
"""Option fields to replace. ``UNSET`` deletes a field; ``headers`` and ``metadata`` are patched key by key."""

_OWNED_BY_THE_HARNESS = frozenset({
    "signal", "onPayload", "onResponse", "onEvent", "beforePayload", "before_payload", "on_response", "emit",
    "callbacks", "telemetryContext",
})  # fmt: skip
_KEYED = frozenset({"headers", "metadata"})


class Skill(msgspec.Struct, frozen=True, kw_only=True):
    """A named instruction that ``skill()`` expands into a prompt."""

    name: str
    description: str
    content: str


class PromptTemplate(msgspec.Struct, frozen=True, kw_only=True):
    """A named prompt that ``prompt_from_template()`` fills with arguments."""

    name: str
    description: str
    content: str


class Resources(msgspec.Struct, frozen=True, kw_only=True):
    """What prompts may be expanded from."""

    skills: tuple[Skill, ...] = ()
    prompt_templates: tuple[PromptTemplate, ...] = ()


def patched_options(options: StreamOptions, patch: StreamOptionsPatch) -> StreamOptions:
    """New options with the patch applied field by field; signals and callbacks in it are dropped (§5.6, §9.3)."""
    patched: JsonObject = dict(options)
    for name, value in patch.items():
        if name in _OWNED_BY_THE_HARNESS or callable(value):
            continue
        if name in _KEYED and isinstance(value, Mapping):
            base = patched.get(name)
            patched[name] = _merged(base if isinstance(base, dict) else {}, value)
        else:
            _assign(patched, name, value)
    return patched


def _merged(base: JsonObject, patch: Mapping[str, JsonValue | UnsetType]) -> JsonObject:
    merged = dict(base)
    for key, value in patch.items():
        _assign(merged, key, value)
    return merged


def _assign(target: JsonObject, key: str, value: object) -> None:
    if value is UNSET:
        target.pop(key, None)
    else:
        target[key] = value  # type: ignore[assignment]


def check_readable(option: str, value: msgspec.Struct) -> None:
    """Return when a durable value can be read back from a file; a session with another one would never open again.

    Raises:
        InvalidOptions: names the option and the field.
    """
    try:
        check_json(value, option)
        msgspec.convert(msgspec.to_builtins(value), type(value))
    except (InvalidJson, msgspec.ValidationError) as error:
        raise InvalidOptions(option, str(error)) from error


def check_retry_policy(policy: RetryPolicy) -> None:
    """Return when both numbers are non-negative safe integers and one more attempt is still safe (§0.7).

    Raises:
        InvalidOptions: names the setting.
    """
    _check_count("retry.max_retries", policy.max_retries, MAX_SAFE_INTEGER - 1)
    _check_count("retry.base_delay_ms", policy.base_delay_ms, MAX_SAFE_INTEGER)


def check_compaction_settings(settings: CompactionSettings) -> None:
    """Return when both token counts are non-negative safe integers (§0.7).

    Raises:
        InvalidOptions: names the setting.
    """
    _check_count("compaction.reserve_tokens", settings.reserve_tokens, MAX_SAFE_INTEGER)
    _check_count("compaction.keep_recent_tokens", settings.keep_recent_tokens, MAX_SAFE_INTEGER)


def normalized_retry(policy: RetryPolicy) -> NormalizedRetryPolicy:
    """The stored form: ``max_retries + 1`` attempts in all, one when retry is disabled (§0.7)."""
    attempts = policy.max_retries + 1 if policy.enabled else 1
    return NormalizedRetryPolicy(max_attempts=attempts, base_delay_ms=policy.base_delay_ms)


def _check_count(option: str, value: object, most: int) -> None:
    if type(value) is not int or not 0 <= value <= most:
        raise InvalidOptions(option, f"{value!r} is not an integer from 0 to {most}")
