"""One assistant step: intent, request, classified settlement (§3.7)."""

from __future__ import annotations

from typing import assert_never

from restartpoint.contract import (
    BeforeRequest,
    Generation,
    GenerationEffectPending,
    GenerationReady,
    GenerationRetryWait,
    JsonValue,
    MissingIdentitySuspension,
    Model,
    OperationError,
    RunOutcome,
    StreamOptions,
    Transaction,
    reported_usage,
)  # fmt: skip
from restartpoint.errors import InvariantBroken, NotBuiltYet
from restartpoint.execution import (
    AbortedUnasked,
    Cancelled,
    Circumstances,
    Classification,
    DeferredAnswer,
    Failed,
    Finished,
    InvalidHandle,
    Overflow,
    PlansTools,
    Retryable,
    classify,
    intended_output_limit,
    not_before_ms,
)  # fmt: skip
from restartpoint.runtime.identities import missing_models
from restartpoint.runtime.procedures.expect import same_ready, same_request
from restartpoint.runtime.procedures.request import request_response
from restartpoint.runtime.transitions import Current, intend_assistant, settle_response
from restartpoint.runtime.work import Work
from restartpoint.seams import timestamp_of
from restartpoint.session import SessionMutator

__all__ = ["generate"]


async def generate(work: Work, current: Current, generation: Generation, *, resumed: bool) -> Current | RunOutcome:
    """The state after the step's response is settled, or a suspension when the model is not registered.

    ``resumed``: the step was found by an activation, so its turn is shown again.
    """
    match generation:
        case GenerationReady() as ready:
            return await _attempt(work, current, ready, resumed=resumed)
        case GenerationRetryWait():
            raise NotBuiltYet("3.7", "waiting for the next attempt of a request whose failure is recorded")
        case GenerationEffectPending():
            raise InvariantBroken(f"run {work.operation_id} has a generation that its task does not own")
        case _ as unreachable:
            assert_never(unreachable)


async def _attempt(work: Work, current: Current, ready: GenerationReady, *, resumed: bool) -> Current | RunOutcome:
    model = work.services.models.resolve(ready.context.configuration.model)
    if model is None:
        missing = missing_models(work.services, ready.context.configuration)
        return MissingIdentitySuspension(run_id=work.operation_id, leaf_id=current.leaf_id, tools=(), models=missing)
    work.announce.turn_start(ready.context.step_id, recovery=resumed)
    options = await _patched_options(work, ready, model)
    after, pending = await _intend(work, ready, model, options)
    message = await request_response(work, after, pending, model, options)
    given = Circumstances(
        cancelled=False,
        attempt=pending.attempt,
        max_attempts=pending.context.retry_policy.max_attempts,
        intended_output_limit=pending.intended_output_limit,
        model=pending.context.configuration.model,
    )
    return await _settle(work, pending, classify(message, given))


async def _patched_options(work: Work, ready: GenerationReady, model: Model) -> StreamOptions:
    """The captured options as the before_request hooks leave them."""
    hooks, context = work.services.hooks, ready.context
    if not hooks.registered("before_request"):
        return context.stream_options
    await work.breakpoint(
        "before_request", "Run the before_request hooks",
        step="assistant", stepId=context.step_id, attempt=ready.next_attempt,
    )  # fmt: skip
    event = BeforeRequest(
        lane=work.lane,
        run_id=work.operation_id,
        model=model,
        step="assistant",
        attempt=ready.next_attempt,
        stream_options=context.stream_options,
    )
    work.gate.assert_open()
    return await hooks.before_request(event)


async def _intend(
    work: Work, ready: GenerationReady, model: Model, options: StreamOptions
) -> tuple[Current, GenerationEffectPending]:
    await work.breakpoint(
        "commit_assistant_intent", "Record that a request is about to start",
        stepId=ready.context.step_id, attempt=ready.next_attempt,
    )  # fmt: skip
    ids = work.services.session.ids

    async def decide(
        current: Current, _: SessionMutator
    ) -> tuple[Transaction, tuple[Current, GenerationEffectPending]]:
        same_ready(current, ready)
        pending = GenerationEffectPending(
            context=ready.context,
            attempt=ready.next_attempt,
            response_entry_id=ids.next(),
            usage_id=ids.next(),
            intended_output_limit=intended_output_limit(model, options),
            context_window=model.context_window,
        )
        transaction, after = intend_assistant(current, pending)
        return transaction, (after, pending)

    return await work.transition(decide)


async def _settle(work: Work, pending: GenerationEffectPending, classified: Classification) -> Current:
    if isinstance(classified, AbortedUnasked | Cancelled):
        raise InvariantBroken("a provider answered aborted although nobody asked it to abort")
    details: dict[str, JsonValue] = {
        "stepId": pending.context.step_id,
        "attempt": pending.attempt,
        "responseEntryId": pending.response_entry_id,
    }
    await work.breakpoint("commit_assistant_settlement", "Settle the response", **details)
    ids, message = work.services.session.ids, classified.message

    async def decide(current: Current, _: SessionMutator) -> tuple[Transaction, Current]:
        durable, usage = same_request(current, pending), reported_usage(message)
        match classified:
            case PlansTools(calls=calls):
                at = timestamp_of(pending.response_entry_id)
                return settle_response(current, durable, message, usage, tools=[ids.next(at) for _ in calls])
            case Finished():
                return settle_response(current, durable, message, usage)
            case DeferredAnswer():
                return settle_response(current, durable, message, usage, deferred=True)
            case Failed(error=error) | Overflow(error=error) | InvalidHandle(error=error):
                return settle_response(current, durable, message, usage, error=_located(error, pending))
            case Retryable(error_text=said):
                wait = _retry_wait(pending, said, work.services.session.clock.now_ms())
                return settle_response(current, durable, message, usage, retry=wait)
            case _ as unreachable:
                assert_never(unreachable)

    after = await work.transition(decide)
    if not isinstance(classified, PlansTools | Retryable):
        work.announce.turn_end(pending.context.step_id, message, [])
    return after


def _retry_wait(pending: GenerationEffectPending, said: str, now_ms: int) -> GenerationRetryWait:
    """Only a policy that another version captured allows it; the billed response is recorded all the same."""
    delay = pending.context.retry_policy.base_delay_ms
    return GenerationRetryWait(
        context=pending.context,
        next_attempt=pending.attempt + 1,
        not_before=not_before_ms(now_ms, delay, pending.attempt),
        error_message=said,
    )


def _located(error: OperationError, pending: GenerationEffectPending) -> OperationError:
    return OperationError(
        code=error.code,
        message=error.message,
        details={"entryId": pending.response_entry_id, "attempt": pending.attempt},
    )
