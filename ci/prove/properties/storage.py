"""One transaction: all or none, its sequence numbers, ids, parents, expectations and registers (§1.4)."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, IntEnum
from typing import Final, Protocol, TypeAlias, cast

from ci.prove.contract import proves
from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import UNSET, Json, Unset
from restartpoint_reference.store import Delta, Rule, State, Violation, apply, stats_of
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    EntryType,
    Expectation,
    InsertEntry,
    InsertUsage,
    Namespace,
    NewEntry,
    NewUsage,
    Register,
    SetRegister,
    Write,
)
from restartpoint_reference.vocabulary.messages import zero_usage

__all__: list[str] = []

FACTS: Final = Namespace.FACT_CUSTOM


Answer: TypeAlias = tuple[State, Delta] | Violation


class Commits(Protocol):
    """What ``apply`` answers to writes."""

    def __call__(self, state: State, writes: Sequence[Write], *, timestamp: int) -> Answer: ...


class CommitsAt(Protocol):
    """What it answers to writes that carry sequence numbers."""

    def __call__(self, state: State, writes: Sequence[Write], *, timestamp: int, seqs: Sequence[int]) -> Answer: ...


class CommitsIf(Protocol):
    """What it answers to writes under expectations."""

    def __call__(
        self, state: State, writes: Sequence[Write], *, timestamp: int, expectations: Sequence[Expectation]
    ) -> Answer: ...


COMMITS: Final[Commits] = apply
COMMITS_AT: Final[CommitsAt] = apply
COMMITS_IF: Final[CommitsIf] = apply


def _entry(id: str, parent: str | None = None) -> InsertEntry:
    return InsertEntry(
        entry=NewEntry(id=id, parent_id=parent, type=EntryType.CUSTOM, custom_type="note", payload={"data": id})
    )


def _usage(id: str) -> InsertUsage:
    return InsertUsage(row=NewUsage(id=id, adjustment=True, usage=zero_usage()))


def _set(key: str, value: int) -> SetRegister:
    return SetRegister(namespace=FACTS, key=key, value=value)


def _delete(key: str) -> DeleteRegister:
    return DeleteRegister(namespace=FACTS, key=key)


def _committed(*writes: Write) -> State:
    answer = apply(State.empty(), writes, timestamp=1)
    assert not isinstance(answer, Violation)
    return answer[0]


BASE: Final = _committed(_entry("e1"), _usage("u1"), _set("fact", 1))
"""A session with one entry, one ledger row and one fact."""


def _contents(state: State) -> tuple[object, ...]:
    """All that a state holds, in maps that a later change of the state does not reach."""
    return state.entries, dict(state.namespaces), state.usage, state.next_seq, state.stats


# --- all or none


class Kind(Enum):
    """One write of a transaction: three that are right in any order, and four that may break a rule."""

    ENTRY = "a new entry"
    FACT = "a fact is set"
    GONE = "a fact is removed"
    CHILD = "an entry below the new one"
    ORPHAN = "an entry below nothing"
    REUSED = "a ledger row under an entry's id"
    TAKEN = "an entry under a ledger row's id"


_WRITES: Final[dict[Kind, Write]] = {
    Kind.ENTRY: _entry("e2", "e1"),
    Kind.FACT: _set("fact", 2),
    Kind.GONE: _delete("fact"),
    Kind.CHILD: _entry("e3", "e2"),
    Kind.ORPHAN: _entry("e4", "nowhere"),
    Kind.REUSED: _usage("e1"),
    Kind.TAKEN: _entry("u1"),
}


def _is_right(kinds: tuple[Kind, ...]) -> bool:
    """Whether a transaction of these writes breaks no rule."""
    seen: set[Kind] = set()
    for kind in kinds:
        again = kind in seen and kind in (Kind.ENTRY, Kind.CHILD)
        if again or kind in (Kind.ORPHAN, Kind.REUSED, Kind.TAKEN) or (kind is Kind.CHILD and Kind.ENTRY not in seen):
            return False
        seen.add(kind)
    return True


def _in_place(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """Registers are written before the whole transaction is known to be right."""
    held = cast("dict[Namespace, PersistentMap[str, Register]]", state.namespaces)
    for write in writes:
        if isinstance(write, SetRegister):
            held[write.namespace] = held[write.namespace].set(write.key, write.placed(state.next_seq))
    return apply(state, writes, timestamp=timestamp)


@proves(
    COMMITS,
    section="1.4",
    twin=_in_place,
    symbolic="every transaction of three writes of seven kinds, of which three are never right and one needs another",
    fixed="the session before it: an entry, a ledger row, a fact; the contents of the writes",
)
def transaction_is_all_or_none(commits: Commits, first: Kind, second: Kind, third: Kind) -> bool:
    """If a write breaks a rule, nothing is written, otherwise everything is; the given state never changes."""
    state = replace(BASE, namespaces=dict(BASE.namespaces))
    before = _contents(state)
    kinds = (first, second, third)
    answer = commits(state, [_WRITES[kind] for kind in kinds], timestamp=2)
    if _contents(state) != before:
        return False
    if isinstance(answer, Violation):
        return not _is_right(kinds)
    after, delta = answer
    placed = len(after.entries) == 1 + kinds.count(Kind.ENTRY) + kinds.count(Kind.CHILD)
    return _is_right(kinds) and placed and len(delta.seqs) == 3 and after.next_seq == state.next_seq + 3


# --- sequence numbers


def _renumbered(state: State, writes: Sequence[Write], *, timestamp: int, seqs: Sequence[int]) -> Answer:
    """Gaps are closed: the writes get the next numbers instead of those that they carry."""
    answer = apply(state, writes, timestamp=timestamp, seqs=seqs)
    return answer if isinstance(answer, Violation) else apply(state, writes, timestamp=timestamp)


def _increases(mark: int, first: int, second: int) -> bool:
    return mark <= first < second


@proves(
    COMMITS_AT,
    section="1.4",
    twin=_renumbered,
    symbolic="every integer as the session's next number, every two integers from there on in order",
    given=_increases,
    fixed="two facts are set",
    quick=True,
)
def increasing_sequence_numbers_are_taken_as_they_are(commits: CommitsAt, mark: int, first: int, second: int) -> bool:
    """Gaps are legal: registers carry the numbers of their writes, and the next number is above all of them."""
    state = replace(BASE, next_seq=mark)
    answer = commits(state, (_set("one", 1), _set("two", 2)), timestamp=2, seqs=(first, second))
    if isinstance(answer, Violation):
        return False
    after, delta = answer
    stamps = [register.seq for key in ("one", "two") if (register := after.register(FACTS, key)) is not None]
    return stamps == [first, second] and delta.seqs == (first, second) and after.next_seq == second + 1


def _repeatable_numbers(state: State, writes: Sequence[Write], *, timestamp: int, seqs: Sequence[int]) -> Answer:
    """Two writes may carry the same sequence number."""
    answer = apply(state, writes, timestamp=timestamp, seqs=seqs)
    if isinstance(answer, Violation) and seqs[0] >= state.next_seq and seqs[0] == seqs[1]:
        return apply(state, writes[1:], timestamp=timestamp, seqs=seqs[1:])
    return answer


class Distance(IntEnum):
    """How far a sequence number is from the session's next one."""

    WELL_BELOW = -2
    BELOW = -1
    NEXT = 0
    ABOVE = 1
    WELL_ABOVE = 2


