"""The tree of a session as one lane sees it: leaf, entries, facts, finders, appends (§5.3)."""

from __future__ import annotations

from typing import TypeVar

from msgspec.structs import replace

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    LANE_LEAF,
    LANE_STATE,
    UNSET,
    AgentMessage,
    BranchScan,
    CustomPayload,
    Entry,
    EntryDraft,
    EntryPayload,
    EntryQuery,
    EntryScan,
    InsertEntry,
    JsonValue,
    MessagePayload,
    Namespace,
    Register,
    RegisterDelete,
    RegisterSet,
    SessionStats,
    Transaction,
    UnsetType,
    check_json,
    role_of,
    stop_reason_of,
)  # fmt: skip
from restartpoint.errors import InvalidLane, InvalidMessage, InvalidOptions, NotBuiltYet, UnknownTarget
from restartpoint.seams import IdGenerator
from restartpoint.session.line import SessionMutator, WriteLine
from restartpoint.storage import Storage

__all__ = ["MAIN_LANE", "RESERVED_FACT_PREFIX", "SessionTree"]

V = TypeVar("V")

MAIN_LANE = "main"
"""The lane that every session has."""

RESERVED_FACT_PREFIX = "session/"
"""Keys of custom facts that begin so belong to this package."""

_ANY_ENTRY = EntryQuery()
_WHOLE_BRANCH = BranchScan()
_SETTLED = frozenset({"stop", "length", "toolUse", "error", "aborted", "deferred"})


