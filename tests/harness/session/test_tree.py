"""A lane's view of the tree: appends, finders, facts."""

from collections.abc import Awaitable, Callable
from typing import Any, Literal

import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_NAME,
    LANE_LEAF,
    LANE_STATE,
    UNSET,
    BranchScan,
    CompactionPayload,
    CustomPayload,
    EntryCursor,
    EntryDraft,
    EntryQuery,
    EntryType,
    InsertEntry,
    InsertUsage,
    JsonValue,
    LaneState,
    MessagePayload,
    RegisterSet,
    Transaction,
    UsageDraft,
    zero_usage,
)  # fmt: skip
from restartpoint.errors import (
    InvalidJson,
    InvalidLane,
    InvalidMessage,
    InvalidOptions,
    NotBuiltYet,
    UnknownEntry,
    UnknownTarget,
)  # fmt: skip
from restartpoint.repo import MemoryRepository
from restartpoint.seams import timestamp_of
from restartpoint.session import Session, SessionMutator, SessionTree
from tests.harness.session.stage import CONFIGURATION, Commits, StandingClock, assistant, result, say


async def commit(session: Session, lane: str, *transactions: Transaction) -> None:
    """Raw commits, one job each."""
    for tx in transactions:

        async def job(mutator: SessionMutator, tx: Transaction = tx) -> None:
            await mutator.commit(tx)

        await session.mutate(lane, job)


async def open_operation(session: Session) -> None:
    busy = LaneState(current_operation_id="op", pending_next_run=[])
    await commit(session, "main", Transaction((RegisterSet(LANE_STATE, "main", busy),)))


# --- appends ----------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.2-02", "RT-3.11-T86", "ST-1.2-03", "RT-5.3-07")
async def test_an_append_on_an_idle_lane_places_the_entry_and_moves_the_leaf_in_one_commit(
    session: Session, commits: Commits, clock: StandingClock
) -> None:
    first = await session.append_message(say("one"))
    clock.now += 5
    second = await session.append_custom_entry("note", {"a": 1})
    assert commits.writes == [["entry", "set lane.leaf/main"], ["entry", "set lane.leaf/main"]]
    assert await session.get_leaf_id() == second
    entry = await session.get_entry(second)
    assert entry is not None
    assert (entry.parent_id, entry.timestamp, timestamp_of(second)) == (first, clock.now, clock.now)
    assert entry.payload == CustomPayload(custom_type="note", data={"a": 1})


@pytest.mark.covers("ST-2.1-04", "ST-1.1-17")
@pytest.mark.parametrize("data", [UNSET, None, {}, {"k": [None, 1, 1.5]}, 0, ""])
async def test_custom_data_comes_back_as_it_went_in_absent_and_null_apart(session: Session, data: JsonValue) -> None:
    entry = await session.get_entry(await session.append_custom_entry("note", data))
    assert entry is not None
    assert isinstance(entry.payload, CustomPayload)
    found = entry.payload.data
    assert (type(found), found) == (type(data), data)


@pytest.mark.covers("ST-2.1-08", "ST-0.7-09")
@pytest.mark.parametrize(
    "message",
    [
        assistant(stop="pending"),
        {"role": "assistant", "content": []},
        assistant(stop="finished"),
        {"content": []},
        {"role": 7},
        {"role": ""},
    ],
)
async def test_a_message_that_is_not_settled_is_refused_and_writes_nothing(
    session: Session, commits: Commits, message: dict[str, JsonValue]
) -> None:
    with pytest.raises(InvalidMessage):
        await session.append_message(message)
    assert commits.seen == []


@pytest.mark.parametrize("stop", ["stop", "length", "toolUse", "error", "aborted", "deferred"])
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_every_settled_assistant_message_can_be_appended(session: Session, stop: str) -> None:
    entry = await session.get_entry(await session.append_message(assistant(stop=stop)))
    assert entry is not None
    assert entry.payload == MessagePayload(message=assistant(stop=stop))


