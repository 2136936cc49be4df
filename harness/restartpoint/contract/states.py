"""Operation state: the one register that is the durable restart point, total at every transition (§3.2)."""

from __future__ import annotations

from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract.configuration import (
    LaneConfiguration,
    NormalizedRetryPolicy,
    RunSettings,
    StreamOptions,
)  # fmt: skip
from restartpoint.contract.json import UNSET, UnsetType
from restartpoint.contract.operations import OperationError

__all__ = [
    "AssistantPhase", "CallCompleted", "CallEffectPending", "CallPlanned", "CancelRequested", "CheckpointPhase",
    "CompactionPhase", "CompactionState", "Continuation", "Control", "Deferred", "DeferredEffectPending",
    "DeferredPhase", "DeferredSuspended", "FailureDrainPhase", "Generation", "GenerationContext",
    "GenerationEffectPending", "GenerationReady", "GenerationRetryWait", "Inbox", "MayFinish", "NavigationPhase",
    "NavigationState", "NeedAssistant", "OperationState", "Provenance", "Replay", "ResponseProvenance", "RunPhase",
    "RunState", "Running", "StructuralDecision", "StructuralProvenance", "SummaryContext", "SummaryEffectPending",
    "SummaryGeneration", "SummaryReady", "SummaryRequest", "SummaryRetryWait", "ToolBatch", "ToolCall", "ToolsPhase",
]  # fmt: skip

Replay: TypeAlias = Literal["never", "safe"]


class _Durable(msgspec.Struct, frozen=True, kw_only=True, rename="camel", forbid_unknown_fields=True):
    """A durable value with the specified field names and no others."""


class _Kind(_Durable, frozen=True, kw_only=True, tag_field="kind"):
    """A variant that its ``kind`` names."""


class _Status(_Durable, frozen=True, kw_only=True, tag_field="status"):
    """A variant that its ``status`` names."""


# --- control ----------------------------------------------------------------------------------------------------


class Running(_Status, frozen=True, kw_only=True, tag="running"):
    """Ordinary work may go on."""


class CancelRequested(_Status, frozen=True, kw_only=True, tag="cancel_requested"):
    """Cancellation is durable. The drained ids keep their pending.entry registers until the terminal transaction."""

    requested_at: int
    drained_steer: list[str]
    drained_follow_up: list[str]


Control: TypeAlias = Running | CancelRequested


# --- checkpoint -------------------------------------------------------------------------------------------------


class NeedAssistant(_Kind, frozen=True, kw_only=True, tag="need_assistant"):
    """The run still owes an assistant turn."""

    overflow_recovery_used: bool


class MayFinish(_Kind, frozen=True, kw_only=True, tag="may_finish"):
    """The run may end at this boundary."""

    include_final_assistant: bool


Continuation: TypeAlias = NeedAssistant | MayFinish


class CheckpointPhase(_Kind, frozen=True, kw_only=True, tag="checkpoint"):
    """Between turns. ``skip_inbox_once`` is stored only as true."""

    continuation: Continuation
    trigger_entry_id: str
    threshold_checked_trigger_entry_id: str | UnsetType = UNSET
    skip_inbox_once: Literal[True] | UnsetType = UNSET


# --- assistant generation ---------------------------------------------------------------------------------------


class GenerationContext(_Durable, frozen=True, kw_only=True):
    """Everything a generation step captured when it started."""

    step_id: str
    trigger_entry_id: str
    configuration: LaneConfiguration
    stream_options: StreamOptions
    retry_policy: NormalizedRetryPolicy
    overflow_recovery_used: bool


class GenerationReady(_Status, frozen=True, kw_only=True, tag="ready"):
    """No request is intended; ``next_attempt`` counts from 1."""

    context: GenerationContext
    next_attempt: int


