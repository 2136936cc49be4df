"""What each hook is told and what it may answer (§5.6). Every payload carries the lane and the operation's id."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

import msgspec

from restartpoint.contract.configuration import StreamOptions
from restartpoint.contract.json import UNSET, JsonObject, JsonValue, UnsetType
from restartpoint.contract.messages import AgentMessage
from restartpoint.contract.models import Model
from restartpoint.contract.options import Resources, StreamOptionsPatch
from restartpoint.contract.registers import BranchSummaryPreparation, CompactionPreparation
from restartpoint.contract.usage import Usage

__all__ = [
    "AfterResponse", "AfterResponseResult", "AfterTool", "AfterToolPatch", "BeforeCompaction",
    "BeforeCompactionResult", "BeforeNavigation", "BeforeNavigationResult", "BeforePayload", "BeforePayloadResult",
    "BeforeRequest", "BeforeRequestResult", "BeforeResume", "BeforeRun", "BeforeRunEnd", "BeforeRunEndResult",
    "BeforeRunResult", "BeforeTool", "BeforeToolDecision", "BranchSummaryResult", "CompactResult", "HookName",
    "Invocation", "PreparedCompaction", "PreparedNavigation", "PreparedOperation", "PreparedRun", "RequestStep",
    "ToolBlock", "TransformContext", "TransformContextResult",
]  # fmt: skip

HookName: TypeAlias = Literal[
    "before_run", "before_resume", "before_run_end", "transform_context", "before_request", "before_payload",
    "after_response", "before_tool", "after_tool", "before_compaction", "before_navigation",
]  # fmt: skip

RequestStep: TypeAlias = Literal["assistant", "deferred", "compaction", "branch_summary"]


class Invocation(msgspec.Struct, frozen=True, kw_only=True):
    """What every payload carries."""

    lane: str
    run_id: str
    """The durable operation id; provisional in before_run."""


class _Answer(msgspec.Struct, frozen=True, kw_only=True):
    """What a handler may return; an unset field changes nothing."""


# --- runs -------------------------------------------------------------------------------------------------------


class BeforeRun(Invocation, frozen=True, kw_only=True):
    """A prompt is about to be accepted. ``prompt`` holds the caller's messages and those of earlier handlers."""

    prompt: list[AgentMessage]
    system_prompt: str
    resources: Resources


class BeforeRunResult(_Answer, frozen=True, kw_only=True):
    """Messages to append, a system prompt for the whole run, and data that before_resume of the same id receives."""

    messages: list[AgentMessage] | UnsetType = UNSET
    system_prompt: str | UnsetType = UNSET
    resume_data: JsonValue | UnsetType = UNSET


class PreparedRun(msgspec.Struct, frozen=True, kw_only=True):
    """The run that is resumed."""

    prompt: list[AgentMessage]
    system_prompt_override: str | UnsetType = UNSET


class PreparedCompaction(msgspec.Struct, frozen=True, kw_only=True):
    """The manual compaction that is resumed."""

    source_leaf_id: str | None
    custom_instructions: str | UnsetType = UNSET


class PreparedNavigation(msgspec.Struct, frozen=True, kw_only=True):
    """The navigation that is resumed."""

    source_leaf_id: str | None
    target_id: str | None
    summarize: bool
    label: str | UnsetType = UNSET
    custom_instructions: str | UnsetType = UNSET


PreparedOperation: TypeAlias = PreparedRun | PreparedCompaction | PreparedNavigation


class BeforeResume(Invocation, frozen=True, kw_only=True):
    """An open operation is about to go on. ``resume_data`` is the handler's own, unset when it stored none."""

    prepared: PreparedOperation
    resume_data: JsonValue | UnsetType = UNSET


class BeforeRunEnd(Invocation, frozen=True, kw_only=True):
    """The run is about to finish; ``messages`` are what it added to the conversation, oldest first."""

    messages: list[AgentMessage]


class BeforeRunEndResult(_Answer, frozen=True, kw_only=True):
    """The text of a user message that keeps the run going."""

    follow_up: str | UnsetType = UNSET


