"""What Memory and JSONL share: one commit path that refuses, applies or poisons, and no queue to cut through."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_LEAF,
    BranchScan,
    EntryScan,
    Expectation,
    JsonValue,
    RegisterDelete,
    RegisterSet,
    Transaction,
    UsageScan,
)
from restartpoint.errors import (
    CommitRefused,
    DuplicateId,
    InvalidJson,
    MissingParent,
    StorageClosed,
    StorageError,
    WriteUncertain,
)
from restartpoint.seams import FaultPoint
from restartpoint.storage import JsonlStorage, MemoryStorage
from restartpoint.storage.resident import ResidentStorage
from tests.harness.storage.stage import (
    INITIAL,
    METADATA,
    HeldClock,
    ProcessEnded,
    StopAt,
    contents,
    custom,
    entry,
    said,
    tx,
    usage,
)

Opener = Callable[[], Awaitable[ResidentStorage]]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def faults() -> StopAt:
    return StopAt()


@pytest.fixture(params=["memory", "jsonl"])
async def storage(
    request: pytest.FixtureRequest, tmp_path: Path, clock: HeldClock, faults: StopAt
) -> AsyncIterator[ResidentStorage]:
    made: ResidentStorage
    if request.param == "memory":
        made = await MemoryStorage.create(METADATA, INITIAL, clock=clock, faults=faults)
    else:
        made = await JsonlStorage.create(tmp_path / "s.jsonl", METADATA, INITIAL, clock=clock, faults=faults)
    yield made
    await made.close()


@pytest.fixture
def reopen(storage: ResidentStorage, tmp_path: Path, clock: HeldClock) -> Opener:
    """What the next process would see."""

    async def again() -> ResidentStorage:
        if isinstance(storage, MemoryStorage):
            return MemoryStorage.attach(storage.data, clock=clock)
        await storage.close()
        return await JsonlStorage.open(tmp_path / "s.jsonl", clock=clock)

    return again


@pytest.mark.covers("ST-1.4-04", "ST-1.4-19", "ST-1.1-05", "ST-1.5-02")
async def test_a_commit_returns_one_seq_per_write_from_one_and_one_timestamp(
    storage: ResidentStorage, clock: HeldClock
) -> None:
    clock.now += 5
    result = await storage.commit(tx(entry("a"), usage("u"), RegisterDelete(FACT_CUSTOM, "absent")))
    assert (result.first_seq, result.seqs, result.timestamp) == (3, (3, 4, 5), clock.now)
    assert (await storage.get_entries(["a"]))["a"].timestamp == clock.now
    register = await storage.get_register(LANE_LEAF, "main")
    assert register is not None
    assert register.seq == 1


@pytest.mark.covers("ST-1.4-20", "ST-0.8-02", "ST-1.7-04")
@pytest.mark.parametrize(
    "refused, error",
    [
        (tx(), CommitRefused),
        (tx(entry("b"), custom("c", "\ud800")), InvalidJson),
        (Transaction((entry("b"),), (Expectation(LANE_LEAF, "main", None),)), CommitRefused),
        (tx(RegisterSet(FACT_CUSTOM, "k", 1), entry("a")), DuplicateId),
        (tx(entry("b"), entry("c", "nobody")), MissingParent),
    ],
)
async def test_a_refusal_writes_nothing_uses_no_seq_and_leaves_the_storage_usable(
    storage: ResidentStorage, reopen: Opener, faults: StopAt, refused: Transaction, error: type[StorageError]
) -> None:
    await storage.commit(said("a"))
    before = await contents(storage)
    faults.reached.clear()
    with pytest.raises(error):
        await storage.commit(refused)
    assert await contents(storage) == before
    assert faults.reached == []
    assert (await storage.commit(tx(entry("z")))).first_seq == 5
    after = await contents(storage)
    assert await contents(await reopen()) == after


async def test_each_commit_passes_both_fault_points_once(storage: ResidentStorage, faults: StopAt) -> None:
    await storage.commit(said("a"))
    await storage.commit(tx(usage("u"), entry("b", "a")))
    assert faults.reached == ["commit.before_write", "commit.after_write"] * 2


@pytest.mark.covers("ST-1.4-05", "ST-0.3-06")
@pytest.mark.parametrize("point, kept", [("commit.before_write", False), ("commit.after_write", True)])
async def test_the_end_of_the_process_leaves_none_or_all_of_a_commit(
    storage: ResidentStorage, reopen: Opener, faults: StopAt, point: FaultPoint, kept: bool
) -> None:
    await storage.commit(said("a"))
    faults.point = point
    with pytest.raises(ProcessEnded):
        await storage.commit(said("b", "a"))
    again = await reopen()
    leaf = await again.get_register(LANE_LEAF, "main")
    assert leaf is not None
    assert leaf.value == ("b" if kept else "a")
    assert list(await again.get_entries(["a", "b"])) == (["a", "b"] if kept else ["a"])
    assert (await again.commit(tx(usage("u")))).first_seq == (7 if kept else 5)
    await again.close()


@pytest.mark.covers("ST-1.4-22")
@pytest.mark.parametrize("point", ["commit.before_write", "commit.after_write"])
async def test_a_commit_that_was_cut_short_poisons_the_storage_with_one_fault(
    storage: ResidentStorage, faults: StopAt, point: FaultPoint
) -> None:
    faults.point = point
    with pytest.raises(ProcessEnded):
        await storage.commit(said("a"))
    faults.point = None
    raised = []
    for _ in range(2):
        with pytest.raises(WriteUncertain) as fault:
            await storage.commit(said("b"))
        raised.append(fault.value)
    assert raised[0] is raised[1]
    assert isinstance(raised[0].__cause__, ProcessEnded)
    assert (await storage.get_stats()).message_count == (point == "commit.after_write")


@pytest.mark.covers("ST-1.4-23")
async def test_a_cancelled_caller_leaves_no_commit_undecided(storage: ResidentStorage, reopen: Opener) -> None:
    with anyio.CancelScope() as scope:
        scope.cancel()
        result = await storage.commit(said("a"))
        assert result.first_seq == 3  # a commit awaits nothing, so it never notices
    assert (await storage.commit(said("b", "a"))).first_seq == 5
    after = await contents(storage)
    assert await contents(await reopen()) == after


@pytest.mark.covers("ST-1.4-15")
async def test_commits_of_many_tasks_never_interleave(
    storage: ResidentStorage, reopen: Opener, clock: HeldClock
) -> None:
    results = []

    async def commit(number: int) -> None:
        await anyio.lowlevel.checkpoint()
        clock.now += 1
        results.append(await storage.commit(tx(entry(f"e{number}"), usage(f"u{number}"), entry(f"f{number}"))))

    async with anyio.create_task_group() as group:
        for number in range(20):
            group.start_soon(commit, number)
    assert [seq for result in results for seq in result.seqs] == list(range(3, 63))
    assert [result.timestamp for result in results] == sorted(result.timestamp for result in results)
    after = await contents(storage)
    assert await contents(await reopen()) == after


@pytest.mark.covers("ST-1.5-11", "ST-1.5-23")
async def test_a_closed_storage_refuses_every_call_and_closes_again_quietly(storage: ResidentStorage) -> None:
    await storage.close()
    await storage.close()
    calls: list[Callable[[], Awaitable[object]]] = [
        lambda: storage.commit(said("a")),
        lambda: storage.get_entries([]),
        lambda: storage.get_register(LANE_LEAF, "main"),
        lambda: storage.get_registers([]),
        lambda: storage.list_registers(LANE_LEAF),
        lambda: storage.scan_branch(BranchScan(start="a")),
        lambda: storage.scan_branch_structure(BranchScan(start="a")),
        lambda: storage.scan_entries(EntryScan()),
        lambda: storage.scan_usage(UsageScan()),
        storage.get_stats,
    ]
    for call in calls:
        with pytest.raises(StorageClosed):
            await call()
    assert storage.metadata == METADATA


@pytest.mark.covers("ST-1.4-13", "ST-0.3-03", "ST-1.4-08", "ST-1.1-09")
async def test_the_last_write_to_a_register_in_a_transaction_wins(storage: ResidentStorage, reopen: Opener) -> None:
    def one(value: int) -> RegisterSet[JsonValue]:
        return RegisterSet(FACT_CUSTOM, "k", value)

    await storage.commit(tx(one(1), RegisterDelete(FACT_CUSTOM, "k"), one(2), one(3)))
    register = await storage.get_register(FACT_CUSTOM, "k")
    assert register is not None
    assert (register.value, register.seq) == (3, 6)
    await storage.commit(tx(RegisterDelete(FACT_CUSTOM, "k")))
    assert await storage.get_register(FACT_CUSTOM, "k") is None
    await storage.commit(tx(one(4)))
    register = await storage.get_register(FACT_CUSTOM, "k")
    assert register is not None
    assert (register.value, register.seq) == (4, 8)
    after = await contents(storage)
    assert await contents(await reopen()) == after


@pytest.mark.covers("ST-1.6-09", "ST-1.6-10", "ST-1.6-13", "ST-1.5-10")
async def test_stats_equal_the_ledger_after_every_commit_and_after_reopening(
    storage: ResidentStorage, reopen: Opener
) -> None:
    total = 0.0
    for number, cost in enumerate((0.1, 0.2, 0.3, 1e-9, 1e9)):
        await storage.commit(tx(usage(f"u{number}", cost), entry(f"e{number}"), custom(f"c{number}", None)))
        total += cost
        stats = await storage.get_stats()
        assert stats.message_count == number + 1
        assert isinstance(stats.usage["cost"], dict)
        assert stats.usage["cost"]["total"] == total
    assert await (await reopen()).get_stats() == stats
