"""The total state of an operation: the durable restart point (§3.2)."""

from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from restartpoint_reference.shapes import UNSET, JsonObject, Record, Refused, Unset
from restartpoint_reference.vocabulary.registers import CompactionSettings, LaneConfiguration, OperationError


class QueueMode(StrEnum):
    """How much of a queue one drain takes (§0.7)."""

    ALL = "all"
    ONE_AT_A_TIME = "one-at-a-time"


class ToolExecution(StrEnum):
    """Whether the calls of one batch may overlap (§3.8)."""

    SEQUENTIAL = "sequential"
    PARALLEL = "parallel"


class Replay(StrEnum):
    """Whether an interrupted call may run again (§3.2)."""

    NEVER = "never"
    SAFE = "safe"


@dataclass(frozen=True, kw_only=True)
class Running(Record, status="running"):
    """Nobody asked the operation to stop."""


@dataclass(frozen=True, kw_only=True)
class CancelRequested(Record, status="cancel_requested"):
    """Abort is durable; the drained items keep their registers until the terminal transaction (§3.2, §3.11)."""

    requested_at: int
    drained_steer: tuple[str, ...]
    drained_follow_up: tuple[str, ...]


Control: TypeAlias = Running | CancelRequested


@dataclass(frozen=True, kw_only=True)
class RunSettings(Record):
    """What a run captured at acceptance (§3.2)."""

    compaction: CompactionSettings
    steering_mode: QueueMode
    follow_up_mode: QueueMode
    tool_execution: ToolExecution


@dataclass(frozen=True, kw_only=True)
class NeedAssistant(Record, kind="need_assistant"):
    """A model turn is owed (§3.2)."""

    overflow_recovery_used: bool


@dataclass(frozen=True, kw_only=True)
class MayFinish(Record, kind="may_finish"):
    """Nothing is owed; the run ends unless input arrives (§3.2)."""

    include_final_assistant: bool


Continuation: TypeAlias = NeedAssistant | MayFinish


@dataclass(frozen=True, kw_only=True)
class Checkpoint(Record, kind="checkpoint"):
    """Between effects: where input may enter (§3.2, §3.12)."""

    continuation: NeedAssistant | MayFinish
    trigger_entry_id: str
    threshold_checked_trigger_entry_id: str | Unset = UNSET
    skip_inbox_once: bool | Unset = UNSET

    def check(self) -> None:
        """The flag is stored only as true (decision AMB-02)."""
        if self.skip_inbox_once is False:
            raise Refused("stored only as true", "skipInboxOnce")


@dataclass(frozen=True, kw_only=True)
class RetryPolicy(Record):
    """The normalised retry policy (§0.7): how many attempts in all, and the base of the delay."""

    max_attempts: int
    base_delay_ms: int

    def check(self) -> None:
        """At least one attempt; no negative delay."""
        if self.max_attempts < 1 or self.base_delay_ms < 0:
            raise Refused("at least one attempt and no negative delay")


@dataclass(frozen=True, kw_only=True)
class GenerationContext(Record):
    """What one generation step captured when it started (§3.2)."""

    step_id: str
    trigger_entry_id: str
    configuration: LaneConfiguration
    stream_options: JsonObject
    retry_policy: RetryPolicy
    overflow_recovery_used: bool


@dataclass(frozen=True, kw_only=True)
class GenerationReady(Record, status="ready"):
    """Nothing was sent for the next attempt (§3.2)."""

    context: GenerationContext
    next_attempt: int


@dataclass(frozen=True, kw_only=True)
class GenerationPending(Record, status="effect_pending"):
    """A request may have been sent; its output will use the reserved ids (§3.2)."""

    context: GenerationContext
    attempt: int
    response_entry_id: str
    usage_id: str
    intended_output_limit: int
    context_window: int


@dataclass(frozen=True, kw_only=True)
class GenerationRetryWait(Record, status="retry_wait"):
    """A retryable error settled; the next attempt waits for its time (§3.2)."""

    context: GenerationContext
    next_attempt: int
    not_before: int
    error_message: str


