"""The three stores and the one way to change them (§1.1, §1.4).

A ``State`` is everything durable of one session. ``apply`` answers the next state and what changed, or the rule that is
broken; it never changes the state it was given. States share structure, so a commit costs what it writes.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import UNSET, Json, JsonObject, Refused, Unset
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    Entry,
    EntryType,
    Expectation,
    InsertEntry,
    InsertUsage,
    Namespace,
    Register,
    SetRegister,
    UsageRow,
    Write,
)  # fmt: skip
from restartpoint_reference.vocabulary.messages import Usage, add_usage, zero_usage

FIRST_SEQ: Final = 1
"""The first sequence number of a session (decision ST-1.4-19)."""


@dataclass(frozen=True, kw_only=True)
class Stats:
    """The maintained projection of a session: message entries, and the ledger summed in sequence order (§1.6)."""

    message_count: int
    usage: Usage

    def to_json(self) -> JsonObject:
        """``{messageCount, usage}``."""
        return {"messageCount": self.message_count, "usage": self.usage}


@dataclass(frozen=True, kw_only=True)
class State:
    """Everything durable of one session; ``next_seq`` is greater than every sequence number ever given out."""

    entries: PersistentMap[str, Entry]
    namespaces: Mapping[Namespace, PersistentMap[str, Register]]
    usage: PersistentMap[str, UsageRow]
    next_seq: int
    stats: Stats

    @classmethod
    def empty(cls) -> "State":
        """A session in which nothing was ever committed."""
        return cls(
            entries=PersistentMap(), namespaces={namespace: PersistentMap() for namespace in Namespace},
            usage=PersistentMap(), next_seq=FIRST_SEQ, stats=Stats(message_count=0, usage=zero_usage()),
        )  # fmt: skip

    @classmethod
    def from_parts(
        cls, entries: Iterable[Json], registers: Iterable[Json], usage: Iterable[Json], next_seq: int | Unset = UNSET
    ) -> "State":
        """The state of an existing session, from its current rows in their JSON shapes and its high-water mark.

        Raises ``Refused`` for a row of another shape, a reused id or sequence number, a missing or later parent, and a
        mark that was already given out.
        """
        parts = [
            *_read("entry", entries, Entry),
            *_read("register", registers, Register),
            *_read("usage", usage, UsageRow),
        ]
        parts.sort(key=lambda part: part.seq)
        growing, previous = _Growing(cls.empty()), 0
        for part in parts:
            if part.seq <= previous:
                raise Refused(f"sequence number {part.seq} is used twice or below {FIRST_SEQ}")
            problem = growing.problem(_as_write(part))
            if problem is not None:
                raise Refused(str(problem))
            growing.place(part)
            previous = part.seq
        mark = previous + 1 if next_seq is UNSET else next_seq
        if mark <= previous:
            raise Refused(f"the next sequence number is {mark}, but {previous} was given out")
        return growing.state(mark)

    def register(self, namespace: Namespace, key: str) -> Register | None:
        """The register at this address, None when there is none."""
        return self.namespaces[namespace].get(key)

    def value(self, namespace: Namespace, key: str) -> Json | Unset:
        """The value at this address, UNSET when there is none; null is a value."""
        found = self.register(namespace, key)
        return UNSET if found is None else found.value

    def keys(self, namespace: Namespace, prefix: str = "") -> list[str]:
        """The keys of a namespace that start with the prefix, ascending by code points (decision ST-1.5-20)."""
        return sorted(key for key in self.namespaces[namespace] if key.startswith(prefix))


Row = Entry | Register | UsageRow


def _read(kind: str, values: Iterable[Json], row: type[Entry] | type[Register] | type[UsageRow]) -> list[Row]:
    rows: list[Row] = []
    for index, value in enumerate(values):
        try:
            rows.append(row.from_json(value))
        except Refused as refused:
            raise refused.under(index).under(kind) from None
    return rows


def _as_write(row: Row) -> Write:
    match row:
        case Entry():
            return InsertEntry(entry=row)
        case UsageRow():
            return InsertUsage(row=row)
        case Register():
            return SetRegister(namespace=row.namespace, key=row.key, value=row.value)


class Rule(StrEnum):
    """The rules of a commit that can be broken (§1.4)."""

    EMPTY = "at_least_one_write"
    EXPECTATION = "expectations_hold"
    SEQUENCE = "strictly_increasing_sequence_numbers"
    UNIQUE_ID = "one_id_namespace"
    PARENT = "parents_exist"


@dataclass(frozen=True, kw_only=True)
class Violation:
    """Why a transaction may not commit; nothing of it is applied. ``index`` is the write at fault."""

    rule: Rule
    reason: str
    index: int | None = None
    stale: Expectation | None = None
    actual_seq: int | None = None

    def __str__(self) -> str:
        where = "" if self.index is None else f"write {self.index}: "
        return f"{where}{self.reason} ({self.rule}, §1.4)"


@dataclass(frozen=True, kw_only=True)
class Delta:
    """What a commit changed: rows it inserted, and per written register its value before and after."""

    before: State
    timestamp: int
    seqs: tuple[int, ...]
    entries: tuple[Entry, ...]
    usage: tuple[UsageRow, ...]
    registers: Mapping[tuple[Namespace, str], tuple[Register | None, Register | None]]


def apply(
    state: State,
    writes: Sequence[Write],
    *,
    timestamp: int,
    seqs: Sequence[int] | None = None,
    expectations: Sequence[Expectation] = (),
) -> tuple[State, Delta] | Violation:
    """The state after the transaction and what it changed, or the first rule that it breaks (§1.4).

    ``seqs`` are the sequence numbers that an observed commit carries; without them the next ones are allocated.
    ``timestamp`` (Unix milliseconds) is that of every entry of the commit.
    """
    if not writes:
        return Violation(rule=Rule.EMPTY, reason="a transaction has at least one write")
    stale = _first_stale(state, expectations)
    if stale is not None:
        return stale
    given = range(state.next_seq, state.next_seq + len(writes)) if seqs is None else seqs
    wrong = _sequence_problem(state, writes, given)
    if wrong is not None:
        return wrong
    growing = _Growing(state)
    rows: list[Row] = []
    for index, (write, seq) in enumerate(zip(writes, given, strict=True)):
        problem = growing.problem(write)
        if problem is not None:
            return replace(problem, index=index)
        if isinstance(write, DeleteRegister):
            growing.remove(write)
        else:
            rows.append(_row(write, seq, timestamp))
            growing.place(rows[-1])
    after = growing.state(given[-1] + 1)
    return after, _delta(state, after, writes, rows, tuple(given), timestamp)


def _first_stale(state: State, expectations: Sequence[Expectation]) -> Violation | None:
    for expected in expectations:
        register = state.register(expected.namespace, expected.key)
        actual = None if register is None else register.seq
        if actual != expected.seq:
            reason = f"{expected.namespace}/{expected.key} was expected at seq {expected.seq} and is at {actual}"
            return Violation(rule=Rule.EXPECTATION, reason=reason, stale=expected, actual_seq=actual)
    return None


def _sequence_problem(state: State, writes: Sequence[Write], seqs: Sequence[int]) -> Violation | None:
    if len(seqs) != len(writes):
        return Violation(rule=Rule.SEQUENCE, reason=f"{len(writes)} writes carry {len(seqs)} sequence numbers")
    least = state.next_seq
    for index, seq in enumerate(seqs):
        if seq < least:
            return Violation(rule=Rule.SEQUENCE, reason=f"sequence number {seq} is below {least}", index=index)
        least = seq + 1
    return None


class _Growing:
    """A state under way to the next one, within one transaction; the state it began with never changes."""

    def __init__(self, state: State) -> None:
        self._entries, self._usage, self._stats = state.entries, state.usage, state.stats
        self._namespaces = dict(state.namespaces)

    def state(self, next_seq: int) -> State:
        """What it has grown to."""
        return State(
            entries=self._entries,
            namespaces=self._namespaces,
            usage=self._usage,
            next_seq=next_seq,
            stats=self._stats,
        )

    def problem(self, write: Write) -> Violation | None:
        """The rule that one write breaks after the writes before it."""
        match write:
            case InsertEntry(entry=entry):
                if entry.id in self._entries or entry.id in self._usage:
                    return Violation(rule=Rule.UNIQUE_ID, reason=f"the id {entry.id} of an entry exists already")
                if entry.parent_id is not None and entry.parent_id not in self._entries:
                    reason = f"the parent {entry.parent_id} of {entry.id} does not exist"
                    return Violation(rule=Rule.PARENT, reason=reason)
            case InsertUsage(row=row):
                if row.id in self._entries or row.id in self._usage:
                    return Violation(rule=Rule.UNIQUE_ID, reason=f"the id {row.id} of a usage row exists already")
            case SetRegister() | DeleteRegister():
                pass
        return None

    def place(self, row: Row) -> None:
        """Add an entry or a ledger row, or set a register."""
        match row:
            case Entry():
                self._entries = self._entries.set(row.id, row)
                self._stats = stats_with(self._stats, (row,), ())
            case UsageRow():
                self._usage = self._usage.set(row.id, row)
                self._stats = stats_with(self._stats, (), (row,))
            case Register():
                self._namespaces[row.namespace] = self._namespaces[row.namespace].set(row.key, row)

    def remove(self, write: DeleteRegister) -> None:
        """Remove a register."""
        self._namespaces[write.namespace] = self._namespaces[write.namespace].remove(write.key)


def _row(write: InsertEntry | InsertUsage | SetRegister, seq: int, timestamp: int) -> Row:
    match write:
        case InsertEntry(entry=entry):
            return entry.placed(seq, timestamp)
        case InsertUsage(row=row):
            return row.placed(seq)
        case SetRegister():
            return write.placed(seq)


def _delta(
    before: State, after: State, writes: Sequence[Write], rows: Sequence[Row], seqs: tuple[int, ...], timestamp: int
) -> Delta:
    addresses = [(write.namespace, write.key) for write in writes if isinstance(write, SetRegister | DeleteRegister)]
    return Delta(
        before=before,
        timestamp=timestamp,
        seqs=seqs,
        entries=tuple(row for row in rows if isinstance(row, Entry)),
        usage=tuple(row for row in rows if isinstance(row, UsageRow)),
        registers={address: (before.register(*address), after.register(*address)) for address in addresses},
    )


def stats_of(state: State) -> Stats:
    """The statistics computed from the rows; after every commit equal to the maintained ``state.stats`` (§1.6)."""
    rows = sorted(state.usage.values(), key=lambda row: row.seq)
    return stats_with(Stats(message_count=0, usage=zero_usage()), state.entries.values(), rows)


def stats_with(stats: Stats, entries: Iterable[Entry], rows: Iterable[UsageRow]) -> Stats:
    """The statistics with these entries and ledger rows added, in the order of the rows (§1.6)."""
    total = stats.usage
    for row in rows:
        total = add_usage(total, row.usage)
    messages = sum(entry.type is EntryType.MESSAGE for entry in entries)
    return Stats(message_count=stats.message_count + messages, usage=total)
