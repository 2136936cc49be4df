"""The branch index against a plain walk of parent pointers, on random trees and on the trees that break weak rules."""

import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restartpoint.contract import BranchScan, EntryCursor, EntryType, InsertEntry
from restartpoint.errors import StorageCorruption, UnknownEntry
from restartpoint.storage import MemoryStorage
from restartpoint.storage.sqlite import InlineHop, branches
from restartpoint.storage.sqlite.branches import Segment
from restartpoint.storage.sqlite.schema import SCHEMA
from tests.harness.storage.sqlite.stage import created, opened, raw, rows
from tests.harness.storage.stage import INITIAL, METADATA, PAYLOADS, HeldClock, entry, tx

MESSAGE, COMPACTION, CUSTOM = PAYLOADS[0], PAYLOADS[3], PAYLOADS[6]


@dataclass
class Index:
    """An index in memory and the same tree as parent pointers. Sequence numbers have gaps, as among other writes."""

    connection: sqlite3.Connection
    parents: dict[str, str | None] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    seqs: dict[str, int] = field(default_factory=dict)

    def append(self, parent: str | None, type_: str) -> str:
        name = f"e{len(self.parents):03}"
        self.parents[name], self.types[name], self.seqs[name] = parent, type_, 3 * len(self.parents) + 1
        branches.append(self.connection, name, parent, self.seqs[name], type_, {})
        return name

    def path(self, leaf: str | None) -> list[str]:
        """From the leaf to the root."""
        found = []
        while leaf is not None:
            found.append(leaf)
            leaf = self.parents[leaf]
        return found

    def chain(self, leaf: str) -> list[str]:
        """The same through the index."""
        return [
            name
            for segment in branches.segments(self.connection, leaf)
            for (name,) in self.connection.execute(
                """SELECT entry_id FROM branch_entries
                WHERE branch_id = ? AND entry_seq > ? AND entry_seq <= ? ORDER BY entry_seq DESC""",
                (segment.branch_id, segment.above, segment.through),
            )
        ]

    def above_compaction(self, leaf: str | None) -> list[str]:
        """What a new segment below the leaf has to copy."""
        copied = []
        for name in self.path(leaf):
            if self.types[name] == "compaction":
                break
            copied.append(name)
        return copied

    def of_segment(self, branch_id: str) -> list[str]:
        sql = "SELECT entry_id FROM branch_entries WHERE branch_id = ? ORDER BY entry_seq DESC"
        return [name for (name,) in self.connection.execute(sql, (branch_id,))]

    def tips(self) -> dict[str, str]:
        return dict(self.connection.execute("SELECT branch_id, tip_entry_id FROM branch_meta"))


@pytest.fixture
def index() -> Iterator[Index]:
    connection = sqlite3.connect(":memory:")
    yield empty(connection)
    connection.close()


def empty(connection: sqlite3.Connection) -> Index:
    for statement in SCHEMA:
        connection.execute(statement)
    return Index(connection)


TREES = st.lists(
    st.tuples(
        st.one_of(st.none(), st.integers(0, 6), st.integers(0, 60)),
        st.sampled_from(["message", "message", "message", "compaction", "custom"]),
    ),
    min_size=1,
    max_size=45,
)
"""For each entry how far back its parent is (0: the entry before it; None: a root), and its type."""


def grow(index: Index, tree: list[tuple[int | None, str]], after_each: Callable[[str, bool], None]) -> None:
    names: list[str] = []
    for back, type_ in tree:
        parent = None if back is None or not names else names[max(0, len(names) - 1 - back)]
        at_tip = parent in index.tips().values()
        names.append(index.append(parent, type_))
        after_each(names[-1], at_tip)


@pytest.mark.covers("ST-2.6-02", "ST-2.6-09", "ST-2.6-10")
@settings(deadline=None)
@given(TREES)
def test_every_chain_is_the_exact_path_to_the_root(tree: list[tuple[int | None, str]]) -> None:
    connection = sqlite3.connect(":memory:")
    index = empty(connection)

    def check(name: str, _: bool) -> None:
        for tip in index.tips().values():
            assert index.chain(tip) == index.path(tip)

    grow(index, tree, check)
    for name in index.parents:
        assert index.chain(name) == index.path(name)
    connection.close()


