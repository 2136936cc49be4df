"""What a crash leaves half written: a line of a JSONL file cut at any byte, a log of SQLite cut at any frame (§1.7).

In a torn run the last commit is lost with what was cut, so the next process has to find the state before it, while the
effects that had happened by then stay. Besides those whole runs, every cut file is opened and compared (``looked``).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import NamedTuple, Protocol

from restartpoint.seams import Clock, FaultPoints, NoFaults
from restartpoint.storage import Storage
from restartpoint.storage.sqlite import InlineHop
from restartpoint_oracle.content import content_of_model, content_of_storage
from restartpoint_oracle.crash.mortal import Stop
from restartpoint_oracle.crash.report import SweepReport
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.crash.sweep import MakeScenario, Sweeping
from restartpoint_oracle.doubles import ManualClock
from restartpoint_oracle.places import LEASE_MS, JsonlPlace, Place, SqlitePlace
from restartpoint_oracle.wire import JsonObject
from restartpoint_reference import State, differences

__all__ = ["sweep_torn_jsonl", "sweep_torn_sqlite"]

_LOG_HEADER, _FRAME_HEADER = 32, 24
"""Bytes before the first frame of a log, and before the page of each frame."""


async def sweep_torn_jsonl(scenario: MakeScenario, folder: Path, *, every: int = 1) -> SweepReport:
    """Cut the line of every commit at every byte (or each ``every``-th), reopen, and finish after three of the cuts."""
    sweeping = await _sweep(scenario, lambda: _CutJsonl(_new(folder), every=every))
    return sweeping.report


async def sweep_torn_sqlite(scenario: MakeScenario, folder: Path) -> SweepReport:
    """Cut the log of every commit at every frame, inside it and by its checksum, reopen, and finish after three cuts.

    The log of the whole run is cut at every frame too: that must leave the state after some of its commits, in order.
    """
    sweeping = await _sweep(scenario, lambda: _CutSqlite(_new(folder)))
    run = Run(scenario(), place := _CutSqlite(_new(folder)))
    await run.begin(stop=Stop(sweeping.commits))
    for line in [line async for line in _strays(place, run.states)]:
        sweeping.add("at the end, its log cut at a frame", [line])
    sweeping.report.looked += len(place.frames()) + 1
    await (await run.crash()).close()
    return sweeping.report


class _Cut(NamedTuple):
    """A way to shorten or damage a file."""

    words: str
    apply: Callable[[bytes], bytes]


class _TornPlace(Place, Protocol):
    """A place whose next crash leaves less than was written: ``cut``, or everything."""

    cut: _Cut | None

    def cuts(self) -> Sequence[_Cut]:
        """Every way in which the last commit may be torn."""
        ...

    def copy(self, cut: _Cut) -> Place:
        """Another place that holds what a crash would leave now."""
        ...


def _new(folder: Path) -> Path:
    return Path(mkdtemp(dir=folder))


async def _sweep(scenario: MakeScenario, make_place: Callable[[], _TornPlace]) -> Sweeping:
    sweeping = await Sweeping.over(scenario, make_place)
    for commit in range(1, sweeping.commits + 1):
        where = sweeping.name_of(Stop(commit))
        run = Run(scenario(), place := make_place())
        await run.begin(stop=Stop(commit))
        cuts, before = place.cuts(), content_of_model(run.states[-2])
        for cut in cuts:
            sweeping.report.looked += 1
            if lines := differences(before, await _content(place.copy(cut))):
                sweeping.add(f"{where}, torn {cut.words}", [*lines])
        await (await run.crash()).close()
        for cut in (cuts[0], cuts[len(cuts) // 2], cuts[-1]):
            torn = make_place()
            torn.cut = cut
            run = Run(scenario(), torn)
            await sweeping.judge(f"{where}, torn {cut.words}", run, _finishing(run, commit))
    return sweeping


def _finishing(run: Run, commit: int) -> Callable[[], Awaitable[object]]:
    async def finish() -> None:
        await run.begin(stop=Stop(commit))
        await run.go_on(await run.crash(lost=1))

    return finish


async def _content(place: Place) -> JsonObject:
    clock = ManualClock()
    clock.advance(LEASE_MS)
    storage = await place.reopen(clock=clock, faults=NoFaults())
    try:
        return await content_of_storage(storage)
    finally:
        await storage.close()


class _CutJsonl(JsonlPlace):
    def __init__(self, folder: Path, *, every: int) -> None:
        super().__init__(folder)
        self.cut: _Cut | None = None
        self._every = every

    def cuts(self) -> Sequence[_Cut]:
        """The last line, from nothing of it to all but its newline."""
        written = self.path.read_bytes()
        line = len(written) - (written.rindex(b"\n", 0, -1) + 1)
        kept = sorted({*range(0, line, self._every), line - 1})
        return [_Cut(f"to {bytes_} of {line} bytes", _shortened(line - bytes_)) for bytes_ in kept]

    def copy(self, cut: _Cut) -> Place:
        scratch = self._folder / "scratch"
        scratch.mkdir(exist_ok=True)
        other = JsonlPlace(scratch)
        other.path.write_bytes(cut.apply(self.path.read_bytes()))
        return other

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        if self.cut is None:
            return await super().crash(clock=clock, faults=faults, torn=torn)
        assert self._storage is not None
        left = self.cut.apply(self.path.read_bytes())
        await self._storage.close()
        self._crashes, self.cut = self._crashes + 1, None
        self.path.write_bytes(left)
        return await self.reopen(clock=clock, faults=faults)


def _shortened(by: int) -> Callable[[bytes], bytes]:
    return lambda written: written[: len(written) - by]


class _CutSqlite(SqlitePlace):
    def __init__(self, folder: Path) -> None:
        super().__init__(folder, new_hop=InlineHop)
        self.cut: _Cut | None = None

    @property
    def log(self) -> Path:
        return self.path.with_name(self.path.name + "-wal")

    def frames(self) -> list[tuple[int, bool]]:
        """Where each frame of the log starts, and whether it ends a transaction."""
        return _frames(self.log.read_bytes())

    def cuts(self) -> Sequence[_Cut]:
        """Before each frame of the last transaction, inside of it, and with its checksum damaged."""
        frames = self.frames()
        before_last = [number for number, (_, ends) in enumerate(frames[:-1]) if ends]
        found: list[_Cut] = []
        for number in range(before_last[-1] + 1 if before_last else 0, len(frames)):
            start, name = frames[number][0], f"frame {number + 1} of {len(frames)}"
            found += [
                _Cut(f"before {name}", _kept(start)),
                _Cut(f"inside {name}", _kept(start + _FRAME_HEADER + 100)),
                _Cut(f"in the checksum of {name}", _damaged(start + 16)),
            ]
        return found

    def copy(self, cut: _Cut) -> SqlitePlace:
        other = SqlitePlace(_new(self._folder), new_hop=InlineHop)
        other.path.write_bytes(self.path.read_bytes())
        other.path.with_name(other.path.name + "-wal").write_bytes(cut.apply(self.log.read_bytes()))
        return other

    async def crash(self, *, clock: Clock, faults: FaultPoints, torn: float) -> Storage:
        if self.cut is None:
            return await super().crash(clock=clock, faults=faults, torn=torn)
        assert self._storage is not None
        left, log = self.path.read_bytes(), self.cut.apply(self.log.read_bytes())
        await self._storage.close()
        self._crashes, self.cut = self._crashes + 1, None
        self.path.write_bytes(left)
        self.log.write_bytes(log)
        return await self.reopen(clock=clock, faults=faults)


def _frames(log: bytes) -> list[tuple[int, bool]]:
    """Of SQLite's write-ahead log: a frame that ends a transaction says how large the database is then."""
    size = _FRAME_HEADER + int.from_bytes(log[8:12], "big")
    starts = range(_LOG_HEADER, len(log) - size + 1, size)
    written = [start for start in starts if log[start + 8 : start + 16] == log[16:24]]  # others are of an older log
    return [(start, any(log[start + 4 : start + 8])) for start in written]


def _kept(length: int) -> Callable[[bytes], bytes]:
    return lambda written: written[:length]


def _damaged(at: int) -> Callable[[bytes], bytes]:
    return lambda written: written[:at] + bytes([written[at] ^ 0xFF]) + written[at + 1 :]


async def _strays(place: _CutSqlite, states: Sequence[State]) -> AsyncIterator[str]:
    """Where a log that is cut at a frame leaves no state of the run, or an earlier one than a shorter log does."""
    contents = [content_of_model(state) for state in states]
    ends = [start for start, _ in place.frames()] + [len(place.log.read_bytes())]
    reached = 0
    for number, end in enumerate(ends):
        left = await _content(place.copy(_Cut("", _kept(end))))
        found = next((at for at in range(reached, len(states)) if not differences(contents[at], left)), None)
        if found is None:
            yield f"after {number} frames: no state after commit {reached} or a later one"
        else:
            reached = found
    if reached != len(states) - 1:
        yield f"the whole log leaves the state after commit {reached} of {len(states) - 1}"
