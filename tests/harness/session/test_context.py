"""What of a branch becomes context, in which order, and how missing tool results are filled in."""

from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import (
    LANE_LEAF,
    UNSET,
    AgentMessage,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryDraft,
    EntryPayload,
    InsertEntry,
    MessagePayload,
    RegisterSet,
    Transaction,
)  # fmt: skip
from restartpoint.errors import UnknownEntry
from restartpoint.session import (
    BRANCH_SUMMARY_PREFIX,
    COMPACTION_PREFIX,
    HEALED_RESULT_TEXT,
    EntryProjector,
    Session,
    SessionMutator,
    context_entries,
    heal,
    project_context,
    project_entry,
)  # fmt: skip
from tests.harness.session.stage import assistant, call, result, say


def compaction(summary: str, *tail: AgentMessage) -> CompactionPayload:
    return CompactionPayload(summary=summary, retained_tail=[*tail], tokens_before=9, from_hook=False)


def message(value: AgentMessage) -> MessagePayload:
    return MessagePayload(message=value)


async def grow(session: Session, *payloads: EntryPayload) -> str | None:
    """Appends the payloads on main, one commit each; the id of the last."""
    for payload in payloads:

        async def job(mutator: SessionMutator, payload: EntryPayload = payload) -> None:
            draft = EntryDraft(id=session.ids.next(), parent_id=await session.get_leaf_id(), payload=payload)
            await mutator.commit(Transaction((InsertEntry(draft), RegisterSet(LANE_LEAF, "main", draft.id))))

        await session.mutate("main", job)
    return await session.get_leaf_id()


async def context(
    session: Session, leaf: str | None, projectors: Mapping[str, EntryProjector] | None = None
) -> list[AgentMessage]:
    return await project_context(await context_entries(session, leaf), projectors or {})


def entry(payload: EntryPayload) -> Entry:
    return Entry(id="e", parent_id=None, seq=1, timestamp=77, payload=payload)


def stand_in(id: str, timestamp: int = 2, name: str = "read") -> AgentMessage:
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": name,
        "content": [{"type": "text", "text": HEALED_RESULT_TEXT}],
        "isError": True,
        "timestamp": timestamp,
    }


# --- which entries ----------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.5-06")
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_without_a_compaction_the_context_is_the_whole_branch_oldest_first(session: Session) -> None:
    leaf = await grow(session, message(say("one")), message(assistant()), message(say("two")))
    assert await context(session, leaf) == [say("one"), assistant(), say("two")]
    assert await context(session, None) == []
    with pytest.raises(UnknownEntry):
        await context(session, "unknown")


@pytest.mark.covers("ST-2.5-06", "ST-2.1-11", "ST-2.5-15")
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_the_newest_compaction_begins_the_context_with_its_summary_and_tail(
    session: Session, clock: object
) -> None:
    leaf = await grow(
        session,
        message(say("gone")), compaction("old", say("old tail")), message(say("gone too")),
        compaction("new", say("kept"), assistant()), message(say("after")),
    )  # fmt: skip
    entries = await context_entries(session, leaf)
    summary = say(COMPACTION_PREFIX + "new", entries[0].timestamp)
    assert len(entries) == 2
    assert await context(session, leaf) == [summary, say("kept"), assistant(), say("after")]


@pytest.mark.covers("ST-2.5-15")
async def test_summaries_are_user_messages_with_a_fixed_beginning() -> None:
    left = BranchSummaryPayload(from_id="x", summary="tried it", from_hook=True)
    assert await project_entry(entry(left), {}) == [
        {
            "role": "user",
            "content": [
                {
                    "type": "text",
                    "text": "A branch of this conversation was explored and left. Summary:\n\ntried it",
                }
            ],
            "timestamp": 77,
        }
    ]
    assert await project_entry(entry(compaction("all")), {}) == [
        {
            "role": "user",
            "content": [{"type": "text", "text": "The conversation before this point was compacted. Summary:\n\nall"}],
            "timestamp": 77,
        }
    ]
    assert BRANCH_SUMMARY_PREFIX != COMPACTION_PREFIX


# --- rule 3 -----------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.5-07", "ST-2.5-10", "ST-2.5-14")
@pytest.mark.parametrize(
    "stop, stays",
    [("stop", True), ("length", True), ("toolUse", True), ("error", False), ("aborted", False), ("deferred", False)],
)
async def test_responses_that_failed_are_left_out_in_a_retained_tail_too(stop: str, stays: bool) -> None:
    response = assistant(stop=stop)
    projected = {"x": lambda _: [response]}
    assert await project_entry(entry(message(response)), {}) == [response] * stays
    assert (await project_entry(entry(compaction("s", response)), {}))[1:] == [response] * stays
    assert await project_entry(entry(CustomPayload(custom_type="x")), projected) == [response] * stays


