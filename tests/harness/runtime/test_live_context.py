"""A live lane's context is the projection of its branch, however it was extended (§2.5)."""

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from restartpoint import MemoryRepository
from restartpoint.contract import (
    LANE_LEAF,
    AgentMessage,
    EntryDraft,
    InsertEntry,
    JsonValue,
    MessagePayload,
    RegisterSet,
    Transaction,
)
from restartpoint.runtime.announce import Committed
from restartpoint.runtime.context import LiveContext
from restartpoint.session import MAIN_LANE, Session, SessionMutator, context_entries, project_context


def _assistant(*calls: str) -> AgentMessage:
    blocks: list[JsonValue] = [{"type": "toolCall", "id": call, "name": "t", "arguments": {}} for call in calls]
    return {"role": "assistant", "content": blocks, "stopReason": "toolUse", "timestamp": 1}


def _result(call: str) -> AgentMessage:
    return {"role": "toolResult", "toolCallId": call, "toolName": "t", "content": [], "isError": False, "timestamp": 2}


MESSAGES = st.one_of(
    st.just({"role": "user", "content": "hello", "timestamp": 0}),
    st.lists(st.sampled_from("abc"), unique=True, max_size=2).map(lambda calls: _assistant(*calls)),
    st.sampled_from("abc").map(_result),
)


async def _append(session: Session, context: LiveContext, messages: list[AgentMessage]) -> str | None:
    async def job(mutator: SessionMutator) -> tuple[Committed, str | None]:
        leaf = await mutator.get_register(LANE_LEAF, MAIN_LANE)
        parent = None if leaf is None else leaf.value
        inserts = []
        for message in messages:
            draft = EntryDraft(id=session.ids.next(), parent_id=parent, payload=MessagePayload(message=message))
            inserts.append(InsertEntry(draft))
            parent = draft.id
        transaction = Transaction((*inserts, RegisterSet(LANE_LEAF, MAIN_LANE, parent)))
        return Committed.of(transaction, await mutator.commit(transaction)), parent

    committed, leaf_id = await session.mutate(MAIN_LANE, job)
    context.extend(committed.entries)
    return leaf_id


async def _check(commits: list[list[AgentMessage]]) -> None:
    session = await MemoryRepository().create()
    context = LiveContext(session, {})
    for messages in commits:
        leaf_id = await _append(session, context, messages)
        fresh = await project_context(await context_entries(session, leaf_id), {})
        assert await context.messages(leaf_id) == fresh


@given(st.lists(st.lists(MESSAGES, min_size=1, max_size=3), max_size=8))
@settings(deadline=None, max_examples=150)
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
def test_the_extended_context_equals_the_projection_of_the_branch(commits: list[list[AgentMessage]]) -> None:
    anyio.run(_check, commits)


@pytest.mark.unjudged("the test places rows by itself, as no transition does")
async def test_a_result_that_comes_after_its_stand_in_replaces_it() -> None:
    await _check([[_assistant("a")], [{"role": "user", "content": "go on", "timestamp": 0}], [_result("a")]])
