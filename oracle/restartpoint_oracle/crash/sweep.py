"""The sweep: one scenario, crashed at every commit boundary, resumed, finished, compared with the uninterrupted run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from restartpoint_oracle.crash.account import Account, account_of
from restartpoint_oracle.crash.chronicle import Committed
from restartpoint_oracle.crash.equivalence import compare
from restartpoint_oracle.crash.mortal import Stop
from restartpoint_oracle.crash.report import Finding, SweepReport
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.crash.scenario import Scenario
from restartpoint_oracle.places import Place

__all__ = ["MakePlace", "MakeScenario", "Sweeping", "stops_around", "sweep"]

MakeScenario: TypeAlias = Callable[[], Scenario]
"""A new scenario with a new outside world, for one run."""

MakePlace: TypeAlias = Callable[[], Place]
"""An empty place for one run."""


async def sweep(scenario: MakeScenario, place: MakePlace, *, crashes: int = 1) -> SweepReport:
    """Crash the scenario around every one of its commits, and let it come to the same end (§0.3, §4.5).

    For each boundary k, the creation of the session being 0, the first process ends twice: when commit k is durable and
    nobody was told, and later, when commit k+1 is about to be written and what commit k allowed has happened. The next
    process finds the session as it was left, resumes every open operation and plays the steps that had no effect yet.
    What it comes to is compared as `equivalence` says, and every commit of every run is judged. With ``crashes=2`` the
    second process dies at each of its boundaries too, and so on.

    The report lists what showed; ask it with ``verify()``.
    """
    sweeping = await Sweeping.over(scenario, place)
    for stop in stops_around(sweeping.commits):
        await sweeping.crash_at((stop,), crashes)
    return sweeping.report


def stops_around(commits: int) -> Iterator[Stop]:
    """After the creation, and then before and after each of so many commits."""
    yield Stop(0)
    for commit in range(1, commits + 1):
        yield Stop(commit, before=True)
        yield Stop(commit)


class Sweeping:
    """A sweep that is under way: the uninterrupted run to compare with, and the report."""

    def __init__(self, scenario: MakeScenario, place: MakePlace, reference: Run, backend: str) -> None:
        self.scenario = scenario
        self.place = place
        self.expected: Account = account_of(reference)
        self.transitions = ["create_session", *(event.way for event in reference.chronicle.all(Committed))]
        self.report = SweepReport(
            scenario=reference.scenario.name, backend=backend, boundaries=len(self.transitions), runs=1
        )

    @classmethod
    async def over(cls, scenario: MakeScenario, place: MakePlace) -> Sweeping:
        """A sweep whose uninterrupted run came to its end; raises what that raises."""
        used = place()
        reference = Run(scenario(), used)
        await reference.begin()
        return cls(scenario, place, reference, used.name)

    @property
    def commits(self) -> int:
        """The commits of the uninterrupted run after the creation of the session."""
        return len(self.transitions) - 1

    async def crash_at(self, stops: tuple[Stop, ...], crashes: int) -> None:
        """A run whose processes die after so many commits each, and all that die once more in its last process."""
        run = Run(self.scenario(), self.place())
        await self.judge(self._where(stops), run, lambda: _through(run, stops))
        if len(stops) < crashes:
            for again in stops_around(run.chronicle.commits_of_last_process):
                await self.crash_at((*stops, again), crashes)

    async def judge(self, where: str, run: Run, play: Callable[[], Awaitable[object]]) -> None:
        """Play the run to its end and add what it shows to the report."""
        self.report.runs += 1
        try:
            await play()
            comparison = compare(self.expected, account_of(run))
        except Exception as error:  # noqa: BLE001 - whatever recovery raises is what the sweep found
            self.add(where, list(_told(error)))
            return
        self.report.allowed.update(comparison.allowed)
        if comparison.differences:
            self.add(where, comparison.differences)

    def add(self, where: str, differences: list[str]) -> None:
        """Add a finding."""
        self.report.findings.append(Finding(where=where, differences=tuple(differences)))

    def _where(self, stops: tuple[Stop, ...]) -> str:
        first = self.name_of(stops[0])
        return ", then ".join([first, *(f"at commit {stop} of the next process" for stop in stops[1:])])

    def name_of(self, stop: Stop) -> str:
        """A boundary in words."""
        return f"{'before' if stop.before else 'after'} commit {stop.commit} ({self.transitions[stop.commit]})"


async def _through(run: Run, stops: tuple[Stop, ...]) -> None:
    await run.begin(stop=stops[0])
    for stop in stops[1:]:
        await run.go_on(await run.crash(), stop=stop)
    await run.go_on(await run.crash())


def _told(error: BaseException) -> Iterator[str]:
    """The error, or the errors of a group, each with what caused it."""
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _told(inner)
        return
    yield f"{type(error).__name__}: {error}"
    if error.__cause__ is not None:
        yield from _told(error.__cause__)