@pytest.mark.covers("ST-1.1-18")
@pytest.mark.parametrize("bad", [float("nan"), float("inf"), 2**53, -(2**53), "\ud800", (1,), {1: 2}, b"x"])
async def test_values_that_json_cannot_hold_are_refused_before_anything_is_written(
    session: Session, commits: Commits, bad: JsonValue
) -> None:
    with pytest.raises(InvalidJson):
        await session.append_custom_entry("note", {"deep": [bad]})
    with pytest.raises(InvalidJson):
        await session.append_message({"role": "user", "content": [], "timestamp": 1, "more": bad})
    with pytest.raises(InvalidJson):
        await session.set_custom_fact("key", bad)
    assert commits.seen == []


@pytest.mark.unjudged("the test opens an operation by hand")
async def test_an_append_while_an_operation_is_open_writes_nothing(session: Session) -> None:
    await open_operation(session)
    commits = Commits(session)
    with pytest.raises(NotBuiltYet, match=r"3\.11"):
        await session.append_message(say("later"))
    with pytest.raises(NotBuiltYet, match=r"3\.11"):
        await session.append_custom_entry("note")
    assert commits.seen == []
    assert await session.get_leaf_id() is None


@pytest.mark.covers("ST-0.8-01", "ST-1.4-16")
async def test_values_pass_through_without_copies() -> None:
    session = await MemoryRepository().create()
    commits = Commits(session)
    message, data = say("x"), say("y")
    first = await session.get_entry(await session.append_message(message))
    second = await session.get_entry(await session.append_custom_entry("note", data))
    assert first is not None
    assert second is not None
    assert isinstance(first.payload, MessagePayload)
    assert isinstance(second.payload, CustomPayload)
    assert first.payload.message is message
    assert second.payload.data is data
    inserted = commits.seen[0][1].writes[0]
    assert isinstance(inserted, InsertEntry)
    assert inserted.entry.payload is first.payload


@pytest.mark.covers("ST-2.1-13")
async def test_equal_messages_are_two_entries(session: Session) -> None:
    assert await session.append_message(say("x")) != await session.append_message(say("x"))
    assert (await session.get_stats()).message_count == 2


# --- lanes ------------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.8-24", "ST-2.3-13")
async def test_the_session_acts_on_main_and_a_view_on_its_lane(session: Session) -> None:
    root = await session.append_message(say("root"))
    side = await session.create_lane("side", root, CONFIGURATION)
    on_main = await session.append_message(say("main"))
    on_side = await side.append_message(say("side"))
    assert (await session.get_leaf_id(), await side.get_leaf_id()) == (on_main, on_side)
    entries = await session.get_entries([on_main, on_side])
    assert {entry.parent_id for entry in entries.values()} == {root}
    assert [entry.id for entry in await side.find_entries_on_branch()] == [on_side, root]
    assert [entry.id for entry in await session.find_entries_on_branch()] == [on_main, root]
    assert (session.lane, side.lane) == ("main", "side")


@pytest.mark.covers("ST-2.8-25")
@pytest.mark.parametrize(
    "use",
    [
        SessionTree.get_leaf_id,
        SessionTree.get_name,
        SessionTree.get_stats,
        SessionTree.find_entries,
        SessionTree.find_entry_on_branch,
        lambda tree: tree.get_entry("x"),
        lambda tree: tree.find_entries_on_branch(BranchScan(start="x")),
        lambda tree: tree.set_name("x"),
        lambda tree: tree.set_custom_fact("x", UNSET),
        lambda tree: tree.append_message(say("x")),
        lambda tree: tree.append_custom_entry("x"),
    ],
)
async def test_a_view_of_an_unknown_lane_fails_at_its_first_use(
    session: Session, commits: Commits, use: Callable[[SessionTree], Awaitable[object]]
) -> None:
    tree = session.view("nowhere")
    with pytest.raises(InvalidLane, match="create_lane"):
        await use(tree)
    assert commits.seen == []


async def test_a_view_works_as_soon_as_its_lane_exists(session: Session) -> None:
    early = session.view("side")
    with pytest.raises(InvalidLane):
        await early.get_name()
    await session.create_lane("side", None, CONFIGURATION)
    await early.set_name("found")
    assert await session.get_name() == "found"


