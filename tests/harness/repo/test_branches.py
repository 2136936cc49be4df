"""What a branch query answers, through a session on every backend (§2.5)."""

from typing import Literal

import pytest

from restartpoint.contract import (
    LANE_LEAF,
    BranchScan,
    CompactionPayload,
    CustomPayload,
    EntryCursor,
    EntryDraft,
    EntryPayload,
    EntryType,
    InsertEntry,
    MessagePayload,
    RegisterSet,
    Transaction,
)  # fmt: skip
from restartpoint.errors import UnknownEntry
from restartpoint.repo import SessionRepository
from restartpoint.session import Session, SessionMutator
from tests.harness.session.stage import say

COMPACTION = CompactionPayload(summary="s", retained_tail=[], tokens_before=1, from_hook=False)
BRANCH: dict[str, EntryPayload] = {
    "m1": MessagePayload(message=say("1")),
    "c1": COMPACTION,
    "x1": CustomPayload(custom_type="x"),
    "m2": MessagePayload(message=say("2")),
    "c2": COMPACTION,
    "y1": CustomPayload(custom_type="y"),
    "m3": MessagePayload(message=say("3")),
}


async def branch(repository: SessionRepository) -> Session:
    """A session whose main holds the entries of ``BRANCH``, oldest first."""
    session = await repository.create()

    async def job(mutator: SessionMutator) -> None:
        parents = [None, *BRANCH]
        inserts = [
            InsertEntry(EntryDraft(id=name, parent_id=parent, payload=payload))
            for (name, payload), parent in zip(BRANCH.items(), parents, strict=False)
        ]
        await mutator.commit(Transaction((*inserts, RegisterSet(LANE_LEAF, "main", "m3"))))

    await session.mutate("main", job)
    return session


@pytest.mark.covers("ST-2.5-01", "ST-2.5-04", "ST-2.5-05", "ST-2.5-13")
@pytest.mark.parametrize(
    "query, expected",
    [
        (BranchScan(), "m3 y1 c2 m2 x1 c1 m1"),
        (BranchScan(order="oldestFirst"), "m1 c1 x1 m2 c2 y1 m3"),
        (BranchScan(start="x1"), "x1 c1 m1"),
        (BranchScan(stop_at_type=EntryType.COMPACTION), "m3 y1 c2"),
        (BranchScan(stop_at_type=EntryType.COMPACTION, order="oldestFirst"), "m1 c1"),
        (BranchScan(stop_at_type=EntryType.COMPACTION, type=EntryType.MESSAGE), "m3"),
        (BranchScan(stop_at_type=EntryType.COMPACTION, type=EntryType.MESSAGE, order="oldestFirst"), "m1"),
        (BranchScan(stop_at_id="x1"), "m3 y1 c2 m2 x1"),
        (BranchScan(stop_at_id="x1", type=EntryType.MESSAGE), "m3 m2"),
        (BranchScan(stop_at_id="x1", stop_at_type=EntryType.COMPACTION), "m3 y1 c2"),
        (BranchScan(stop_at_id="y1", stop_at_type=EntryType.COMPACTION), "m3 y1"),
        (BranchScan(stop_at_id="elsewhere"), "m3 y1 c2 m2 x1 c1 m1"),
        (BranchScan(custom_type="x"), "x1"),
        (BranchScan(type=EntryType.CUSTOM, limit=1), "y1"),
        (BranchScan(type=EntryType.MESSAGE, custom_type="x"), ""),
        (BranchScan(limit=0), ""),
        (BranchScan(limit=2, order="oldestFirst"), "m1 c1"),
    ],
)
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
async def test_a_branch_query_orders_stops_filters_and_limits(
    repository: SessionRepository, query: BranchScan, expected: str
) -> None:
    session = await branch(repository)
    assert [entry.id for entry in await session.find_entries_on_branch(query)] == expected.split()


@pytest.mark.covers("ST-2.5-03")
@pytest.mark.parametrize("order", ["newestFirst", "oldestFirst"])
@pytest.mark.parametrize("kind", [None, EntryType.MESSAGE])
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
async def test_pages_of_a_branch_join_to_the_full_result(
    repository: SessionRepository, order: Literal["newestFirst", "oldestFirst"], kind: EntryType | None
) -> None:
    session = await branch(repository)
    full = await session.find_entries_on_branch(BranchScan(order=order, type=kind))
    paged, cursor = [], None
    while page := await session.find_entries_on_branch(BranchScan(order=order, type=kind, limit=2, cursor=cursor)):
        paged += page
        cursor = EntryCursor(page[-1].seq)
    assert paged == full
    assert len(full) > 2


@pytest.mark.covers("ST-2.5-12")
async def test_an_unknown_start_is_an_error_and_the_root_gives_nothing(repository: SessionRepository) -> None:
    session = await repository.create()
    assert await session.find_entries_on_branch() == []
    with pytest.raises(UnknownEntry):
        await session.find_entries_on_branch(BranchScan(start="unknown"))


@pytest.mark.covers("ST-1.1-03", "ST-1.1-04", "ST-1.1-05")
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
async def test_storage_assigns_sequence_and_time_and_the_root_has_no_parent(repository: SessionRepository) -> None:
    session = await branch(repository)
    entries = await session.find_entries_on_branch(BranchScan(order="oldestFirst"))
    assert [entry.parent_id for entry in entries] == [None, *list(BRANCH)[:-1]]
    assert [entry.seq for entry in entries] == list(range(3, 3 + len(BRANCH)))
    assert {entry.timestamp for entry in entries} == {session.clock.now_ms()}
    assert not {"seq", "timestamp"} & set(EntryDraft.__struct_fields__)
