"""Listeners are told in order, get copies of their own, and cannot break or delay what is published."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    UNSET,
    CustomFactEvent,
    HandlerErrorEvent,
    HarnessEvent,
    LabelFactEvent,
    MessageStartEvent,
    NameFactEvent,
    RunStartEvent,
    text_block,
)
from restartpoint.errors import ListenerOverflow
from restartpoint.events import EventBus
from tests.harness.events.stage import begun, running, spoken


@pytest.mark.covers("RT-5.5-01")
def test_a_listener_hears_its_type_from_every_lane_until_it_is_removed() -> None:
    bus = EventBus()
    heard: list[str] = []
    remove = bus.on("run_start", lambda event: heard.append(event.lane))

    for lane in ("main", "side"):
        bus.publish(begun(lane=lane))
    bus.publish(spoken())
    remove()
    remove()
    bus.publish(begun())

    assert heard == ["main", "side"]


def test_a_listener_may_ask_for_a_class_where_several_share_a_type() -> None:
    bus = EventBus()
    labels: list[LabelFactEvent] = []
    facts: list[HarnessEvent] = []
    bus.on(LabelFactEvent, labels.append)
    bus.on("fact_update", facts.append)

    published: list[HarnessEvent] = [
        NameFactEvent(name="n"),
        LabelFactEvent(target_id="e1", label="l"),
        CustomFactEvent(key="k", value=None),
    ]
    for event in published:
        bus.publish(event)

    assert labels == [published[1]]
    assert facts == published


@pytest.mark.covers("RT-5.5-02")
def test_a_listener_cannot_change_what_others_see_and_its_throw_only_reports_itself() -> None:
    failures: list[tuple[HarnessEvent, BaseException]] = []
    bus = EventBus(record=lambda event, error: failures.append((event, error)))
    seen: list[object] = []
    errors: list[HandlerErrorEvent] = []
    broken = ValueError("broken \ud800")

    def vandal(event: MessageStartEvent) -> None:
        event.message["content"] = []
        raise broken

    bus.on(MessageStartEvent, vandal)
    bus.on(MessageStartEvent, lambda event: seen.append(event.message["content"]))
    bus.on(HandlerErrorEvent, errors.append)
    event = spoken("original")
    bus.publish(event)

    assert seen == [[text_block("original")]]
    assert event == spoken("original")
    assert failures == [(event, broken)]
    (error,) = errors
    assert (error.kind, error.event, error.hook, error.lane) == ("event", "message_start", UNSET, "main")
    assert error.error == "ValueError: broken ?"
    assert isinstance(error.stack, str)
    assert "vandal" in error.stack


def test_what_is_published_while_publishing_comes_after() -> None:
    bus = EventBus()
    heard: list[str] = []

    def first(event: RunStartEvent) -> None:
        heard.append("first")
        if event.run_id == "op-1":
            bus.publish(begun("op-2"))

    bus.on(RunStartEvent, first)
    bus.on(RunStartEvent, lambda event: heard.append(event.run_id))
    bus.publish(begun("op-1"))

    assert heard == ["first", "op-1", "first", "op-2"]


def test_a_failing_listener_of_failures_is_recorded_and_not_reported_again() -> None:
    recorded: list[str] = []
    bus = EventBus(record=lambda event, error: recorded.append(str(error)))
    calls: list[str] = []

    def worse(event: HandlerErrorEvent) -> None:
        calls.append(event.error)
        raise RuntimeError("worse")

    def bad(event: RunStartEvent) -> None:
        raise ValueError("bad")

    bus.on(RunStartEvent, bad)
    bus.on(HandlerErrorEvent, worse)
    bus.publish(begun())

    assert recorded == ["bad", "worse"]
    assert calls == ["ValueError: bad"]


async def test_an_async_listener_is_awaited_in_order_while_publishing_goes_on() -> None:
    async with running() as (bus, _):
        heard: list[str] = []
        first_may_end = anyio.Event()

        async def slow(event: RunStartEvent) -> None:
            if event.run_id == "op-1":
                await first_may_end.wait()
            heard.append(event.run_id)

        bus.on(RunStartEvent, slow)
        for number in (1, 2, 3):
            bus.publish(begun(f"op-{number}"))
        await anyio.wait_all_tasks_blocked()
        assert heard == []

        first_may_end.set()
        await bus.idle()
        assert heard == ["op-1", "op-2", "op-3"]


async def test_a_plain_function_that_returns_an_awaitable_is_async() -> None:
    async with running() as (bus, _):
        sent: list[str] = []

        async def send(text: str) -> None:
            await anyio.lowlevel.checkpoint()
            sent.append(text)

        bus.on("run_start", lambda event: send(event.run_id))
        bus.publish(begun())
        await bus.idle()

        assert sent == ["op-1"]


async def test_events_before_the_start_reach_an_async_listener_after_it() -> None:
    bus = EventBus()
    heard: list[str] = []

    async def listener(event: RunStartEvent) -> None:
        heard.append(event.run_id)

    bus.on(RunStartEvent, listener)
    bus.publish(begun())
    async with anyio.create_task_group() as group:
        bus.start(group)
        await bus.idle()
        bus.close()

    assert heard == ["op-1"]


async def test_an_async_listener_that_raises_is_reported_and_goes_on() -> None:
    async with running() as (bus, recorded):
        heard: list[str] = []
        errors: list[str] = []

        async def listener(event: RunStartEvent) -> None:
            if event.run_id == "op-1":
                raise ValueError("bad")
            heard.append(event.run_id)

        bus.on(RunStartEvent, listener)
        bus.on(HandlerErrorEvent, lambda event: errors.append(event.error))
        bus.publish(begun("op-1"))
        bus.publish(begun("op-2"))
        await bus.idle()

        assert (heard, errors) == (["op-2"], ["ValueError: bad"])
        assert len(recorded) == 1


async def test_an_async_listener_that_falls_too_far_behind_is_dropped_and_reported() -> None:
    async with running(queue_limit=2) as (bus, recorded):
        heard: list[str] = []
        never = anyio.Event()

        async def stuck(event: RunStartEvent) -> None:
            heard.append(event.run_id)
            await never.wait()

        bus.on(RunStartEvent, stuck)
        bus.publish(begun("op-1"))
        await anyio.wait_all_tasks_blocked()
        for number in (2, 3, 4, 5):
            bus.publish(begun(f"op-{number}"))

        assert [type(error) for _, error in recorded] == [ListenerOverflow]
        never.set()
        await anyio.wait_all_tasks_blocked()
        assert heard == ["op-1"]


async def test_a_removed_async_listener_hears_nothing_that_still_waited() -> None:
    async with running() as (bus, recorded):
        heard: list[str] = []

        async def listener(event: RunStartEvent) -> None:
            heard.append(event.run_id)

        remove = bus.on(RunStartEvent, listener)
        bus.publish(begun())
        remove()
        bus.publish(begun())
        await anyio.wait_all_tasks_blocked()

        assert (heard, recorded) == ([], [])


async def test_cancelling_the_group_ends_every_async_listener_and_reports_nothing() -> None:
    recorded: list[object] = []
    bus = EventBus(record=lambda event, error: recorded.append(error))
    begun_ones: list[str] = []

    async def forever(event: RunStartEvent) -> None:
        begun_ones.append(event.run_id)
        await anyio.sleep_forever()

    bus.on(RunStartEvent, forever)
    async with anyio.create_task_group() as group:
        bus.start(group)
        bus.publish(begun("op-1"))
        bus.publish(begun("op-2"))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()
    bus.publish(begun("op-3"))
    bus.close()

    assert (begun_ones, recorded) == (["op-1"], [])


def test_the_bus_knows_whether_anybody_listens() -> None:
    bus = EventBus()
    answers = [bus.heard]
    remove = bus.on("run_start", lambda event: None)
    answers.append(bus.heard)
    remove()
    answers.append(bus.heard)
    watch = bus.watch(lambda event: True)
    answers.append(bus.heard)
    watch.unsubscribe()
    answers.append(bus.heard)

    assert answers == [False, True, False, True, False]


def test_a_closed_bus_tells_nobody() -> None:
    bus = EventBus()
    heard: list[Any] = []
    bus.on("run_start", heard.append)
    bus.watch(lambda event: True).start(heard.append)
    bus.close()
    bus.publish(begun())

    assert heard == []
