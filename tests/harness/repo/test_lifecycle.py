"""Create, open, list, delete on every kind of repository: one open owner per session id."""

from collections.abc import Sequence
from typing import Any, Protocol

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    FACT_LABEL,
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    UNSET,
    BranchScan,
    Entry,
    EntryQuery,
    EntryScan,
    LaneState,
    Namespace,
    Register,
    SessionMetadata,
    UsageScan,
)  # fmt: skip
from restartpoint.errors import (
    Closed,
    InvalidOptions,
    InvalidQuery,
    InvalidSessionId,
    RestartpointError,
    SessionExists,
    SessionNotFound,
    SessionOpen,
    StorageClosed,
)  # fmt: skip
from restartpoint.repo import Listing, SessionRepository
from restartpoint.seams import timestamp_of
from restartpoint.session import Session, SessionMutator
from tests.harness.session.stage import Commits, StandingClock, say


@pytest.mark.covers("ST-2.8-02", "ST-2.3-12", "ST-1.4-19")
async def test_a_created_session_is_open_and_holds_main_alone(repository: SessionRepository) -> None:
    session = await repository.create()
    held = [
        (register.namespace.name, register.key, register.value, register.seq)
        for namespace in NAMESPACES.values()
        for register in await session.list_registers(namespace)
    ]
    empty = LaneState(current_operation_id=None, pending_next_run=[])
    assert held == [(LANE_LEAF.name, "main", None, 1), (LANE_STATE.name, "main", empty, 2)]


@pytest.mark.covers("ST-2.8-25", "ST-2.8-01", "ST-1.2-02")
async def test_the_default_id_is_minted_now_and_metadata_holds_only_what_was_given(
    repository: SessionRepository, clock: StandingClock
) -> None:
    plain = await repository.create()
    full = await repository.create(id="full", cwd="/somewhere", parent_session_id="parent")
    assert timestamp_of(plain.metadata.id) == clock.now
    assert plain.metadata == SessionMetadata(id=plain.metadata.id, created_at=clock.now)
    assert plain.metadata.cwd is UNSET
    assert full.metadata == SessionMetadata(
        id="full", created_at=clock.now, cwd="/somewhere", parent_session_id="parent"
    )
    assert (full.metadata.storage_version, full.metadata.store_generation) == (1, 1)


@pytest.mark.covers("ST-2.8-01", "ST-2.8-03", "ST-2.8-15", "ST-1.7-69")
async def test_a_closed_session_opens_again_with_everything_it_held(repository: SessionRepository) -> None:
    async with await repository.create(id="s", cwd="/x") as first:
        entry = await first.append_message(say("x"))
        await first.set_name("name")
        metadata, entries, stats = first.metadata, await first.find_entries(), await first.get_stats()
    async with await repository.open("s") as again:
        assert again is not first
        assert (again.metadata, await again.get_name(), await again.get_leaf_id()) == (metadata, "name", entry)
        assert (await again.find_entries(), await again.get_stats()) == (entries, stats)
        await again.append_message(say("y"))
    async with await repository.open(metadata) as third:
        assert len(await third.find_entries()) == 2


@pytest.mark.covers("ST-2.8-15")
async def test_a_session_has_one_open_owner_until_its_close_is_done(repository: SessionRepository) -> None:
    session = await repository.create(id="s")
    with pytest.raises(SessionOpen):
        await repository.open("s")
    with pytest.raises(SessionExists):
        await repository.create(id="s")
    with pytest.raises(SessionOpen):
        await repository.delete("s")
    await session.close()
    await session.close()
    reopened = await repository.open("s")
    await session.close()
    with pytest.raises(SessionOpen):
        await repository.open("s")
    await reopened.append_message(say("x"))


@pytest.mark.covers("ST-2.8-15")
async def test_a_session_that_is_being_closed_is_still_open(repository: SessionRepository) -> None:
    session = await repository.create(id="s")
    async with anyio.create_task_group() as group:
        group.start_soon(session.close)
        await anyio.lowlevel.checkpoint()
        with pytest.raises(SessionOpen):
            await repository.open("s")
    await repository.open("s")


@pytest.mark.covers("ST-2.8-25")
async def test_an_existing_id_is_refused_whether_or_not_it_is_open(repository: SessionRepository) -> None:
    await (await repository.create(id="s")).close()
    with pytest.raises(SessionExists):
        await repository.create(id="s")
    assert [metadata.id for metadata in (await repository.list()).sessions] == ["s"]


