"""The values of the registers that outlive or announce an operation: lanes, acceptance data, queued content (§1.3)."""

from dataclasses import dataclass
from enum import StrEnum

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Record, Refused, Unset
from restartpoint_reference.vocabulary.messages import read_message


class OperationKind(StrEnum):
    """The three kinds of operation (§3.1)."""

    RUN = "run"
    COMPACTION = "compaction"
    NAVIGATION = "navigation"


class Outcome(StrEnum):
    """How an operation ended (§3.13)."""

    COMPLETED = "completed"
    FAILED = "failed"
    ABORTED = "aborted"
    DECLINED = "declined"


class RunCompletion(StrEnum):
    """What completed a run: an assistant's last word, or tools that all asked to end it (§3.8, §3.13)."""

    ASSISTANT = "assistant"
    TERMINATED_TOOLS = "terminated_tools"


class ErrorCode(StrEnum):
    """The codes of operation errors (decision AMB-47)."""

    PROVIDER_ERROR = "provider_error"
    RETRIES_EXHAUSTED = "retries_exhausted"
    CONTEXT_OVERFLOW = "context_overflow"
    UNKNOWN_OUTCOME = "unknown_outcome"
    DEFERRED_HANDLE_INVALID = "deferred_handle_invalid"
    DEFERRED_HANDLE_MISMATCH = "deferred_handle_mismatch"
    DEFERRED_FAILED = "deferred_failed"
    COMPACTION_DECLINED = "compaction_declined"
    COMPACTION_FAILED = "compaction_failed"
    BRANCH_SUMMARY_FAILED = "branch_summary_failed"


@dataclass(frozen=True, kw_only=True)
class OperationError(Record):
    """Why an operation failed (§3.2)."""

    code: ErrorCode
    message: str
    details: Json | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class ModelIdentity(Record):
    """The durable name of a model (§2.3)."""

    provider: str
    model_id: str


@dataclass(frozen=True, kw_only=True)
class LaneConfiguration(Record):
    """The total configuration of a lane (§2.3)."""

    model: ModelIdentity
    thinking_level: str
    active_tool_names: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LaneState(Record):
    """Which operation a lane has open, and what waits for its next run (§3.3)."""

    current_operation_id: str | None
    pending_next_run: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class LaneLastResult(Record):
    """The terminal outcome of the lane's most recent operation (§3.13)."""

    operation_id: str
    kind: OperationKind
    leaf_id: str | None
    final_assistant_entry_id: str | Unset = UNSET
    outcome: Outcome
    error: OperationError | Unset = UNSET
    run_completion: RunCompletion | Unset = UNSET

    def check(self) -> None:
        """An error exactly on failure; completion and final assistant only where the specification admits them."""
        if (self.outcome is Outcome.FAILED) != (self.error is not UNSET):
            raise Refused("present exactly when the outcome is failed", "error")
        if self.run_completion is not UNSET and self.outcome is not Outcome.COMPLETED:
            raise Refused("only on completion", "runCompletion")
        extra = self.run_completion is not UNSET or self.final_assistant_entry_id is not UNSET
        if extra and self.kind is not OperationKind.RUN:
            raise Refused("only runs have a completion or a final assistant", "kind")


@dataclass(frozen=True, kw_only=True)
class RunIntent(Record, kind="run"):
    """What a run was asked: the caller's own entries, not queued or injected ones (§3.1)."""

    prompt_entry_ids: tuple[str, ...]
    system_prompt_override: str | Unset = UNSET
    resume_data: JsonObject | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class CompactionIntent(Record, kind="compaction"):
    """What a compaction was asked (§3.1)."""

    custom_instructions: str | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class NavigationIntent(Record, kind="navigation"):
    """What a navigation was asked (§3.1)."""

    target_id: str | None
    summarize: bool
    label: str | Unset = UNSET
    custom_instructions: str | Unset = UNSET


@dataclass(frozen=True, kw_only=True)
class Operation(Record):
    """Acceptance data, written once (§3.1)."""

    operation_id: str
    lane: str
    source_leaf_id: str | None
    started_at: int
    intent: RunIntent | CompactionIntent | NavigationIntent

    @property
    def kind(self) -> OperationKind:
        """The kind of the operation, from its intent."""
        match self.intent:
            case RunIntent():
                return OperationKind.RUN
            case CompactionIntent():
                return OperationKind.COMPACTION
            case NavigationIntent():
                return OperationKind.NAVIGATION


@dataclass(frozen=True, kw_only=True)
class PendingMessage(Record, type="message"):
    """A message that waits for its place in the tree (§1.3, §2.2)."""

    payload: JsonObject

    def check(self) -> None:
        """The payload is a message that may be stored."""
        try:
            read_message(self.payload)
        except Refused as refused:
            raise refused.under("payload") from None


@dataclass(frozen=True, kw_only=True)
class PendingCustom(Record, type="custom"):
    """A custom entry that waits for its place; an absent payload makes an entry without data (§1.3)."""

    custom_type: str
    payload: Json | Unset = UNSET


PendingEntry = PendingMessage | PendingCustom


@dataclass(frozen=True, kw_only=True)
class CompactionSettings(Record):
    """When to compact and how much to keep (§0.7)."""

    enabled: bool
    reserve_tokens: int
    keep_recent_tokens: int

    def check(self) -> None:
        """Token counts are not negative."""
        if self.reserve_tokens < 0 or self.keep_recent_tokens < 0:
            raise Refused("token counts are not negative")


@dataclass(frozen=True, kw_only=True)
class FileOperations(Record):
    """The files a span of conversation touched, sorted (§1.3)."""

    read: tuple[str, ...]
    written: tuple[str, ...]
    edited: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class CompactionPreparation(Record, kind="compaction"):
    """The input of a compaction summary (§1.3)."""

    messages_to_summarize: tuple[JsonObject, ...]
    turn_prefix_messages: tuple[JsonObject, ...]
    retained_tail: tuple[JsonObject, ...]
    is_split_turn: bool
    tokens_before: int
    previous_summary: str | Unset = UNSET
    file_ops: FileOperations
    settings: CompactionSettings


@dataclass(frozen=True, kw_only=True)
class BranchPreparation(Record, kind="branch_summary"):
    """The input of a branch summary (§1.3)."""

    messages: tuple[JsonObject, ...]
    file_ops: FileOperations
    total_tokens: int


Preparation = CompactionPreparation | BranchPreparation
