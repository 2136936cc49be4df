"""What a repository knows about a session without opening it (§2.8)."""

from __future__ import annotations

import msgspec

from restartpoint.contract.json import UNSET, UnsetType

__all__ = ["STORAGE_VERSION", "SessionMetadata"]

STORAGE_VERSION = 1
"""The storage version that this program writes."""


class SessionMetadata(msgspec.Struct, frozen=True, kw_only=True, rename="camel"):
    """Identity, age (Unix milliseconds) and origin of a session."""

    id: str
    created_at: int
    storage_version: int = STORAGE_VERSION
    store_generation: int = 1
    cwd: str | UnsetType = UNSET
    parent_session_id: str | UnsetType = UNSET
    legacy_parent_session_path: str | UnsetType = UNSET
