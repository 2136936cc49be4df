"""A watch misses nothing between its creation and its start, and delivers each event once, in order."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    FaultEvent,
    HandlerErrorEvent,
    HarnessEvent,
    RunStartEvent,
    UsageEvent,
    UsageRow,
    zero_usage,
)
from restartpoint.errors import ListenerOverflow
from restartpoint.events import HIGH_WATER, EventBus, for_lane
from tests.harness.events.stage import begun, running, spoken


def usage(lane: str) -> UsageEvent:
    return UsageEvent(lane=lane, row=UsageRow(id="u1", seq=1, usage={}), totals=zero_usage())


@pytest.mark.covers("RT-5.4-01")
def test_events_between_watch_and_start_arrive_once_and_in_order() -> None:
    bus = EventBus()
    bus.publish(begun("before"))
    watch = bus.watch(lambda event: True)
    bus.publish(begun("op-1"))
    bus.publish(begun("op-2"))
    heard: list[str] = []

    def listener(event: RunStartEvent) -> None:
        heard.append(event.run_id)
        if event.run_id == "op-1":
            bus.publish(begun("while flushing"))

    watch.start(listener)
    bus.publish(begun("live"))
    watch.unsubscribe()
    bus.publish(begun("after"))

    assert heard == ["op-1", "op-2", "while flushing", "live"]


def test_an_unsubscribed_watch_forgets_its_buffer() -> None:
    bus = EventBus()
    watch = bus.watch(lambda event: True)
    bus.publish(begun())
    watch.unsubscribe()
    heard: list[HarnessEvent] = []
    watch.start(heard.append)

    assert heard == []


def test_a_watch_starts_once() -> None:
    watch = EventBus().watch(lambda event: True)
    watch.start(lambda event: None)

    with pytest.raises(RuntimeError, match="started already"):
        watch.start(lambda event: None)


@pytest.mark.covers("RT-5.4-02")
def test_a_watch_that_is_never_started_keeps_everything_and_warns_once() -> None:
    bus = EventBus()
    warnings: list[HandlerErrorEvent] = []
    bus.on(HandlerErrorEvent, warnings.append)
    watch = bus.watch(lambda event: isinstance(event, RunStartEvent))
    for number in range(HIGH_WATER + 500):
        bus.publish(begun(str(number)))
    heard: list[str] = []
    watch.start(lambda event: heard.append(event.run_id))

    assert heard == [str(number) for number in range(HIGH_WATER + 500)]
    assert [str(HIGH_WATER) in warning.error for warning in warnings] == [True]


@pytest.mark.covers("RT-5.4-15")
def test_a_lane_watcher_gets_its_lane_the_laneless_and_every_usage() -> None:
    bus = EventBus()
    heard: list[HarnessEvent] = []
    bus.watch(for_lane("main")).start(heard.append)
    fault = FaultEvent(code="c", message="m")

    for event in (begun(lane="main"), begun(lane="side"), fault, usage("side"), usage("main")):
        bus.publish(event)

    assert heard == [begun(lane="main"), fault, usage("side"), usage("main")]


def test_what_was_buffered_cannot_be_changed_by_whoever_published_it() -> None:
    bus = EventBus()
    watch = bus.watch(lambda event: True)
    event = spoken("original")
    bus.publish(event)
    event.message["content"] = []
    heard: list[Any] = []
    watch.start(heard.append)

    assert heard == [spoken("original")]


async def test_an_async_watcher_gets_its_whole_buffer_whatever_the_limit_of_its_queue() -> None:
    async with running(queue_limit=2) as (bus, recorded):
        watch = bus.watch(lambda event: True)
        for number in range(10):
            bus.publish(begun(str(number)))
        heard: list[str] = []

        async def send(event: RunStartEvent) -> None:
            await anyio.lowlevel.checkpoint()
            heard.append(event.run_id)

        watch.start(send)
        await bus.idle()

        assert heard == [str(number) for number in range(10)]
        assert recorded == []


async def test_an_async_watcher_that_falls_too_far_behind_is_dropped_and_reported() -> None:
    async with running(queue_limit=2) as (bus, recorded):
        never = anyio.Event()

        async def stuck(event: HarnessEvent) -> None:
            await never.wait()

        bus.watch(lambda event: isinstance(event, RunStartEvent)).start(stuck)
        for number in range(5):
            bus.publish(begun(str(number)))

        assert [type(error) for _, error in recorded] == [ListenerOverflow]
        never.set()
