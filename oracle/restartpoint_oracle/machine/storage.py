"""A state machine that drives the model of storage and several backends through the same random calls (§1.4-§1.6).

Every outcome is compared: numbers, times, errors with what they name, rows, statistics, and everything that is held
after a crash. One seed is one run, so Hypothesis shortens what it finds.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import hypothesis
from hypothesis import HealthCheck, Phase
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from restartpoint.contract import NAMESPACES, BranchScan, EntryCursor
from restartpoint_oracle.errors import LockstepBroken
from restartpoint_oracle.machine.lockstep import Lockstep
from restartpoint_oracle.machine.queries import branch_scans, entry_scans, id_lists, usage_scans
from restartpoint_oracle.machine.transactions import KEYS, REFUSALS, Refusal, refused, transactions
from restartpoint_oracle.places import Place

__all__ = ["RULES", "StorageMachine", "run_storage_machine"]

RULES = (
    "commit", "refuse", "scan_branch", "scan_unknown_branch", "page_branch", "scan_entries", "scan_usage",
    "list_registers", "get_entries", "reopen", "crash", "pass_time",
)  # fmt: skip
"""What the machine does; a run in which one of these never happened fails."""

_DATA = st.data()


class StorageMachine(RuleBasedStateMachine):
    """The rules; ``new_places`` makes the places of one run, and ``tally`` counts rules and refusals over all runs."""

    def __init__(self, new_places: Callable[[], Sequence[Place]], tally: Counter[str]) -> None:
        super().__init__()
        self._new_places = new_places
        self._tally = tally
        self._transactions = 0
        self._fresh = False  # whether something was committed since the storages were opened
        self.lockstep: Lockstep | None = None

    @property
    def _all(self) -> Lockstep:
        assert self.lockstep is not None
        return self.lockstep

    @initialize(data=_DATA)
    def create(self, data: st.DataObject) -> None:
        """A fresh session in every place, and something in it."""
        self.lockstep = Lockstep(self._new_places())
        self.commit(data, 3)

    @rule(data=_DATA, times=st.integers(1, 3))
    def commit(self, data: st.DataObject, times: int) -> None:
        """Several writes that are all legal."""
        self._fresh = True
        for _ in range(times):
            self._tally["commit"] += 1
            self._transactions += 1
            self._all.commit(data.draw(transactions(self._all.state, self._transactions)))

    @rule(data=_DATA, first=st.integers(0, len(REFUSALS) - 1), times=st.integers(1, 3))
    def refuse(self, data: st.DataObject, first: int, times: int) -> None:
        """One write, or an expectation, that is not; a few kinds after each other."""
        self._tally["refuse"] += 1
        for position in range(first, first + times):
            self._transactions += 1
            kind = REFUSALS[position % len(REFUSALS)]
            offence: Refusal = data.draw(refused(kind, self._all.state, self._transactions))
            error = self._all.refuse(offence.tx, no_json=offence.kind == "json")
            self._tally[f"refused with {error}"] += 1

    @rule(data=_DATA)
    def scan_branch(self, data: st.DataObject) -> None:
        """Any branch scan from an entry."""
        if ids := self._ids():
            self._tally["scan_branch"] += 1
            self._all.branch(data.draw(branch_scans(ids, self._all.state.next_seq)))

    @rule(limit=st.sampled_from((None, 0, 1)))
    def scan_unknown_branch(self, limit: int | None) -> None:
        """A branch scan from nowhere."""
        self._tally["scan_unknown_branch"] += 1
        self._all.branch(BranchScan(start="nowhere", limit=limit))

    @rule(data=_DATA, size=st.integers(1, 3), forward=st.booleans())
    def page_branch(self, data: st.DataObject, size: int, forward: bool) -> None:
        """A whole branch in pages."""
        if not (ids := self._ids()):
            return
        self._tally["page_branch"] += 1
        start = data.draw(st.sampled_from(ids))
        cursor: EntryCursor | None = None
        seen: list[object] = []
        while page := self._all.branch(
            BranchScan(start=start, order="oldestFirst" if forward else "newestFirst", limit=size, cursor=cursor)
        ):
            seen.extend(entry["id"] for entry in page if isinstance(entry, dict))
            last = page[-1]
            assert isinstance(last, dict)
            seq = last["seq"]
            assert isinstance(seq, int)
            cursor = EntryCursor(seq)
        if len(seen) != len(set(map(str, seen))):
            raise LockstepBroken(f"paging from {start} visits an entry twice: {seen}")

    @rule(data=_DATA)
    def scan_entries(self, data: st.DataObject) -> None:
        """Any inventory."""
        self._tally["scan_entries"] += 1
        self._all.entries(data.draw(entry_scans(self._all.state.next_seq)))

    @rule(data=_DATA)
    def scan_usage(self, data: st.DataObject) -> None:
        """Any read of the ledger."""
        self._tally["scan_usage"] += 1
        self._all.usage(data.draw(usage_scans(self._all.state.next_seq)))

    @rule(namespace=st.sampled_from(tuple(NAMESPACES.values())), prefix=st.sampled_from((*KEYS, "k", "op-1:")))
    def list_registers(self, namespace: Any, prefix: str) -> None:
        """The registers under a prefix."""
        self._tally["list_registers"] += 1
        self._all.registers(namespace, prefix)

    @rule(data=_DATA)
    def get_entries(self, data: st.DataObject) -> None:
        """Entries by id, known and unknown."""
        self._tally["get_entries"] += 1
        self._all.exactly(data.draw(id_lists(self._ids())))

    @precondition(lambda self: self._fresh)
    @rule()
    def reopen(self) -> None:
        """Close and open."""
        self._tally["reopen"] += 1
        self._fresh = False
        self._all.reopen()

    @precondition(lambda self: self._fresh)
    @rule(torn=st.floats(0, 1))
    def crash(self, torn: float) -> None:
        """Die without closing, in the middle of one more write."""
        self._tally["crash"] += 1
        self._fresh = False
        self._all.crash(torn)

    @rule(by_ms=st.integers(1, 100_000))
    def pass_time(self, by_ms: int) -> None:
        """Time goes on."""
        self._tally["pass_time"] += 1
        self._all.clock.advance(by_ms)

    @invariant()
    def everything_is_the_same(self) -> None:
        """Every row and statistic, after every step."""
        if self.lockstep is not None:
            self.lockstep.everything()

    def teardown(self) -> None:
        """Close what is open."""
        if self.lockstep is not None:
            self.lockstep.close()
            self.lockstep = None

    def _ids(self) -> list[str]:
        return [entry.id for entry in sorted(self._all.state.entries.values(), key=lambda entry: entry.seq)]


def run_storage_machine(
    new_places: Callable[[], Sequence[Place]], *, runs: int, steps: int, derandomize: bool = True, shrink: bool = True
) -> Counter[str]:
    """How often each rule and each refusal happened in so many runs of so many steps.

    ``derandomize`` makes the runs the same every time; without it each call explores others.
    ``shrink`` looks for the shortest run that fails, which takes some time.

    Raises:
        LockstepBroken: a backend answered otherwise than the model, or a rule never ran; Hypothesis has shortened it.
    """
    tally: Counter[str] = Counter()
    settings = hypothesis.settings(
        max_examples=runs,
        stateful_step_count=steps,
        derandomize=derandomize,
        deadline=None,
        database=None,
        phases=(Phase.generate, Phase.shrink) if shrink else (Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )

    class Machine(StorageMachine):
        def __init__(self) -> None:
            super().__init__(new_places, tally)

    run_state_machine_as_test(Machine, settings=settings)
    missing = [name for name in RULES if not tally[name]]
    if missing:
        raise LockstepBroken(f"these rules never ran, so the run says nothing about them: {', '.join(missing)}")
    return tally
