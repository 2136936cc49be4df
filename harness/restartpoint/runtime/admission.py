"""How an operation gets its lane: reservation, before_run, acceptance; and activation of an open one (§3.6, §4.5)."""

from __future__ import annotations

from collections.abc import Sequence

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    PENDING_ENTRY,
    AgentMessage,
    AssistantPhase,
    BeforeRun,
    CancelRequested,
    CompactionPhase,
    DeferredPhase,
    GenerationRetryWait,
    JsonObject,
    JsonValue,
    RunState,
    check_json,
    role_of,
    user_message,
)  # fmt: skip
from restartpoint.errors import (
    InvalidJson,
    InvalidMessage,
    InvariantBroken,
    MissingIdentities,
    NotBuiltYet,
    NothingToResume,
)  # fmt: skip
from restartpoint.hooks import BeforeRunOutcome
from restartpoint.runtime.announce import Committed
from restartpoint.runtime.barrier import ActionInfo
from restartpoint.runtime.identities import missing_identities, needed_next
from restartpoint.runtime.owner import ActiveOperation, LaneOwner, Reservation, Turn
from restartpoint.runtime.restore import Restored, restore
from restartpoint.runtime.services import Services
from restartpoint.runtime.task import start_task
from restartpoint.runtime.transitions import Acceptance, Current, accept_run
from restartpoint.runtime.work import Work
from restartpoint.session import SessionMutator

__all__ = ["accept_prompt", "checked_messages", "resume_operation"]


def checked_messages(
    lane: str, message: str | AgentMessage | Sequence[AgentMessage], images: Sequence[JsonObject], timestamp: int
) -> tuple[AgentMessage, ...]:
    """The caller's messages in normal form; an empty text without images gives none.

    Raises:
        InvalidMessage: a message is no JSON, has no role, or is an assistant's or a tool's.
    """
    if isinstance(message, str):
        given: Sequence[AgentMessage] = [user_message(message, timestamp, tuple(images))] if message or images else []
    elif images:
        raise InvalidMessage(lane, "images go with a text; put them into the message's content instead")
    else:
        given = [message] if isinstance(message, dict) else message
    if not isinstance(given, list | tuple):
        raise InvalidMessage(lane, f"{type(given).__name__} is neither a text nor a message nor a list of messages")
    for index, each in enumerate(given):
        if not isinstance(each, dict) or role_of(each) in ("", "assistant", "toolResult"):
            raise InvalidMessage(lane, f"message {index} needs a role other than assistant and toolResult")
        try:
            check_json(each, f"message {index}")
        except InvalidJson as error:
            raise InvalidMessage(lane, str(error)) from error
        if role_of(each) == "user" and not _is_content(each.get("content")):
            raise InvalidMessage(lane, f"message {index} needs a text or a list of blocks as its content")
    return tuple(given)


def _is_content(content: JsonValue) -> bool:
    if isinstance(content, list):
        return all(isinstance(block, dict) and isinstance(block.get("type"), str) for block in content)
    return isinstance(content, str)


async def accept_prompt(
    services: Services, owner: LaneOwner, turn: Turn, messages: tuple[AgentMessage, ...]
) -> ActiveOperation:
    """The accepted run, whose task has started (§3.6)."""
    reservation = Reservation(operation_id=services.session.ids.next(), kind="run")
    async with turn:
        await services.session.mutate(owner.lane, lambda mutator: owner.reserve(mutator, reservation))
    try:
        await _require_identities(services, owner)
        injected = await _before_run(services, owner, reservation, messages)
        active = await _accept(services, owner, reservation, messages, injected)
    finally:
        owner.release(reservation)
    start_task(services, owner, active, "fresh")
    return active


async def _require_identities(services: Services, owner: LaneOwner) -> None:
    register = await services.session.get_register(LANE_CONFIG, owner.lane)
    if register is None:
        raise InvariantBroken(f"lane {owner.lane!r} has no configuration")
    missing = missing_identities(services, register.value)
    if missing.any:
        raise MissingIdentities(owner.lane, tools=missing.tools, models=missing.models)


async def _before_run(
    services: Services, owner: LaneOwner, reservation: Reservation, messages: tuple[AgentMessage, ...]
) -> BeforeRunOutcome:
    if not services.hooks.registered("before_run"):
        return BeforeRunOutcome(messages=[])
    info = ActionInfo(
        kind="before_run", description="Run the before_run hooks", details={"runId": reservation.operation_id}
    )
    await owner.barrier.hit(info, interruptible=False)
    event = BeforeRun(
        lane=owner.lane,
        run_id=reservation.operation_id,
        prompt=list(messages),
        system_prompt=await services.application.evaluated_system_prompt() or "",
        resources=services.settings.current.resources,
    )
    owner.barrier.raise_if_closed()
    return await services.hooks.before_run(event)