class GenerationEffectPending(_Status, frozen=True, kw_only=True, tag="effect_pending"):
    """A request is intended under the reserved ids. Both limits are tokens."""

    context: GenerationContext
    attempt: int
    response_entry_id: str
    usage_id: str
    intended_output_limit: int
    context_window: int


class GenerationRetryWait(_Status, frozen=True, kw_only=True, tag="retry_wait"):
    """An attempt failed; the next one starts at ``not_before`` (Unix milliseconds)."""

    context: GenerationContext
    next_attempt: int
    not_before: int
    error_message: str


Generation: TypeAlias = GenerationReady | GenerationEffectPending | GenerationRetryWait


class AssistantPhase(_Kind, frozen=True, kw_only=True, tag="assistant"):
    """An assistant response is being generated."""

    generation: Generation


# --- tools ------------------------------------------------------------------------------------------------------


class CallPlanned(_Status, frozen=True, kw_only=True, tag="planned"):
    """The call waits for clearance; its result id is reserved."""

    source_index: int
    result_entry_id: str


class CallEffectPending(_Status, frozen=True, kw_only=True, tag="effect_pending"):
    """The call was intended with the arguments of its op.tool_args register."""

    source_index: int
    result_entry_id: str
    replay: Replay


class CallCompleted(_Status, frozen=True, kw_only=True, tag="completed"):
    """The call's result entry exists."""

    source_index: int
    result_entry_id: str
    terminate: bool


ToolCall: TypeAlias = CallPlanned | CallEffectPending | CallCompleted


class ToolBatch(_Durable, frozen=True, kw_only=True):
    """The calls of one assistant response, in source order; ``turn_id`` is the producing step's id."""

    assistant_entry_id: str
    configuration: LaneConfiguration
    turn_id: str
    calls: list[ToolCall]


class ToolsPhase(_Kind, frozen=True, kw_only=True, tag="tools"):
    """Tool calls are being cleared, executed and settled."""

    batch: ToolBatch


# --- structural work --------------------------------------------------------------------------------------------


class SummaryContext(_Durable, frozen=True, kw_only=True):
    """Everything a summary generation captured when it started."""

    task_id: str
    result_entry_id: str
    kind: Literal["compaction", "branch_summary"]
    configuration: LaneConfiguration
    stream_options: StreamOptions
    retry_policy: NormalizedRetryPolicy
    reason: Literal["manual", "threshold", "overflow"] | UnsetType = UNSET


class SummaryRequest(_Durable, frozen=True, kw_only=True):
    """The nested request that is intended now; ``index`` is 0 or 1."""

    index: int
    usage_id: str


class SummaryReady(_Status, frozen=True, kw_only=True, tag="ready"):
    """No attempt is under way; ``next_attempt`` counts from 1."""

    context: SummaryContext
    next_attempt: int


class SummaryEffectPending(_Status, frozen=True, kw_only=True, tag="effect_pending"):
    """An attempt is under way; ``usage_ids`` name the ledger rows of its finished requests."""

    context: SummaryContext
    attempt: int
    request: SummaryRequest | UnsetType = UNSET
    usage_ids: list[str]


class SummaryRetryWait(_Status, frozen=True, kw_only=True, tag="retry_wait"):
    """An attempt failed; the next one starts at ``not_before`` (Unix milliseconds)."""

    context: SummaryContext
    next_attempt: int
    not_before: int
    error_message: str


SummaryGeneration: TypeAlias = SummaryReady | SummaryEffectPending | SummaryRetryWait


class StructuralDecision(_Durable, frozen=True, kw_only=True):
    """A compaction or branch summary: first ``deciding``, then ``generating`` with its generation."""

    task_id: str
    status: Literal["deciding", "generating"]
    generation: SummaryGeneration | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.status == "generating") is (self.generation is UNSET):
            raise ValueError("a structural decision has a generation exactly when it is generating")


