"""The production projection and the model's give equal contexts for any branch (§2.5)."""

from collections.abc import Sequence

import anyio
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import (
    AgentMessage,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryPayload,
    JsonValue,
    MessagePayload,
    entry_to_wire,
)  # fmt: skip
from restartpoint.repo import MemoryRepository
from restartpoint.session import context_entries, project_context
from restartpoint_reference.store import State
from restartpoint_reference.tree import project
from restartpoint_reference.vocabulary.entries import Entry as ModelEntry
from restartpoint_reference.vocabulary.messages import zero_usage
from tests.harness.session.stage import assistant, call, result, say
from tests.harness.session.test_context import grow

stops = st.sampled_from(["stop", "length", "toolUse", "error", "aborted", "deferred"])
names = st.sampled_from("abc")


def settled(ids: list[str], stop: str) -> AgentMessage:
    return {
        **assistant(*map(call, ids), stop=stop),
        "api": "a", "provider": "p", "model": "m", "usage": zero_usage(),
    }  # fmt: skip


NOTE: AgentMessage = {"role": "note", "text": "custom role"}
messages: st.SearchStrategy[AgentMessage] = st.one_of(
    st.integers(0, 3).map(lambda number: say(str(number))),
    st.builds(settled, st.lists(names, max_size=3, unique=True), stops),
    names.map(result),
    st.just(NOTE),
)
payloads: st.SearchStrategy[EntryPayload] = st.one_of(
    messages.map(lambda message: MessagePayload(message=message)),
    st.builds(
        lambda tail: CompactionPayload(summary="all", retained_tail=tail, tokens_before=1, from_hook=False),
        st.lists(messages, max_size=3),
    ),
    st.just(BranchSummaryPayload(from_id="x", summary="left", from_hook=True)),
    st.sampled_from(["one", "two", "none", "absent"]).map(lambda kind: CustomPayload(custom_type=kind, data=kind)),
)

PROJECTED: dict[str, list[AgentMessage] | None] = {
    "one": [say("one")], "two": [settled(["a"], "error"), settled(["b"], "stop")], "none": None,
}  # fmt: skip


def ours(entry: Entry) -> Sequence[AgentMessage] | None:
    assert isinstance(entry.payload, CustomPayload)
    return PROJECTED[entry.payload.custom_type]


def the_models(entry: ModelEntry) -> Sequence[AgentMessage] | None:
    return PROJECTED[str(entry.custom_type)]


async def both(branch: list[EntryPayload]) -> tuple[list[AgentMessage], list[AgentMessage]]:
    async with MemoryRepository() as repository:
        session = await repository.create()
        leaf = await grow(session, *branch)
        made = await project_context(await context_entries(session, leaf), dict.fromkeys(PROJECTED, ours))
        wires: list[JsonValue] = [entry_to_wire(entry) for entry in await session.find_entries()]  # type: ignore[misc]
    state = State.from_parts(wires, [], [])
    return made, project(state, leaf, dict.fromkeys(PROJECTED, the_models))


@pytest.mark.covers("ST-2.5-06", "ST-2.5-07", "ST-2.5-08", "LOOM-41")
@given(st.lists(payloads, max_size=8))
@pytest.mark.unjudged("the test places rows by itself, as no transition does")
def test_both_projections_agree(branch: list[EntryPayload]) -> None:
    made, modelled = anyio.run(both, branch)
    assert made == modelled
