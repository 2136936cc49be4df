"""Fact events: whoever writes a fact of the session, its listeners hear of it after the commit (§2.4, §5.5)."""

from __future__ import annotations

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    UNSET,
    CommitResult,
    CustomFactEvent,
    LabelFactEvent,
    NameFactEvent,
    RegisterDelete,
    RegisterSet,
    Transaction,
)
from restartpoint.events import EventBus
from restartpoint.session import CommitListener

__all__ = ["fact_listener"]


def fact_listener(events: EventBus) -> CommitListener:
    """Publishes one event for each fact that a commit set or removed, in the order of the writes."""

    def publish(_: str, transaction: Transaction, __: CommitResult) -> None:
        if not events.heard:
            return
        for write in transaction.writes:
            if not isinstance(write, RegisterSet | RegisterDelete):
                continue
            value = write.value if isinstance(write, RegisterSet) else UNSET
            if write.namespace is FACT_NAME:
                events.publish(NameFactEvent(name=value))
            elif write.namespace is FACT_LABEL:
                events.publish(LabelFactEvent(target_id=write.key, label=value))
            elif write.namespace is FACT_CUSTOM:
                events.publish(CustomFactEvent(key=write.key, value=value))

    return publish