@pytest.mark.covers("ST-2.6-03", "ST-2.6-04", "ST-2.6-05", "ST-9.3-12")
@settings(deadline=None)
@given(TREES)
def test_a_new_segment_copies_exactly_what_follows_the_newest_compaction(tree: list[tuple[int | None, str]]) -> None:
    connection = sqlite3.connect(":memory:")
    index = empty(connection)
    counts = [0]

    def check(name: str, at_tip: bool) -> None:
        (count,) = connection.execute("SELECT count(*) FROM branch_entries").fetchone()
        added, counts[0] = count - counts[0], count
        if at_tip:
            assert added == 1
        else:
            assert index.of_segment(name) == [name, *index.above_compaction(index.parents[name])]
            assert index.tips()[name] == name
        assert name in index.tips().values()

    grow(index, tree, check)
    connection.close()


@pytest.mark.covers("ST-2.6-16")
def test_a_root_opens_a_segment_without_a_base_and_a_path_without_compaction_is_copied_whole(index: Index) -> None:
    first, second = index.append(None, "message"), index.append(None, "message")
    tail = index.append(first, "message")
    index.append(tail, "message")
    other = index.append(tail, "message")
    bases = index.connection.execute("SELECT branch_id, base_branch_id, base_seq FROM branch_meta").fetchall()
    assert sorted(bases) == [(first, None, None), (second, None, None), (other, None, None)]
    assert index.of_segment(second) == [second]
    assert index.of_segment(other) == [other, tail, first]


def under_a_sibling_s_base(index: Index) -> tuple[str, str]:
    """A branch below the base of a sibling, from an entry that the sibling's chain reaches only beyond its base."""
    root = index.append(None, "message")
    summary = index.append(root, "compaction")
    after = index.append(summary, "message")
    index.append(after, "message")
    index.append(summary, "message")  # a sibling whose base ends at the compaction
    return after, index.append(after, "message")


@pytest.mark.covers("ST-2.6-07")
def test_a_branch_below_a_sibling_s_base_boundary_gets_the_right_base(index: Index) -> None:
    after, new = under_a_sibling_s_base(index)
    assert index.chain(new) == index.path(new)
    assert index.of_segment(new) == [new, after]


def compaction_in_a_base(index: Index) -> str:
    root = index.append(None, "message")
    summary = index.append(root, "compaction")
    index.append(summary, "message")
    side = index.append(summary, "message")  # a segment whose base holds the compaction
    leaf = index.append(side, "message")
    index.append(leaf, "message")
    return index.append(leaf, "message")


@pytest.mark.covers("ST-2.6-08")
def test_the_newest_compaction_is_found_in_a_base(index: Index) -> None:
    new = compaction_in_a_base(index)
    assert index.of_segment(new) == [new, *index.above_compaction(index.parents[new])]
    assert len(index.of_segment(new)) == 3


