"""Statistics: message entries, and the ledger summed left to right (P13; §1.6)."""

from __future__ import annotations

from restartpoint.contract import FACT_NAME, InsertUsage, RegisterSet, Transaction, UsageDraft
from restartpoint.errors import DuplicateId
from restartpoint_oracle.conformance.claims import equal, raises
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench, entry, usage_row
from restartpoint_oracle.conformance.storage.expected import ledger_sum
from restartpoint_oracle.samples import assistant, compaction, custom, message, summary, tool_result, usage

__all__ = ["LedgerChecks"]


async def _stats_hold(bench: StorageBench, messages: int) -> None:
    stats = await bench.storage.get_stats()
    equal(stats.message_count, messages, "the number of message entries")
    equal(stats.usage, ledger_sum(bench.expected.usage), "the sum of the ledger")


class LedgerChecks:
    """Checks of ``get_stats``."""

    @performs("P13", "ST-1.6-09")
    async def test_p13_only_message_entries_count(self, bench: StorageBench) -> None:
        await _stats_hold(bench, 0)
        await bench.commit(entry("a", None, message()), entry("b", "a", assistant()), entry("c", "b", tool_result()))
        await _stats_hold(bench, 3)
        await bench.commit(entry("d", "c", compaction(usage=usage(5))), entry("e", "d", summary("c", usage=usage(5))))
        await bench.commit(entry("f", "e", custom("note")))
        await _stats_hold(bench, 3)
        await bench.commit(entry("g", None, message()))
        await _stats_hold(bench, 4)
        await bench.reopen()
        await _stats_hold(bench, 4)

    @performs("P13")
    async def test_p13_the_total_is_the_exact_left_to_right_sum_after_every_commit(self, bench: StorageBench) -> None:
        costs = (0.1, 0.2, 0.3, 1e16, 1.0, -1e16, 0.7, 1e-9)
        for number, cost in enumerate(costs):
            await bench.commit(usage_row(f"u-{number}", usage(number, cost)), RegisterSet(FACT_NAME, "", f"{number}"))
            await _stats_hold(bench, 0)
        await bench.commit(*(usage_row(f"v-{number}", usage(1, cost)) for number, cost in enumerate(costs)))
        await _stats_hold(bench, 0)
        await bench.reopen()
        await _stats_hold(bench, 0)
        await bench.commit(usage_row("last", usage(1, 0.1)))
        await _stats_hold(bench, 0)

    @performs("P13")
    async def test_p13_unknown_and_missing_parts_of_a_usage_are_kept_and_not_summed(self, bench: StorageBench) -> None:
        await bench.commit(
            InsertUsage(UsageDraft(id="u-1", usage={"input": 3})),
            InsertUsage(UsageDraft(id="u-2", usage={"output": 2, "reasoning": 9, "cost": {"total": 0.5, "tax": 1}})),
            InsertUsage(UsageDraft(id="u-3", usage={}, adjustment=True, entry_id="names-no-entry", details=None)),
        )
        await _stats_hold(bench, 0)
        await bench.holds_exactly_what_was_committed()
        await bench.reopen()
        await bench.holds_exactly_what_was_committed("reopened")

    @performs("P13")
    async def test_p13_a_refused_commit_leaves_the_statistics(self, bench: StorageBench) -> None:
        await bench.commit(entry("a", None, message()), usage_row("u-1", usage(1, 0.1)))
        refused = (entry("b", None, message()), usage_row("u-2", usage(1, 0.2)), usage_row("u-1", usage(1)))
        with raises(DuplicateId, "a taken id"):
            await bench.storage.commit(Transaction(refused))
        await _stats_hold(bench, 1)
