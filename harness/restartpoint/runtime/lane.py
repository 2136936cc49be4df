"""A lane's public surface: it admits operations, drives them by hand when asked, and configures the lane (§5.1)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Sequence
from typing import Any, Literal, TypeVar

from msgspec.structs import replace

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LAST_RESULT,
    LANE_LEAF,
    UNSET,
    AbortAccepted,
    ActiveToolsUpdateEvent,
    AgentMessage,
    CompactionOutcome,
    InsertUsage,
    JsonObject,
    JsonValue,
    LaneConfiguration,
    LaneLastResult,
    Model,
    ModelIdentity,
    ModelUpdateEvent,
    NavigationOutcome,
    OperationOutcome,
    RegisterSet,
    RunOutcome,
    ThinkingLevel,
    ThinkingLevelUpdateEvent,
    Transaction,
    UnsetType,
    Usage,
    UsageDraft,
    check_json,
    check_readable,
    or_unset,
    usage_objection,
)  # fmt: skip
from restartpoint.errors import (
    Closed,
    HarnessClosed,
    InvalidJson,
    InvalidMessage,
    InvalidOptions,
    InvariantBroken,
    NotBuiltYet,
)
from restartpoint.runtime.admission import accept_prompt, checked_messages, resume_operation
from restartpoint.runtime.announce import Committed, bill
from restartpoint.runtime.barrier import ActionInfo
from restartpoint.runtime.expansion import expanded_skill, expanded_template
from restartpoint.runtime.owner import ActiveOperation, LaneOwner, Reservation, Turn
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.services import Services
from restartpoint.runtime.tree_writes import HarnessLine
from restartpoint.session import Session, SessionMutator, SessionTree

__all__ = ["AgentLane"]

T = TypeVar("T")


class AgentLane:
    """One lane of a harness. Rejections raise a ``Rejected``; accepted operations return their outcome.

    It serves the event loop that opened the harness; calls from elsewhere raise ``WrongEventLoop`` and change nothing.
    """

    def __init__(self, services: Services, owner: LaneOwner) -> None:
        self._shared = services
        self._owner = owner

    @property
    def _services(self) -> Services:
        """The shared parts, for a caller in the harness's event loop: the way of every public call."""
        self._shared.home.require()
        return self._shared

    @property
    def name(self) -> str:
        """The lane's permanent name."""
        return self._owner.lane

    @property
    def session(self) -> SessionTree:
        """The tree as this lane sees it. While an operation is being admitted or ``run_when_idle`` keeps the idle lane,
        appends wait; their failed commit stops the harness like every other (§3.6, §4.8)."""
        return self._services.session.view(self.name, HarnessLine(self._services, self._owner))

    def _reader(self) -> Session:
        """The session, while this harness runs; surfaces without rejections raise what stopped it (§4.8)."""
        session = self._services.session
        self._owner.barrier.raise_if_closed()
        return session

    async def get_leaf_id(self) -> str | None:
        """The entry that the next append hangs under; None at the root."""
        leaf = await self._reader().get_register(LANE_LEAF, self.name)
        return None if leaf is None else leaf.value

    async def get_last_result(self) -> LaneLastResult | None:
        """The outcome of the latest ended operation, also after a crash (§3.13); None before the first one."""
        result = await self._reader().get_register(LANE_LAST_RESULT, self.name)
        return None if result is None else result.value

    # --- operations ---------------------------------------------------------------------------------------------

    def prompt(
        self, message: str | AgentMessage | Sequence[AgentMessage], images: Sequence[JsonObject] = ()
    ) -> Coroutine[Any, Any, RunOutcome]:
        """Run one prompt to its end or suspension (§3.6); the lane is asked for in the order of these calls.

        Cancelling the caller who awaits detaches it from the run and never aborts the run.

        Raises:
            LaneBusy, MissingIdentities, InvalidMessage, Closed: nothing was written.
            HarnessFault, HarnessClosed: the run stays open and can be resumed after the session is opened again.
        """
        timestamp = self._services.session.clock.now_ms()
        return self._admit(
            lambda turn: accept_prompt(
                self._services, self._owner, turn, checked_messages(self.name, message, images, timestamp)
            )
        )

    def resume(self) -> Coroutine[Any, Any, OperationOutcome]:
        """Go on with the lane's open operation after a crash, a close or a suspension (§4.5).

        Raises:
            NothingToResume, LaneBusy, MissingIdentities, Closed, NotBuiltYet: nothing was written.
        """
        return self._admit(lambda turn: resume_operation(self._services, self._owner, turn))

    async def skill(self, name: str, additional_instructions: str | None = None) -> RunOutcome:
        """Run a registered skill as a prompt, with further instructions below it.

        Raises:
            UnknownSkill: no skill has that name. Otherwise as ``prompt``.
        """
        text = expanded_skill(self._services.settings.current.resources, name, additional_instructions)
        return await self.prompt(text)

    async def prompt_from_template(self, name: str, arguments: Sequence[str] = ()) -> RunOutcome:
        """Run a registered prompt template with ``$1``, ``$2``, ... and ``$@`` replaced by the arguments.

        Raises:
            UnknownTemplate: no template has that name. Otherwise as ``prompt``.
        """
        return await self.prompt(expanded_template(self._services.settings.current.resources, name, arguments))

    async def compact(self, custom_instructions: str | None = None) -> CompactionOutcome:
        """Compact the lane's context."""
        del custom_instructions
        raise NotBuiltYet("3.9", "manual compaction")

    async def navigate_tree(
        self, target_id: str | None, *, summarize: bool = False, label: str | None = None
    ) -> NavigationOutcome:
        """Move the lane's leaf to another entry."""
        del target_id, summarize, label
        raise NotBuiltYet("3.10", "navigation")

    async def abort(self) -> AbortAccepted:
        """Cancel the open operation durably.

        Raises:
            NoActiveOperation: the lane is idle.
            NotBuiltYet: an operation is open; nothing was changed.
        """
        await self._accepted(lambda: self._owner.require_open_operation(self._services))
        raise NotBuiltYet("4.6", "durable abort; close() the harness to stop the operation, resume() it later")

    async def steer(self, message: str | AgentMessage, images: Sequence[JsonObject] = ()) -> str:
        """Queue input for the running turn."""
        del message, images
        raise NotBuiltYet("3.11", "steering")

    async def follow_up(self, message: str | AgentMessage, images: Sequence[JsonObject] = ()) -> str:
        """Queue input for after the run's last turn."""
        del message, images
        raise NotBuiltYet("3.11", "follow-up input")

    async def next_run(self, message: str | AgentMessage, images: Sequence[JsonObject] = ()) -> str:
        """Queue input for the lane's next run."""
        del message, images
        raise NotBuiltYet("3.11", "input for the next run")

    async def cancel_queued(self, entry_id: str) -> Literal["cancelled", "already_consumed", "not_found"]:
        """Cancel queued input."""
        del entry_id
        raise NotBuiltYet("3.11", "queues")

    async def record_usage(
        self, usage: Usage, *, entry_id: str | None = None, details: JsonValue | UnsetType = UNSET
    ) -> str:
        """The id of a new ledger row that reconciles costs by hand (S07, §1.6).

        Raises:
            Closed, InvalidMessage: nothing was written.
        """
        objection = usage_objection(usage)
        if objection is not None:
            raise InvalidMessage(self.name, objection)
        try:
            check_json(usage, "usage")
            check_json(None if details is UNSET else details, "details")
        except InvalidJson as error:
            raise InvalidMessage(self.name, str(error)) from error
        if not isinstance(entry_id, str | None):
            raise InvalidMessage(self.name, "entry_id must be text")
        usage_id = self._services.session.ids.next()
        row = UsageDraft(id=usage_id, usage=usage, adjustment=True, entry_id=or_unset(entry_id), details=details)

        async def job(mutator: SessionMutator) -> Committed:
            transaction = Transaction((InsertUsage(row),))
            return Committed.of(transaction, await mutator.commit(transaction))

        committed = await self._accepted(lambda: self._services.session.mutate(self.name, job))
        await bill(self._services.events, self._services.session, self.name, committed.usage)
        return usage_id

    async def wait_for_idle(self) -> None:
        """Return once no operation or reservation is held on this lane.

        Raises:
            HarnessFault, HarnessClosed: the harness stopped first.
        """
        await self._owner.wait_for_idle(self._services)

    async def run_when_idle(self, callback: Callable[[], Awaitable[None]]) -> None:
        """Wait as ``wait_for_idle`` does, then keep the lane to the callback, which must not change this lane.

        What the callback raises is raised here.

        Raises:
            HarnessFault, HarnessClosed: the harness stopped before the callback could start.
        """
        reservation = Reservation(operation_id=self._services.session.ids.next(), kind="callback")
        await self._owner.reserve_when_idle(self._services, reservation)
        try:
            await callback()
        finally:
            self._owner.release(reservation)

    # --- manual drive -------------------------------------------------------------------------------------------

    async def peek_action(self) -> ActionInfo | None:
        """The parked step, once one is parked; None in automatic drive or when nothing runs."""
        self._shared.home.require()
        return await self._owner.peek()

    async def execute_action(self) -> ActionInfo | None:
        """Release the parked step and return what it was; None when nothing runs."""
        if await self.peek_action() is None:
            return None
        return self._owner.barrier.execute()

    async def run_to_completion(self) -> None:
        """Release every step until nothing runs."""
        while await self.execute_action() is not None:
            pass

    # --- configuration ------------------------------------------------------------------------------------------

    async def get_configuration(self) -> LaneConfiguration:
        """The lane's total configuration."""
        register = await self._reader().get_register(LANE_CONFIG, self.name)
        if register is None:
            raise InvariantBroken(f"lane {self.name!r} has no configuration")
        return register.value

    async def get_model(self) -> Model | None:
        """The lane's model, or None when its identity is not registered."""
        return self._services.models.resolve((await self.get_configuration()).model)

    async def set_model(self, model: Model | ModelIdentity) -> None:
        """Use another model from the next assistant step on."""
        identity = model.identity if isinstance(model, Model) else model
        before = await self._configure(lambda old: replace(old, model=identity))
        self._services.events.publish(ModelUpdateEvent(lane=self.name, value=identity, previous=before.model))

    async def get_thinking_level(self) -> ThinkingLevel:
        """How much the model is asked to think."""
        return (await self.get_configuration()).thinking_level

    async def set_thinking_level(self, level: ThinkingLevel) -> None:
        """Use another thinking level from the next assistant step on."""
        before = await self._configure(lambda old: replace(old, thinking_level=level))
        event = ThinkingLevelUpdateEvent(lane=self.name, value=level, previous=before.thinking_level)
        self._services.events.publish(event)

    async def get_active_tools(self) -> list[str]:
        """The names of the tools that requests of this lane declare."""
        return list((await self.get_configuration()).active_tool_names)

    async def set_active_tools(self, names: Sequence[str]) -> None:
        """Declare other tools from the next assistant step on."""
        chosen = list(names)
        if len(set(chosen)) != len(chosen):
            raise InvalidOptions("active tools", "a name occurs twice")
        before = await self._configure(lambda old: replace(old, active_tool_names=chosen))
        event = ActiveToolsUpdateEvent(lane=self.name, value=chosen, previous=before.active_tool_names)
        self._services.events.publish(event)

    async def _configure(self, change: Callable[[LaneConfiguration], LaneConfiguration]) -> LaneConfiguration:
        async def job(mutator: SessionMutator) -> LaneConfiguration:
            register = await mutator.get_register(LANE_CONFIG, self.name)
            if register is None:
                raise InvariantBroken(f"lane {self.name!r} has no configuration")
            changed = change(register.value)
            check_readable("lane configuration", changed)
            await mutator.commit(Transaction((RegisterSet(LANE_CONFIG, self.name, changed),)))
            return register.value

        return await self._detached(lambda: self._services.session.mutate(self.name, job))

    def _admit(self, admission: Callable[[Turn], Awaitable[ActiveOperation]]) -> Coroutine[Any, Any, RunOutcome]:
        """Start the admission now, in a task that the harness owns; what is returned waits for its operation's end."""
        return self._outcome(self._services.spawn(self._owner.arriving(admission)))

    async def _outcome(self, admission: Promise[ActiveOperation]) -> RunOutcome:
        self._shared.home.require()
        try:
            active = await admission.wait()
        except HarnessClosed as error:
            raise Closed from error
        return await active.completion.wait()

    async def _detached(self, call: Callable[[], Awaitable[T]]) -> T:
        """Run the call in a task that the harness owns; a cancelled caller leaves it running."""
        promise: Promise[T] = self._services.spawn(call)
        return await promise.wait()

    async def _accepted(self, call: Callable[[], Awaitable[T]]) -> T:
        """The same for a call that a close before its acceptance rejects as ``Closed``, since nothing was written."""
        try:
            return await self._detached(call)
        except HarnessClosed as error:
            raise Closed from error
