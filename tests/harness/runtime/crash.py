"""Lives of one session: run it, keep a copy of what is durable after each commit, and begin another life from it."""

from dataclasses import dataclass

from restartpoint import AgentHarness
from restartpoint.contract import OP_STATE, OperationState, RegisterSet, RunState, Transaction
from restartpoint.providers import Step
from tests.harness.runtime.doubles import Log, Tool
from tests.harness.runtime.places import Place
from tests.harness.runtime.scenarios import Scenario
from tests.harness.runtime.stage import Stage, stage_of

__all__ = ["Prefix", "change_state", "keep_copies", "next_life", "open_state", "prefixes", "prefixes_of_resume"]


@dataclass(frozen=True, kw_only=True)
class Prefix:
    """What a process finds that starts after the commit ``name``; ``lines`` is all that had happened by then."""

    name: str
    place: Place
    lines: list[str]
    stage: Stage


def keep_copies(stage: Stage) -> list[Prefix]:
    """The list that gets a copy of the place after every commit of the stage."""
    kept: list[Prefix] = []

    def keep(name: str) -> None:
        kept.append(Prefix(name=name, place=stage.place.copy(), lines=[*stage.log.lines], stage=stage))

    stage.on_commit = keep
    return kept


async def prefixes(scenario: Scenario, place: Place) -> list[Prefix]:
    """Every committed prefix of an undisturbed run."""
    stage = stage_of(scenario, place, Log())
    kept = keep_copies(stage)
    async with stage.open(**scenario.options) as harness:
        await harness.prompt("go")
    return kept


async def prefixes_of_resume(stage: Stage) -> list[Prefix]:
    """Every committed prefix of an undisturbed recovery."""
    kept = keep_copies(stage)
    async with stage.open() as harness:
        await harness.resume()
    return kept


def next_life(prefix: Prefix, steps: list[Step], tools: list[Tool] | None = None, *, log: Log | None = None) -> Stage:
    """Another process over the prefix. The vendor remembers nothing; what a tool did before is not undone."""
    log = Log() if log is None else log
    return prefix.stage.after_crash(prefix.place, steps, [] if tools is None else tools, log=log)


async def open_state(harness: AgentHarness) -> RunState:
    """The state of main's open run."""
    (register,) = await harness.session._storage.list_registers(OP_STATE)
    assert isinstance(register.value, RunState)
    return register.value


async def change_state(stage: Stage, state: OperationState) -> None:
    """Write another state over the open operation's, as a test fixture does that builds a state durably."""
    storage = await stage.storage()
    (register,) = await storage.list_registers(OP_STATE)
    await storage.commit(Transaction((RegisterSet(OP_STATE, register.key, state),)))
    await storage.close()
