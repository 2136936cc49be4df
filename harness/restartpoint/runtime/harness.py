"""The harness: restores every lane of a session, drives them, and stops cleanly or on a fault (§4.7, §4.8, §5.2)."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

import anyio

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    AgentTool,
    CompactionSettings,
    LaneConfiguration,
    LaneCreatedEvent,
    LaneInfo,
    Model,
    Models,
    QueueMode,
    RegisterSet,
    Resources,
    RetryPolicy,
    SettingUpdateEvent,
    StreamOptions,
    SuspendedOperation,
    ThinkingLevel,
    ToolExecution,
    Transaction,
    check_readable,
)  # fmt: skip
from restartpoint.errors import HarnessClosed, InvalidOptions, SessionCorruption
from restartpoint.events import EventBus
from restartpoint.hooks import Hooks
from restartpoint.runtime.barrier import Drive
from restartpoint.runtime.facts import fact_listener
from restartpoint.runtime.home import Home
from restartpoint.runtime.lane import AgentLane
from restartpoint.runtime.lanes import lane_info
from restartpoint.runtime.owner import LaneOwner
from restartpoint.runtime.restore import restore
from restartpoint.runtime.runner import Runner
from restartpoint.runtime.services import ApplicationCallbacks, Services, SystemPrompt, ToProviderMessages, unchanged
from restartpoint.runtime.settings import (
    NO_COMPACTION,
    NO_RESOURCES,
    ONE_ATTEMPT,
    Settings,
    SettingsLine,
    checked_compaction,
    checked_retry,
    checked_settings,
    checked_stream_options,
    checked_tools,
)
from restartpoint.runtime.suspended import suspended_operation
from restartpoint.seams import BlockingWork, SystemTimers, ThreadWork, Timers
from restartpoint.session import MAIN_LANE, EntryProjector, Session, SessionMutator

__all__ = ["AgentHarness", "HarnessOptions"]
SettingName: TypeAlias = Literal[
    "tools", "resources", "streamOptions", "retryPolicy", "compactionSettings", "steeringMode", "followUpMode"
]


@dataclass(frozen=True, kw_only=True, slots=True)
class HarnessOptions:
    """Everything that a harness is opened with besides its session (§5.2).

    ``model``, ``thinking_level`` and ``active_tool_names`` seed main at its first attachment and every lane that this
    harness creates; they never override a lane that has a configuration. ``active_tool_names`` defaults to the names
    of ``tools``. ``system_prompt``, ``tool_context`` (a value or a function), ``to_provider_messages`` and
    ``entry_projectors`` are deterministic computation and may run again after a crash.
    """

    models: Models
    model: Model
    thinking_level: ThinkingLevel = "off"
    active_tool_names: Sequence[str] | None = None
    tools: Sequence[AgentTool] = ()
    tool_context: Any = None
    system_prompt: SystemPrompt = None
    resources: Resources = NO_RESOURCES
    stream_options: StreamOptions | None = None
    retry: RetryPolicy = ONE_ATTEMPT
    compaction: CompactionSettings = NO_COMPACTION
    steering_mode: QueueMode = "one-at-a-time"
    follow_up_mode: QueueMode = "one-at-a-time"
    tool_execution: ToolExecution = "parallel"
    drive: Drive = "automatic"
    to_provider_messages: ToProviderMessages = unchanged
    entry_projectors: Mapping[str, EntryProjector] = field(default_factory=dict)
    timers: Timers = field(default_factory=SystemTimers)
    blocking: BlockingWork = field(default_factory=ThreadWork)

    def seed(self) -> LaneConfiguration:
        """The configuration that new lanes start with.

        Raises:
            InvalidOptions: a name or a level is not allowed.
        """
        names = [tool.name for tool in self.tools] if self.active_tool_names is None else self.active_tool_names
        seed = LaneConfiguration(
            model=self.model.identity, thinking_level=self.thinking_level, active_tool_names=list(names)
        )
        check_readable("lane configuration", seed)
        return seed

    def settings(self) -> Settings:
        """The initial harness-wide settings.

        Raises:
            InvalidOptions: a value is not allowed.
            NotBuiltYet: this version cannot honour it.
        """
        if self.drive not in ("automatic", "manual"):
            raise InvalidOptions("drive", f"{self.drive!r} is neither 'automatic' nor 'manual'")
        return checked_settings(
            Settings(
                tools=checked_tools(self.tools),
                stream_options=checked_stream_options(self.stream_options or {}),
                retry=checked_retry(self.retry),
                compaction=checked_compaction(self.compaction),
                steering_mode=self.steering_mode,
                follow_up_mode=self.follow_up_mode,
                tool_execution=self.tool_execution,
                resources=self.resources,
            )
        )


class AgentHarness(AgentLane):
    """A session's runtime, itself the lane ``main``. Open it with ``async with AgentHarness.open(...)``."""

    def __init__(
        self,
        services: Services,
        lanes: dict[str, LaneOwner],
        runner: Runner,
        drive: Drive,
        suspended: tuple[SuspendedOperation, ...],
    ) -> None:
        super().__init__(services, lanes[MAIN_LANE])
        self._lanes = lanes
        self._runner = runner
        self._drive = drive
        self._suspended = suspended

    @classmethod
    @asynccontextmanager
    async def open(cls, session: Session, options: HarnessOptions) -> AsyncIterator[AgentHarness]:
        """A running harness over an open session; leaving the block closes both (§4.7).

        Every lane is restored and checked; no operation is started.

        Raises:
            SessionCorruption: a lane's registers contradict each other; no lane is opened, and the session is closed.
            InvalidOptions, NotBuiltYet: an option cannot be used; the session stays as it is.
        """
        settings = options.settings()
        failure: BaseException | None = None
        async with anyio.create_task_group() as group:
            try:
                runner = Runner(group)
                try:
                    yield await _attach(session, options, settings, runner)
                finally:
                    with anyio.CancelScope(shield=True):
                        await _detach(session, runner)
            except (Exception, KeyboardInterrupt, SystemExit) as error:  # noqa: BLE001 - raised below, in no group
                failure = error
            group.cancel_scope.cancel()  # the tasks of async listeners would wait for ever
        if failure is not None:
            raise failure

    @property
    def hooks(self) -> Hooks:
        """The hooks of all lanes (§5.6)."""
        return self._services.hooks

    @property
    def events(self) -> EventBus:
        """The events of all lanes (§5.5)."""
        return self._services.events

    @property
    def suspended(self) -> tuple[SuspendedOperation, ...]:
        """The operations that were open when the harness was opened, one per lane at most."""
        return self._suspended

    async def lanes(self) -> tuple[LaneInfo, ...]:
        """Every lane by ascending name, with its leaf and its open operation."""
        return tuple([await lane_info(self._reader(), self._lanes[name]) for name in sorted(self._lanes)])

    async def lane(self, name: str) -> AgentLane | None:
        """The lane of that name, or None; it never creates one."""
        services, owner = self._services, self._lanes.get(name)
        return None if owner is None else AgentLane(services, owner)

    async def create_lane(self, name: str, at: str | None) -> AgentLane:
        """A new lane whose leaf is ``at``, with the seed configuration of this harness.

        Raises:
            LaneExists, InvalidLane, UnknownTarget, Closed: nothing was written.
        """

        async def create() -> None:
            await self._services.session.create_lane(name, at, self._services.seed)
            self._lanes[name] = self._runner.owner(self._services, name, self._drive, restored=False)

        await self._accepted(create)
        self._services.events.publish(LaneCreatedEvent(lane=name, at=at))
        return AgentLane(self._services, self._lanes[name])

    # --- harness-wide settings (§4.3) ---------------------------------------------------------------------------

    def _current(self) -> Settings:
        services = self._services
        self._owner.barrier.raise_if_closed()
        return services.settings.current

    async def get_tools(self) -> tuple[AgentTool, ...]:
        """The registered tools."""
        return tuple(self._current().tools.values())

    async def set_tools(self, tools: Sequence[AgentTool]) -> None:
        """Replace the registry; the active names of each lane stay as they are."""
        await self._change("tools", tools=checked_tools(tools))

    async def get_resources(self) -> Resources:
        """The skills and prompt templates."""
        return self._current().resources

    async def set_resources(self, resources: Resources) -> None:
        """Replace the skills and prompt templates."""
        await self._change("resources", resources=resources)

    async def get_stream_options(self) -> StreamOptions:
        """The base options of later steps."""
        return self._current().stream_options

    async def set_stream_options(self, options: StreamOptions) -> None:
        """Use other base options from the next step on."""
        await self._change("streamOptions", stream_options=checked_stream_options(options))

    async def get_retry_policy(self) -> RetryPolicy:
        """The retry policy of later steps."""
        return self._current().retry

    async def set_retry_policy(self, policy: RetryPolicy) -> None:
        """Use another retry policy from the next step on."""
        await self._change("retryPolicy", retry=checked_retry(policy))

    async def get_compaction_settings(self) -> CompactionSettings:
        """The compaction settings of later runs."""
        return self._current().compaction

    async def set_compaction_settings(self, settings: CompactionSettings) -> None:
        """Use other compaction settings from the next run on."""
        await self._change("compactionSettings", compaction=checked_compaction(settings))

    async def get_steering_mode(self) -> QueueMode:
        """How many steering messages one drain takes."""
        return self._current().steering_mode

    async def set_steering_mode(self, mode: QueueMode) -> None:
        """Use another steering mode from the next run on."""
        await self._change("steeringMode", steering_mode=mode)

    async def get_follow_up_mode(self) -> QueueMode:
        """How many follow-ups one drain takes."""
        return self._current().follow_up_mode

    async def set_follow_up_mode(self, mode: QueueMode) -> None:
        """Use another follow-up mode from the next run on."""
        await self._change("followUpMode", follow_up_mode=mode)

    async def _change(self, setting: SettingName, **fields: object) -> None:
        services = self._services
        self._owner.barrier.raise_if_closed()
        await services.settings.change(**fields)
        services.events.publish(SettingUpdateEvent(property=setting))

    async def close(self) -> None:
        """Detach: a controlled crash that writes nothing; open operations stay resumable (§4.7)."""
        await _detach(self._services.session, self._runner)


