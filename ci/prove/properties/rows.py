"""What a transaction writes: ids, parents, registers, and the statistics that it maintains (§1.4, §1.6)."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum

from ci.prove.contract import proves
from ci.prove.transactions import (
    BASE,
    COMMITS,
    FACTS,
    Answer,
    Commits,
    delete_fact,
    entry,
    set_fact,
    usage,
)
from restartpoint_reference.shapes import UNSET, Json, Unset
from restartpoint_reference.store import Rule, State, Violation, apply, stats_of
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    EntryType,
    InsertEntry,
    InsertUsage,
    NewEntry,
    NewUsage,
    Write,
)
from restartpoint_reference.vocabulary.messages import zero_usage

__all__: list[str] = []

# --- ids and parents


class Row(Enum):
    """A row that takes an id."""

    ENTRY_ONE = "an entry under the first id"
    ENTRY_TWO = "an entry under the second id"
    USAGE_ONE = "a ledger row under the first id"
    USAGE_TWO = "a ledger row under the second id"

    @property
    def id(self) -> str:
        """The id that it takes."""
        return "one" if self in (Row.ENTRY_ONE, Row.USAGE_ONE) else "two"

    @property
    def write(self) -> Write:
        """The write that inserts it."""
        return entry(self.id) if self in (Row.ENTRY_ONE, Row.ENTRY_TWO) else usage(self.id)


def _two_namespaces(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """Entries and ledger rows have a namespace of ids each."""
    apart = [usage(f"row:{write.row.id}") if isinstance(write, InsertUsage) else write for write in writes]
    return apply(state, apart, timestamp=timestamp)


@proves(
    COMMITS,
    section="1.4",
    twin=_two_namespaces,
    symbolic="every two rows, entries or ledger rows, under two ids, in one transaction or in two",
    fixed="the two ids; the contents of the rows",
    quick=True,
)
def entries_and_ledger_rows_share_one_namespace_of_ids(
    commits: Commits, first: Row, second: Row, together: bool
) -> bool:
    """A row is written if and only if neither an entry nor a ledger row has its id."""
    state = BASE
    writes = [first.write, second.write]
    if not together:
        before = commits(state, writes[:1], timestamp=2)
        if isinstance(before, Violation):
            return False
        state, writes = before[0], writes[1:]
    answer = commits(state, writes, timestamp=3)
    if isinstance(answer, Violation):
        return answer.rule is Rule.UNIQUE_ID and first.id == second.id
    return first.id != second.id


def _orphans_at_the_root(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """An entry whose parent does not exist becomes a root."""
    known = {*state.entries, *(write.entry.id for write in writes if isinstance(write, InsertEntry))}
    healed = [
        entry(write.entry.id) if isinstance(write, InsertEntry) and write.entry.parent_id not in known else write
        for write in writes
    ]
    return apply(state, healed, timestamp=timestamp)


class Parent(Enum):
    """What an entry names as its parent."""

    ROOT = None
    EARLIER = "e1"
    FIRST = "first"
    SECOND = "second"
    NOBODY = "nobody"
    LEDGER = "u1"


@proves(
    COMMITS,
    section="1.4",
    twin=_orphans_at_the_root,
    symbolic="two entries, each below nothing, an older entry, either of the two, an unknown id, or a ledger row",
    fixed="the ids and contents",
    quick=True,
)
def parent_exists_before_its_child(commits: Commits, one: Parent, other: Parent) -> bool:
    """Both are written if and only if each one's parent is the root, an older entry, or written before it."""
    answer = commits(BASE, (entry("first", one.value), entry("second", other.value)), timestamp=2)
    known = (Parent.ROOT, Parent.EARLIER)
    right = one in known and other in (*known, Parent.FIRST)
    if isinstance(answer, Violation):
        return answer.rule is Rule.PARENT and not right
    return right


# --- registers


class Change(Enum):
    """What one write does to a register."""

    SET = "set"
    DELETE = "delete"
    OTHER = "another register is set"


def _undeletable(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """A register that is set again in the transaction was never removed, and one that is removed last stays."""
    kept = [write for write in writes if not isinstance(write, DeleteRegister)] or [set_fact("nothing", 0)]
    return apply(state, kept, timestamp=timestamp)


@proves(
    COMMITS,
    section="1.4",
    twin=_undeletable,
    symbolic="every three changes of one register (set to any integer, removed, left alone)",
    fixed="the register exists before",
    quick=True,
)
def last_write_to_a_register_stands(
    commits: Commits, first: Change, second: Change, third: Change, one: int, two: int, three: int
) -> bool:
    """A register holds what the last write of the transaction left: the value it set, or nothing."""
    expected: Json | Unset = 1
    writes: list[Write] = []
    for change, value in zip((first, second, third), (one, two, three), strict=True):
        match change:
            case Change.SET:
                expected = value
                writes.append(set_fact("fact", value))
            case Change.DELETE:
                expected = UNSET
                writes.append(delete_fact("fact"))
            case Change.OTHER:
                writes.append(set_fact("other", value))
    answer = commits(BASE, writes, timestamp=2)
    return not isinstance(answer, Violation) and answer[0].value(FACTS, "fact") == expected


# --- statistics


class Count(Enum):
    """A row that statistics count, or do not."""

    MESSAGE = "message"
    CUSTOM = "custom"
    USAGE = "usage"

    def write(self, id: str, tokens: int) -> Write:
        """The write of such a row; a ledger row counts these tokens."""
        match self:
            case Count.MESSAGE:
                message: Json = {"role": "user", "content": id}
                return InsertEntry(
                    entry=NewEntry(id=id, parent_id=None, type=EntryType.MESSAGE, payload={"message": message})
                )
            case Count.CUSTOM:
                return entry(id)
            case Count.USAGE:
                row = NewUsage(id=id, adjustment=False, usage={**zero_usage(), "totalTokens": tokens})
                return InsertUsage(row=row)


def _forgetting_the_last(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """Only the first row of a transaction is counted."""
    answer = apply(state, writes, timestamp=timestamp)
    first = apply(state, writes[:1], timestamp=timestamp)
    if isinstance(answer, Violation) or isinstance(first, Violation):
        return answer
    return replace(answer[0], stats=first[0].stats), answer[1]


@proves(
    COMMITS,
    section="1.6",
    twin=_forgetting_the_last,
    symbolic="two rows, each a message, a custom entry, or a ledger row of every number of tokens",
    fixed="the other counts of the ledger rows are zero",
    quick=True,
)
def maintained_statistics_are_those_of_the_rows(
    commits: Commits, first: Count, second: Count, tokens: int, more: int
) -> bool:
    """The statistics that a commit maintains equal those computed from all rows."""
    answer = commits(BASE, (first.write("one", tokens), second.write("two", more)), timestamp=2)
    return not isinstance(answer, Violation) and answer[0].stats == stats_of(answer[0])
