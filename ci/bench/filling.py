"""Sessions with a history, for the benchmarks that need one."""

from __future__ import annotations

from pathlib import Path

from restartpoint.contract import (
    LANE_LEAF,
    EntryDraft,
    InsertEntry,
    JsonObject,
    MessagePayload,
    RegisterSet,
    Transaction,
    Write,
    user_message,
)
from restartpoint.repo import JsonlRepository, MemoryRepository, SessionRepository, SqliteRepository
from restartpoint.session import MAIN_LANE, Session, SessionMutator

__all__ = ["BACKENDS", "fill", "repository"]

BACKENDS = ("memory", "jsonl", "sqlite")
COMMIT = 100
"""Messages per commit."""


def repository(backend: str, folder: Path) -> SessionRepository:
    """A repository of that backend; files go into ``folder``."""
    match backend:
        case "memory":
            return MemoryRepository()
        case "jsonl":
            return JsonlRepository(folder)
        case _:
            return SqliteRepository(folder)


async def fill(session: Session, history: int) -> None:
    """Append ``history`` small messages to main, alternately a user's and an assistant's."""
    for start in range(0, history, COMMIT):
        numbers = range(start, min(start + COMMIT, history))

        async def job(mutator: SessionMutator, numbers: range = numbers) -> None:
            leaf = await mutator.get_register(LANE_LEAF, MAIN_LANE)
            parent = None if leaf is None else leaf.value
            writes: list[Write] = []
            for number in numbers:
                payload = MessagePayload(message=_message(number))
                draft = EntryDraft(id=session.ids.next(), parent_id=parent, payload=payload)
                writes.append(InsertEntry(draft))
                parent = draft.id
            await mutator.commit(Transaction((*writes, RegisterSet(LANE_LEAF, MAIN_LANE, parent))))

        await session.mutate(MAIN_LANE, job)


def _message(number: int) -> JsonObject:
    if number % 2 == 0:
        return user_message(f"question {number}", number)
    return {"role": "assistant", "content": [{"type": "text", "text": "answer"}], "stopReason": "stop", "usage": {}}