def test_a_search_of_the_newest_segment_alone_is_noticed(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    searched: list[str] = []
    newest_of_type = branches.newest_of_type

    def first_only(connection: sqlite3.Connection, segment: Segment, entry_type: str) -> int | None:
        searched.append(segment.branch_id)
        return newest_of_type(connection, segment, entry_type) if len(searched) == 1 else None

    monkeypatch.setattr(branches, "newest_of_type", first_only)
    new = compaction_in_a_base(index)
    assert index.chain(new) == index.path(new)  # only copies too much
    assert index.of_segment(new) != [new, *index.above_compaction(index.parents[new])]


def test_a_base_that_does_not_cover_its_leaf_is_noticed(index: Index) -> None:
    root = index.append(None, "message")
    summary = index.append(root, "compaction")
    index.append(summary, "message")
    new = index.append(summary, "message")
    index.connection.execute("UPDATE branch_meta SET base_seq = base_seq + 3 WHERE branch_id = ?", (new,))
    assert index.chain(new) != index.path(new)


# --- through the storage


@st.composite
def queries(draw: st.DrawFn, size: int) -> BranchScan:
    names = st.integers(0, size - 1).map(lambda number: f"e{number}")
    order: Literal["newestFirst", "oldestFirst"] = draw(st.sampled_from(("newestFirst", "oldestFirst")))
    maybe_type = st.sampled_from([None, *EntryType])
    return BranchScan(
        start=draw(names),
        order=order,
        type=draw(maybe_type),
        custom_type=draw(st.sampled_from([None, None, "note", "other"])),
        stop_at_type=draw(maybe_type),
        stop_at_id=draw(st.none() | names),
        limit=draw(st.none() | st.integers(0, 5)),
        cursor=draw(st.none() | st.integers(0, size + 4).map(EntryCursor)),
    )


@st.composite
def sessions(draw: st.DrawFn) -> tuple[list[InsertEntry], list[BranchScan]]:
    tree = draw(TREES)
    payloads = {"message": MESSAGE, "compaction": COMPACTION, "custom": CUSTOM}
    inserts = [
        entry(f"e{at}", None if back is None or at == 0 else f"e{max(0, at - 1 - back)}", payloads[type_])
        for at, (back, type_) in enumerate(tree)
    ]
    return inserts, draw(st.lists(queries(len(inserts)), min_size=1, max_size=12))


@pytest.mark.covers("ST-2.6-01", "ST-2.6-06", "ST-2.6-15")
@settings(deadline=None, max_examples=50)
@given(sessions())
async def test_scans_equal_those_of_the_walk_in_memory(
    tmp_path_factory: pytest.TempPathFactory, session: tuple[list[InsertEntry], list[BranchScan]]
) -> None:
    inserts, scans = session
    clock = HeldClock()
    memory = await MemoryStorage.create(METADATA, INITIAL, clock=clock)
    path = tmp_path_factory.mktemp("scans") / "s1.sqlite"
    async with created(path, clock, hop=InlineHop()) as storage:
        for start in range(0, len(inserts), 7):
            for each in (memory, storage):
                await each.commit(tx(*inserts[start : start + 7]))
        for query in scans:
            assert await storage.scan_branch(query) == await memory.scan_branch(query)
            assert await storage.scan_branch_structure(query) == await memory.scan_branch_structure(query)


@pytest.mark.covers("ST-2.6-17")
async def test_a_segment_is_named_by_its_first_new_entry_and_grows_by_one_row(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(tx(entry("e1"), entry("e2", "e1"), entry("e3", "e2")))
        await storage.commit(tx(entry("e4", "e1")))
        assert rows(path, "SELECT branch_id, tip_entry_id FROM branch_meta ORDER BY 1") == [("e1", "e3"), ("e4", "e4")]
        assert rows(path, "SELECT branch_id, entry_id FROM branch_entries ORDER BY 1, 2") == [
            ("e1", "e1"), ("e1", "e2"), ("e1", "e3"), ("e4", "e1"), ("e4", "e4"),
        ]  # fmt: skip


async def test_nothing_rebuilds_a_damaged_index_behind_the_caller_s_back(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=tx(entry("e1"), entry("e2", "e1"))):
        pass
    with raw(path) as connection:
        connection.execute("DELETE FROM branch_entries")
        connection.execute("DELETE FROM branch_meta")
    async with opened(path, clock) as storage:
        with pytest.raises(StorageCorruption, match="repair"):
            await storage.scan_branch(BranchScan(start="e2"))
        with pytest.raises(StorageCorruption, match="repair"):
            await storage.commit(tx(entry("e3", "e2")))
        assert set(await storage.get_entries(["e1", "e2", "e3"])) == {"e1", "e2"}
        await storage.commit(tx(entry("e4")))
    assert rows(path, "SELECT entry_id FROM branch_entries") == [("e4",)]


@pytest.mark.covers("ST-2.6-13")
@settings(deadline=None, max_examples=30)
@given(TREES)
def test_an_index_is_rebuilt_from_the_entries_alone(tree: list[tuple[int | None, str]]) -> None:
    connection = sqlite3.connect(":memory:", isolation_level=None)
    index = empty(connection)
    grow(index, tree, lambda name, at_tip: None)
    for name, parent in index.parents.items():
        columns = (name, parent, index.seqs[name], index.types[name])
        connection.execute("INSERT INTO entries (id, parent_id, seq, type) VALUES (?, ?, ?, ?)", columns)
    connection.execute("UPDATE branch_meta SET base_branch_id = NULL, base_seq = NULL")
    connection.execute("DELETE FROM branch_entries WHERE entry_seq % 2 = 0")
    branches.rebuild(connection)
    for name in index.parents:
        assert index.chain(name) == index.path(name)
    connection.close()


async def test_an_unknown_start_is_told_from_a_known_one(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        for start in ("nothing", "\ud800"):
            with pytest.raises(UnknownEntry):
                await storage.scan_branch(BranchScan(start=start, limit=0))