class CompactionPhase(_Kind, frozen=True, kw_only=True, tag="compaction"):
    """A compaction inside a run; the checkpoint in ``resume_after`` is restored after it."""

    reason: Literal["threshold", "overflow"]
    structural: StructuralDecision
    resume_after: CheckpointPhase


# --- deferred ---------------------------------------------------------------------------------------------------


class DeferredSuspended(_Status, frozen=True, kw_only=True, tag="suspended"):
    """The provider answers later; ``poll`` counts completed polls."""

    step_id: str
    source_entry_id: str
    poll: int
    configuration: LaneConfiguration
    stream_options: StreamOptions


class DeferredEffectPending(_Status, frozen=True, kw_only=True, tag="effect_pending"):
    """Poll number ``poll`` (from 1) is intended under the reserved ids."""

    step_id: str
    source_entry_id: str
    poll: int
    response_entry_id: str
    usage_id: str
    configuration: LaneConfiguration
    stream_options: StreamOptions


Deferred: TypeAlias = DeferredSuspended | DeferredEffectPending


class DeferredPhase(_Kind, frozen=True, kw_only=True, tag="deferred"):
    """The run waits for a provider that answers later."""

    deferred: Deferred


# --- failure ----------------------------------------------------------------------------------------------------


class ResponseProvenance(_Kind, frozen=True, kw_only=True, tag="response"):
    """The failure came from that response entry."""

    entry_id: str


class StructuralProvenance(_Kind, frozen=True, kw_only=True, tag="structural"):
    """The failure came from that structural task."""

    task_id: str


Provenance: TypeAlias = ResponseProvenance | StructuralProvenance


class FailureDrainPhase(_Kind, frozen=True, kw_only=True, tag="failure_drain"):
    """The run failed; queued input may still revive it."""

    error: OperationError
    provenance: Provenance


RunPhase: TypeAlias = (
    CheckpointPhase | AssistantPhase | ToolsPhase | CompactionPhase | DeferredPhase | FailureDrainPhase
)


# --- the three kinds of state -----------------------------------------------------------------------------------


class Inbox(_Durable, frozen=True, kw_only=True):
    """Reserved entry ids; the payloads wait in pending.entry registers."""

    steer: list[str]
    follow_up: list[str]
    writes: list[str]


class RunState(_Kind, frozen=True, kw_only=True, tag="run"):
    """The total state of a run."""

    control: Control
    settings: RunSettings
    phase: RunPhase
    inbox: Inbox
    latest_assistant_entry_id: str | None


class CompactionState(_Kind, frozen=True, kw_only=True, tag="compaction"):
    """The total state of a manual compaction."""

    control: Control
    custom_instructions: str | UnsetType = UNSET
    structural: StructuralDecision


class NavigationPhase(_Durable, frozen=True, kw_only=True):
    """``ready_to_commit`` without a summary, ``summary`` with its structural decision."""

    kind: Literal["ready_to_commit", "summary"]
    structural: StructuralDecision | UnsetType = UNSET

    def __post_init__(self) -> None:
        if (self.kind == "summary") is (self.structural is UNSET):
            raise ValueError("a navigation phase has a structural decision exactly when it is a summary")


class NavigationState(_Kind, frozen=True, kw_only=True, tag="navigation"):
    """The total state of a navigation; only a summarized one has instructions and a non-null target."""

    control: Control
    target_id: str | None
    label: str | UnsetType = UNSET
    custom_instructions: str | UnsetType = UNSET
    summarize: bool
    phase: NavigationPhase

    def __post_init__(self) -> None:
        if self.summarize is not (self.phase.kind == "summary"):
            raise ValueError("a navigation is summarized exactly when its phase is a summary")
        if self.summarize and self.target_id is None:
            raise ValueError("a summarized navigation needs a target")
        if not self.summarize and self.custom_instructions is not UNSET:
            raise ValueError("only a summarized navigation has instructions")


OperationState: TypeAlias = RunState | CompactionState | NavigationState
