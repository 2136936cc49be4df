"""A scenario: a script of public calls, and how each process makes its model, its tools and its hooks."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from restartpoint import AgentHarness, AgentLane, HarnessOptions
from restartpoint.contract import AgentMessage, AgentTool, JsonValue, Model, Models, Usage
from restartpoint.providers import SCRIPTED_MODEL
from restartpoint.session import Session

__all__ = [
    "Call", "Scenario", "Step", "appends", "creates_lane", "labels_leaf", "on_harness", "on_lane", "on_session",
    "prompts", "records_usage", "sets_fact", "sets_name",
]  # fmt: skip

Call: TypeAlias = Callable[[AgentHarness, Session], Awaitable[object]]
"""One public call, on a harness or on the session that it runs."""


@dataclass(frozen=True, kw_only=True)
class Step:
    """One public call. ``words`` name it in findings.

    The sweep calls it again after a crash only when none of its commits is durable, so it makes one call.
    """

    words: str
    call: Call


def _no_tools() -> Sequence[AgentTool]:
    return ()


def _as_given(options: HarnessOptions) -> HarnessOptions:
    return options


def _no_hooks(_: AgentHarness) -> object:
    return None


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """What happens in one run of a sweep. Steps in a tuple run side by side, each on a lane of its own.

    ``models``, ``tools``, ``options`` and ``prepare`` (which registers hooks) are called once per process. What shall
    outlive a process, as files do, belongs to the function that makes the scenario: a sweep calls it once per run.
    Between runs nothing may differ but what the sweep does, so answers and results follow from what was asked alone.
    ``reacts`` says that the model answers differently to an interrupted result, so that what follows one is another.
    """

    name: str
    script: Sequence[Step | tuple[Step, ...]]
    models: Callable[[], Models]
    tools: Callable[[], Sequence[AgentTool]] = _no_tools
    model: Model = SCRIPTED_MODEL
    options: Callable[[HarnessOptions], HarnessOptions] = _as_given
    prepare: Callable[[AgentHarness], object] = _no_hooks
    reacts: bool = False

    def rounds(self) -> list[list[int]]:
        """The steps by their numbers from 0; those of one list run side by side."""
        found, number = [], 0
        for round_ in self.script:
            size = len(round_) if isinstance(round_, tuple) else 1
            found.append([*range(number, number + size)])
            number += size
        return found

    def steps(self) -> list[Step]:
        """Every step in order."""
        return [step for round_ in self.script for step in (round_ if isinstance(round_, tuple) else (round_,))]


def on_harness(words: str, call: Callable[[AgentHarness], Awaitable[object]]) -> Step:
    """A call on the harness."""
    return Step(words=words, call=lambda harness, _: call(harness))


def on_session(words: str, call: Callable[[Session], Awaitable[object]]) -> Step:
    """A call on the session, or on a lane's view of it."""
    return Step(words=words, call=lambda _, session: call(session))


def on_lane(words: str, call: Callable[[AgentLane], Awaitable[object]], *, lane: str = "main") -> Step:
    """A call on a lane that exists by then."""

    async def on_that_lane(harness: AgentHarness) -> object:
        found = await harness.lane(lane)
        if found is None:
            raise LookupError(f"the script uses lane {lane!r}, which does not exist")
        return await call(found)

    return on_harness(f"{words} on {lane}", on_that_lane)


def prompts(message: str | AgentMessage, *, lane: str = "main") -> Step:
    """Runs a prompt to its end."""
    return on_lane(f"prompt({message!r})", lambda found: found.prompt(message), lane=lane)


def appends(message: AgentMessage, *, lane: str = "main") -> Step:
    """Appends a message to an idle lane."""
    return on_session(f"append_message() on {lane}", lambda session: session.view(lane).append_message(message))


def creates_lane(name: str, *, at_leaf_of: str = "main") -> Step:
    """Creates a lane at another lane's leaf."""

    async def create(harness: AgentHarness) -> object:
        other = await harness.lane(at_leaf_of)
        return await harness.create_lane(name, None if other is None else await other.get_leaf_id())

    return on_harness(f"create_lane({name!r})", create)


def sets_name(name: str) -> Step:
    """Names the session."""
    return on_session(f"set_name({name!r})", lambda session: session.set_name(name))


def sets_fact(key: str, value: JsonValue) -> Step:
    """Stores an application's fact."""
    return on_session(f"set_custom_fact({key!r})", lambda session: session.set_custom_fact(key, value))


def labels_leaf(label: str, *, lane: str = "main") -> Step:
    """Labels the lane's leaf."""

    async def set_label(session: Session) -> None:
        leaf = await session.view(lane).get_leaf_id()
        if leaf is None:
            raise LookupError(f"the script labels the leaf of lane {lane!r}, which is at the root")
        await session.set_label(leaf, label)

    return on_session(f"set_label({label!r}) on {lane}", set_label)


def records_usage(usage: Usage, *, lane: str = "main") -> Step:
    """Adds a ledger row by hand."""
    return on_lane("record_usage()", lambda found: found.record_usage(usage), lane=lane)
