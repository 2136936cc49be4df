"""Concurrency, cancellation, uncertain writes, close and reopen (P1, P9, P10, P14; §1.4, §1.5)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import anyio
from anyio.lowlevel import checkpoint

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    FACT_NAME,
    BranchScan,
    CommitResult,
    EntryScan,
    RegisterSet,
    Transaction,
    UsageScan,
)
from restartpoint.errors import DuplicateId, StorageClosed, StorageFault
from restartpoint.seams import FaultPoint
from restartpoint.storage import Storage
from restartpoint_oracle.conformance.claims import equal, holds, raises, same_json
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench, entry, usage_row
from restartpoint_oracle.content import content_of_storage
from restartpoint_oracle.samples import METADATA, message, usage

__all__ = ["LifecycleChecks"]


class _Torn(OSError):
    """What the disk says in these checks."""


def _calls(storage: Storage) -> dict[str, Callable[[], Awaitable[object]]]:
    return {
        "commit": lambda: storage.commit(Transaction((RegisterSet(FACT_NAME, "", "late"),))),
        "get_entries": lambda: storage.get_entries(["a"]),
        "get_register": lambda: storage.get_register(FACT_NAME, ""),
        "get_registers": lambda: storage.get_registers([(FACT_NAME, "")]),
        "list_registers": lambda: storage.list_registers(FACT_NAME),
        "scan_branch": lambda: storage.scan_branch(BranchScan(start="a")),
        "scan_branch_structure": lambda: storage.scan_branch_structure(BranchScan(start="a")),
        "scan_entries": lambda: storage.scan_entries(EntryScan()),
        "scan_usage": lambda: storage.scan_usage(UsageScan()),
        "get_stats": storage.get_stats,
    }


class LifecycleChecks:
    """Checks of what happens around commits."""

    @performs("P9", "ST-1.4-15")
    async def test_p09_concurrent_commits_are_serialized(self, bench: StorageBench) -> None:
        results: dict[int, tuple[Transaction, CommitResult]] = {}

        async def commit(number: int) -> None:
            bench.clock.advance()
            tx = Transaction((
                entry(f"e-{number}", None, message()), RegisterSet(FACT_CUSTOM, "last", number),
                usage_row(f"u-{number}", usage(1)),
            ))  # fmt: skip
            results[number] = tx, await bench.storage.commit(tx)

        async with anyio.create_task_group() as group:
            for number in range(40):
                group.start_soon(commit, number)
        ordered = sorted(results.values(), key=lambda pair: pair[1].first_seq)
        for tx, result in ordered:
            bench.expected.apply(tx, result)
        seqs = [seq for _, result in ordered for seq in result.seqs]
        equal(seqs, sorted(set(seqs)), "the numbers of all commits, commit after commit")
        stamps = [result.timestamp for _, result in ordered]
        equal(stamps, sorted(stamps), "the timestamps in commit order")
        await bench.holds_exactly_what_was_committed()

    @performs("P1", "P9", "ST-0.2-09")
    async def test_p01_readers_see_whole_transactions(self, bench: StorageBench) -> None:
        await bench.commit(RegisterSet(FACT_LABEL, "k", "-1"), RegisterSet(FACT_CUSTOM, "k", -1))
        torn: list[object] = []
        done = anyio.Event()

        async def read() -> None:
            while not done.is_set():
                label, number = await bench.storage.get_registers([(FACT_LABEL, "k"), (FACT_CUSTOM, "k")])
                if label is None or number is None or label.value != str(number.value):
                    torn.append((label, number))
                await checkpoint()

        async with anyio.create_task_group() as group:
            group.start_soon(read)
            for number in range(50):
                await bench.commit(RegisterSet(FACT_LABEL, "k", str(number)), RegisterSet(FACT_CUSTOM, "k", number))
                await checkpoint()
            done.set()
        equal(torn, [], "reads of two registers that change together")

    @performs("P9")
    async def test_p09_a_cancelled_caller_leaves_the_commit_decided(self, bench: StorageBench) -> None:
        for steps in range(12):
            await self._cancel_after(bench, steps)
        before = await content_of_storage(bench.storage)
        await bench.reopen()
        same_json(await content_of_storage(bench.storage), before, "reopened after cancellations")

    async def _cancel_after(self, bench: StorageBench, steps: int) -> None:
        tx = Transaction((
            entry(f"e-{steps}", None, message()), usage_row(f"u-{steps}", usage(1)),
            RegisterSet(FACT_CUSTOM, f"k-{steps}", steps),
        ))  # fmt: skip

        async with anyio.create_task_group() as group:
            group.start_soon(bench.storage.commit, tx)
            for _ in range(steps):
                await checkpoint()
            group.cancel_scope.cancel()
        # The next commit comes after whatever was admitted, so from here on the cancelled one is decided.
        await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", f"{steps}"),)))
        written = bool(await bench.storage.get_entries([f"e-{steps}"]))
        register = await bench.storage.get_register(FACT_CUSTOM, f"k-{steps}")
        equal(register is not None, written, f"entry and register of the commit that was cancelled after {steps} steps")
        if written:
            with raises(DuplicateId, "the same commit once more, as it was written"):
                await bench.storage.commit(tx)
        else:
            await bench.storage.commit(tx)
        equal(len(await bench.storage.get_entries([f"e-{steps}"])), 1, "the entry in the end")

    @performs("P1", "P10", "ST-1.4-05")
    async def test_p10_after_an_uncertain_write_nothing_more_is_accepted(self, bench: StorageBench) -> None:
        points: tuple[FaultPoint, ...] = ("commit.before_write", "commit.after_write")
        for number, point in enumerate(points):
            bench.faults.arm(point, _Torn(f"at {point}"))
            tx = Transaction((entry(f"e-{number}", None, message()), RegisterSet(FACT_CUSTOM, f"k-{number}", number)))
            with raises(Exception, f"the commit that met a fault at {point}"):
                await bench.storage.commit(tx)
            faults = []
            for _ in range(2):
                with raises(StorageFault, f"a commit after the fault at {point}") as raised:
                    await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", "more"),)))
                faults.append(raised.error)
            holds(faults[0] is faults[1], "every later commit raises the same fault")
            await bench.reopen()
            found = await bench.storage.get_entries([f"e-{number}"])
            register = await bench.storage.get_register(FACT_CUSTOM, f"k-{number}")
            equal((len(found), register is not None), (number, bool(number)), f"what is left after a fault at {point}")
            await bench.storage.commit(Transaction((RegisterSet(FACT_NAME, "", "usable again"),)))

    @performs("P10")
    async def test_p10_every_commit_passes_both_fault_points_once(self, bench: StorageBench) -> None:
        bench.faults.reached.clear()
        await bench.commit(entry("a", None, message()), usage_row("u", usage()))
        equal(bench.faults.reached, ["commit.before_write", "commit.after_write"], "the points of one commit")
        with raises(DuplicateId, "a refused commit"):
            await bench.storage.commit(Transaction((entry("a", None, message()),)))
        equal(len(bench.faults.reached), 2, "a refusal comes before any point")

    @performs("P14", "ST-1.5-11", "ST-1.5-23")
    async def test_p14_a_closed_storage_refuses_every_call(self, bench: StorageBench) -> None:
        await bench.commit(entry("a", None, message()))
        closed = bench.storage
        await closed.close()
        await closed.close()
        for name, call in _calls(closed).items():
            with raises(StorageClosed, f"{name} after close"):
                await call()
        await closed.close()
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")
        with raises(StorageClosed, "the closed instance while another is open"):
            await closed.get_stats()

    @performs("P14", "ST-1.5-11")
    async def test_p14_close_drains_what_was_admitted_and_refuses_the_rest(self, bench: StorageBench) -> None:
        for delay in range(4):
            accepted: dict[str, tuple[Transaction, CommitResult]] = {}
            refused: list[str] = []
            async with anyio.create_task_group() as group:
                for number in range(8):
                    group.start_soon(_attempt, bench.storage, f"e-{delay}-{number}", accepted, refused)
                for _ in range(delay):
                    await checkpoint()
                await bench.storage.close()
            for tx, result in sorted(accepted.values(), key=lambda pair: pair[1].first_seq):
                bench.expected.apply(tx, result)
            equal(len(accepted) + len(refused), 8, "each commit was accepted or refused")
            await bench.reopen()
            await bench.holds_exactly_what_was_committed(f"closed after {delay} steps")

    @performs("P14", "P15", "ST-1.7-01", "ST-1.7-02")
    async def test_p14_a_reopened_session_is_the_same(self, bench: StorageBench) -> None:
        await bench.holds_exactly_what_was_committed("fresh")
        equal(bench.storage.metadata, METADATA, "the metadata")
        for times in range(3):
            await bench.reopen()
            equal(bench.storage.metadata, METADATA, "the metadata")
            await bench.holds_exactly_what_was_committed(f"reopened {times + 1} times")
            parent = None if times == 0 else f"e-{times - 1}"
            await bench.commit(entry(f"e-{times}", parent, message()), RegisterSet(FACT_NAME, "", f"{times}"))
        await bench.holds_exactly_what_was_committed()


async def _attempt(
    storage: Storage, id: str, accepted: dict[str, tuple[Transaction, CommitResult]], refused: list[str]
) -> None:
    tx = Transaction((entry(id, None, message()), usage_row(f"u-{id}", usage(1))))
    try:
        accepted[id] = tx, await storage.commit(tx)
    except StorageClosed:
        refused.append(id)
