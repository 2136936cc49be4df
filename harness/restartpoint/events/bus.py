"""The stream of events: passive listeners and buffering watchers, none of which can delay or break an operation (§5.5).

``publish`` returns as soon as every plain listener was called. An async listener has one queue of bounded length, in
order, which its own task drains (AMB-76).
"""

from __future__ import annotations

import inspect
import traceback
from collections import deque
from collections.abc import Callable
from typing import TypeVar, overload

import msgspec
from anyio.abc import TaskGroup

from restartpoint.contract import (
    EventListener,
    EventType,
    HandlerErrorEvent,
    HarnessEvent,
    error_text,
    event_type,
    lane_of,
    or_unset,
    plain_text,
)
from restartpoint.errors import ListenerOverflow
from restartpoint.events.isolation import isolated
from restartpoint.events.line import Line

__all__ = ["HIGH_WATER", "QUEUE_LIMIT", "EventBus", "Receiver", "Watch", "for_lane"]

E = TypeVar("E", bound=HarnessEvent)

QUEUE_LIMIT = 1024
"""How many events may wait for one async listener before it is dropped."""

HIGH_WATER = 10_000
"""How many events a watcher that was not started buffers before a handler_error warns of it, once (AMB-93)."""


def for_lane(lane: str) -> Callable[[HarnessEvent], bool]:
    """What a watcher of that lane sees: its own events, those without a lane, and every usage event (§5.4)."""
    return lambda event: lane_of(event) in (None, lane)


class EventBus:
    """Delivers events to listeners by type and to watchers, in the order of publication.

    ``record`` is told of every failure of a listener. It is the only one who hears of a handler_error listener that
    raises, since an event about that could go on for ever.
    """

    def __init__(
        self, *, queue_limit: int = QUEUE_LIMIT, record: Callable[[HarnessEvent, BaseException], None] | None = None
    ) -> None:
        self._limit, self._record = queue_limit, record
        self._group: TaskGroup | None = None
        self._listeners: dict[str, tuple[Receiver, ...]] = {}
        self._watches: tuple[Watch, ...] = ()
        self._lines: list[Line] = []
        self._pending: deque[HarnessEvent] = deque()
        self._publishing = False

    def start(self, group: TaskGroup) -> None:
        """Drain async listeners in tasks of ``group`` from now on; cancelling it ends them."""
        self._group = group
        for line in self._lines:
            group.start_soon(line.drain)

    @overload
    def on(self, type: EventType, listener: EventListener) -> Callable[[], None]: ...
    @overload
    def on(self, type: type[E], listener: Callable[[E], object]) -> Callable[[], None]: ...

    def on(self, type: str | type[msgspec.Struct], listener: Callable[..., object]) -> Callable[[], None]:
        """Call ``listener`` with every later event of that type name or class; the function returned removes it.

        A listener that returns an awaitable (an async function does) has it awaited in order by a task of its own.
        """
        name = type if isinstance(type, str) else str(type.__struct_config__.tag)
        receiver = Receiver(self, listener, None if isinstance(type, str) else type)
        self._listeners[name] = (*self._listeners.get(name, ()), receiver)

        def remove() -> None:
            receiver.close()
            self._listeners[name] = tuple(other for other in self._listeners[name] if other is not receiver)

        receiver.on_drop = remove
        return remove

    def watch(self, accept: Callable[[HarnessEvent], bool]) -> Watch:
        """Buffer every event that ``accept`` takes, from this moment on, until the watch is started."""
        watch = Watch(self, accept)
        self._watches = (*self._watches, watch)
        return watch

    def publish(self, event: HarnessEvent) -> None:
        """Deliver the event; one that a listener publishes meanwhile follows after it. Never raises for a listener."""
        if not self._watches and not self._listeners.get(event_type(event)):
            return
        self._pending.append(event)
        if self._publishing:
            return
        self._publishing = True
        try:
            while self._pending:
                self._deliver(self._pending.popleft())
        finally:
            self._publishing = False

    @property
    def heard(self) -> bool:
        """Whether anybody listens at all, so that a publisher may spare itself the making of events."""
        return bool(self._watches) or any(self._listeners.values())

    async def idle(self) -> None:
        """Return once no async listener has anything left to do."""
        for line in tuple(self._lines):
            await line.idle()

    def close(self) -> None:
        """Drop every listener and watcher; what waits for async ones is discarded."""
        for watch in self._watches:
            watch.unsubscribe()
        self._listeners = {}
        for line in tuple(self._lines):
            line.close()
        self._lines = []

    def _deliver(self, event: HarnessEvent) -> None:
        for receiver in self._listeners.get(event_type(event), ()):
            receiver.give(event)
        for watch in self._watches:
            watch.give(event)

    # --- what receivers and watches need ---

    def open_line(self) -> Line:
        """A new line, drained when the bus is started."""
        line = Line(self._limit, self.failed)
        self._lines.append(line)
        if self._group is not None:
            self._group.start_soon(line.drain)
        return line

    def drop_line(self, line: Line) -> None:
        """Close a line and forget it."""
        line.close()
        if line in self._lines:
            self._lines.remove(line)

    def drop_watch(self, watch: Watch) -> None:
        """Deliver nothing more to the watch."""
        self._watches = tuple(other for other in self._watches if other is not watch)

    def failed(self, event: HarnessEvent, error: BaseException) -> None:
        """A listener of ``event`` failed."""
        if self._record is not None:
            self._record(event, error)
        if not isinstance(event, HandlerErrorEvent):
            stack = plain_text("".join(traceback.format_exception(error)))
            self.publish(
                HandlerErrorEvent(
                    kind="event",
                    event=event_type(event),
                    error=error_text(error),
                    stack=stack,
                    lane=or_unset(lane_of(event)),
                )
            )


