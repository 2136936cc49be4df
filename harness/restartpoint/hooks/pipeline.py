"""The runners: the whole pipeline of one hook as one effect, with its rule of aggregation (§5.6)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec
from msgspec.structs import replace

from restartpoint.contract import (
    UNSET,
    AfterResponse,
    AfterTool,
    AfterToolPatch,
    AgentMessage,
    BeforeCompaction,
    BeforeCompactionResult,
    BeforeNavigation,
    BeforeNavigationResult,
    BeforePayload,
    BeforeRequest,
    BeforeResume,
    BeforeRun,
    BeforeRunEnd,
    BeforeTool,
    BeforeToolDecision,
    HookName,
    Invocation,
    JsonObject,
    JsonValue,
    StreamOptions,
    ToolBlock,
    TransformContext,
    UnsetType,
    patched_options,
)
from restartpoint.hooks import rules
from restartpoint.hooks.registry import HookFailure, Registered, Registry
from restartpoint.seams import Signal

__all__ = ["BEFORE_TOOL_FAILED", "BeforeRunOutcome", "Hooks", "Report"]

A = TypeVar("A")

Report = Callable[[HookFailure], None]
"""Told of every handler that raised or broke its contract; must not raise."""

BEFORE_TOOL_FAILED = "a before_tool hook failed"
"""The reason of the block when a handler that decides over the call could not decide (§5.6)."""


class BeforeRunOutcome(msgspec.Struct, frozen=True, kw_only=True):
    """What before_run adds to a prompt; ``resume_data`` by handler id, unset when no handler gave any."""

    messages: list[AgentMessage]
    system_prompt: str | UnsetType = UNSET
    resume_data: JsonObject | UnsetType = UNSET


class _Given(msgspec.Struct, Generic[A], frozen=True):
    """An answer that the rules accepted; None changes nothing."""

    answer: A | None


class Hooks(Registry):
    """Registers handlers and runs the pipeline of each hook.

    A runner is one admitted effect: assert the gate, then await it. Its first handler starts within the same step.
    A handler that raises is reported and skipped, except that before_tool then blocks the call (§5.6).
    """

    def __init__(self, report: Report) -> None:
        super().__init__()
        self._report = report

    async def before_run(self, event: BeforeRun) -> BeforeRunOutcome:
        """The messages to append, the latest system prompt and every handler's resume data."""
        messages: list[AgentMessage] = []
        system_prompt: str | UnsetType = UNSET
        resume_data: JsonObject = {}
        for one in self.handlers("before_run"):
            given = await self._ask("before_run", one, event, rules.before_run)
            if given is None or (answer := given.answer) is None:
                continue
            if answer.messages is not UNSET:
                messages = [*messages, *answer.messages]
                event = replace(event, prompt=[*event.prompt, *answer.messages])
            if answer.system_prompt is not UNSET:
                system_prompt = answer.system_prompt
                event = replace(event, system_prompt=answer.system_prompt)
            if answer.resume_data is not UNSET and one.id is not None:
                resume_data[one.id] = answer.resume_data
        return BeforeRunOutcome(messages=messages, system_prompt=system_prompt, resume_data=resume_data or UNSET)

    async def before_resume(self, event: BeforeResume, resume_data: JsonObject | UnsetType) -> None:
        """Tell every handler; each receives only the data stored under its own id."""
        stored: JsonObject = {} if resume_data is UNSET else resume_data
        for one in self.handlers("before_resume"):
            own = UNSET if one.id is None else stored.get(one.id, UNSET)
            await self._ask("before_resume", one, replace(event, resume_data=own), rules.before_resume)

    async def before_run_end(self, event: BeforeRunEnd) -> str | None:
        """The latest follow-up text that a handler gave, or None."""
        follow_up: str | None = None
        for one in self.handlers("before_run_end"):
            given = await self._ask("before_run_end", one, event, rules.before_run_end)
            if given is not None and given.answer is not None and given.answer.follow_up is not UNSET:
                follow_up = given.answer.follow_up
        return follow_up

    async def transform_context(self, event: TransformContext) -> list[AgentMessage]:
        """The context for this request."""
        for one in self.handlers("transform_context"):
            given = await self._ask("transform_context", one, event, rules.transform_context)
            if given is not None and given.answer is not None:
                event = replace(event, messages=given.answer.messages)
        return event.messages

    async def before_request(self, event: BeforeRequest) -> StreamOptions:
        """The options for this request, every patch applied in turn."""
        for one in self.handlers("before_request"):
            given = await self._ask("before_request", one, event, rules.before_request)
            if given is not None and given.answer is not None and given.answer.stream_options is not UNSET:
                options = patched_options(event.stream_options, given.answer.stream_options)
                event = replace(event, stream_options=options)
        return event.stream_options

    async def before_payload(self, event: BeforePayload) -> JsonValue:
        """The payload to send."""
        for one in self.handlers("before_payload"):
            given = await self._ask("before_payload", one, event, rules.before_payload)
            if given is not None and given.answer is not None:
                event = replace(event, payload=given.answer.payload)
        return event.payload

    async def after_response(self, event: AfterResponse, signal: Signal) -> AgentMessage:
        """The message to record: still a settled assistant message, aborted only when the signal is set."""
        for one in self.handlers("after_response"):
            given = await self._ask(
                "after_response", one, event, lambda answer: rules.after_response(answer, aborted=signal.aborted)
            )
            if given is not None and given.answer is not None and given.answer.message is not UNSET:
                event = replace(event, message=given.answer.message)
        return event.message

    async def before_tool(self, event: BeforeTool) -> BeforeToolDecision | None:
        """Replaced arguments, or the first block, or None. A handler that fails blocks the call."""
        replaced: JsonObject | UnsetType = UNSET
        for one in self.handlers("before_tool"):
            given = await self._ask("before_tool", one, event, rules.before_tool)
            if given is None:
                return BeforeToolDecision(block=ToolBlock(reason=BEFORE_TOOL_FAILED))
            if given.answer is None:
                continue
            if given.answer.block is not UNSET:
                return BeforeToolDecision(block=given.answer.block)
            if given.answer.args is not UNSET:
                replaced = given.answer.args
                event = replace(event, args=given.answer.args)
        return None if replaced is UNSET else BeforeToolDecision(args=replaced)

    async def after_tool(self, event: AfterTool) -> AfterToolPatch | None:
        """Every field that a handler replaced, the latest value of each, or None."""
        patch: AfterToolPatch | None = None
        for one in self.handlers("after_tool"):
            given = await self._ask("after_tool", one, event, rules.after_tool)
            if given is None or (answer := given.answer) is None:
                continue
            patch = _over(patch or AfterToolPatch(), answer)
            event = replace(
                event,
                content=event.content if answer.content is UNSET else answer.content,
                details=event.details if answer.details is UNSET else answer.details,
                is_error=event.is_error if answer.is_error is UNSET else answer.is_error,
                usage=event.usage if answer.usage is UNSET else answer.usage,
            )
        return patch

    async def before_compaction(self, event: BeforeCompaction) -> BeforeCompactionResult | None:
        """The first refusal or finished compaction, or None: generate a summary."""
        for one in self.handlers("before_compaction"):
            given = await self._ask("before_compaction", one, event, rules.before_compaction)
            answer = None if given is None else given.answer
            if answer is not None and (answer.decline or answer.compaction is not UNSET):
                return answer
        return None

    async def before_navigation(self, event: BeforeNavigation) -> BeforeNavigationResult | None:
        """The first refusal or finished summary, or None: generate a summary."""
        for one in self.handlers("before_navigation"):
            given = await self._ask("before_navigation", one, event, rules.before_navigation)
            answer = None if given is None else given.answer
            if answer is not None and (answer.decline or answer.summary is not UNSET):
                return answer
        return None

    async def _ask(
        self, name: HookName, one: Registered, event: Invocation, accept: Callable[[object], A | None]
    ) -> _Given[A] | None:
        """The handler's accepted answer, or None when it failed and was reported."""
        try:
            answer = one.handler(event)
            if inspect.isawaitable(answer):
                answer = await answer
            return _Given(accept(answer))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a handler raises stays its own failure (§5.6)
            self._report(HookFailure(hook=name, lane=event.lane, run_id=event.run_id, error=error))
            return None


def _over(patch: AfterToolPatch, later: AfterToolPatch) -> AfterToolPatch:
    given = {name: value for name in later.__struct_fields__ if (value := getattr(later, name)) is not UNSET}
    return replace(patch, **given)
