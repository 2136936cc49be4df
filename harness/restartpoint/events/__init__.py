"""One flat stream of passive events, with isolated listeners and buffering watchers (§5.4, §5.5)."""

from restartpoint.events.bus import HIGH_WATER, QUEUE_LIMIT, EventBus, Receiver, Watch, for_lane
from restartpoint.events.isolation import isolated

__all__ = ["HIGH_WATER", "QUEUE_LIMIT", "EventBus", "Receiver", "Watch", "for_lane", "isolated"]