async def test_a_user_message_stays_whatever_it_calls_its_fields() -> None:
    odd: AgentMessage = {**say("x"), "stopReason": "error"}
    assert await project_entry(entry(message(odd)), {}) == [odd]


# --- projectors -------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.5-08")
async def test_a_custom_entry_becomes_what_its_projector_returns_and_nothing_without_one(session: Session) -> None:
    leaf = await grow(
        session,
        CustomPayload(custom_type="plain", data="p"), CustomPayload(custom_type="later", data="l"),
        CustomPayload(custom_type="none"), CustomPayload(custom_type="unknown"),
    )  # fmt: skip
    seen: list[object] = []

    def plain(entry: Entry) -> Sequence[AgentMessage]:
        assert isinstance(entry.payload, CustomPayload)
        seen.append(entry.payload.data)
        return [say("a"), say("b")]

    async def later(entry: Entry) -> Sequence[AgentMessage]:
        assert isinstance(entry.payload, CustomPayload)
        seen.append(entry.payload.data)
        return (say("c"),)

    def none(entry: Entry) -> None:
        seen.append(UNSET)

    projectors: dict[str, EntryProjector] = {"plain": plain, "later": later, "none": none}
    assert await context(session, leaf, projectors) == [say("a"), say("b"), say("c")]
    assert seen == ["p", "l", UNSET]
    assert await context(session, leaf) == []


# --- healing ----------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.5-16", "LOOM-43")
def test_a_call_without_a_result_gets_one_directly_behind_its_message() -> None:
    asks = assistant(call("a"), call("b", "write"), call("c"), stop="toolUse")
    assert heal([say("x"), asks, result("b"), say("y")]) == [
        say("x"), asks, stand_in("a"), stand_in("c"), result("b"), say("y"),
    ]  # fmt: skip
    assert heal([asks]) == [asks, stand_in("a"), stand_in("b", name="write"), stand_in("c")]


@pytest.mark.covers("LOOM-44")
def test_settled_history_comes_back_equal() -> None:
    settled = [say("x"), assistant(call("a"), call("b")), result("b"), result("a"), assistant(), say("y")]
    assert heal(settled) == settled


def test_a_result_that_comes_before_its_call_does_not_answer_it() -> None:
    asks = assistant(call("a"))
    assert heal([result("a"), asks]) == [result("a"), asks, stand_in("a")]


def test_only_assistant_messages_ask() -> None:
    odd: AgentMessage = {"role": "user", "content": [call("a")], "timestamp": 1}
    assert heal([odd]) == [odd]


@pytest.mark.covers("ST-2.5-16")
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_a_branch_that_ends_at_a_tool_call_is_healed_in_its_context(session: Session) -> None:
    leaf = await grow(session, message(say("x")), message(assistant(call("a"), stop="toolUse")))
    await grow(session, message(result("a")))
    assert await context(session, leaf) == [say("x"), assistant(call("a"), stop="toolUse"), stand_in("a")]


calls = st.lists(st.sampled_from("abcd"), max_size=3, unique=True)
histories = st.lists(
    st.one_of(
        st.just(say("x")),
        calls.map(lambda ids: assistant(*map(call, ids))),
        st.sampled_from("abcd").map(result),
    ),
    max_size=12,
)


@given(histories)
def test_healing_only_inserts_and_needs_no_second_time(history: list[AgentMessage]) -> None:
    healed = heal(history)
    remaining = iter(healed)
    assert all(any(found is kept for found in remaining) for kept in history)
    assert heal(healed) == healed
    for position, value in enumerate(healed):
        if value["role"] == "assistant" and isinstance(value["content"], list):
            answers = {later.get("toolCallId") for later in healed[position:]}
            assert {block["id"] for block in value["content"] if isinstance(block, dict)} <= answers


# --- growth -----------------------------------------------------------------------------------------------------


@pytest.mark.covers("ST-2.5-11")
@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_a_settled_lane_grows_its_context_only_at_the_tail(session: Session) -> None:
    turns = [say("x"), assistant(call("a"), stop="toolUse"), result("a"), assistant(stop="error"), say("y")]
    before: list[AgentMessage] = []
    for turn in (*turns, *turns):
        leaf = await grow(session, message(turn))
        if turn["role"] != "assistant":
            now = await context(session, leaf)
            assert now[: len(before)] == before
            before = now
    assert before != []


@pytest.mark.unjudged("the test's messages lack what a vendor's have")
async def test_projecting_entry_by_entry_equals_projecting_all(session: Session) -> None:
    leaf = await grow(
        session, compaction("s", say("tail")), message(assistant(call("a"))), message(result("a")), message(say("y"))
    )
    entries = await context_entries(session, leaf)
    one_by_one = [made for found in entries for made in await project_entry(found, {})]
    assert heal(one_by_one) == await project_context(entries, {})