Generation: TypeAlias = GenerationReady | GenerationPending | GenerationRetryWait


@dataclass(frozen=True, kw_only=True)
class AssistantPhase(Record, kind="assistant"):
    """A generation step is under way (§3.7)."""

    generation: GenerationReady | GenerationPending | GenerationRetryWait


@dataclass(frozen=True, kw_only=True)
class PlannedCall(Record, status="planned"):
    """A call that has not been cleared (§3.2)."""

    source_index: int
    result_entry_id: str


@dataclass(frozen=True, kw_only=True)
class PendingCall(Record, status="effect_pending"):
    """A call that may have started (§3.2)."""

    source_index: int
    result_entry_id: str
    replay: Replay


@dataclass(frozen=True, kw_only=True)
class CompletedCall(Record, status="completed"):
    """A call whose result is in the tree (§3.2)."""

    source_index: int
    result_entry_id: str
    terminate: bool


ToolCall: TypeAlias = PlannedCall | PendingCall | CompletedCall


@dataclass(frozen=True, kw_only=True)
class ToolBatch(Record):
    """The tool calls of one assistant response (§3.2)."""

    assistant_entry_id: str
    configuration: LaneConfiguration
    turn_id: str
    calls: tuple[PlannedCall | PendingCall | CompletedCall, ...]


@dataclass(frozen=True, kw_only=True)
class ToolsPhase(Record, kind="tools"):
    """A tool batch is under way (§3.8)."""

    batch: ToolBatch


@dataclass(frozen=True, kw_only=True)
class SummaryContext(Record):
    """What one summary captured when generation was chosen (§3.2)."""

    task_id: str
    result_entry_id: str
    kind: str
    configuration: LaneConfiguration
    stream_options: JsonObject
    retry_policy: RetryPolicy
    reason: str | Unset = UNSET

    def check(self) -> None:
        """Kind and reason are of the specified few."""
        if self.kind not in ("compaction", "branch_summary"):
            raise Refused("expected compaction or branch_summary", "kind")
        if self.reason not in (UNSET, "manual", "threshold", "overflow"):
            raise Refused("expected manual, threshold or overflow", "reason")


@dataclass(frozen=True, kw_only=True)
class NestedRequest(Record):
    """The request of a summary attempt that may have been sent (§3.2)."""

    index: int
    usage_id: str


@dataclass(frozen=True, kw_only=True)
class SummaryReady(Record, status="ready"):
    """Nothing was sent for the next summary attempt (§3.2)."""

    context: SummaryContext
    next_attempt: int


@dataclass(frozen=True, kw_only=True)
class SummaryPending(Record, status="effect_pending"):
    """A summary attempt is under way (§3.2)."""

    context: SummaryContext
    attempt: int
    request: NestedRequest | Unset = UNSET
    usage_ids: tuple[str, ...]


@dataclass(frozen=True, kw_only=True)
class SummaryRetryWait(Record, status="retry_wait"):
    """A summary attempt failed; the next waits for its time (§3.2)."""

    context: SummaryContext
    next_attempt: int
    not_before: int
    error_message: str


@dataclass(frozen=True, kw_only=True)
class Deciding(Record, status="deciding"):
    """The decision hook has not answered durably (§3.9)."""

    task_id: str


@dataclass(frozen=True, kw_only=True)
class Generating(Record, status="generating"):
    """The decision is made: a summary is generated (§3.9)."""

    task_id: str
    generation: SummaryReady | SummaryPending | SummaryRetryWait


StructuralDecision: TypeAlias = Deciding | Generating


@dataclass(frozen=True, kw_only=True)
class CompactionPhase(Record, kind="compaction"):
    """A run compacts its context and then continues at ``resume_after`` (§3.9)."""

    reason: str
    structural: Deciding | Generating
    resume_after: Checkpoint

    def check(self) -> None:
        """Runs compact at the threshold or after overflow."""
        if self.reason not in ("threshold", "overflow"):
            raise Refused("expected threshold or overflow", "reason")