async def _accept(
    services: Services,
    owner: LaneOwner,
    reservation: Reservation,
    messages: tuple[AgentMessage, ...],
    before_run: BeforeRunOutcome,
) -> ActiveOperation:
    ids, clock = services.session.ids, services.session.clock

    async def job(mutator: SessionMutator) -> tuple[ActiveOperation, Committed]:
        await owner.require_idle(mutator, own=reservation)
        await _require_identities(services, owner)
        lane_state, leaf = await mutator.get_registers([(LANE_STATE, owner.lane), (LANE_LEAF, owner.lane)])
        if lane_state is None or leaf is None:
            raise InvariantBroken(f"lane {owner.lane!r} has no state or no leaf")
        captured_ids: list[str] = lane_state.value.pending_next_run
        pending = await mutator.get_registers([(PENDING_ENTRY, key) for key in captured_ids]) if captured_ids else []
        if not (captured_ids or messages or before_run.messages):
            raise InvalidMessage(owner.lane, "the prompt is empty")
        chosen = Acceptance(
            operation_id=reservation.operation_id,
            lane=owner.lane,
            started_at=clock.now_ms(),
            prompts=[(ids.next(), message) for message in messages],
            injected=[(ids.next(), message) for message in before_run.messages],
            captured=[(register.key, register.value) for register in pending if register is not None],
            settings=services.settings.current.captured(),
            system_prompt_override=before_run.system_prompt,
            resume_data=before_run.resume_data,
        )
        transaction, current = accept_run(chosen, lane_state.value, leaf.value)
        result = await mutator.commit(transaction)
        committed = Committed.of(transaction, result)
        owner.context.extend(committed.entries)
        active = ActiveOperation(_work(services, owner, current, restored=False))
        owner.install(active)
        return active, committed

    async with services.settings.held():
        active, committed = await services.session.mutate(owner.lane, job)
    active.work.announce.run_start()
    active.work.announce.placed(committed.entries)
    return active


def _work(services: Services, owner: LaneOwner, current: Current, *, restored: bool) -> Work:
    return Work(services, current.operation, owner.barrier, owner.context, restored=restored)


# --- resume (§4.5) ----------------------------------------------------------------------------------------------


async def resume_operation(services: Services, owner: LaneOwner, turn: Turn) -> ActiveOperation:
    """The open operation, whose task has been started in activation."""

    async def job(mutator: SessionMutator) -> ActiveOperation:
        owner.require_unheld()
        restored = await restore(mutator, owner.lane)
        if restored.operation is None or not isinstance(restored.state, RunState):
            if restored.operation is None:
                raise NothingToResume(owner.lane)
            raise NotBuiltYet("3.9, 3.10", "resuming a compaction or a navigation")
        _require_built(restored.state)
        _require_next_identities(services, restored, restored.state)
        current = Current(
            operation=restored.operation,
            state=restored.state,
            lane_state=restored.lane_state,
            leaf_id=restored.leaf_id,
        )
        active = ActiveOperation(_work(services, owner, current, restored=owner.restored))
        owner.install(active)
        return active

    async with turn:
        active = await services.session.mutate(owner.lane, job)
    active.work.announce.run_resume()
    start_task(services, owner, active, "resume")
    return active


def _require_built(state: RunState) -> None:
    """Refuse, before anything is written, a state whose next step this version does not have."""
    if isinstance(state.control, CancelRequested):
        raise NotBuiltYet("4.6", "going on with a cancelled run")
    if state.inbox.steer or state.inbox.follow_up or state.inbox.writes:
        raise NotBuiltYet("3.11", "consuming queued input")
    if isinstance(state.phase, DeferredPhase):
        raise NotBuiltYet("3.2", "fetching a deferred response")
    if isinstance(state.phase, CompactionPhase):
        raise NotBuiltYet("3.9", "compaction inside a run")
    if isinstance(state.phase, AssistantPhase) and isinstance(state.phase.generation, GenerationRetryWait):
        raise NotBuiltYet("3.7", "waiting for the next attempt of a request")


def _require_next_identities(services: Services, restored: Restored, state: RunState) -> None:
    """Refuse when the very next work would invoke something that is not registered (AMB-60)."""
    missing = needed_next(services, restored, state)
    if missing.any:
        raise MissingIdentities(restored.lane, tools=missing.tools, models=missing.models)
