"""The rules of §1.4, on the model's own store."""

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint_reference import (
    DeleteRegister,
    Delta,
    EntryType,
    Expectation,
    InsertEntry,
    InsertUsage,
    Json,
    JsonObject,
    Namespace,
    NewEntry,
    NewUsage,
    Refused,
    Rule,
    SetRegister,
    State,
    Violation,
    Write,
    apply,
    stats_of,
)
from restartpoint_reference.persistent import PersistentMap
from tests.reference.walk import usage, user

FACT = Namespace.FACT_CUSTOM


def entry(id: str, parent: str | None = None) -> InsertEntry:
    message: JsonObject = {"message": user(id)}
    return InsertEntry(entry=NewEntry(id=id, parent_id=parent, type=EntryType.MESSAGE, payload=message))


def row(id: str, cost: float = 0.0) -> InsertUsage:
    costs: JsonObject = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": cost}
    return InsertUsage(row=NewUsage(id=id, adjustment=False, usage={**usage(input=1), "cost": costs}))


def put(key: str, value: Json = 1) -> SetRegister:
    return SetRegister(namespace=FACT, key=key, value=value)


def drop(key: str) -> DeleteRegister:
    return DeleteRegister(namespace=FACT, key=key)


def applied(state: State, *writes: Write, seqs: Sequence[int] | None = None) -> tuple[State, Delta]:
    answer = apply(state, writes, timestamp=5, seqs=seqs)
    assert isinstance(answer, tuple), answer
    return answer


def refused(state: State, *writes: Write, seqs: Sequence[int] | None = None) -> Violation:
    answer = apply(state, writes, timestamp=5, seqs=seqs)
    assert isinstance(answer, Violation)
    return answer


BASE, _ = applied(State.empty(), entry("e1"), row("u1"), put("k"))


def test_sequence_numbers_start_at_one_and_grow_with_each_write() -> None:
    state, delta = applied(BASE, entry("e2", "e1"), put("k", 2), drop("k"))
    assert BASE.entries["e1"].seq == 1
    assert delta.seqs == (4, 5, 6)
    assert state.next_seq == 7
    assert (state.entries["e2"].seq, state.entries["e2"].timestamp) == (4, 5)


def test_an_empty_transaction_is_refused() -> None:
    assert refused(BASE).rule is Rule.EMPTY


@pytest.mark.covers("ST-1.4-09")
def test_a_parent_may_come_earlier_in_the_transaction_and_not_later() -> None:
    state, _ = applied(BASE, entry("p", "e1"), entry("c", "p"))
    assert state.entries["c"].parent_id == "p"
    found = refused(BASE, entry("c", "p"), entry("p", "e1"))
    assert (found.rule, found.index) == (Rule.PARENT, 0)


@pytest.mark.parametrize(
    "writes",
    [(entry("e1"),), (entry("u1"),), (row("e1"),), (row("u1"),), (entry("x"), row("x")), (row("x"), entry("x"))],
)
def test_entries_and_usage_rows_share_one_id_namespace(writes: tuple[Write, ...]) -> None:
    found = refused(BASE, *writes)
    assert (found.rule, found.index) == (Rule.UNIQUE_ID, len(writes) - 1)


def test_a_register_is_set_replaced_deleted_and_made_anew_in_write_order() -> None:
    state, delta = applied(BASE, put("k", "new"), drop("k"), put("k", None))
    register = state.register(FACT, "k")
    assert register is not None
    assert (register.value, register.seq) == (None, 6)
    before, after = delta.registers[FACT, "k"]
    assert before is not None
    assert (before.value, after) == (1, register)


def test_deleting_an_absent_key_changes_nothing_but_takes_a_sequence_number() -> None:
    state, delta = applied(BASE, drop("absent"))
    assert delta.seqs == (4,)
    assert state.namespaces == BASE.namespaces
    assert delta.registers == {(FACT, "absent"): (None, None)}


