"""The queries of §1.5 and the branch scan of §2.5."""

import pytest

from restartpoint_reference import (
    BranchOrder,
    BranchScan,
    EntryScan,
    EntryType,
    InsertEntry,
    InsertUsage,
    Json,
    Namespace,
    NewEntry,
    NewUsage,
    Order,
    SetRegister,
    State,
    UnknownStart,
    UsageScan,
    Write,
    apply,
    get_entries,
    get_register,
    list_registers,
    scan_branch,
    scan_branch_structure,
    scan_entries,
    scan_usage,
)
from tests.reference.walk import usage, user

PAYLOADS: dict[EntryType, dict[str, Json]] = {
    EntryType.MESSAGE: {"message": user("hi")},
    EntryType.COMPACTION: {"summary": "s", "retainedTail": [], "tokensBefore": 1, "fromHook": False},
    EntryType.CUSTOM: {},
}


def entry(id: str, parent: str | None, kind: EntryType = EntryType.MESSAGE) -> InsertEntry:
    payload = PAYLOADS[kind]
    if kind is EntryType.CUSTOM:
        return InsertEntry(entry=NewEntry(id=id, parent_id=parent, type=kind, custom_type=id[0], payload=payload))
    return InsertEntry(entry=NewEntry(id=id, parent_id=parent, type=kind, payload=payload))


def tree() -> State:
    """a - C(ompaction) - n(ote) - b - D(compaction) - c, and a branch n - x; seqs 1 to 7, then usage 8 and 9."""
    writes: list[Write] = [
        entry("a", None),
        entry("C", "a", EntryType.COMPACTION),
        entry("n", "C", EntryType.CUSTOM),
        entry("b", "n"),
        entry("D", "b", EntryType.COMPACTION),
        entry("c", "D"),
        entry("x", "n"),
        *(InsertUsage(row=NewUsage(id=key, adjustment=False, usage=usage())) for key in ("u", "v")),
        *(SetRegister(namespace=Namespace.FACT_CUSTOM, key=key, value=1) for key in ("b%", "b", "é", "Z", "b_x", "")),
    ]
    answer = apply(State.empty(), writes, timestamp=9)
    assert isinstance(answer, tuple)
    return answer[0]


TREE = tree()
OLDEST = BranchOrder.OLDEST_FIRST


@pytest.mark.parametrize(
    "scan, ids",
    [
        (BranchScan(start="c"), "cDbnCa"),
        (BranchScan(start="x"), "xnCa"),
        (BranchScan(start="c", order=OLDEST), "aCnbDc"),
        (BranchScan(start="c", stop_at_type=EntryType.COMPACTION), "cD"),
        (BranchScan(start="c", stop_at_type=EntryType.COMPACTION, order=OLDEST), "aC"),
        (BranchScan(start="c", stop_at_id="n"), "cDbn"),
        (BranchScan(start="c", stop_at_id="n", stop_at_type=EntryType.COMPACTION), "cD"),
        (BranchScan(start="c", stop_at_id="x"), "cDbnCa"),
        (BranchScan(start="c", stop_at_type=EntryType.COMPACTION, type=EntryType.MESSAGE), "c"),
        (BranchScan(start="c", type=EntryType.MESSAGE), "cba"),
        (BranchScan(start="c", custom_type="n"), "n"),
        (BranchScan(start="c", custom_type="n", type=EntryType.MESSAGE), ""),
        (BranchScan(start="c", cursor=4), "nCa"),
        (BranchScan(start="c", cursor=4, order=OLDEST), "Dc"),
        (BranchScan(start="c", cursor=4, limit=2), "nC"),
        (BranchScan(start="c", limit=0), ""),
    ],
)
def test_a_branch_scan_orders_stops_filters_pages_and_limits_in_that_order(scan: BranchScan, ids: str) -> None:
    assert "".join(found.id for found in scan_branch(TREE, scan)) == ids
    assert scan_branch_structure(TREE, scan) == [found.structure() for found in scan_branch(TREE, scan)]


def test_a_branch_scan_from_nowhere_is_an_error() -> None:
    with pytest.raises(UnknownStart):
        scan_branch(TREE, BranchScan(start="gone"))
    with pytest.raises(ValueError, match="limit"):
        scan_branch(TREE, BranchScan(start="a", limit=-1))


@pytest.mark.parametrize(
    "scan, ids",
    [
        (EntryScan(), "aCnbDcx"),
        (EntryScan(order=Order.DESC, limit=2), "xc"),
        (EntryScan(from_seq=2, to_seq=3), "Cn"),
        (EntryScan(type=EntryType.COMPACTION), "CD"),
        (EntryScan(custom_type="n"), "n"),
        (EntryScan(limit=0), ""),
    ],
)
def test_an_entry_scan_is_an_inventory_by_sequence_number_with_inclusive_bounds(scan: EntryScan, ids: str) -> None:
    assert "".join(found.id for found in scan_entries(TREE, scan)) == ids


@pytest.mark.parametrize(
    "scan, ids",
    [(UsageScan(), "uv"), (UsageScan(order=Order.DESC), "vu"), (UsageScan(from_seq=9, to_seq=9), "v"),
     (UsageScan(limit=1), "u")],
)  # fmt: skip
def test_a_usage_scan_reads_the_ledger_by_sequence_number(scan: UsageScan, ids: str) -> None:
    assert "".join(found.id for found in scan_usage(TREE, scan)) == ids


def test_registers_are_listed_by_literal_prefix_in_code_point_order() -> None:
    keys = [register.key for register in list_registers(TREE, Namespace.FACT_CUSTOM)]
    assert keys == ["", "Z", "b", "b%", "b_x", "é"]
    assert [register.key for register in list_registers(TREE, Namespace.FACT_CUSTOM, "b_")] == ["b_x"]


def test_point_reads_answer_what_exists() -> None:
    assert set(get_entries(TREE, ["a", "gone", "a"])) == {"a"}
    assert get_register(TREE, Namespace.FACT_CUSTOM, "gone") is None
    found = get_register(TREE, Namespace.FACT_CUSTOM, "")
    assert found is not None
    assert found.seq == 15