async def _attach(session: Session, options: HarnessOptions, settings: Settings, runner: Runner) -> AgentHarness:
    """Seed main when it has no configuration, restore every lane, and start nothing (§5.2)."""
    services = Services(
        home=Home(),
        session=session,
        models=options.models,
        hooks=Hooks(runner.report_hook),
        events=runner.events,
        settings=SettingsLine(settings),
        application=ApplicationCallbacks(
            system_prompt=options.system_prompt,
            tool_context=options.tool_context,
            to_provider_messages=options.to_provider_messages,
            entry_projectors=options.entry_projectors,
        ),
        seed=options.seed(),
        timers=options.timers,
        blocking=options.blocking,
        spawn=runner.spawn,
        fault=runner.fault,
    )
    session.on_commit(fact_listener(runner.events))
    await session.mutate(MAIN_LANE, lambda mutator: _seed_main(mutator, services.seed))
    lanes, suspended = {}, []
    for register in await session.list_registers(LANE_STATE):
        restored = await restore(session, register.key)
        lanes[register.key] = runner.owner(
            services, register.key, options.drive, restored=restored.operation is not None
        )
        if restored.operation is not None:
            suspended.append(suspended_operation(services, restored))
    if MAIN_LANE not in lanes:
        raise SessionCorruption(MAIN_LANE, "lane registers", "lane.state is missing")
    return AgentHarness(services, lanes, runner, options.drive, tuple(suspended))


async def _detach(session: Session, runner: Runner) -> None:
    """Stop what the harness runs, then give the session up."""
    runner.stop(HarnessClosed("the harness was closed; resume() the operation after reopening"))
    await session.close()


async def _seed_main(mutator: SessionMutator, seed: LaneConfiguration) -> None:
    """S02: the first configuration of main, written at most once, and never into a session that has no main."""
    if await mutator.get_register(LANE_CONFIG, MAIN_LANE) is not None:
        return
    if None not in await mutator.get_registers([(LANE_STATE, MAIN_LANE), (LANE_LEAF, MAIN_LANE)]):
        await mutator.commit(Transaction((RegisterSet(LANE_CONFIG, MAIN_LANE, seed),)))