async def test_of_two_creations_of_one_id_exactly_one_succeeds(repository: SessionRepository) -> None:
    outcomes: list[str] = []

    async def create() -> None:
        try:
            await repository.create(id="s")
            outcomes.append("created")
        except RestartpointError as error:
            outcomes.append(type(error).__name__)

    async with anyio.create_task_group() as group:
        group.start_soon(create)
        group.start_soon(create)
    assert sorted(outcomes) == ["SessionExists", "created"]


async def test_of_two_openings_of_one_id_exactly_one_succeeds(repository: SessionRepository) -> None:
    await (await repository.create(id="s")).close()
    outcomes: list[str] = []

    async def open_it() -> None:
        try:
            await repository.open("s")
            outcomes.append("opened")
        except RestartpointError as error:
            outcomes.append(type(error).__name__)

    async with anyio.create_task_group() as group:
        group.start_soon(open_it)
        group.start_soon(open_it)
    assert sorted(outcomes) == ["SessionOpen", "opened"]


@pytest.mark.covers("ST-2.8-23")
async def test_of_the_metadata_that_is_passed_only_the_id_counts(repository: SessionRepository) -> None:
    session = await repository.create(id="s", cwd="/x")
    await session.close()
    stale = SessionMetadata(id="s", created_at=1, storage_version=99, store_generation=7, cwd="/old")
    reopened = await repository.open(stale)
    assert reopened.metadata == session.metadata
    await reopened.close()
    async with await repository.open_read_only(stale) as reader:
        assert reader.metadata == session.metadata
    await repository.delete(stale)


async def test_the_list_is_sorted_by_id_and_knows_open_and_closed_sessions(repository: SessionRepository) -> None:
    assert (await repository.list()).sessions == ()
    made = [(await repository.create(id=name, cwd=f"/{name}")) for name in ("b", "a", "C", "0")]
    await made[0].close()
    listing = await repository.list()
    assert [metadata.id for metadata in listing.sessions] == ["0", "C", "a", "b"]
    assert set(listing.sessions) == {session.metadata for session in made}
    assert listing.unreadable == ()


@pytest.mark.covers("ST-2.8-20")
async def test_a_deleted_session_is_gone_and_its_id_is_free(repository: SessionRepository) -> None:
    async with await repository.create(id="s") as session:
        await session.set_name("old")
    await repository.delete("s")
    assert (await repository.list()).sessions == ()
    for attempt in (repository.open, repository.open_read_only, repository.delete):
        with pytest.raises(SessionNotFound) as caught:
            await attempt("s")
        assert caught.value.id == "s"
    assert not await (await repository.create(id="s")).get_name()


@pytest.mark.parametrize("id", ["", ".", "..", ".hidden", "a/b", "a\\b", "../up", "ü", "a b", "x" * 129, "a\n", "nul"])
async def test_an_id_that_is_no_file_name_is_refused_everywhere(repository: SessionRepository, id: str) -> None:
    for attempt in (repository.open, repository.open_read_only, repository.delete):
        with pytest.raises(InvalidSessionId):
            await attempt(id)
    with pytest.raises(InvalidSessionId):
        await repository.create(id=id)
    assert (await repository.list()).sessions == ()


@pytest.mark.parametrize("ref", [5, None, b"s", ["s"]], ids=repr)
async def test_what_is_neither_an_id_nor_metadata_is_refused_everywhere(
    repository: SessionRepository, ref: Any
) -> None:
    for attempt in (repository.open, repository.open_read_only, repository.delete):
        with pytest.raises(InvalidSessionId):
            await attempt(ref)
    value: Any = 7 if ref is None else ref
    with pytest.raises(InvalidSessionId):
        await repository.create(id=value)
    with pytest.raises(InvalidOptions):
        await repository.create(id="s", cwd=value)
    with pytest.raises(InvalidOptions):
        await repository.create(id="s", parent_session_id=value)
    assert (await repository.list()) == Listing(sessions=())


