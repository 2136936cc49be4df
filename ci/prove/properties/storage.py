"""One transaction: all or none, its sequence numbers, and what it expects (§1.4)."""

from collections.abc import Sequence
from dataclasses import replace
from enum import Enum, IntEnum
from typing import Final, cast

from ci.prove.contract import proves
from ci.prove.transactions import (
    BASE,
    COMMITS,
    COMMITS_AT,
    COMMITS_IF,
    FACTS,
    Answer,
    Commits,
    CommitsAt,
    CommitsIf,
    delete_fact,
    entry,
    set_fact,
    usage,
)
from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import UNSET, Json, Unset
from restartpoint_reference.store import Rule, State, Violation, apply
from restartpoint_reference.vocabulary.entries import (
    Expectation,
    Namespace,
    Register,
    SetRegister,
    Write,
)

__all__: list[str] = []


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
    Kind.ENTRY: entry("e2", "e1"),
    Kind.FACT: set_fact("fact", 2),
    Kind.GONE: delete_fact("fact"),
    Kind.CHILD: entry("e3", "e2"),
    Kind.ORPHAN: entry("e4", "nowhere"),
    Kind.REUSED: usage("e1"),
    Kind.TAKEN: entry("u1"),
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
    ids = {"e1"} | ({"e2"} if Kind.ENTRY in kinds else set()) | ({"e3"} if Kind.CHILD in kinds else set())
    fact: Json | Unset = 1
    for kind in kinds:
        if kind in (Kind.FACT, Kind.GONE):
            fact = 2 if kind is Kind.FACT else UNSET
    written = set(after.entries) == ids and after.value(FACTS, "fact") == fact
    return _is_right(kinds) and written and len(delta.seqs) == 3 and after.next_seq == state.next_seq + 3


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
    answer = commits(state, (set_fact("one", 1), set_fact("two", 2)), timestamp=2, seqs=(first, second))
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
    answer = commits(BASE, (set_fact("one", 1), set_fact("two", 2)), timestamp=2, seqs=seqs)
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
    one = commits(replace(BASE, next_seq=mark), [set_fact("one", 1)] * (2 if more else 1), timestamp=2)
    if isinstance(one, Violation):
        return False
    other = commits(one[0], [set_fact("two", 1)] * (2 if later else 1), timestamp=3)
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
    answer = commits(state, (set_fact("fact", 2),), timestamp=2, expectations=(asked,))
    if isinstance(answer, Violation):
        return stamp is not expected and answer.rule is Rule.EXPECTATION and answer.actual_seq == stamp.value
    return stamp is expected
