"""Events to publish, and a bus that runs."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio

from restartpoint.contract import HarnessEvent, MessageStartEvent, RunStartEvent, text_block
from restartpoint.events import EventBus

__all__ = ["begun", "running", "spoken"]


def begun(run_id: str = "op-1", lane: str = "main") -> RunStartEvent:
    return RunStartEvent(lane=lane, run_id=run_id)


def spoken(text: str = "hi", lane: str = "main") -> MessageStartEvent:
    return MessageStartEvent(lane=lane, message={"role": "assistant", "content": [text_block(text)]})


@asynccontextmanager
async def running(**options: Any) -> AsyncIterator[tuple[EventBus, list[tuple[HarnessEvent, BaseException]]]]:
    """A started bus and what it recorded; closed at the end."""
    recorded: list[tuple[HarnessEvent, BaseException]] = []
    bus = EventBus(record=lambda event, error: recorded.append((event, error)), **options)
    async with anyio.create_task_group() as group:
        bus.start(group)
        yield bus, recorded
        bus.close()
