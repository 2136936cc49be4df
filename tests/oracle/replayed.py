"""Walks of the model made by a real storage under the judge."""

from collections.abc import Sequence

from restartpoint.contract import (
    NAMESPACES,
    EntryDraft,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    SessionMetadata,
    Transaction,
    UsageDraft,
    Write,
    entry_from_wire,
    usage_row_from_wire,
)
from restartpoint.storage import MemoryStorage
from restartpoint_oracle import Json, JudgedStorage, ManualClock
from restartpoint_reference import TRANSITIONS
from restartpoint_reference.progress import FINALIZATION
from tests.reference.walk import Step

__all__ = ["open_judged", "transaction_of"]


def transaction_of(elements: Sequence[Json]) -> Transaction:
    """The transaction that a commit of these elements was."""
    return Transaction(tuple(_write(element) for element in elements))


def _write(element: Json) -> Write:
    assert isinstance(element, dict)
    fields = {key: value for key, value in element.items() if key not in ("kind", "op")}
    match element["kind"], element.get("op"):
        case "entry", None:
            entry = entry_from_wire({**fields})
            return InsertEntry(EntryDraft(id=entry.id, parent_id=entry.parent_id, payload=entry.payload))
        case "usage", None:
            row = usage_row_from_wire({**fields})
            return InsertUsage(
                UsageDraft(
                    id=row.id, usage=row.usage, adjustment=row.adjustment, entry_id=row.entry_id, details=row.details
                )
            )
        case "register", "set":
            namespace = NAMESPACES[str(element["namespace"])]
            return RegisterSet(namespace, str(element["key"]), namespace.convert(element["value"]))
        case "register", "delete":
            return RegisterDelete(NAMESPACES[str(element["namespace"])], str(element["key"]))
        case other:
            raise AssertionError(other)


def time_of(step: Step) -> int:
    """When the walk made this commit."""
    return 1000 + step.before.next_seq


async def open_judged(steps: Sequence[Step], clock: ManualClock) -> JudgedStorage:
    """A judged session in memory that was taken through these steps; where one recovers, a new owner came before it.

    A walk that ends an operation from outside declares it.
    """
    clock.advance(time_of(steps[0]) - clock.now_ms())
    metadata = SessionMetadata(id="judged", created_at=clock.now_ms())
    first, *rest = steps
    inner = await MemoryStorage.create(metadata, transaction_of(first.elements), clock=clock)
    declared = any(step.commit.name == FINALIZATION for step in steps)
    storage = await JudgedStorage.over_new(inner, finalizations_admitted=declared)
    for step in rest:
        clock.advance(time_of(step) - clock.now_ms())
        lane, name = step.commit.lane, step.commit.name
        if lane is not None and not TRANSITIONS[name].public and name not in storage.judge.due(lane):
            storage.judge.attached()
        await storage.commit(transaction_of(step.elements))
    return storage
