"""Transactions: atomic, ordered, numbered, under one id namespace (P1-P5, P7, P8; §1.4)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    LANE_LEAF,
    Expectation,
    RegisterDelete,
    RegisterSet,
    Transaction,
    Write,
)
from restartpoint.errors import (
    DuplicateId,
    EmptyTransaction,
    InvalidJson,
    MissingParent,
    StaleExpectation,
    StorageError,
)
from restartpoint_oracle.conformance.claims import equal, holds, raises, same_json
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench, entry, usage_row
from restartpoint_oracle.content import content_of_storage
from restartpoint_oracle.samples import assistant, custom, message, usage
from restartpoint_oracle.wire import register_json

__all__ = ["TransactionChecks"]


@dataclass(frozen=True, kw_only=True)
class _Offence:
    """A transaction that must be refused in a session that holds entry ``e-1`` and ledger row ``u-1``."""

    name: str
    error: type[StorageError]
    writes: tuple[Write, ...]
    expectations: tuple[Expectation, ...] = ()


def _offences() -> Iterator[_Offence]:
    """Each refusal of the port, the offending write last, after writes that alone would be accepted."""
    lead: tuple[Write, ...] = (
        entry("n-1", "e-1", message("new")),
        usage_row("n-2", usage(3)),
        RegisterSet(FACT_NAME, "", "renamed"),
        RegisterDelete(FACT_LABEL, "e-1"),
    )
    for name, last in (
        ("entry under an entry's id", entry("e-1", None, message())),
        ("entry under a usage row's id", entry("u-1", None, message())),
        ("usage row under an entry's id", usage_row("e-1", usage(1))),
        ("usage row under a usage row's id", usage_row("u-1", usage(1))),
        ("entry under an id of this transaction's entry", entry("n-1", None, message())),
        ("entry under an id of this transaction's row", entry("n-2", None, message())),
        ("usage row under an id of this transaction's entry", usage_row("n-1", usage(1))),
        ("usage row under an id of this transaction's row", usage_row("n-2", usage(1))),
    ):
        yield _Offence(name=name, error=DuplicateId, writes=(*lead, last))
    for name, last in (
        ("unknown parent", entry("n-9", "nowhere", message())),
        ("parent that is a usage row", entry("n-9", "u-1", message())),
        ("parent that is a usage row of this transaction", entry("n-9", "n-2", message())),
        ("parent that is the entry itself", entry("n-9", "n-9", message())),
    ):
        yield _Offence(name=name, error=MissingParent, writes=(*lead, last))
    child_first = (entry("n-9", "n-8", message()), entry("n-8", "e-1", message()))
    yield _Offence(name="child before its parent", error=MissingParent, writes=(*lead, *child_first))
    not_finite = RegisterSet(FACT_CUSTOM, "k", float("nan"))
    yield _Offence(name="value that is no JSON", error=InvalidJson, writes=(*lead, not_finite))
    for name, expectation in (
        ("stale expectation", Expectation(FACT_NAME, "", 1)),
        ("expected absence of a register", Expectation(FACT_NAME, "", None)),
        ("expected presence of an absent register", Expectation(FACT_CUSTOM, "absent", 1)),
    ):
        yield _Offence(name=name, error=StaleExpectation, writes=lead, expectations=(expectation,))
    yield _Offence(name="no write", error=EmptyTransaction, writes=())


class TransactionChecks:
    """Checks of ``commit``."""

    @performs("P1", "P7", "ST-1.4-12", "ST-1.4-18")
    async def test_p01_p07_a_refused_transaction_applies_nothing_and_uses_no_number(self, bench: StorageBench) -> None:
        await bench.commit(
            entry("e-1", None, message()), usage_row("u-1", usage(2)),
            RegisterSet(FACT_NAME, "", "name"), RegisterSet(FACT_LABEL, "e-1", "label"),
        )  # fmt: skip
        first = await bench.commit(RegisterSet(FACT_CUSTOM, "step", 0))
        step = (await bench.commit(RegisterSet(FACT_CUSTOM, "step", 0))).first_seq - first.first_seq
        before = await content_of_storage(bench.storage)
        for offence in _offences():
            with raises(offence.error, offence.name):
                await bench.storage.commit(Transaction(offence.writes, offence.expectations))
            same_json(await content_of_storage(bench.storage), before, f"after the refusal of: {offence.name}")
        again = await bench.commit(RegisterSet(FACT_CUSTOM, "step", 0))
        equal(again.first_seq, first.first_seq + 2 * step, "the sequence number after refusals")
        await bench.holds_exactly_what_was_committed("after every refusal and one more commit")
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened after refusals")

    @performs("P2", "ST-1.4-04", "ST-1.4-07", "ST-1.4-19")
    async def test_p02_numbers_increase_in_write_order_across_all_kinds_from_one(self, bench: StorageBench) -> None:
        leaf = await bench.storage.get_register(LANE_LEAF, "main")
        equal(None if leaf is None else leaf.seq, 1, "the first sequence number of a session")
        last = 2
        for number in range(3):
            result = await bench.commit(
                entry(f"e-{number}", None, message()),
                RegisterSet(FACT_NAME, "", "x"),
                RegisterDelete(FACT_NAME, ""),
                usage_row(f"u-{number}", usage(1)),
                RegisterDelete(FACT_NAME, "absent"),
            )
            equal(len(result.seqs), 5, "one number per write")
            equal(result.first_seq, result.seqs[0], "first_seq")
            holds(all(low < high for low, high in zip((last, *result.seqs), result.seqs, strict=False)), "increasing")
            last = result.seqs[-1]
        await bench.holds_exactly_what_was_committed()

    @performs("P2", "ST-1.4-08")
    async def test_p02_a_set_stamps_its_register_with_the_number_of_that_write(self, bench: StorageBench) -> None:
        result = await bench.commit(
            RegisterSet(FACT_NAME, "", "a"), RegisterSet(FACT_CUSTOM, "k", 1), RegisterSet(FACT_NAME, "", "b")
        )
        name = await bench.storage.get_register(FACT_NAME, "")
        free = await bench.storage.get_register(FACT_CUSTOM, "k")
        equal((name and name.seq, free and free.seq), (result.seqs[2], result.seqs[1]), "the registers' numbers")

    @performs("P3", "ST-1.4-09", "ST-1.4-10")
    async def test_p03_writes_apply_in_order(self, bench: StorageBench) -> None:
        result = await bench.commit(
            entry("parent", None, message()),
            entry("child", "parent", assistant()),
            RegisterSet(LANE_LEAF, "main", "child"),
            RegisterSet(FACT_NAME, "", "first"),
            RegisterSet(FACT_NAME, "", "second"),
            RegisterSet(FACT_LABEL, "child", "gone"),
            RegisterDelete(FACT_LABEL, "child"),
        )
        found = await bench.storage.get_entries(["parent", "child"])
        equal([found["parent"].seq, found["child"].seq], list(result.seqs[:2]), "the entries' numbers")
        await bench.holds_exactly_what_was_committed("the last write to a register wins")

    @performs("P4", "ST-1.4-12")
    async def test_p04_entries_and_usage_rows_share_one_id_namespace(self, bench: StorageBench) -> None:
        await bench.commit(entry("e-1", None, message()), usage_row("u-1", usage(1)))
        for write in (
            entry("e-1", None, custom()), entry("u-1", None, custom()), usage_row("e-1", usage()),
            usage_row("u-1", usage()),
        ):  # fmt: skip
            with raises(DuplicateId, f"{write}") as raised:
                await bench.storage.commit(Transaction((entry("fresh", None, custom()), write)))
            holds(raised.error.id in ("e-1", "u-1"), "the error names the id")
        await bench.commit(entry("fresh", None, custom()))
        await bench.holds_exactly_what_was_committed()

    @performs("P4", "ST-1.4-12", "ST-1.7-63")
    async def test_p04_ids_stay_taken_after_a_reopen(self, bench: StorageBench) -> None:
        await bench.commit(entry("e-1", None, message()), usage_row("u-1", usage(1)))
        await bench.reopen()
        for write in (entry("u-1", None, message()), usage_row("e-1", usage())):
            with raises(DuplicateId, f"{write}"):
                await bench.storage.commit(Transaction((write,)))
        await bench.holds_exactly_what_was_committed()

    @performs("P5", "ST-1.4-09")
    async def test_p05_a_missing_parent_is_named(self, bench: StorageBench) -> None:
        with raises(MissingParent, "unknown parent") as raised:
            await bench.storage.commit(Transaction((entry("e-1", "nowhere", message()),)))
        equal((raised.error.id, raised.error.parent_id), ("e-1", "nowhere"), "what the error names")

    @performs("P8", "ST-1.4-21")
    async def test_p08_a_matching_expectation_lets_the_commit_through(self, bench: StorageBench) -> None:
        set_once = await bench.commit(RegisterSet(FACT_NAME, "", "a"), expectations=(Expectation(FACT_NAME, "", None),))
        replaced = await bench.commit(
            RegisterSet(FACT_NAME, "", "b"),
            expectations=(Expectation(FACT_NAME, "", set_once.first_seq), Expectation(LANE_LEAF, "main", 1)),
        )
        await bench.commit(
            RegisterDelete(FACT_NAME, ""), expectations=(Expectation(FACT_NAME, "", replaced.first_seq),)
        )
        await bench.commit(RegisterSet(FACT_NAME, "", "c"), expectations=(Expectation(FACT_NAME, "", None),))
        await bench.holds_exactly_what_was_committed()

    @performs("P8", "ST-1.4-21")
    async def test_p08_the_first_failing_expectation_is_named_with_both_numbers(self, bench: StorageBench) -> None:
        seq = (await bench.commit(RegisterSet(FACT_NAME, "", "a"))).first_seq
        for expectations, named in (
            ((Expectation(FACT_NAME, "", 1),), ("fact.name", "", 1, seq)),
            ((Expectation(FACT_NAME, "", None),), ("fact.name", "", None, seq)),
            ((Expectation(FACT_CUSTOM, "k", 7),), ("fact.custom", "k", 7, None)),
            (
                (Expectation(FACT_NAME, "", seq), Expectation(FACT_CUSTOM, "k", 7), Expectation(FACT_NAME, "", 1)),
                ("fact.custom", "k", 7, None),
            ),
        ):
            with raises(StaleExpectation, f"{expectations}") as raised:
                await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", "b"),), expectations))
            error = raised.error
            equal((error.namespace, error.key, error.expected, error.actual), named, "what the error names")
        await bench.holds_exactly_what_was_committed()

    @performs("P8", "ST-1.4-21")
    async def test_p08_expectations_are_checked_before_any_write(self, bench: StorageBench) -> None:
        await bench.commit(entry("e-1", None, message()))
        own_write = (RegisterSet(FACT_NAME, "", "a"), entry("e-1", None, message()))
        with raises(StaleExpectation, "a write of the same transaction does not satisfy an expectation"):
            await bench.storage.commit(Transaction(own_write, (Expectation(FACT_NAME, "", 4),)))
        with raises(DuplicateId, "a matching expectation does not hide what else is wrong"):
            await bench.storage.commit(Transaction(own_write, (Expectation(FACT_NAME, "", None),)))
        await bench.holds_exactly_what_was_committed()

    @performs("P2", "ST-1.4-19")
    async def test_p02_numbers_go_on_after_a_reopen(self, bench: StorageBench) -> None:
        last = await bench.commit(RegisterSet(FACT_NAME, "", "a"), RegisterDelete(FACT_NAME, ""))
        await bench.reopen()
        after = await bench.commit(RegisterSet(FACT_NAME, "", "b"))
        holds(after.first_seq > last.seqs[-1], "a number that was given out is not given out again")
        found = await bench.storage.get_register(FACT_NAME, "")
        holds(found is not None and register_json(found)["seq"] == after.first_seq, "the register has the new number")
