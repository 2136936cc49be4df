"""What an activated run does first: settle the effects whose continuations died with their process (§4.5)."""

from __future__ import annotations

from restartpoint.contract import (
    AgentMessage,
    AssistantPhase,
    BeforeResume,
    GenerationEffectPending,
    OperationError,
    PreparedRun,
    RunIntent,
    Transaction,
    zero_usage,
)  # fmt: skip
from restartpoint.execution import synthetic_response, texts
from restartpoint.runtime.procedures.expect import same_request
from restartpoint.runtime.transitions import Current, recover_assistant, settle_response
from restartpoint.runtime.work import Work
from restartpoint.session import SessionMutator

__all__ = ["recover_at_activation"]


async def recover_at_activation(work: Work, current: Current) -> Current:
    """The state after before_resume and after an orphaned request got its policy.

    Orphaned tool calls stay as they are: the batch procedure takes them over, since results commit in source order.
    """
    await _before_resume(work)
    phase = current.state.phase
    if isinstance(phase, AssistantPhase) and isinstance(phase.generation, GenerationEffectPending):
        pending = phase.generation
        if pending.attempt < pending.context.retry_policy.max_attempts:
            return await _recover(work, pending)
        return await _settle_unknown(work, pending)
    return current


async def _before_resume(work: Work) -> None:
    hooks, intent = work.services.hooks, work.operation.intent
    if not hooks.registered("before_resume") or not isinstance(intent, RunIntent):
        return
    await work.breakpoint("before_resume", "Run the before_resume hooks", operationKind="run")
    prompts: list[AgentMessage] = [await work.message(entry_id) for entry_id in intent.prompt_entry_ids]
    prepared = PreparedRun(prompt=prompts, system_prompt_override=intent.system_prompt_override)
    event = BeforeResume(lane=work.lane, run_id=work.operation_id, prepared=prepared)
    work.gate.assert_open()
    await hooks.before_resume(event, intent.resume_data)


async def _recover(work: Work, pending: GenerationEffectPending) -> Current:
    await _recovery_breakpoint(work, pending, "retry")

    async def decide(current: Current, _: SessionMutator) -> tuple[Transaction, Current]:
        return recover_assistant(current, same_request(current, pending))

    return await work.transition(decide)


async def _settle_unknown(work: Work, pending: GenerationEffectPending) -> Current:
    model = work.services.models.resolve(pending.context.configuration.model)
    message = synthetic_response(
        pending.context.configuration.model,
        api="" if model is None else model.api,
        stop_reason="error",
        error=texts.UNKNOWN_OUTCOME,
        timestamp=work.services.session.clock.now_ms(),
    )
    error = OperationError(code="unknown_outcome", message=texts.UNKNOWN_OUTCOME, details={"attempt": pending.attempt})
    work.announce.turn_start(pending.context.step_id, recovery=True)
    work.announce.message_start(message)
    work.announce.message_end(message, pending.response_entry_id)
    await _recovery_breakpoint(work, pending, "synthetic_error")

    async def decide(current: Current, _: SessionMutator) -> tuple[Transaction, Current]:
        return settle_response(current, same_request(current, pending), message, zero_usage(), error=error)

    after = await work.transition(decide)
    work.announce.turn_end(pending.context.step_id, message, [])
    return after


async def _recovery_breakpoint(work: Work, pending: GenerationEffectPending, outcome: str) -> None:
    await work.breakpoint(
        "commit_assistant_recovery", "Settle a request of unknown outcome",
        stepId=pending.context.step_id, attempt=pending.attempt, outcome=outcome,
    )  # fmt: skip
