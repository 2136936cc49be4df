"""The projected context of a live lane: built once, then extended by what the lane appends (§2.5)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from restartpoint.contract import AgentMessage, CompactionPayload, Entry, role_of
from restartpoint.session import EntryProjector, Session, context_entries, heal, project_entry

__all__ = ["LiveContext"]


class LiveContext:
    """Keeps healed messages for one leaf. A request reads only the entries appended since the previous one."""

    def __init__(self, session: Session, projectors: Mapping[str, EntryProjector]) -> None:
        self._session = session
        self._projectors = projectors
        self._leaf_id: str | None = None
        self._known = False
        self._messages: list[AgentMessage] = []
        self._appended: list[Entry] = []
        self._stood_in: frozenset[object] = frozenset()
        """The ids of the calls that healing answered in place of their results."""

    def extend(self, entries: Sequence[Entry]) -> None:
        """Note entries that the lane appended, oldest first; an append elsewhere makes the next request rebuild."""
        for entry in entries:
            if not self._known or entry.parent_id != self._leaf_id or isinstance(entry.payload, CompactionPayload):
                self._known = False
                return
            self._appended.append(entry)
            self._leaf_id = entry.id

    async def messages(self, leaf_id: str | None) -> list[AgentMessage]:
        """The context at ``leaf_id``, oldest first, healed; the caller owns the list but not the messages."""
        extends = self._known and leaf_id == self._leaf_id
        if not (extends and self._extended_by(await self._projected(self._appended))):
            entries = await context_entries(self._session, leaf_id)
            fresh = await self._projected(entries)
            self._messages, self._stood_in = [], frozenset()
            self._extended_by(fresh)
            self._leaf_id, self._known = leaf_id, True
        self._appended = []
        return list(self._messages)

    async def _projected(self, entries: Sequence[Entry]) -> list[AgentMessage]:
        return [message for entry in entries for message in await project_entry(entry, self._projectors)]

    def _extended_by(self, fresh: Sequence[AgentMessage]) -> bool:
        """Append and heal; False, with nothing changed, when a result answers a call that a stand-in answers now."""
        if any(role_of(message) == "toolResult" and message.get("toolCallId") in self._stood_in for message in fresh):
            return False
        if fresh:
            open_from = _last_assistant(self._messages)
            tail = [*self._messages[open_from:], *fresh]
            healed = heal(tail)
            self._messages[open_from:] = healed
            if len(healed) != len(tail):
                before = {id(message) for message in tail}
                added = (message.get("toolCallId") for message in healed if id(message) not in before)
                self._stood_in |= frozenset(added)
        return True


def _last_assistant(messages: Sequence[AgentMessage]) -> int:
    """The index of the newest assistant message, whose calls may still get results; the length when there is none."""
    for index in range(len(messages) - 1, -1, -1):
        if role_of(messages[index]) == "assistant":
            return index
    return len(messages)