class SessionTree:
    """One lane's view. Facts and session-wide queries are the same on every lane (§2.4).

    Reads return committed data only. Writes return when they are durable. ``UNSET`` stands for absent, None for JSON
    null. On a lane that does not exist every method raises ``InvalidLane``.
    """

    def __init__(self, storage: Storage, line: WriteLine, ids: IdGenerator, lane: str) -> None:
        self._storage = storage
        self._line = line
        self._ids = ids
        self._lane = lane
        self._known = lane == MAIN_LANE

    @property
    def lane(self) -> str:
        """The name of the lane that this view is bound to."""
        return self._lane

    # --- reads --------------------------------------------------------------------------------------------------

    async def get_leaf_id(self) -> str | None:
        """The entry at which the lane appends next; None is the root."""
        register = await self._storage.get_register(LANE_LEAF, self._lane)
        if register is None:
            raise self._no_such_lane()
        return register.value

    async def get_entry(self, id: str) -> Entry | None:
        """The committed entry of that id, or None."""
        await self._check_lane()
        return (await self._storage.get_entries([id])).get(id)

    async def get_stats(self) -> SessionStats:
        """Message count and ledger total of the session (§1.6)."""
        await self._check_lane()
        return await self._storage.get_stats()

    async def find_entries(self, query: EntryQuery = _ANY_ENTRY) -> list[Entry]:
        """Entries of the whole session: filtered, after the exclusive cursor, limited; newest first by default."""
        await self._check_lane()
        cursor = query.cursor
        scan = EntryScan(type=query.type, custom_type=query.custom_type, order=query.order, limit=query.limit)
        if cursor is not None:
            descending = query.order == "desc"
            scan = replace(scan, to_seq=cursor.seq - 1) if descending else replace(scan, from_seq=cursor.seq + 1)
        return await self._storage.scan_entries(scan)

    async def find_entry(self, query: EntryQuery = _ANY_ENTRY) -> Entry | None:
        """The first entry that ``find_entries`` would return, or None."""
        found = await self.find_entries(query if query.limit == 0 else replace(query, limit=1))
        return found[0] if found else None

    async def find_entries_on_branch(self, query: BranchScan = _WHOLE_BRANCH) -> list[Entry]:
        """Entries on the path from ``query.start``, by default the lane's leaf, to the root; a null leaf gives none.

        Raises:
            UnknownEntry: ``query.start`` names no entry.
        """
        if query.start is None:
            leaf_id = await self.get_leaf_id()
            if leaf_id is None:
                return []
            query = replace(query, start=leaf_id)
        else:
            await self._check_lane()
        return await self._storage.scan_branch(query)

    async def find_entry_on_branch(self, query: BranchScan = _WHOLE_BRANCH) -> Entry | None:
        """The first entry that ``find_entries_on_branch`` would return, or None."""
        found = await self.find_entries_on_branch(query if query.limit == 0 else replace(query, limit=1))
        return found[0] if found else None

    # --- facts --------------------------------------------------------------------------------------------------

    async def get_name(self) -> str | UnsetType:
        """The session's name, or ``UNSET``."""
        register = await self._fact(FACT_NAME, "")
        return UNSET if register is None else register.value

    async def set_name(self, name: str | UnsetType) -> None:
        """Name the session; ``UNSET`` deletes the name.

        Raises:
            InvalidOptions: the name is not text.
        """
        await self._set_fact(FACT_NAME, "", name if name is UNSET else _text("name", name))

    async def get_label(self, target_id: str) -> str | UnsetType:
        """The label of an entry, or ``UNSET``."""
        register = await self._fact(FACT_LABEL, target_id)
        return UNSET if register is None else register.value

    async def set_label(self, target_id: str, label: str | UnsetType) -> None:
        """Label an entry; ``UNSET`` deletes the label, whether or not the entry exists.

        Raises:
            UnknownTarget: no entry has that id.
            InvalidOptions: the label is not text.
        """
        await self._set_fact(FACT_LABEL, target_id, label if label is UNSET else _text("label", label))

    async def get_custom_fact(self, key: str) -> JsonValue | UnsetType:
        """An application's fact, or ``UNSET``; None is a stored JSON null."""
        register = await self._fact(FACT_CUSTOM, key)
        return UNSET if register is None else register.value

    async def set_custom_fact(self, key: str, value: JsonValue | UnsetType) -> None:
        """Store an application's fact; ``UNSET`` deletes it, None stores JSON null.

        Raises:
            InvalidOptions: the key is not text or begins with ``session/``.
            InvalidJson: the value cannot be kept as JSON.
        """
        if _text("key", key).startswith(RESERVED_FACT_PREFIX):
            raise InvalidOptions("key", f"keys that begin with {RESERVED_FACT_PREFIX!r} are reserved; choose another")
        await self._set_fact(FACT_CUSTOM, key, value)

    async def _fact(self, namespace: Namespace[V], key: str) -> Register[V] | None:
        await self._check_lane()
        return await self._storage.get_register(namespace, key)

    async def _set_fact(self, namespace: Namespace[V], key: str, value: V | UnsetType) -> None:
        """S05 and S06: one register write; deleting what is absent commits nothing."""
        await self._check_lane()
        check_json(key, "key")
        if not isinstance(value, UnsetType):
            check_json(value, "value")

        async def job(mutator: SessionMutator) -> None:
            if isinstance(value, UnsetType):
                if await mutator.get_register(namespace, key) is not None:
                    await mutator.commit(Transaction((RegisterDelete(namespace, key),)))
                return
            if namespace is FACT_LABEL and key not in await mutator.get_entries([key]):
                raise UnknownTarget(key)
            await mutator.commit(Transaction((RegisterSet(namespace, key, value),)))

        await self._line.run(self._lane, job)

    # --- appends ------------------------------------------------------------------------------------------------

    async def append_message(self, message: AgentMessage) -> str:
        """The id of a new entry with that message at the lane's leaf, which moves to it.

        Raises:
            InvalidMessage: the message has no role, or is an assistant message that is not settled.
            NotBuiltYet: the lane has an open operation; nothing was written.
        """
        reason = _objection(message)
        if reason is not None:
            raise InvalidMessage(self._lane, reason)
        check_json(message, "message")
        return await self._append(MessagePayload(message=message))

    async def append_custom_entry(self, custom_type: str, data: JsonValue | UnsetType = UNSET) -> str:
        """The id of a new custom entry at the lane's leaf, which moves to it; absent data differs from JSON null.

        Raises:
            InvalidOptions: the type is not text.
            InvalidJson: the data cannot be kept as JSON.
            NotBuiltYet: the lane has an open operation; nothing was written.
        """
        payload = CustomPayload(custom_type=_text("custom_type", custom_type), data=data)
        check_json(payload, "entry")
        return await self._append(payload)

    async def _append(self, payload: EntryPayload) -> str:
        """T86: the entry, then the leaf, on an idle lane."""

        async def job(mutator: SessionMutator) -> str:
            state, leaf = await mutator.get_registers([(LANE_STATE, self._lane), (LANE_LEAF, self._lane)])
            if state is None or leaf is None:
                raise self._no_such_lane()
            if state.value.current_operation_id is not None:
                raise NotBuiltYet("3.11", "a tree write while the lane has an open operation")
            entry = EntryDraft(id=self._ids.next(), parent_id=leaf.value, payload=payload)
            await mutator.commit(Transaction((InsertEntry(entry), RegisterSet(LANE_LEAF, self._lane, entry.id))))
            return entry.id

        return await self._line.run_at_leaf(self._lane, job)

    # --- the lane -----------------------------------------------------------------------------------------------

    async def _check_lane(self) -> None:
        """Return when the lane exists; lanes are never deleted, so one look is enough."""
        if not self._known:
            if await self._storage.get_register(LANE_LEAF, self._lane) is None:
                raise self._no_such_lane()
            self._known = True

    def _no_such_lane(self) -> InvalidLane:
        return InvalidLane(self._lane, "no such lane exists; create_lane() makes one")


def _text(option: str, value: object) -> str:
    """The value where a register or a column can hold nothing but text; anything else would be unreadable later."""
    if isinstance(value, str):
        return value
    raise InvalidOptions(option, f"must be text, not {type(value).__name__}; UNSET deletes a fact")


def _objection(message: AgentMessage) -> str | None:
    """Why a message cannot become an entry, or None."""
    if not role_of(message):
        return "it has no role"
    if role_of(message) == "assistant" and stop_reason_of(message) not in _SETTLED:
        return f"an assistant message is stored once it is settled; its stop reason is {stop_reason_of(message)!r}"
    return None
