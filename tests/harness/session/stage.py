"""What the tests of sessions stand on: a clock that stands still, counted chance, and a few values."""

from restartpoint.contract import (
    AgentMessage,
    CommitResult,
    InsertEntry,
    InsertUsage,
    LaneConfiguration,
    ModelIdentity,
    RegisterDelete,
    RegisterSet,
    Transaction,
    Write,
    user_message,
)
from restartpoint.seams import IdGenerator
from restartpoint.session import Session

__all__ = ["CONFIGURATION", "Commits", "StandingClock", "assistant", "call", "counted_ids", "result", "say", "words"]

CONFIGURATION = LaneConfiguration(
    model=ModelIdentity(provider="scripted", model_id="one"), thinking_level="off", active_tool_names=["read"]
)


class StandingClock:
    """Shows ``now`` until a test changes it."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self.now = now

    def now_ms(self) -> int:
        return self.now


def counted_ids(clock: StandingClock) -> IdGenerator:
    """Ids whose chance is a counter, so that every run mints the same ones."""
    drawn = iter(range(1, 10**6))
    return IdGenerator(clock, lambda size: next(drawn).to_bytes(size, "big"))


class Commits:
    """Every commit of a session, as announced: lane, transaction, result."""

    def __init__(self, session: Session) -> None:
        self.seen: list[tuple[str, Transaction, CommitResult]] = []
        session.on_commit(lambda lane, tx, result: self.seen.append((lane, tx, result)))

    @property
    def writes(self) -> list[list[str]]:
        """Each commit's writes in order, as words."""
        return [[words(write) for write in tx.writes] for _, tx, _ in self.seen]


def words(write: Write) -> str:
    match write:
        case InsertEntry():
            return "entry"
        case InsertUsage():
            return "usage"
        case RegisterSet():
            return f"set {write.namespace.name}/{write.key}"
        case RegisterDelete():
            return f"delete {write.namespace.name}/{write.key}"


def say(text: str, timestamp: int = 1) -> AgentMessage:
    return user_message(text, timestamp)


def call(id: str, name: str = "read") -> AgentMessage:
    return {"type": "toolCall", "id": id, "name": name, "arguments": {}}


def assistant(*blocks: AgentMessage, stop: str = "stop", timestamp: int = 2) -> AgentMessage:
    return {"role": "assistant", "content": [*blocks], "stopReason": stop, "timestamp": timestamp}


def result(call_id: str, name: str = "read") -> AgentMessage:
    return {
        "role": "toolResult",
        "toolCallId": call_id,
        "toolName": name,
        "content": [],
        "isError": False,
        "timestamp": 3,
    }
