"""One session, one harness and everything that a test holds of them."""

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from restartpoint import AgentHarness, HarnessOptions
from restartpoint.contract import AgentTool, CommitResult, Entry, EntryScan, MessagePayload, Transaction
from restartpoint.hooks import Hooks
from restartpoint.providers import SCRIPTED_MODEL, Step
from restartpoint.seams import FaultPoints, InlineWork, NoFaults
from restartpoint.session import Session
from restartpoint.storage import Storage
from restartpoint_oracle import LoggedTimers, LoggedTool, log_hooks
from tests.harness.runtime.court import Court, model_state
from tests.harness.runtime.doubles import CheckedModels, Log, Tool, hear
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import Scenario
from tests.harness.session.stage import StandingClock, counted_ids, words

__all__ = ["Stage", "shown_message", "stage_of"]

Wrap = Callable[[Storage], Storage]


class Stage:
    """Holds the clock, the log and the vendor of one test; ``open`` attaches a harness to the place.

    Every session is judged: a commit that the model does not explain, or a request that differs from the model's
    projection, fails the test when the harness is closed.
    """

    def __init__(self, place: Place, steps: Sequence[Step], tools: Sequence[AgentTool] = (), *, log: Log) -> None:
        self.place = place
        self.clock = StandingClock()
        self.ids = counted_ids(self.clock)
        self.log = log
        self.models = CheckedModels(list(steps), log, self.clock)
        self.tools = list(tools)
        self.faults: FaultPoints = NoFaults()
        self.wrap: Wrap = lambda storage: storage
        self.prepare: Callable[[Hooks], None] = lambda hooks: None
        self.on_commit: Callable[[str], None] = lambda name: None
        self.unjudged: str | None = None
        self.unprojected: str | None = None
        self.session: Session
        self.court: Court
        self._created = False

    def after_crash(self, place: Place, steps: Sequence[Step], tools: Sequence[AgentTool], *, log: Log) -> "Stage":
        """Another process over a copy of the place: it knows nothing but what is durable."""
        other = Stage(place, steps, tools, log=log)
        other.clock.now = self.clock.now + 3_600_000
        other.ids = counted_ids(other.clock)
        other._created = True
        return other

    async def storage(self) -> Storage:
        make = self.place.reopen if self._created else self.place.create
        self._created = True
        return await make(clock=self.clock, faults=self.faults)

    def options(self, **changes: Any) -> HarnessOptions:
        given: dict[str, Any] = {"models": self.models, "model": SCRIPTED_MODEL, "tools": self.tools}
        return HarnessOptions(**{**given, "blocking": InlineWork(), **changes})

    @asynccontextmanager
    async def open(self, **options: Any) -> AsyncIterator[AgentHarness]:
        """A harness over the session of the place, judged until it closes."""
        storage = self.wrap(await self.storage())
        self.session = Session(storage, ids=self.ids, clock=self.clock)
        self.court = Court(await model_state(storage), unprojected=self.unprojected)
        self.models.on_request = self.court.request
        self.log.on_tool = self.court.tool
        self.session.on_commit(self._committed)
        if self.unjudged is not None:
            self.log.excuse(f"not judged: {self.unjudged}")
        if self.unprojected is not None:
            self.log.excuse(f"requests not compared with the model: {self.unprojected}")
        given = self.options(**options)
        effects = self.court.effects
        heard = [isinstance(one, Tool) and one.log is self.log for one in given.tools]  # those log themselves
        pairs = zip(given.tools, heard, strict=True)
        tools = [one if is_heard else LoggedTool(one, effects) for one, is_heard in pairs]
        given = replace(given, timers=LoggedTimers(given.timers, effects), tools=tools)
        opened = False
        try:
            async with AgentHarness.open(self.session, given) as harness:
                opened = True
                log_hooks(harness.hooks, effects)
                hear(harness.events, self.log)
                self.prepare(harness.hooks)
                yield harness
        finally:
            if not opened:  # a harness that refuses to open leaves the storage to whoever brought it
                await storage.close()
        if self.unjudged is None:
            self.court.verdict()

    def _committed(self, lane: str, tx: Transaction, result: CommitResult) -> None:
        name = self.court.judge(tx, result)
        self.log.note(name)
        self.on_commit(name)

    @property
    def names(self) -> list[str]:
        """The transitions since the harness was opened."""
        return self.court.names

    @property
    def writes(self) -> list[list[str]]:
        """The ordered writes of every commit since the harness was opened, ids of operations as O."""
        return [[_shown(words(write)) for write in tx.writes] for tx in self.court.commits]

    async def entries(self) -> list[Entry]:
        return await self.session.find_entries()

    async def messages(self) -> list[str]:
        """Role and text of every message entry, oldest first."""
        return [shown_message(entry) for entry in await self._all() if isinstance(entry.payload, MessagePayload)]

    async def _all(self) -> list[Entry]:
        storage = await self.place.reopen(clock=self.clock, faults=NoFaults())
        try:
            return await storage.scan_entries(EntryScan(order="asc"))
        finally:
            await storage.close()


def stage_of(scenario: Scenario, place: Place, log: Log) -> Stage:
    """The stage of a scenario: its script, its tools and its hooks, over a new session of that place."""
    stage = Stage(place, scenario.steps, scenario.tools(log), log=log)
    stage.prepare = lambda hooks: scenario.hooks(hooks, log)
    return stage


def shown_message(entry: Entry) -> str:
    assert isinstance(entry.payload, MessagePayload)
    message = entry.payload.message
    content = message.get("content")
    blocks = content if isinstance(content, list) else []
    texts = [str(block.get("text", block.get("name", ""))) for block in blocks if isinstance(block, dict)]
    return f"{message.get('role')}: {' '.join(texts)}"


def _shown(write: str) -> str:
    head, slash, key = write.partition("/")
    if not slash or "lane." in head:
        return write
    _, colon, index = key.rpartition(":")
    return f"{head}/O:{index}" if colon else f"{head}/O"
