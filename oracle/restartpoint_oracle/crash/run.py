"""One run of a scenario over one place: processes that die after chosen commits, and a last one that finishes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import cast

import anyio
import anyio.lowlevel

from restartpoint import AgentHarness, HarnessOptions
from restartpoint.seams import InlineWork, NoFaults
from restartpoint.session import Session
from restartpoint.storage import Storage
from restartpoint_oracle.content import content_of_model, content_of_storage
from restartpoint_oracle.crash.chronicle import Chronicle, Committed, Reopened, Returned, of_step
from restartpoint_oracle.crash.mortal import MortalModels, MortalStorage, MortalTool, Process, Stop
from restartpoint_oracle.crash.scenario import Scenario, Step
from restartpoint_oracle.doubles import ManualClock, counted_ids
from restartpoint_oracle.effects import check_growth, check_requests, check_sandwich
from restartpoint_oracle.errors import ContentDiffers
from restartpoint_oracle.judge import lanes_of
from restartpoint_oracle.logged import LoggedTimers
from restartpoint_oracle.places import LEASE_MS, Place
from restartpoint_oracle.samples import FIRST_TRANSACTION, METADATA
from restartpoint_oracle.wire import JsonObject
from restartpoint_reference import State, differences
from restartpoint_reference.transitions.frame import View
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    GenerationPending,
    PendingCall,
    RunState,
    ToolsPhase,
)

__all__ = ["JumpingTimers", "Run", "uncertain_in"]


_A_DAY_MS = 86_400_000


class JumpingTimers:
    """Timers that move the clock instead of waiting."""

    def __init__(self, clock: ManualClock) -> None:
        self._clock = clock

    async def sleep_ms(self, delay_ms: int) -> None:
        """The clock is later by so much."""
        self._clock.advance(delay_ms)


class Run:
    """One scenario, once: its world, its place, and what happened in all of its processes.

    ``states`` holds the model's state after the creation of the session and after each commit since.
    """

    def __init__(self, scenario: Scenario, place: Place, *, chronicle: Chronicle | None = None) -> None:
        self.scenario = scenario
        self.chronicle = Chronicle() if chronicle is None else chronicle
        self.states: list[State] = []
        self.content: JsonObject = {}
        """What the session holds at the end, once a process finished."""
        self._place = place
        self._clock = ManualClock()
        self._ids = counted_ids(self._clock)

    async def begin(self, *, stop: Stop | None = None, kill: Callable[[], object] | None = None) -> bool:
        """Whether the first process, which creates the session, died at its stop."""
        inner = await self._place.create(METADATA, FIRST_TRANSACTION, clock=self._clock, faults=NoFaults())
        storage = await MortalStorage.over_new(inner)
        self.states.append(storage.judge.state)
        return await self._live(storage, stop, kill)

    async def crash(self, *, lost: int = 0) -> Storage:
        """The session as the next process finds it; ``lost`` commits went with what the crash tore off."""
        self._clock.advance(LEASE_MS)
        self.chronicle.lose(lost)
        del self.states[len(self.states) - lost :]
        return await self._place.crash(clock=self._clock, faults=NoFaults(), torn=0)

    async def found(self) -> Storage:
        """The session that another process, which is dead and whose clock nobody knows, left at the place."""
        self._clock.advance(_A_DAY_MS)
        return await self._place.reopen(clock=self._clock, faults=NoFaults())

    async def go_on(self, inner: Storage, *, stop: Stop | None = None) -> bool:
        """Whether the next process, which resumes what is open and plays the rest, died at its stop.

        Raises:
            ContentDiffers: the session is not what the dead process committed.
        """
        storage = await MortalStorage.over_existing(inner)
        if lost := self._lost(await content_of_storage(inner)):
            await inner.close()
            head = "the reopened session is not what had been committed (§1.4)"
            raise ContentDiffers("\n  - ".join((head, *lost)))
        self.chronicle.note(Reopened(uncertain=tuple(uncertain_in(storage.judge.state))))
        return await self._live(storage, stop, None)

    def _lost(self, content: JsonObject) -> tuple[str, ...]:
        """What is missing or too much; of a process that was killed the chronicle knows only which ids it wrote."""
        if self.states:
            return differences(content_of_model(self.states[-1]), content)
        written = {key for commit in self.chronicle.all(Committed) for key in (*commit.entries, *commit.usage)}
        rows = [row for part in ("entries", "usage") for row in cast("list[JsonObject]", content[part])]
        return differences([*sorted(written)], [*sorted(str(row["id"]) for row in rows)], "ids of entries and usage")

    async def _live(self, storage: MortalStorage, stop: Stop | None, kill: Callable[[], object] | None) -> bool:
        with anyio.CancelScope() as scope:
            process = Process(
                self.chronicle, states=self.states, stop=stop, kill=scope.cancel if kill is None else kill
            )
            process.follow(storage.judge)
            storage.process = process
            process.created()
            try:
                await anyio.lowlevel.checkpoint_if_cancelled()
                session = Session(storage, ids=self._ids, clock=self._clock)
                async with AgentHarness.open(session, self._options(process)) as harness:
                    self.scenario.prepare(harness)
                    await self._resume(harness)
                    await self._play(harness, session)
                    self.content = await content_of_storage(storage)
            except Exception:
                storage.judge.verify()
                if not process.dead:
                    raise
        storage.judge.verify()
        for check in (check_sandwich, check_requests, check_growth):
            check(process.effects)
        if not process.dead:
            await self._read_again()
        return process.dead

    async def _read_again(self) -> None:
        """Hold the closed session to what it answered while it was open.

        Raises:
            ContentDiffers: it reads otherwise.
        """
        storage = await self._place.reopen(clock=self._clock, faults=NoFaults())
        try:
            lost = differences(self.content, await content_of_storage(storage))
        finally:
            await storage.close()
        if lost:
            raise ContentDiffers("\n  - ".join(("the closed session reads otherwise than before (§1.4)", *lost)))

    def _options(self, process: Process) -> HarnessOptions:
        scenario = self.scenario
        return scenario.options(
            HarnessOptions(
                models=MortalModels(scenario.models(), process),
                model=scenario.model,
                tools=[MortalTool(tool, process) for tool in scenario.tools()],
                timers=LoggedTimers(JumpingTimers(self._clock), process.effects),
                blocking=InlineWork(),
            )
        )

    async def _resume(self, harness: AgentHarness) -> None:
        """Go on with every open operation, except those that only their provider can go on with."""
        for suspended in harness.suspended:
            lane = await harness.lane(suspended.lane)
            if lane is not None and suspended.reason != "deferred":
                with of_step(self.chronicle.step_of_operation(suspended.operation_id)):
                    await lane.resume()

    async def _play(self, harness: AgentHarness, session: Session) -> None:
        """The steps that had no effect yet, in order."""
        steps = self.scenario.steps()
        for numbers in self.scenario.rounds():
            async with anyio.create_task_group() as side_by_side:
                for number in numbers:
                    if not self.chronicle.took_effect(number):
                        side_by_side.start_soon(self._call, number, steps[number], harness, session)

    async def _call(self, number: int, step: Step, harness: AgentHarness, session: Session) -> None:
        with of_step(number):
            await step.call(harness, session)
            self.chronicle.note(Returned())


def uncertain_in(state: State) -> Iterator[str]:
    """The reserved ids under which effects were pending: whether they took place, nobody can know (§4.5)."""
    for view in lanes_of(state):
        if view.lane_state.current_operation_id is not None:
            yield from _pending_in(view)


def _pending_in(view: View) -> Iterator[str]:
    match view.operation_state:
        case RunState(phase=AssistantPhase(generation=GenerationPending() as pending)):
            yield pending.response_entry_id
        case RunState(phase=ToolsPhase(batch=batch)):
            yield from (call.result_entry_id for call in batch.calls if isinstance(call, PendingCall))
        case _:
            return