class Receiver:
    """One listener, with its line once it turned out to be async."""

    def __init__(
        self, bus: EventBus, listener: Callable[..., object], only: type[msgspec.Struct] | None = None
    ) -> None:
        self._bus, self._listener, self._only = bus, listener, only
        self._line: Line | None = None
        self._closed = False
        self.on_drop: Callable[[], None] = self.close

    def give(self, event: HarnessEvent, *, beyond_limit: bool = False) -> None:
        """Call the listener with a copy of its own."""
        if self._closed or (self._only is not None and not isinstance(event, self._only)):
            return
        try:
            returned = self._listener(isolated(event))
        except (Exception, SystemExit) as error:  # noqa: BLE001 - whatever a listener raises stays its own failure (§5.5)
            self._bus.failed(event, error)
            return
        if returned is None or not inspect.isawaitable(returned):
            return
        if self._line is None:
            self._line = self._bus.open_line()
        if not self._line.put(event, returned, beyond_limit=beyond_limit):
            self.on_drop()
            self._bus.failed(event, ListenerOverflow("the listener fell too far behind and was dropped"))

    def close(self) -> None:
        """Deliver nothing more."""
        self._closed = True
        if self._line is not None:
            self._bus.drop_line(self._line)


class Watch:
    """Buffers from its creation; ``start`` hands the buffer over in order and goes on live, each event once (§5.4)."""

    def __init__(self, bus: EventBus, accept: Callable[[HarnessEvent], bool]) -> None:
        self._bus, self._accept = bus, accept
        self._buffer: deque[HarnessEvent] = deque()
        self._receiver: Receiver | None = None
        self._live = False
        self._warned = False

    def start(self, listener: EventListener) -> None:
        """Deliver what was buffered and then what comes; may be called once."""
        if self._receiver is not None:
            raise RuntimeError("this watch was started already; call watch() again for another one")
        self._receiver = Receiver(self._bus, listener)
        self._receiver.on_drop = self.unsubscribe
        while self._buffer:
            self._receiver.give(self._buffer.popleft(), beyond_limit=True)
        self._live = True

    def unsubscribe(self) -> None:
        """Deliver nothing more and forget the buffer."""
        self._bus.drop_watch(self)
        self._buffer.clear()
        if self._receiver is not None:
            self._receiver.close()

    def give(self, event: HarnessEvent) -> None:
        """Take an event of the bus."""
        if not self._accept(event):
            return
        if self._live and self._receiver is not None:
            self._receiver.give(event)
            return
        self._buffer.append(isolated(event))
        if len(self._buffer) >= HIGH_WATER and not self._warned:
            self._warned = True
            self._bus.failed(event, ListenerOverflow(f"a watch that was not started holds {HIGH_WATER} events"))
