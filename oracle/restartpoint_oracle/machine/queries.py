"""Random queries over a state of the model, as Hypothesis strategies."""

from __future__ import annotations

from collections.abc import Sequence

from hypothesis import strategies as st

from restartpoint.contract import BranchScan, EntryCursor, EntryScan, EntryType, UsageScan
from restartpoint_oracle.machine.choices import Choose

__all__ = ["branch_scans", "entry_scans", "id_lists", "usage_scans"]

_TYPES = (None, None, *EntryType)
_CUSTOM_TYPES = (None, None, None, "note", "todo")
_LIMITS = (None, None, 0, 1, 2, 5)


@st.composite
def branch_scans(draw: st.DrawFn, ids: Sequence[str], next_seq: int) -> BranchScan:
    """Any branch scan from one of the ids, a few with a limit that is refused."""
    choose = Choose(draw)
    return BranchScan(
        start=choose.of(ids),
        stop_at_type=choose.of(_TYPES),
        stop_at_id=choose.of([None, None, "nowhere", *ids]),
        type=choose.of(_TYPES),
        custom_type=choose.of(_CUSTOM_TYPES),
        order="oldestFirst" if choose.flag() else "newestFirst",
        cursor=EntryCursor(choose.number(next_seq + 1)) if choose.flag() else None,
        limit=choose.of((*_LIMITS, -1)),
    )


@st.composite
def entry_scans(draw: st.DrawFn, next_seq: int) -> EntryScan:
    """Any inventory."""
    choose = Choose(draw)
    return EntryScan(
        type=choose.of(_TYPES),
        custom_type=choose.of(_CUSTOM_TYPES),
        from_seq=_bound(choose, next_seq),
        to_seq=_bound(choose, next_seq),
        order="desc" if choose.flag() else "asc",
        limit=choose.of(_LIMITS),
    )


@st.composite
def usage_scans(draw: st.DrawFn, next_seq: int) -> UsageScan:
    """Any read of the ledger."""
    choose = Choose(draw)
    return UsageScan(
        from_seq=_bound(choose, next_seq),
        to_seq=_bound(choose, next_seq),
        order="desc" if choose.flag() else "asc",
        limit=choose.of(_LIMITS),
    )


@st.composite
def id_lists(draw: st.DrawFn, ids: Sequence[str]) -> list[str]:
    """A few ids, known and unknown, some twice."""
    choose = Choose(draw)
    return [choose.of([*ids, "nowhere"]) for _ in range(choose.number(5))]


def _bound(choose: Choose, next_seq: int) -> int | None:
    return choose.number(next_seq + 1) if choose.flag() else None
