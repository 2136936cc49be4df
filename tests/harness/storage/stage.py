"""What the tests of the storage backends stand on: a clock in the hand, faults on demand, and a few transactions."""

from typing import Any

from restartpoint.contract import (
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    EntryDraft,
    EntryPayload,
    EntryScan,
    InsertEntry,
    InsertUsage,
    JsonValue,
    LaneState,
    MessagePayload,
    RegisterSet,
    SessionMetadata,
    Transaction,
    UsageDraft,
    UsageScan,
    Write,
    user_message,
)
from restartpoint.seams import FaultPoint
from restartpoint.storage import Storage

__all__ = [
    "IDLE", "INITIAL", "METADATA", "PAYLOADS", "HeldClock", "ProcessEnded", "StopAt", "contents", "custom", "entry",
    "said", "say", "tx", "usage",
]  # fmt: skip

METADATA = SessionMetadata(id="s1", created_at=1_700_000_000_000)

IDLE = LaneState(current_operation_id=None, pending_next_run=[])

INITIAL = Transaction((RegisterSet(LANE_LEAF, "main", None), RegisterSet(LANE_STATE, "main", IDLE)))

PAYLOADS: tuple[EntryPayload, ...] = (
    MessagePayload(message=user_message("hello", 1)),
    MessagePayload(message={"role": "toolResult", "content": []}, terminate=True),
    MessagePayload(message={"role": "user"}, extra={"origin": {"x": 1}}),
    CompactionPayload(summary="s", retained_tail=[{"role": "user"}], tokens_before=3, from_hook=False),
    CompactionPayload(summary="s", retained_tail=[], tokens_before=0, from_hook=True, details=None, usage={"input": 1}),
    BranchSummaryPayload(from_id="e0", summary="s", from_hook=False, details={"read": []}),
    CustomPayload(custom_type="note"),
    CustomPayload(custom_type="note", data=None, extra={"later": True}),
    CustomPayload(custom_type="note", data=[1, 1.0, "\u2028", "é", -0.0]),
)
"""One of each shape that an entry can have."""


class HeldClock:
    """Shows ``now`` until a test changes it."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


class ProcessEnded(BaseException):
    """Stands for the end of the process at a fault point."""


class StopAt:
    """Ends the process each time it comes to one fault point; every point that was reached is in ``reached``."""

    def __init__(self, point: FaultPoint | None = None) -> None:
        self.point = point
        self.reached: list[FaultPoint] = []

    def reach(self, point: FaultPoint) -> None:
        self.reached.append(point)
        if point == self.point:
            raise ProcessEnded


def tx(*writes: Write) -> Transaction:
    return Transaction(writes)


def entry(id: str, parent: str | None = None, payload: EntryPayload = PAYLOADS[0]) -> InsertEntry:
    return InsertEntry(EntryDraft(id=id, parent_id=parent, payload=payload))


def say(id: str, parent: str | None, text: str) -> InsertEntry:
    return entry(id, parent, MessagePayload(message=user_message(text, 1)))


def custom(id: str, data: JsonValue) -> InsertEntry:
    return entry(id, None, CustomPayload(custom_type="note", data=data))


def usage(id: str, cost: float = 0.1) -> InsertUsage:
    return InsertUsage(UsageDraft(id=id, usage={"input": 1, "cost": {"total": cost}}))


def said(id: str, parent: str | None = None, text: str = "hello") -> Transaction:
    """A message that moves lane main onto it."""
    return tx(say(id, parent, text), RegisterSet(LANE_LEAF, "main", id))


async def contents(storage: Storage) -> dict[str, Any]:
    """All that a storage holds, through its queries."""
    return {
        "metadata": storage.metadata,
        "entries": await storage.scan_entries(EntryScan()),
        "usage": await storage.scan_usage(UsageScan()),
        "registers": [
            (name, register.key, register.value, register.seq)
            for name, namespace in NAMESPACES.items()
            for register in await storage.list_registers(namespace)
        ],
        "stats": await storage.get_stats(),
    }