# --- finders ----------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-5.3-05", "RT-5.3-08", "ST-1.5-19")
@pytest.mark.parametrize("order", ["asc", "desc"])
@pytest.mark.parametrize("size", [1, 2, 3, 7])
async def test_pages_of_the_whole_session_join_to_the_full_result(
    session: Session, order: Literal["asc", "desc"], size: int
) -> None:
    side = await session.create_lane("side", None, CONFIGURATION)
    for number in range(3):
        await session.append_message(say(str(number)))
        await side.append_custom_entry("note", number)
    full = await session.find_entries(EntryQuery(order=order))
    assert len(full) == 6
    assert [entry.seq for entry in full] == sorted((entry.seq for entry in full), reverse=order == "desc")
    paged, cursor = [], None
    while page := await session.find_entries(EntryQuery(order=order, limit=size, cursor=cursor)):
        paged += page
        cursor = EntryCursor(page[-1].seq)
    assert paged == full


async def test_filters_come_before_the_limit_and_the_default_order_is_newest_first(session: Session) -> None:
    notes = [await session.append_custom_entry("note", number) for number in range(2)]
    await session.append_message(say("last"))
    found = await session.find_entries(EntryQuery(custom_type="note", limit=1))
    assert [entry.id for entry in found] == [notes[1]]
    newest = await session.find_entry()
    assert newest is not None
    assert newest.type is EntryType.MESSAGE
    first = await session.find_entry(EntryQuery(type=EntryType.CUSTOM, order="asc"))
    assert first is not None
    assert first.id == notes[0]
    assert await session.find_entry(EntryQuery(limit=0)) is None
    assert await session.find_entry(EntryQuery(custom_type="other")) is None


async def test_a_cursor_at_the_edge_gives_nothing_and_no_error(session: Session) -> None:
    await session.append_message(say("x"))
    assert await session.find_entries(EntryQuery(cursor=EntryCursor(0))) == []
    assert await session.find_entries(EntryQuery(cursor=EntryCursor(1))) == []
    assert await session.find_entries(EntryQuery(order="asc", cursor=EntryCursor(10**6))) == []


@pytest.mark.covers("ST-2.5-01", "ST-2.5-12", "RT-5.3-06")
async def test_a_branch_query_starts_at_the_lanes_leaf_by_default(session: Session) -> None:
    assert await session.find_entries_on_branch() == []
    assert await session.find_entry_on_branch() is None
    one = await session.append_message(say("one"))
    two = await session.append_message(say("two"))
    assert [entry.id for entry in await session.find_entries_on_branch()] == [two, one]
    assert [entry.id for entry in await session.find_entries_on_branch(BranchScan(start=one))] == [one]
    oldest = await session.find_entry_on_branch(BranchScan(order="oldestFirst"))
    assert oldest is not None
    assert oldest.id == one
    assert await session.find_entry_on_branch(BranchScan(limit=0)) is None
    with pytest.raises(UnknownEntry):
        await session.find_entries_on_branch(BranchScan(start="unknown"))


@pytest.mark.covers("RT-5.3-11")
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
async def test_extension_state_is_found_behind_a_compaction(session: Session) -> None:
    note = await session.append_custom_entry("state", 1)
    payload = CompactionPayload(summary="s", retained_tail=[], tokens_before=1, from_hook=False)
    draft = EntryDraft(id="compaction", parent_id=note, payload=payload)
    await commit(session, "main", Transaction((InsertEntry(draft), RegisterSet(LANE_LEAF, "main", "compaction"))))
    await session.append_message(say("after"))
    found = await session.find_entry_on_branch(BranchScan(type=EntryType.CUSTOM, custom_type="state"))
    assert found is not None
    assert found.id == note


@pytest.mark.covers("RT-5.3-01", "RT-5.3-09", "ST-2.1-14")
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_the_statistics_count_messages_and_sum_the_ledger_only(session: Session) -> None:
    await session.append_message(say("one"))
    await session.append_message(result("c"))
    note = await session.append_custom_entry("note")
    usage = {**zero_usage(), "input": 3}
    shown = CompactionPayload(summary="s", retained_tail=[], tokens_before=1, from_hook=False, usage=usage)
    await commit(
        session,
        "main",
        Transaction((InsertEntry(EntryDraft(id="compaction", parent_id=note, payload=shown)),)),
        Transaction((InsertUsage(UsageDraft(id="usage", usage=usage)),)),
    )
    stats = await session.get_stats()
    assert (stats.message_count, stats.usage["input"]) == (2, 3)
    assert await session.get_entry("unknown") is None


