"""The maps: registers by prefix, scans that read no more than they need, stats."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import (
    FACT_CUSTOM,
    BranchScan,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryCursor,
    EntryPayload,
    EntryScan,
    EntryType,
    RegisterDelete,
    RegisterSet,
    UsageScan,
)
from restartpoint.errors import InvalidQuery, UnknownEntry
from restartpoint.storage import SessionData
from tests.harness.storage.stage import METADATA, PAYLOADS, entry, tx, usage

KINDS: tuple[EntryPayload, ...] = (
    PAYLOADS[0],
    CompactionPayload(summary="s", retained_tail=[], tokens_before=0, from_hook=False),
    CustomPayload(custom_type="note"),
    CustomPayload(custom_type="mark"),
)


def chain(*payloads: EntryPayload, root_parent: str | None = None) -> SessionData:
    """Entries e1, e2, ... in one line; the root may name a parent that is not there, so that reading it fails."""
    data = SessionData(METADATA)
    for seq, payload in enumerate(payloads, 1):
        parent = root_parent if seq == 1 else f"e{seq - 1}"
        data.add_entry(Entry(id=f"e{seq}", parent_id=parent, seq=seq, timestamp=0, payload=payload))
    data.next_seq = len(payloads) + 1
    return data


def ids(entries: list[Entry]) -> list[str]:
    return [found.id for found in entries]


@pytest.mark.parametrize(
    "query, found",
    [
        (BranchScan(start="e3", limit=2), ["e3", "e2"]),
        (BranchScan(start="e3", limit=0), []),
        (BranchScan(start="e3", stop_at_id="e2"), ["e3", "e2"]),
        (BranchScan(start="e3", stop_at_type=EntryType.COMPACTION), ["e3", "e2"]),
        (BranchScan(start="e3", order="oldestFirst", cursor=EntryCursor(1)), ["e2", "e3"]),
    ],
)
def test_a_branch_scan_walks_no_further_than_its_answer_needs(query: BranchScan, found: list[str]) -> None:
    data = chain(KINDS[0], KINDS[1], KINDS[0], root_parent="beyond")
    assert ids(data.scan_branch(query)) == found
    with pytest.raises(KeyError):
        data.scan_branch(BranchScan(start="e3"))


queries = st.builds(
    BranchScan,
    start=st.integers(1, 8).map(lambda number: f"e{number}"),
    stop_at_type=st.none() | st.sampled_from(EntryType),
    stop_at_id=st.none() | st.integers(1, 9).map(lambda number: f"e{number}"),
    type=st.none() | st.sampled_from(EntryType),
    custom_type=st.none() | st.sampled_from(["note", "mark"]),
    order=st.sampled_from(["newestFirst", "oldestFirst"]),
    limit=st.none() | st.integers(0, 4),
    cursor=st.none() | st.integers(0, 9).map(EntryCursor),
)


@pytest.mark.covers("ST-1.7-05")
@given(st.lists(st.tuples(st.integers(0, 7), st.sampled_from(KINDS)), min_size=8, max_size=8), queries)
def test_a_branch_scan_selects_what_the_words_of_the_specification_say(
    tree: list[tuple[int, EntryPayload]], query: BranchScan
) -> None:
    data = SessionData(METADATA)
    for seq, (parent, payload) in enumerate(tree, 1):
        parent_id = f"e{parent}" if 0 < parent < seq else None
        data.add_entry(Entry(id=f"e{seq}", parent_id=parent_id, seq=seq, timestamp=0, payload=payload))
    assert ids(data.scan_branch(query)) == ids(literally(data, query))
    assert [row.id for row in data.scan_branch_structure(query)] == ids(literally(data, query))


def literally(data: SessionData, query: BranchScan) -> list[Entry]:
    """Path, order, stop, filter, cursor, limit: each as one step over whole lists (§2.5)."""

    def path(at: str | None) -> Iterator[Entry]:
        while at is not None:
            found = data.get_entries([at])[at]
            yield found
            at = found.parent_id

    newest_first = query.order == "newestFirst"
    rows = list(path(query.start)) if newest_first else list(path(query.start))[::-1]
    hits = [at for at, row in enumerate(rows) if row.id == query.stop_at_id or row.type is query.stop_at_type]
    rows = rows[: hits[0] + 1] if hits else rows
    rows = [row for row in rows if query.type in {None, row.type} and query.custom_type in {None, row.custom_type}]
    if query.cursor is not None:
        at = query.cursor.seq
        rows = [row for row in rows if (row.seq < at if newest_first else row.seq > at)]
    return rows[: query.limit]


@pytest.mark.parametrize("limit", [-1, 1.0, True, "1"])
def test_a_limit_is_a_whole_number_from_zero(limit: int) -> None:
    data = chain(KINDS[0])
    for ask in (
        lambda: data.scan_branch(BranchScan(start="e1", limit=limit)),
        lambda: data.scan_entries(EntryScan(limit=limit)),
        lambda: data.scan_usage(UsageScan(limit=limit)),
    ):
        with pytest.raises(InvalidQuery):
            ask()


def test_a_branch_scan_needs_a_start_that_exists() -> None:
    data = chain(KINDS[0])
    with pytest.raises(UnknownEntry):
        data.scan_branch(BranchScan(start="nobody", limit=0))
    with pytest.raises(InvalidQuery):
        data.scan_branch(BranchScan())


@pytest.mark.parametrize(
    "query, found",
    [
        (EntryScan(), ["e1", "e2", "e3", "e4"]),
        (EntryScan(from_seq=2, to_seq=3), ["e2", "e3"]),
        (EntryScan(from_seq=2, to_seq=3, order="desc"), ["e3", "e2"]),
        (EntryScan(from_seq=5), []),
        (EntryScan(from_seq=3, to_seq=2), []),
        (EntryScan(custom_type="note"), ["e3"]),
        (EntryScan(type=EntryType.MESSAGE, custom_type="note"), []),
        (EntryScan(order="desc", limit=1), ["e4"]),
    ],
)
def test_an_inventory_has_inclusive_bounds(query: EntryScan, found: list[str]) -> None:
    assert ids(chain(*KINDS).scan_entries(query)) == found


def test_registers_are_listed_by_prefix_in_code_point_order() -> None:
    data = SessionData(METADATA)
    keys = ["b:2", "é", "b:10", "B", "b:1", "b", "\U0001f600", "\uffff", "", "b%"]
    data.apply(tx(*(RegisterSet(FACT_CUSTOM, key, key) for key in keys)), 0)
    data.apply(tx(RegisterDelete(FACT_CUSTOM, "b:1"), RegisterDelete(FACT_CUSTOM, "absent")), 0)
    listed = [register.key for register in data.list_registers(FACT_CUSTOM)]
    assert listed == sorted(set(keys) - {"b:1"})
    assert [register.key for register in data.list_registers(FACT_CUSTOM, "b:")] == ["b:10", "b:2"]
    assert [register.key for register in data.list_registers(FACT_CUSTOM, "%")] == []


def test_stats_count_messages_and_add_the_ledger_from_left_to_right() -> None:
    data = SessionData(METADATA)
    data.apply(tx(*(entry(f"e{number}", None, payload) for number, payload in enumerate(PAYLOADS))), 0)
    data.apply(tx(*(usage(f"u{number}", cost) for number, cost in enumerate((0.1, 0.2, 0.3)))), 0)
    stats = data.get_stats()
    assert stats.message_count == 3
    assert stats.usage["input"] == 3
    cost = stats.usage["cost"]
    assert isinstance(cost, dict)
    assert cost["total"] == 0 + 0.1 + 0.2 + 0.3 != 0.3 + 0.2 + 0.1
