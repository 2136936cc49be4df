"""How accepted operations end for the caller who waits: frozen values to ``match`` on (§5.1)."""

from __future__ import annotations

from typing import TypeAlias

import msgspec

from restartpoint.contract.entries import Entry
from restartpoint.contract.json import JsonObject
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.operations import OperationError

__all__ = [
    "AbortAccepted", "CompactionAborted", "CompactionCompleted", "CompactionDeclined", "CompactionFailed",
    "CompactionOutcome", "MissingIdentitySuspension", "NavigationAborted", "NavigationCompleted",
    "NavigationDeclined", "NavigationFailed", "NavigationOutcome", "OperationOutcome", "RunAborted", "RunCompleted",
    "RunDeferred", "RunFailed", "RunOutcome",
]  # fmt: skip


class _Outcome(msgspec.Struct, frozen=True, kw_only=True):
    run_id: str
    """The durable id of the operation."""


class _RunOutcome(_Outcome, frozen=True, kw_only=True):
    leaf_id: str
    final_entry_id: str | None = None
    final_message: AgentMessage | None = None
    """The final assistant message; None together with its id."""


class RunCompleted(_RunOutcome, frozen=True, kw_only=True):
    """The run finished; without a final message when every tool result of its last batch ended the run."""


class RunFailed(_RunOutcome, frozen=True, kw_only=True):
    """The run ended with an error."""

    error: OperationError


class RunAborted(_RunOutcome, frozen=True, kw_only=True):
    """The run was cancelled."""


class RunDeferred(_Outcome, frozen=True, kw_only=True):
    """The run is suspended until the provider's deferred response is fetched by ``resume()``."""

    leaf_id: str
    final_entry_id: str
    deferred: JsonObject


class MissingIdentitySuspension(_Outcome, frozen=True, kw_only=True):
    """The operation is suspended: register these models and tools, then ``resume()``."""

    leaf_id: str | None
    tools: tuple[str, ...]
    models: tuple[str, ...]


class CompactionCompleted(_Outcome, frozen=True, kw_only=True):
    """The compaction entry was published."""

    leaf_id: str
    entry: Entry


class CompactionDeclined(_Outcome, frozen=True, kw_only=True):
    """A hook declined the compaction."""

    leaf_id: str


class CompactionAborted(_Outcome, frozen=True, kw_only=True):
    """The compaction was cancelled before it was published."""

    leaf_id: str


class CompactionFailed(_Outcome, frozen=True, kw_only=True):
    """No summary could be generated."""

    leaf_id: str
    error: OperationError


class NavigationCompleted(_Outcome, frozen=True, kw_only=True):
    """The lane's leaf moved."""

    old_leaf_id: str | None
    new_leaf_id: str | None
    summary_entry: Entry | None = None


class NavigationDeclined(_Outcome, frozen=True, kw_only=True):
    """A hook declined the navigation; the leaf did not move."""

    leaf_id: str | None


class NavigationAborted(_Outcome, frozen=True, kw_only=True):
    """The navigation was cancelled; the leaf did not move."""

    leaf_id: str | None


class NavigationFailed(_Outcome, frozen=True, kw_only=True):
    """No summary could be generated; the leaf did not move."""

    leaf_id: str | None
    error: OperationError


RunOutcome: TypeAlias = RunCompleted | RunFailed | RunAborted | RunDeferred | MissingIdentitySuspension
CompactionOutcome: TypeAlias = (
    CompactionCompleted | CompactionDeclined | CompactionAborted | CompactionFailed | MissingIdentitySuspension
)
NavigationOutcome: TypeAlias = (
    NavigationCompleted | NavigationDeclined | NavigationAborted | NavigationFailed | MissingIdentitySuspension
)
OperationOutcome: TypeAlias = RunOutcome | CompactionOutcome | NavigationOutcome


class AbortAccepted(msgspec.Struct, frozen=True, kw_only=True):
    """Cancellation is durable; the queued input that the abort took out of the run."""

    run_id: str
    steer: tuple[AgentMessage, ...]
    follow_up: tuple[AgentMessage, ...]