@pytest.mark.parametrize(
    "seqs, legal", [((4, 5), True), ((9, 20), True), ((3, 4), False), ((5, 5), False), ((4,), False)]
)
def test_observed_sequence_numbers_increase_strictly_and_may_have_gaps(seqs: tuple[int, ...], legal: bool) -> None:
    if legal:
        assert applied(BASE, put("a"), put("b"), seqs=seqs)[0].next_seq == seqs[-1] + 1
    else:
        assert refused(BASE, put("a"), put("b"), seqs=seqs).rule is Rule.SEQUENCE


def test_a_stale_expectation_names_the_first_key_and_both_numbers() -> None:
    held = Expectation(namespace=FACT, key="k", seq=3)
    stale = Expectation(namespace=FACT, key="k", seq=2)
    absent = Expectation(namespace=FACT, key="new", seq=None)
    assert isinstance(apply(BASE, [put("k")], timestamp=1, expectations=[held, absent]), tuple)
    answer = apply(BASE, [put("k")], timestamp=1, expectations=[absent, stale, held])
    assert isinstance(answer, Violation)
    assert (answer.rule, answer.stale, answer.actual_seq) == (Rule.EXPECTATION, stale, 3)


def test_apply_changes_no_state_that_it_was_given() -> None:
    before = (dict(BASE.entries), dict(BASE.namespaces[FACT]), dict(BASE.usage), BASE.next_seq)
    applied(BASE, entry("e2"), put("k", 2), drop("k"), row("u2"))
    refused(BASE, put("k", 3), entry("e1"))
    assert (dict(BASE.entries), dict(BASE.namespaces[FACT]), dict(BASE.usage), BASE.next_seq) == before


def test_statistics_are_the_sum_of_the_ledger_in_sequence_order() -> None:
    state = BASE
    for name, cost in (("a", 0.1), ("b", 0.2), ("c", 0.3)):
        state, _ = applied(state, row(name, cost), entry(f"m{name}"))
    assert state.stats == stats_of(state)
    assert state.stats.message_count == 4
    assert state.stats.usage["cost"]["total"] == 0.1 + 0.2 + 0.3  # type: ignore[index,call-overload]


def parts(state: State) -> tuple[list[Json], list[Json], list[Json]]:
    registers: list[Json] = [held.to_json() for keys in state.namespaces.values() for held in keys.values()]
    entries: list[Json] = [found.to_json() for found in state.entries.values()]
    return entries, registers, [found.to_json() for found in state.usage.values()]


def test_a_state_is_built_from_the_rows_of_a_session() -> None:
    state, _ = applied(BASE, entry("e2", "e1"), put("z"), seqs=(10, 12))
    again = State.from_parts(*parts(state), next_seq=40)
    assert (dict(again.entries), again.next_seq) == (dict(state.entries), 40)
    assert again.namespaces == state.namespaces
    assert again.stats == state.stats
    assert State.from_parts(*parts(state)).next_seq == 13


def test_a_session_with_contradictions_is_refused() -> None:
    entries, registers, rows = parts(BASE)
    with pytest.raises(Refused, match="used twice"):
        State.from_parts([*entries, *entries], registers, rows)
    orphan: JsonObject = {"id": "o", "parentId": "gone", "seq": 9, "timestamp": 1, "type": "custom", "customType": "x"}
    with pytest.raises(Refused, match="does not exist"):
        State.from_parts([*entries, orphan], registers, rows)
    with pytest.raises(Refused, match="was given out"):
        State.from_parts(entries, registers, rows, next_seq=3)
    with pytest.raises(Refused, match=r"entry\[0\]\.id"):
        State.from_parts([{"type": "custom", "customType": "x", "parentId": None}], [], [])


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 40), st.integers())))
def test_a_persistent_map_behaves_like_a_dict_and_never_changes(steps: list[tuple[bool, int, int]]) -> None:
    class Key(int):
        def __hash__(self) -> int:
            return int(self) % 3 << 56

        def __eq__(self, other: object) -> bool:
            return int(self) == other

    made: PersistentMap[Key, int] = PersistentMap()
    plain: dict[Key, int] = {}
    for adds, number, value in steps:
        earlier, was = made, dict(plain)
        if adds:
            made, plain[Key(number)] = made.set(Key(number), value), value
        else:
            made = made.remove(Key(number))
            plain.pop(Key(number), None)
        assert earlier == was
    assert made == plain
    assert len(made) == len(plain)