@pytest.mark.parametrize("limit", [-1, 2**53, 2**70, 1.0, True, "1"], ids=repr)
async def test_a_limit_that_no_backend_counts_to_is_refused_by_all(repository: SessionRepository, limit: Any) -> None:
    async with await repository.create(id="s") as session:
        entry_id = await session.append_message(say("x"))
        for read in (
            session.find_entries(EntryQuery(limit=limit)),
            session.scan_entries(EntryScan(limit=limit)),
            session.scan_branch(BranchScan(start=entry_id, limit=limit)),
            session.scan_usage(UsageScan(limit=limit)),
        ):
            with pytest.raises(InvalidQuery, match=r"2\*\*53"):
                await read
        assert len(await session.find_entries(EntryQuery(limit=2**53 - 1))) == 1
        assert len(await session.scan_branch(BranchScan(start=entry_id, limit=2**53 - 1))) == 1


@pytest.mark.covers("ST-1.5-12")
async def test_a_session_reads_and_refuses_after_its_close(repository: SessionRepository) -> None:
    session = await repository.create()
    await session.close()
    with pytest.raises(StorageClosed):
        await session.get_leaf_id()
    with pytest.raises(Closed):
        await session.append_message(say("x"))
    assert not {name for name in dir(session) if "open" in name}
    again = await repository.open(session.metadata.id)
    assert again is not session
    assert await again.get_leaf_id() is None


async def test_closing_the_repository_closes_its_sessions_and_refuses_everything(repository: SessionRepository) -> None:
    sessions = [await repository.create(), await repository.create()]
    await repository.close()
    for session in sessions:
        with pytest.raises(Closed):
            await session.set_name("late")
    for attempt in (repository.create, repository.list):
        with pytest.raises(Closed):
            await attempt()
    for use in (repository.open, repository.open_read_only, repository.delete):
        with pytest.raises(Closed):
            await use("s")
    await repository.close()


class Reader(Protocol):
    """What a session, a mutator and a reader have in common (§2.8)."""

    async def get_entries(self, ids: Sequence[str]) -> dict[str, Entry]: ...

    async def get_register(self, namespace: Namespace[str], key: str) -> Register[str] | None: ...

    async def list_registers(self, namespace: Namespace[str], key_prefix: str = "") -> list[Register[str]]: ...


@pytest.mark.covers("ST-2.8-04", "ST-1.1-09")
async def test_a_session_a_mutator_and_a_reader_read_alike(repository: SessionRepository) -> None:
    session = await repository.create(id="s")
    entry = await session.append_message(say("x"))
    results = Commits(session)
    for label in ("first", "second"):
        await session.set_label(entry, label)

    async def check(reader: Reader) -> None:
        assert (await reader.get_entries([entry, "unknown"])).keys() == {entry}
        register = await reader.get_register(FACT_LABEL, entry)
        assert register == Register(namespace=FACT_LABEL, key=entry, value="second", seq=results.seen[-1][2].first_seq)
        assert await reader.list_registers(FACT_LABEL, entry[:8]) == [register]
        assert await reader.get_register(FACT_LABEL, "unknown") is None

    async def job(mutator: SessionMutator) -> None:
        await check(mutator)

    await check(session)
    await session.mutate("main", job)
    async with await repository.open_read_only("s") as reader:
        await check(reader)


@pytest.mark.covers("ST-2.8-21")
async def test_a_reader_sees_what_is_committed_while_the_session_is_open_elsewhere(
    repository: SessionRepository,
) -> None:
    session = await repository.create(id="s")
    entry = await session.append_message(say("x"))
    async with await repository.open_read_only("s") as reader:
        assert reader.metadata == session.metadata
        assert list(await reader.get_entries([entry])) == [entry]
        leaf = await reader.get_register(LANE_LEAF, "main")
        assert leaf is not None
        assert leaf.value == entry
        assert [register.key for register in await reader.list_registers(LANE_STATE)] == ["main"]
        assert (await reader.get_stats()).message_count == 1
    await session.append_message(say("y"))
    with pytest.raises(StorageClosed):
        await reader.get_stats()
    assert not isinstance(reader, Session)


@pytest.mark.covers("ST-2.3-12", "ST-2.8-07")
async def test_a_session_mints_ids_and_reads_time_from_its_repository(
    repository: SessionRepository, clock: StandingClock
) -> None:
    session = await repository.create()
    clock.now += 1000
    assert session.clock is clock
    assert timestamp_of(session.ids.next()) == clock.now
    assert timestamp_of(session.ids.next(5)) == 5