@dataclass(frozen=True, kw_only=True)
class DeferredSuspended(Record, status="suspended"):
    """A deferred response waits for a poll; ``poll`` counts the completed ones (§3.2)."""

    step_id: str
    source_entry_id: str
    poll: int
    configuration: LaneConfiguration
    stream_options: JsonObject


@dataclass(frozen=True, kw_only=True)
class DeferredPending(Record, status="effect_pending"):
    """A poll may have been sent (§3.2)."""

    step_id: str
    source_entry_id: str
    poll: int
    response_entry_id: str
    usage_id: str
    configuration: LaneConfiguration
    stream_options: JsonObject


@dataclass(frozen=True, kw_only=True)
class DeferredPhase(Record, kind="deferred"):
    """The provider answers later (§3.2)."""

    deferred: DeferredSuspended | DeferredPending


@dataclass(frozen=True, kw_only=True)
class ResponseProvenance(Record, kind="response"):
    """The failure is that of a committed response (§3.2)."""

    entry_id: str


@dataclass(frozen=True, kw_only=True)
class StructuralProvenance(Record, kind="structural"):
    """The failure is that of a structural task (§3.2)."""

    task_id: str


@dataclass(frozen=True, kw_only=True)
class FailureDrain(Record, kind="failure_drain"):
    """The run failed and will end so, unless new input revives it (§3.12)."""

    error: OperationError
    provenance: ResponseProvenance | StructuralProvenance


RunPhase: TypeAlias = Checkpoint | AssistantPhase | ToolsPhase | CompactionPhase | DeferredPhase | FailureDrain


@dataclass(frozen=True, kw_only=True)
class Inbox(Record):
    """Reserved entry ids of accepted input that has no place yet (§3.2)."""

    steer: tuple[str, ...]
    follow_up: tuple[str, ...]
    writes: tuple[str, ...]


EMPTY_INBOX = Inbox(steer=(), follow_up=(), writes=())


@dataclass(frozen=True, kw_only=True)
class RunState(Record, kind="run"):
    """The total state of a run (§3.2)."""

    control: Running | CancelRequested
    settings: RunSettings
    phase: Checkpoint | AssistantPhase | ToolsPhase | CompactionPhase | DeferredPhase | FailureDrain
    inbox: Inbox
    latest_assistant_entry_id: str | None


@dataclass(frozen=True, kw_only=True)
class CompactionState(Record, kind="compaction"):
    """The total state of a compaction operation (§3.2)."""

    control: Running | CancelRequested
    custom_instructions: str | Unset = UNSET
    structural: Deciding | Generating


@dataclass(frozen=True, kw_only=True)
class ReadyToCommit(Record, kind="ready_to_commit"):
    """A navigation that only has to move the leaf (§3.10)."""


@dataclass(frozen=True, kw_only=True)
class SummaryPhase(Record, kind="summary"):
    """A navigation that first summarises what it leaves (§3.10)."""

    structural: Deciding | Generating


@dataclass(frozen=True, kw_only=True)
class NavigationState(Record, kind="navigation"):
    """The total state of a navigation (§3.2)."""

    control: Running | CancelRequested
    target_id: str | None
    label: str | Unset = UNSET
    custom_instructions: str | Unset = UNSET
    summarize: bool
    phase: ReadyToCommit | SummaryPhase

    def check(self) -> None:
        """A summary needs a target; instructions and the summary phase need a summary."""
        if self.summarize != isinstance(self.phase, SummaryPhase):
            raise Refused("a summary phase exactly when summarize is true", "phase")
        if self.summarize and self.target_id is None:
            raise Refused("a summarized navigation needs a target", "targetId")
        if not self.summarize and self.custom_instructions is not UNSET:
            raise Refused("only with summarize", "customInstructions")


OperationState: TypeAlias = RunState | CompactionState | NavigationState
