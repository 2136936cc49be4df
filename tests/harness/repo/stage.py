"""The repositories under test, each behind one way to make it anew over the same place."""

from collections.abc import Callable
from pathlib import Path

from restartpoint.repo import FileRepository, JsonlRepository, MemoryRepository, SessionRepository, SqliteRepository
from tests.harness.session.stage import StandingClock, counted_ids

__all__ = ["FILES", "KINDS", "MakeRepository", "make_files", "maker"]

MakeRepository = Callable[[], SessionRepository]

FILES: dict[str, type[JsonlRepository] | type[SqliteRepository]] = {
    "jsonl": JsonlRepository,
    "sqlite": SqliteRepository,
}
KINDS = ("memory", *FILES)


def make_files(kind: str, root: Path, clock: StandingClock | None = None) -> FileRepository:
    """A repository of files; each call is another owner of the same folder, as another process would be."""
    clock = StandingClock() if clock is None else clock
    return FILES[kind](root, clock=clock, ids=counted_ids(clock))


def maker(kind: str, root: Path, clock: StandingClock) -> MakeRepository:
    """How to make a repository of that kind."""
    if kind == "memory":
        return lambda: MemoryRepository(clock=clock, ids=counted_ids(clock))
    return lambda: make_files(kind, root, clock)
