"""The uncertain part of an assistant step: the request itself, between its intent and its settlement (§5.7, §4.2)."""

from __future__ import annotations

from restartpoint.contract import (
    UNSET,
    AfterResponse,
    AgentMessage,
    AgentTool,
    AssistantEvent,
    BeforePayload,
    GenerationEffectPending,
    JsonValue,
    Model,
    ModelRequest,
    RequestCallbacks,
    RunIntent,
    StreamOptions,
    TransformContext,
    UnsetType,
)  # fmt: skip
from restartpoint.execution import (
    AssistantStreamConfig,
    ResponseMetadata,
    contained,
    stream_assistant,
    synthetic_response,
    texts,
)  # fmt: skip
from restartpoint.runtime.transitions import Current
from restartpoint.runtime.work import Work
from restartpoint.seams import Signal

__all__ = ["request_response", "system_prompt_of"]


async def request_response(
    work: Work, current: Current, pending: GenerationEffectPending, model: Model, options: StreamOptions
) -> AgentMessage:
    """The settled response of the intended request; provider failures are responses too."""
    step = _Step(work, pending, model)
    messages = await work.context.messages(current.leaf_id)
    hooks = work.services.hooks
    config = AssistantStreamConfig(
        model=model,
        system_prompt=await system_prompt_of(work),
        tools=_active_tools(work, pending),
        thinking_level=pending.context.configuration.thinking_level,
        stream_options=options,
        max_tokens=pending.intended_output_limit,
        to_provider_messages=work.services.application.to_provider_messages,
        request=step.request,
        observer=step,
        signal=work.gate.signal,
        now_ms=work.services.session.clock.now_ms,
        transform_context=step.transform_context if hooks.registered("transform_context") else None,
        before_payload=step.before_payload if hooks.registered("before_payload") else None,
        after_response=step.after_response if hooks.registered("after_response") else None,
    )
    return await stream_assistant(messages, config)


def _active_tools(work: Work, pending: GenerationEffectPending) -> list[AgentTool]:
    """The registered ones of the captured names; a missing one suspends at the batch, not here (AMB-53)."""
    tools = work.services.settings.current.tools
    return [tools[name] for name in pending.context.configuration.active_tool_names if name in tools]


async def system_prompt_of(work: Work) -> str | None:
    """The run's fixed system prompt, or the application's, evaluated anew for each request (§5.2)."""
    intent = work.operation.intent
    if isinstance(intent, RunIntent) and intent.system_prompt_override is not UNSET:
        return intent.system_prompt_override
    return await work.services.application.evaluated_system_prompt()


class _Step:
    """The adapters of one request: hooks behind their barriers, the gate before the provider, events on the way."""

    def __init__(self, work: Work, pending: GenerationEffectPending, model: Model) -> None:
        self._work = work
        self._pending = pending
        self._model = model

    async def request(self, request: ModelRequest, callbacks: RequestCallbacks, signal: Signal) -> AgentMessage:
        """Admit and run the request; an identity that went missing after the intent is an in-band error."""
        work, models = self._work, self._work.services.models
        await work.breakpoint("assistant_request", "Request an assistant response", **self._details())
        model = models.resolve(self._model.identity)
        if model is None:
            return synthetic_response(
                self._model,
                api=self._model.api,
                stop_reason="error",
                error=texts.MODEL_GONE,
                timestamp=work.services.session.clock.now_ms(),
            )
        work.gate.assert_open()
        return await contained(models.request(model, request, callbacks, signal))

    async def transform_context(self, messages: list[AgentMessage], _: Signal) -> list[AgentMessage]:
        """The context as the hooks leave it."""
        work = self._work
        await work.breakpoint("transform_context", "Run the transform_context hooks", **self._details())
        event = TransformContext(lane=work.lane, run_id=work.operation_id, messages=messages)
        work.gate.assert_open()
        return await work.services.hooks.transform_context(event)

    async def before_payload(self, payload: JsonValue, model: Model) -> JsonValue | UnsetType:
        """The payload as the hooks leave it."""
        work = self._work
        await work.breakpoint("before_payload", "Run the before_payload hooks", step="assistant", **self._details())
        event = BeforePayload(lane=work.lane, run_id=work.operation_id, model=model, payload=payload)
        work.gate.assert_open()
        return await work.services.hooks.before_payload(event)

    async def after_response(self, message: AgentMessage, metadata: ResponseMetadata) -> AgentMessage:
        """The settled message as the hooks leave it."""
        work = self._work
        details = {**self._details(), "responseEntryId": self._pending.response_entry_id}
        await work.breakpoint("after_response", "Run the after_response hooks", step="assistant", **details)
        event = AfterResponse(
            lane=work.lane,
            run_id=work.operation_id,
            message=message,
            status=metadata.status,
            headers=metadata.headers,
        )
        work.gate.assert_open()
        return await work.services.hooks.after_response(event, work.gate.signal)

    def start(self, message: AgentMessage) -> None:
        """Publish the first draft."""
        self._work.announce.message_start(message)

    def update(self, message: AgentMessage, event: AssistantEvent) -> None:
        """Publish a later draft."""
        self._work.announce.message_update(message, event)

    def end(self, message: AgentMessage) -> None:
        """Publish the final message; only its entry proves that it is durable."""
        self._work.announce.message_end(message, self._pending.response_entry_id)

    def _details(self) -> dict[str, JsonValue]:
        return {"stepId": self._pending.context.step_id, "attempt": self._pending.attempt}
