"""Between turns: start a generation, take a follow-up, or finish (§3.12, §3.13)."""

from __future__ import annotations

from typing import assert_never

from restartpoint.contract import (
    LANE_CONFIG,
    BeforeRunEnd,
    BranchScan,
    CheckpointPhase,
    FailureDrainPhase,
    GenerationContext,
    LaneLastResult,
    MayFinish,
    NeedAssistant,
    RunOutcome,
    Transaction,
    normalized_retry,
    user_message,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.runtime.outcomes import run_outcome
from restartpoint.runtime.transitions import (
    Current,
    append_run_end_follow_up,
    finish_failed,
    finish_run,
    start_generation,
)  # fmt: skip
from restartpoint.runtime.work import Work
from restartpoint.session import SessionMutator, project_context

__all__ = ["drain_failure", "pass_checkpoint"]


async def pass_checkpoint(work: Work, current: Current, checkpoint: CheckpointPhase) -> Current | RunOutcome:
    """The state after the next checkpoint step, or the outcome when the run finished."""
    match checkpoint.continuation:
        case NeedAssistant(overflow_recovery_used=used):
            return await _start_generation(work, checkpoint, overflow_recovery_used=used)
        case MayFinish() as continuation:
            return await _finish(work, current, checkpoint, continuation)
        case _ as unreachable:
            assert_never(unreachable)


async def _start_generation(work: Work, checkpoint: CheckpointPhase, *, overflow_recovery_used: bool) -> Current:
    await work.breakpoint(
        "commit_assistant_ready", "Start an assistant step", triggerEntryId=checkpoint.trigger_entry_id
    )
    step_id = work.services.session.ids.next()
    async with work.services.settings.held() as settings:

        async def decide(current: Current, mutator: SessionMutator) -> tuple[Transaction, Current]:
            _same_boundary(current, checkpoint)
            configuration = await mutator.get_register(LANE_CONFIG, work.lane)
            if configuration is None:
                raise InvariantBroken(f"lane {work.lane!r} has no configuration")
            context = GenerationContext(
                step_id=step_id,
                trigger_entry_id=checkpoint.trigger_entry_id,
                configuration=configuration.value,
                stream_options=settings.stream_options,
                retry_policy=normalized_retry(settings.retry),
                overflow_recovery_used=overflow_recovery_used,
            )
            return start_generation(current, context)

        return await work.transition(decide)


def _same_boundary(current: Current, checkpoint: CheckpointPhase) -> None:
    if current.state.phase != checkpoint:
        raise InvariantBroken(f"run {current.operation_id} left its checkpoint while its task stood there")


async def _finish(
    work: Work, current: Current, checkpoint: CheckpointPhase, continuation: MayFinish
) -> Current | RunOutcome:
    follow_up = await _run_end_follow_up(work, current, checkpoint)
    if follow_up is not None:
        return await _append_follow_up(work, checkpoint, follow_up)
    completion = "assistant" if continuation.include_final_assistant else "terminated_tools"
    await work.breakpoint("commit_run_finish", "Finish the run", outcome="completed", runCompletion=completion)

    async def decide(current: Current, mutator: SessionMutator) -> tuple[Transaction, LaneLastResult]:
        _same_boundary(current, checkpoint)
        return finish_run(current, continuation, await work.owned_keys(mutator))

    return await run_outcome(work.services.session, await work.transition(decide))


async def _run_end_follow_up(work: Work, current: Current, checkpoint: CheckpointPhase) -> str | None:
    hooks = work.services.hooks
    if not hooks.registered("before_run_end"):
        return None
    await work.breakpoint("before_run_end", "Run the before_run_end hooks", triggerEntryId=checkpoint.trigger_entry_id)
    source = work.operation.source_leaf_id
    branch = BranchScan(start=current.leaf_id, stop_at_id=source, order="oldestFirst")
    appended = [entry for entry in await work.services.session.find_entries_on_branch(branch) if entry.id != source]
    messages = await project_context(appended, work.services.application.entry_projectors)
    event = BeforeRunEnd(lane=work.lane, run_id=work.operation_id, messages=messages)
    work.gate.assert_open()
    return await hooks.before_run_end(event)


async def _append_follow_up(work: Work, checkpoint: CheckpointPhase, text: str) -> Current:
    await work.breakpoint(
        "commit_run_end_follow_up", "Append the follow-up of before_run_end",
        triggerEntryId=checkpoint.trigger_entry_id,
    )  # fmt: skip
    session = work.services.session
    message = user_message(text, session.clock.now_ms())

    async def decide(current: Current, _: SessionMutator) -> tuple[Transaction, Current]:
        _same_boundary(current, checkpoint)
        return append_run_end_follow_up(current, session.ids.next(), message)

    return await work.transition(decide)


async def drain_failure(work: Work, drain: FailureDrainPhase) -> RunOutcome:
    """The failed outcome; no hook and no further request runs."""
    await work.breakpoint("commit_run_finish", "Finish the failed run", outcome="failed")

    async def decide(current: Current, mutator: SessionMutator) -> tuple[Transaction, LaneLastResult]:
        if current.state.phase != drain:
            raise InvariantBroken(f"run {current.operation_id} left its failure drain while its task stood there")
        return finish_failed(current, drain.error, await work.owned_keys(mutator))

    return await run_outcome(work.services.session, await work.transition(decide))
