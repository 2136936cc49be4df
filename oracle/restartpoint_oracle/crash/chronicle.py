"""What happened in one run, over all of its processes, in order; a killed process leaves it as lines of a file."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TypeAlias, TypeVar

import msgspec

__all__ = [
    "Chronicle",
    "Committed",
    "Event",
    "Reopened",
    "Requested",
    "Returned",
    "ToolStarted",
    "of_step",
    "read_line",
]

E = TypeVar("E")

_STEP: ContextVar[int | None] = ContextVar("restartpoint_oracle_step", default=None)
"""The script's step on whose behalf a task works; tasks inherit it from whoever starts them."""


@contextmanager
def of_step(number: int | None) -> Iterator[None]:
    """What happens inside the block, and in tasks that it starts, is the step's doing."""
    token = _STEP.set(number)
    try:
        yield
    finally:
        _STEP.reset(token)


class _Event(msgspec.Struct, frozen=True, kw_only=True, tag=True):
    step: int | None = None


class Committed(_Event, frozen=True, kw_only=True):
    """A commit by its transition; ``detail`` is how the call settled that completed a batch."""

    transition: str
    detail: str = ""
    entries: tuple[str, ...] = ()
    usage: tuple[str, ...] = ()
    operations: tuple[str, ...] = ()
    """The operations that it accepted."""

    @property
    def way(self) -> str:
        """The transition, or how the call settled that completed a batch."""
        return self.detail or self.transition


class ToolStarted(_Event, frozen=True, kw_only=True):
    """A tool call started."""

    tool: str
    call: str


class Requested(_Event, frozen=True, kw_only=True):
    """A provider request started."""


class Returned(_Event, frozen=True, kw_only=True):
    """A step's call returned."""


class Reopened(_Event, frozen=True, kw_only=True):
    """A new process found the session; ``uncertain`` are the reserved ids of effects whose outcome it cannot know."""

    uncertain: tuple[str, ...]


Event: TypeAlias = Committed | ToolStarted | Requested | Returned | Reopened


def read_line(line: bytes) -> Event:
    """The event that a line of a killed process's file holds."""
    return msgspec.json.decode(line, type=Event)


class Chronicle:
    """The events of one run. ``sink`` is told of each as a line, before anything else happens."""

    def __init__(self, events: Iterable[Event] = (), *, sink: Callable[[bytes], object] | None = None) -> None:
        self.events: list[Event] = [*events]
        self._sink = sink

    def note(self, event: Event) -> None:
        """Add an event; without a step of its own it belongs to the step of the running task."""
        event = event if event.step is not None else msgspec.structs.replace(event, step=_STEP.get())
        self.events.append(event)
        if self._sink is not None:
            self._sink(msgspec.json.encode(event) + b"\n")

    def lose(self, commits: int) -> None:
        """Forget so many of the last commits, which a torn write took with it."""
        for _ in range(commits):
            position = max(i for i, event in enumerate(self.events) if isinstance(event, Committed))
            del self.events[position]

    def all(self, kind: type[E]) -> list[E]:
        """The events of that kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]

    @property
    def commits_of_last_process(self) -> int:
        """The commits since a process found the session for the last time."""
        last = max((i for i, event in enumerate(self.events) if isinstance(event, Reopened)), default=0)
        return sum(isinstance(event, Committed) for event in self.events[last:])

    @property
    def crashes(self) -> int:
        """How often the session was found by a new process."""
        return len(self.all(Reopened))

    def took_effect(self, step: int) -> bool:
        """Whether the step's call returned, or a commit of it is durable."""
        return any(isinstance(event, Committed | Returned) and event.step == step for event in self.events)

    def step_of_operation(self, operation_id: str) -> int | None:
        """The step that started the operation."""
        return next((event.step for event in self.all(Committed) if operation_id in event.operations), None)