# --- facts ------------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.4-01", "ST-2.4-04", "ST-1.3-10", "ST-1.3-11")
async def test_facts_are_shared_by_all_lanes_and_apart_from_each_other(session: Session) -> None:
    side = await session.create_lane("side", None, CONFIGURATION)
    entry = await session.append_message(say("x"))
    await session.set_name("name")
    await side.set_label(entry, "label")
    await side.set_custom_fact("name", "custom")
    await session.set_custom_fact("", ["empty key"])
    for tree in (session, side):
        assert await tree.get_name() == "name"
        assert await tree.get_label(entry) == "label"
        assert await tree.get_custom_fact("name") == "custom"
        assert await tree.get_custom_fact("") == ["empty key"]
    await side.set_name("later")
    assert await session.get_name() == "later"
    assert [register.key for register in await session.list_registers(FACT_NAME)] == [""]


@pytest.mark.covers("ST-2.4-02", "RT-5.3-03", "ST-1.3-24", "ST-0.2-04")
async def test_unset_deletes_a_fact_and_deleting_an_absent_one_commits_nothing(session: Session) -> None:
    entry = await session.append_message(say("x"))
    await session.set_name("x")
    await session.set_label(entry, "x")
    await session.set_custom_fact("k", None)
    assert (await session.get_name(), await session.get_label(entry), await session.get_custom_fact("k")) == (
        "x",
        "x",
        None,
    )
    commits = Commits(session)
    for _ in range(2):
        await session.set_name(UNSET)
        await session.set_label(entry, UNSET)
        await session.set_custom_fact("k", UNSET)
    assert commits.writes == [["delete fact.name/"], [f"delete fact.label/{entry}"], ["delete fact.custom/k"]]
    assert await session.get_register(FACT_NAME, "") is None
    assert await session.get_name() is await session.get_label(entry) is await session.get_custom_fact("k") is UNSET


@pytest.mark.covers("ST-2.4-03", "ST-2.4-07", "RT-5.3-04", "ST-1.3-12")
async def test_json_null_is_a_value_of_a_custom_fact(session: Session) -> None:
    assert await session.get_custom_fact("k") is UNSET
    await session.set_custom_fact("k", None)
    assert await session.get_custom_fact("k") is None
    assert len(await session.list_registers(FACT_CUSTOM)) == 1


@pytest.mark.covers("ST-2.4-06")
async def test_only_an_existing_entry_gets_a_label_but_any_label_can_be_cleared(
    session: Session, commits: Commits
) -> None:
    with pytest.raises(UnknownTarget):
        await session.set_label("unknown", "x")
    await session.set_label("unknown", UNSET)
    assert commits.seen == []


@pytest.mark.covers("LOOM-51")
async def test_reserved_keys_cannot_be_set(session: Session, commits: Commits) -> None:
    for value in ("x", UNSET):
        with pytest.raises(InvalidOptions, match="session/"):
            await session.set_custom_fact("session/id", value)
    await session.set_custom_fact("session", 1)
    assert len(commits.seen) == 1


@pytest.mark.parametrize("bad", [None, 7, ["x"], b"x"])
async def test_names_labels_and_keys_are_text(session: Session, commits: Commits, bad: Any) -> None:
    entry = await session.append_message(say("x"))
    for attempt in (
        session.set_name(bad), session.set_label(entry, bad), session.set_custom_fact(bad, 1),
        session.append_custom_entry(bad),
    ):  # fmt: skip
        with pytest.raises(InvalidOptions, match="text"):
            await attempt
    assert len(commits.seen) == 1


@pytest.mark.covers("ST-2.4-05", "ST-2.8-10")
@pytest.mark.unjudged("the test opens an operation by hand")
async def test_a_fact_is_committed_at_once_during_an_operation_and_moves_no_leaf(session: Session) -> None:
    entry = await session.append_message(say("x"))
    await open_operation(session)
    commits = Commits(session)
    await session.set_name("n")
    await session.set_label(entry, "l")
    await session.set_custom_fact("k", 1)
    assert commits.writes == [["set fact.name/"], [f"set fact.label/{entry}"], ["set fact.custom/k"]]
    assert await session.get_leaf_id() == entry