# --- requests ---------------------------------------------------------------------------------------------------


class TransformContext(Invocation, frozen=True, kw_only=True):
    """A request's context, before it becomes provider messages. The messages are the recorded ones: return new ones
    instead of changing them.
    """

    messages: list[AgentMessage]


class TransformContextResult(_Answer, frozen=True, kw_only=True):
    """The context to use instead, for this request only."""

    messages: list[AgentMessage]


class BeforeRequest(Invocation, frozen=True, kw_only=True):
    """A request is about to be intended."""

    model: Model
    step: RequestStep
    attempt: int
    stream_options: StreamOptions


class BeforeRequestResult(_Answer, frozen=True, kw_only=True):
    """A patch of the options, for this request only."""

    stream_options: StreamOptionsPatch | UnsetType = UNSET


class BeforePayload(Invocation, frozen=True, kw_only=True):
    """The provider's own request is about to be sent."""

    model: Model
    payload: JsonValue


class BeforePayloadResult(_Answer, frozen=True, kw_only=True):
    """The payload to send instead."""

    payload: JsonValue


class AfterResponse(Invocation, frozen=True, kw_only=True):
    """A response settled and is not yet recorded. ``status`` is the HTTP status when there was one."""

    message: AgentMessage
    status: int | None = None
    headers: Mapping[str, str] = {}


class AfterResponseResult(_Answer, frozen=True, kw_only=True):
    """The message to record instead; a settled assistant message."""

    message: AgentMessage | UnsetType = UNSET


# --- tools ------------------------------------------------------------------------------------------------------


class BeforeTool(Invocation, frozen=True, kw_only=True):
    """A tool call with valid arguments is about to be intended."""

    tool_call_id: str
    tool_name: str
    args: JsonObject


class ToolBlock(msgspec.Struct, frozen=True, kw_only=True):
    """The call does not run; the reason goes to the model. ``terminate`` counts the call as one that ends the run."""

    reason: str
    terminate: bool = False


class BeforeToolDecision(_Answer, frozen=True, kw_only=True):
    """Arguments to use instead (validated again), or a block, which is final."""

    args: JsonObject | UnsetType = UNSET
    block: ToolBlock | UnsetType = UNSET


class AfterTool(Invocation, frozen=True, kw_only=True):
    """A tool call was executed and its result is not yet recorded."""

    tool_call_id: str
    tool_name: str
    args: JsonObject
    content: list[JsonValue]
    is_error: bool
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET


class AfterToolPatch(_Answer, frozen=True, kw_only=True):
    """Fields of the result to replace."""

    content: list[JsonValue] | UnsetType = UNSET
    details: JsonValue | UnsetType = UNSET
    is_error: bool | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET
    terminate: bool | UnsetType = UNSET


# --- structural work --------------------------------------------------------------------------------------------


class CompactResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished compaction."""

    summary: str
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET


class BranchSummaryResult(msgspec.Struct, frozen=True, kw_only=True):
    """A finished summary of a branch."""

    summary: str
    details: JsonValue | UnsetType = UNSET
    usage: Usage | UnsetType = UNSET


class BeforeCompaction(Invocation, frozen=True, kw_only=True):
    """A compaction is being decided."""

    reason: Literal["manual", "threshold", "overflow"]
    preparation: CompactionPreparation
    custom_instructions: str | UnsetType = UNSET


class BeforeCompactionResult(_Answer, frozen=True, kw_only=True):
    """A refusal, or a finished compaction; never both."""

    decline: bool = False
    compaction: CompactResult | UnsetType = UNSET


class BeforeNavigation(Invocation, frozen=True, kw_only=True):
    """A summarized navigation is being decided."""

    target_id: str
    preparation: BranchSummaryPreparation
    custom_instructions: str | UnsetType = UNSET


class BeforeNavigationResult(_Answer, frozen=True, kw_only=True):
    """A refusal, or a finished summary; never both."""

    decline: bool = False
    summary: BranchSummaryResult | UnsetType = UNSET
