"""Reads of entries and the ledger: branch scans, inventories, exact reads (P12; §1.5, §2.5)."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any, cast

from restartpoint.contract import BranchScan, EntryCursor, EntryScan, EntryType, UsageScan
from restartpoint.errors import InvalidQuery, UnknownEntry
from restartpoint_oracle.conformance.claims import equal, raises, same_json
from restartpoint_oracle.conformance.clauses import performs
from restartpoint_oracle.conformance.storage.bench import StorageBench, entry, usage_row
from restartpoint_oracle.conformance.storage.expected import naive_branch, naive_entries, naive_usage
from restartpoint_oracle.samples import assistant, compaction, custom, message, summary, tool_result, usage
from restartpoint_oracle.wire import Json, JsonObject, entry_json, json_text, structure_json, usage_json

__all__ = ["ScanChecks"]

_PLACEMENT = ("id", "parentId", "seq", "timestamp", "type", "customType")
_FILTERS: tuple[tuple[EntryType | None, str | None], ...] = (
    (None, None),
    (EntryType.MESSAGE, None),
    (EntryType.CUSTOM, None),
    (EntryType.BRANCH_SUMMARY, None),
    (None, "note"),
    (EntryType.CUSTOM, "note"),
    (EntryType.MESSAGE, "note"),
    (None, "unknown"),
)
_LIMITS = (None, 0, 2)


async def _grow(bench: StorageBench) -> None:
    """A tree of three branches, one across two compactions, grown in interleaved transactions with ledger rows."""
    await bench.commit(entry("a", None, message()), entry("b", "a", assistant()))
    await bench.commit(entry("c", "b", compaction()))
    await bench.commit(entry("other", None, custom("note")), usage_row("u-1", usage(1)))
    await bench.commit(entry("d", "c", custom("note", data=1)), entry("e", "d", custom("todo")))
    await bench.commit(entry("b-2", "b", message("left")), entry("b-3", "b-2", tool_result()))
    await bench.commit(entry("f", "e", compaction("second")), usage_row("u-2", usage(2)))
    await bench.commit(entry("b-4", "b-3", custom("note")), usage_row("u-3", usage(4)))
    await bench.commit(entry("g", "f", summary("b-4")), entry("h", "g", message("last")))


def _branch_scans(bench: StorageBench) -> Iterator[BranchScan]:
    seqs = {str(found["id"]): cast("int", found["seq"]) for found in bench.expected.entries}
    stops: tuple[tuple[EntryType | None, str | None], ...] = (
        (None, None), (EntryType.COMPACTION, None), (EntryType.MESSAGE, None), (None, "c"), (None, "b-3"),
        (None, "nowhere"), (EntryType.COMPACTION, "g"), (EntryType.COMPACTION, "b"),
    )  # fmt: skip
    cursors = (None, EntryCursor(seqs["d"]), EntryCursor(seqs["b-2"]))
    orders: tuple[Any, ...] = ("newestFirst", "oldestFirst")
    for start, order, stop, kind, cursor, limit in product(
        ("h", "b-4", "a"), orders, stops, _FILTERS, cursors, _LIMITS
    ):
        yield BranchScan(
            start=start, order=order, stop_at_type=stop[0], stop_at_id=stop[1], type=kind[0], custom_type=kind[1],
            cursor=cursor, limit=limit,
        )  # fmt: skip


def _structure(found: JsonObject) -> JsonObject:
    return {key: found[key] for key in _PLACEMENT if key in found}


class ScanChecks:
    """Checks of the queries over entries and the ledger."""

    @performs("P12", "ST-1.5-06", "ST-1.5-23", "ST-2.5-02", "ST-2.6-01")
    async def test_p12_branch_scans_select_what_a_naive_reading_selects(self, bench: StorageBench) -> None:
        await _grow(bench)
        for query in _branch_scans(bench):
            found = [entry_json(one) for one in await bench.storage.scan_branch(query)]
            same_json([*found], naive_branch(bench.expected.entries, query), f"{query}")

    @performs("P12", "ST-1.5-07")
    async def test_p12_structure_scans_answer_the_same_placements(self, bench: StorageBench) -> None:
        await _grow(bench)
        for query in list(_branch_scans(bench))[::7]:
            found = [structure_json(one) for one in await bench.storage.scan_branch_structure(query)]
            expected = [_structure(cast("JsonObject", one)) for one in naive_branch(bench.expected.entries, query)]
            same_json([*found], [*expected], f"{query}")

    @performs("P12", "ST-1.5-08", "ST-1.5-17")
    async def test_p12_inventories_select_what_a_naive_reading_selects(self, bench: StorageBench) -> None:
        await _grow(bench)
        first, last = (cast("int", bench.expected.entries[at]["seq"]) for at in (1, -2))
        lows, highs = (None, 0, first, last, 10_000), (None, 0, first, last, last + 1)
        orders: tuple[Any, ...] = ("asc", "desc")
        for kind, low, high, order, limit in product(_FILTERS, lows, highs, orders, _LIMITS):
            query = EntryScan(
                type=kind[0], custom_type=kind[1], from_seq=low, to_seq=high, order=order, limit=limit
            )  # fmt: skip
            found = [entry_json(one) for one in await bench.storage.scan_entries(query)]
            same_json([*found], naive_entries(bench.expected.entries, query), f"{query}")

    @performs("P12", "ST-1.5-09", "ST-1.5-17")
    async def test_p12_ledger_reads_select_what_a_naive_reading_selects(self, bench: StorageBench) -> None:
        await _grow(bench)
        seqs = [cast("int", row["seq"]) for row in bench.expected.usage]
        bounds = (None, 0, *seqs, seqs[-1] + 1)
        orders: tuple[Any, ...] = ("asc", "desc")
        for low, high, order, limit in product(bounds, bounds, orders, _LIMITS):
            query = UsageScan(from_seq=low, to_seq=high, order=order, limit=limit)
            found = [usage_json(one) for one in await bench.storage.scan_usage(query)]
            same_json([*found], naive_usage(bench.expected.usage, query), f"{query}")

    @performs("P12", "ST-1.5-17")
    async def test_p12_bounds_are_inclusive_and_ascending_is_the_default(self, bench: StorageBench) -> None:
        await _grow(bench)
        seqs = [cast("int", found["seq"]) for found in bench.expected.entries]
        found = await bench.storage.scan_entries(EntryScan(from_seq=seqs[2], to_seq=seqs[4]))
        equal([one.seq for one in found], seqs[2:5], "entries within both bounds")
        rows = [cast("int", row["seq"]) for row in bench.expected.usage]
        equal([row.seq for row in await bench.storage.scan_usage(UsageScan())], rows, "the whole ledger")
        read = await bench.storage.scan_usage(UsageScan(from_seq=rows[1], to_seq=rows[1]))
        equal([row.seq for row in read], [rows[1]], "one row by its own number")

    @performs("P12")
    async def test_p12_an_unknown_start_is_an_error_not_an_empty_answer(self, bench: StorageBench) -> None:
        await _grow(bench)
        for start in ("nowhere", "u-1", ""):
            for limit in (None, 0, 1):
                with raises(UnknownEntry, f"start {start!r}, limit {limit}"):
                    await bench.storage.scan_branch(BranchScan(start=start, limit=limit))
                with raises(UnknownEntry, f"structure, start {start!r}, limit {limit}"):
                    await bench.storage.scan_branch_structure(BranchScan(start=start, limit=limit))
        with raises(InvalidQuery, "a branch scan without a start"):
            await bench.storage.scan_branch(BranchScan())

    @performs("P12", "ST-1.5-23")
    async def test_p12_a_limit_is_a_whole_number_from_zero(self, bench: StorageBench) -> None:
        await _grow(bench)
        for limit in (-1, -(2**31), cast("int", 1.5), cast("int", "1"), True):
            with raises(InvalidQuery, f"branch scan, limit {limit!r}"):
                await bench.storage.scan_branch(BranchScan(start="h", limit=limit))
            with raises(InvalidQuery, f"structure scan, limit {limit!r}"):
                await bench.storage.scan_branch_structure(BranchScan(start="h", limit=limit))
            with raises(InvalidQuery, f"inventory, limit {limit!r}"):
                await bench.storage.scan_entries(EntryScan(limit=limit))
            with raises(InvalidQuery, f"ledger read, limit {limit!r}"):
                await bench.storage.scan_usage(UsageScan(limit=limit))
        equal(await bench.storage.scan_entries(EntryScan(limit=0)), [], "limit 0")

    @performs("P12", "ST-1.5-18")
    async def test_p12_a_consumer_catches_up_from_its_last_number_plus_one(self, bench: StorageBench) -> None:
        await _grow(bench)
        seen = await bench.storage.scan_usage(UsageScan(limit=2))
        await bench.commit(usage_row("u-4", usage(8)), usage_row("u-5", usage(16)))
        rest = await bench.storage.scan_usage(UsageScan(from_seq=seen[-1].seq + 1))
        equal([row.id for row in (*seen, *rest)], ["u-1", "u-2", "u-3", "u-4", "u-5"], "every row once")

    @performs("P12")
    async def test_p12_paging_by_cursor_visits_every_entry_once(self, bench: StorageBench) -> None:
        await _grow(bench)
        orders: tuple[Any, ...] = ("newestFirst", "oldestFirst")
        for order, size in product(orders, (1, 2, 3)):
            whole = [one.id for one in await bench.storage.scan_branch(BranchScan(start="h", order=order))]
            paged: list[str] = []
            cursor: EntryCursor | None = None
            while page := await bench.storage.scan_branch(
                BranchScan(start="h", order=order, limit=size, cursor=cursor)
            ):
                paged.extend(one.id for one in page)
                cursor = EntryCursor(page[-1].seq)
            equal(paged, whole, f"{order} in pages of {size}")

    @performs("P12")
    async def test_p12_branches_share_their_prefix_and_reopen_unchanged(self, bench: StorageBench) -> None:
        await _grow(bench)
        before = {start: await _texts(bench, start) for start in ("h", "b-4", "other", "g", "b")}
        await bench.reopen()
        for start, texts in before.items():
            equal(await _texts(bench, start), texts, f"the path from {start} after a reopen")

    @performs("ST-1.5-03")
    async def test_p12_exact_reads_answer_what_exists(self, bench: StorageBench) -> None:
        await _grow(bench)
        found = await bench.storage.get_entries(["h", "nowhere", "a", "h", "u-1"])
        equal(sorted(found), ["a", "h"], "the ids that exist")
        wanted = {str(one["id"]): one for one in bench.expected.entries}
        for key, one in found.items():
            same_json(entry_json(one), wanted[key], key)
        equal(await bench.storage.get_entries([]), {}, "no ids")

    @performs("ST-1.5-21")
    async def test_p12_exact_reads_take_any_number_of_ids(self, bench: StorageBench) -> None:
        await _grow(bench)
        ids = [f"unknown-{number}" for number in range(300_000)]
        ids[7], ids[150_000], ids[-1] = "a", "h", "other"
        equal(sorted(await bench.storage.get_entries(ids)), ["a", "h", "other"], "the ids that exist")


async def _texts(bench: StorageBench, start: str) -> list[bytes]:
    path: list[Json] = [entry_json(one) for one in await bench.storage.scan_branch(BranchScan(start=start))]
    return [json_text(one) for one in path]
