"""Creating lanes: names, anchors, one atomic commit; and what a new session holds."""

import anyio
import pytest

from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    LaneConfiguration,
    LaneState,
    ModelIdentity,
)
from restartpoint.errors import InvalidLane, LaneExists, RestartpointError, UnknownTarget
from restartpoint.session import Session, check_lane_name
from tests.harness.session.stage import CONFIGURATION, Commits, say

EMPTY = LaneState(current_operation_id=None, pending_next_run=[])


async def held(session: Session) -> set[str]:
    """Every register of the session by name."""
    return {
        f"{register.namespace.name}/{register.key}"
        for namespace in NAMESPACES.values()
        for register in await session.list_registers(namespace)
    }


@pytest.mark.covers("ST-2.8-02", "ST-2.3-02", "ST-2.3-12", "ST-0.2-05")
async def test_a_new_session_holds_main_at_the_root_without_a_configuration(session: Session) -> None:
    assert await held(session) == {"lane.leaf/main", "lane.state/main"}
    leaf, state = await session.get_registers([(LANE_LEAF, "main"), (LANE_STATE, "main")])
    assert leaf is not None
    assert state is not None
    assert (leaf.value, leaf.seq, state.value, state.seq) == (None, 1, EMPTY, 2)


@pytest.mark.covers("ST-2.3-06", "ST-2.3-07", "ST-2.3-01", "ST-1.3-01")
async def test_a_lane_is_three_registers_in_one_commit(session: Session, commits: Commits) -> None:
    tree = await session.create_lane("slack:1719432.0021", None, CONFIGURATION)
    name = tree.lane
    assert commits.writes == [[f"set lane.config/{name}", f"set lane.leaf/{name}", f"set lane.state/{name}"]]
    registers = await session.get_registers([(LANE_CONFIG, name), (LANE_LEAF, name), (LANE_STATE, name)])
    assert [register.value if register else "absent" for register in registers] == [CONFIGURATION, None, EMPTY]
    assert await tree.get_leaf_id() is None


@pytest.mark.covers("ST-2.3-09")
async def test_a_lane_takes_nothing_from_its_anchor_but_the_position(session: Session) -> None:
    anchor = await session.append_message(say("x"))
    other = LaneConfiguration(
        model=ModelIdentity(provider="p", model_id="m"), thinking_level="high", active_tool_names=[]
    )
    await session.create_lane("a", anchor, other)
    before = await session.find_entries()
    tree = await session.create_lane("b", anchor, CONFIGURATION)
    config = await session.get_register(LANE_CONFIG, "b")
    assert config is not None
    assert config.value == CONFIGURATION
    assert await tree.get_leaf_id() == anchor
    assert await session.find_entries() == before


@pytest.mark.covers("ST-2.3-06", "ST-2.3-15")
async def test_a_known_name_and_an_unknown_anchor_are_refused_and_write_nothing(session: Session) -> None:
    await session.create_lane("a", None, CONFIGURATION)
    commits = Commits(session)
    for name in ("a", "main"):
        with pytest.raises(LaneExists):
            await session.create_lane(name, "unknown", CONFIGURATION)
    with pytest.raises(UnknownTarget):
        await session.create_lane("b", "unknown", CONFIGURATION)
    assert commits.seen == []


@pytest.mark.covers("ST-2.3-14")
@pytest.mark.parametrize("name", ["", "a\x00b", "\n", "tab\t", "\x1f", "x" * 257])
async def test_names_that_are_no_lane_names_are_refused(session: Session, commits: Commits, name: str) -> None:
    with pytest.raises(InvalidLane):
        await session.create_lane(name, None, CONFIGURATION)
    assert commits.seen == []


@pytest.mark.covers("ST-2.3-14")
@pytest.mark.parametrize("name", ["x", "x" * 256, "slack:1719432.0021", "a/b", " ", "Straße", "\u2028", "../up"])
def test_every_other_text_is_a_lane_name(name: str) -> None:
    check_lane_name(name)


@pytest.mark.covers("ST-2.3-08")
async def test_of_two_that_create_one_lane_exactly_one_succeeds(session: Session, commits: Commits) -> None:
    outcomes: list[str] = []

    async def create() -> None:
        try:
            await session.create_lane("a", None, CONFIGURATION)
            outcomes.append("created")
        except RestartpointError as error:
            outcomes.append(type(error).__name__)

    async with anyio.create_task_group() as group:
        group.start_soon(create)
        group.start_soon(create)
    assert sorted(outcomes) == ["LaneExists", "created"]
    assert len(commits.seen) == 1