@proves(
    COMMITS_AT,
    section="1.4",
    twin=_repeatable_numbers,
    symbolic="every two numbers from two below the session's next number to two above it",
    fixed="the next number; two facts are set",
    quick=True,
)
def other_sequence_numbers_are_refused(commits: CommitsAt, first: Distance, second: Distance) -> bool:
    """Numbers are accepted if and only if each is above all before it; a refusal names that rule."""
    seqs = (BASE.next_seq + first.value, BASE.next_seq + second.value)
    answer = commits(BASE, (_set("one", 1), _set("two", 2)), timestamp=2, seqs=seqs)
    increasing = 0 <= first.value < second.value
    if isinstance(answer, Violation):
        return answer.rule is Rule.SEQUENCE and not increasing
    return increasing


def _reused_mark(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """The last number of a transaction is given out again."""
    answer = apply(state, writes, timestamp=timestamp)
    if isinstance(answer, Violation):
        return answer
    return replace(answer[0], next_seq=answer[0].next_seq - 1), answer[1]


@proves(
    COMMITS,
    section="1.4",
    twin=_reused_mark,
    symbolic="every integer as the next sequence number; one or two writes in each of two transactions",
    fixed="facts are set",
    quick=True,
)
def no_sequence_number_is_given_out_twice(commits: Commits, mark: int, more: bool, later: bool) -> bool:
    """The numbers of a transaction lie above all of the one before it, and start at the session's mark."""
    one = commits(replace(BASE, next_seq=mark), [_set("one", 1)] * (2 if more else 1), timestamp=2)
    if isinstance(one, Violation):
        return False
    other = commits(one[0], [_set("two", 1)] * (2 if later else 1), timestamp=3)
    return not isinstance(other, Violation) and one[1].seqs[0] == mark and one[1].seqs[-1] < other[1].seqs[0]


# --- expectations


def _absence_is_not_asked(
    state: State, writes: Sequence[Write], *, timestamp: int, expectations: Sequence[Expectation]
) -> Answer:
    """That a register is absent cannot be expected."""
    asked = [expected for expected in expectations if expected.seq is not None]
    return apply(state, writes, timestamp=timestamp, expectations=asked)


class Stamp(Enum):
    """The sequence number of a register, or its absence."""

    ABSENT = None
    OLD = 2
    NEW = 3


@proves(
    COMMITS_IF,
    section="1.4",
    twin=_absence_is_not_asked,
    symbolic="a register that is absent or has one of two numbers, and an expectation of any of these",
    fixed="one register, one expectation, one write",
    quick=True,
)
def stale_expectation_stops_the_commit(commits: CommitsIf, stamp: Stamp, expected: Stamp) -> bool:
    """The commit is made if and only if the register is where it is expected; otherwise it says where it is."""
    facts: PersistentMap[str, Register] = PersistentMap()
    if stamp.value is not None:
        facts = facts.set("fact", Register(namespace=FACTS, key="fact", value=1, seq=stamp.value))
    state = replace(BASE, namespaces={**BASE.namespaces, FACTS: facts})
    asked = Expectation(namespace=FACTS, key="fact", seq=expected.value)
    answer = commits(state, (_set("fact", 2),), timestamp=2, expectations=(asked,))
    if isinstance(answer, Violation):
        return stamp is not expected and answer.rule is Rule.EXPECTATION and answer.actual_seq == stamp.value
    return stamp is expected


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
        return _entry(self.id) if self in (Row.ENTRY_ONE, Row.ENTRY_TWO) else _usage(self.id)


def _two_namespaces(state: State, writes: Sequence[Write], *, timestamp: int) -> Answer:
    """Entries and ledger rows have a namespace of ids each."""
    apart = [_usage(f"row:{write.row.id}") if isinstance(write, InsertUsage) else write for write in writes]
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
        _entry(write.entry.id) if isinstance(write, InsertEntry) and write.entry.parent_id not in known else write
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
    answer = commits(BASE, (_entry("first", one.value), _entry("second", other.value)), timestamp=2)
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
    kept = [write for write in writes if not isinstance(write, DeleteRegister)] or [_set("nothing", 0)]
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
                writes.append(_set("fact", value))
            case Change.DELETE:
                expected = UNSET
                writes.append(_delete("fact"))
            case Change.OTHER:
                writes.append(_set("other", value))
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
                return _entry(id)
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
