"""Under a claim, what was written or read lately is known without asking the file, and only while that is safe."""

import threading
from pathlib import Path

import anyio
import anyio.to_thread
import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_NAME,
    LANE_LEAF,
    Expectation,
    RegisterDelete,
    RegisterSet,
    Transaction,
)
from restartpoint.errors import LeaseLost, StaleExpectation
from restartpoint.seams import FaultPoint
from restartpoint.storage.sqlite import SqliteStorage
from restartpoint.storage.sqlite.recent import MOST_ENTRIES, MOST_REGISTERS
from tests.harness.storage.sqlite.stage import BY_HAND, Connections, created, opened
from tests.harness.storage.stage import METADATA, HeldClock, ProcessEnded, StopAt, custom, said, tx


async def test_what_was_committed_is_reread_without_a_statement(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock) as storage:
        result = await storage.commit(said("e1"))
        connections.take()
        leaf = await storage.get_register(LANE_LEAF, "main")
        entries = await storage.get_entries(["e1"])
        assert connections.take() == []
    assert leaf is not None
    assert (leaf.value, leaf.seq) == ("e1", result.seqs[1])
    async with opened(path, clock) as again:
        assert await again.get_register(LANE_LEAF, "main") == leaf
        assert await again.get_entries(["e1"]) == entries


async def test_what_was_read_is_reread_without_a_statement(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=said("e1")):
        pass
    async with opened(path, clock) as storage:
        first = await storage.get_register(LANE_LEAF, "main")
        connections.take()
        assert await storage.get_register(LANE_LEAF, "main") == first
        assert connections.take() == []


async def test_a_namespace_that_was_listed_is_listed_again_without_a_statement(
    path: Path, clock: HeldClock, connections: Connections
) -> None:
    async with created(path, clock, initial=tx(*(RegisterSet(FACT_CUSTOM, key, 0) for key in ("b", "a:1")))):
        pass
    async with opened(path, clock) as storage:
        assert [register.key for register in await storage.list_registers(FACT_CUSTOM, "a:")] == ["a:1"]
        await storage.commit(
            tx(RegisterDelete(FACT_CUSTOM, "b"), *(RegisterSet(FACT_CUSTOM, key, 1) for key in ("a:2", "a:", "c")))
        )
        connections.take()
        everything = await storage.list_registers(FACT_CUSTOM)
        below = await storage.list_registers(FACT_CUSTOM, "a:")
        assert await storage.list_registers(FACT_CUSTOM, "b") == []
        assert await storage.get_registers([(FACT_CUSTOM, "b"), (FACT_CUSTOM, "c")]) == [None, everything[-1]]
        assert connections.take() == []
    assert [(register.key, register.value) for register in everything] == [("a:", 1), ("a:1", 0), ("a:2", 1), ("c", 1)]
    assert below == everything[:-1]
    async with opened(path, clock, read_only=True) as again:
        assert await again.list_registers(FACT_CUSTOM) == everything
        assert await again.list_registers(FACT_CUSTOM, "a:") == below


@pytest.mark.parametrize("before", [MOST_REGISTERS, MOST_REGISTERS + 1])
async def test_a_namespace_too_large_to_be_known_is_asked_for(
    path: Path, clock: HeldClock, connections: Connections, before: int
) -> None:
    facts = [RegisterSet(FACT_CUSTOM, f"{number:04}", number) for number in range(MOST_REGISTERS + 3)]
    async with created(path, clock, initial=tx(*facts[:before])) as storage:
        assert len(await storage.list_registers(FACT_CUSTOM)) == before
        await storage.commit(tx(*facts[before:]))
        connections.take()
        assert [register.value for register in await storage.list_registers(FACT_CUSTOM)] == list(range(len(facts)))
        assert len(connections.take()) == 1
        assert [register.value for register in await storage.list_registers(FACT_CUSTOM, "000")] == list(range(10))
        assert len(connections.take()) == 1


async def test_after_an_uncertain_commit_the_file_is_asked_for_lists_too(path: Path, clock: HeldClock) -> None:
    faults = StopAt()
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=faults)
    assert await storage.list_registers(FACT_CUSTOM) == []
    faults.point = "commit.after_write"
    with pytest.raises(ProcessEnded):
        await storage.commit(tx(RegisterSet(FACT_CUSTOM, "k", 1)))
    assert [register.key for register in await storage.list_registers(FACT_CUSTOM)] == ["k"]
    await storage.close()


async def test_a_deleted_register_is_gone(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(tx(RegisterSet(FACT_CUSTOM, "k", 1)))
        await storage.commit(tx(RegisterDelete(FACT_CUSTOM, "k")))
        assert await storage.get_registers([(FACT_CUSTOM, "k"), (LANE_LEAF, "main")]) == [
            None,
            await storage.get_register(LANE_LEAF, "main"),
        ]


async def test_a_refused_commit_changes_nothing_that_is_known(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(said("e1"))
        stale = Transaction(said("e2", "e1").writes, (Expectation(LANE_LEAF, "main", 99),))
        with pytest.raises(StaleExpectation):
            await storage.commit(stale)
        leaf = await storage.get_register(LANE_LEAF, "main")
        assert leaf is not None
        assert leaf.value == "e1"


class Parked:
    """Holds the connection's thread right before a commit is written, until the test lets it go on."""

    def __init__(self) -> None:
        self.arrived = threading.Event()
        self.go = threading.Event()

    def reach(self, point: FaultPoint) -> None:
        if point == "commit.before_write":
            self.arrived.set()
            assert self.go.wait(timeout=60)


async def test_a_read_does_not_overtake_a_commit_that_was_handed_over(path: Path, clock: HeldClock) -> None:
    parked = Parked()
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=parked)
    assert await storage.get_register(LANE_LEAF, "main") is not None  # known from now on
    seen: list[str | None] = []

    async def read() -> None:
        register = await storage.get_register(LANE_LEAF, "main")
        seen.append(None if register is None else register.value)

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(storage.commit, said("e2", "e1"))
        assert await anyio.to_thread.run_sync(lambda: parked.arrived.wait(timeout=60))
        tasks.start_soon(read)
        await anyio.wait_all_tasks_blocked()
        assert seen == []
        parked.go.set()
    assert seen == ["e2"]
    await storage.close()


async def test_after_an_uncertain_commit_the_file_is_asked(path: Path, clock: HeldClock) -> None:
    faults = StopAt()
    storage = await SqliteStorage.create(path, METADATA, said("e1"), clock=clock, lease=BY_HAND, faults=faults)
    await storage.commit(said("e2", "e1"))
    faults.point = "commit.after_write"
    with pytest.raises(ProcessEnded):
        await storage.commit(said("e3", "e2"))
    leaf = await storage.get_register(LANE_LEAF, "main")
    assert leaf is not None
    assert leaf.value == "e3"
    await storage.close()


async def test_after_a_lost_claim_the_file_is_asked(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage:
        await storage.commit(said("e1"))
        clock.now += 10**6
        async with opened(path, clock) as taker:
            await taker.commit(said("e2", "e1"))
            with pytest.raises(LeaseLost):
                await storage.commit(said("e3", "e1"))
            leaf = await storage.get_register(LANE_LEAF, "main")
    assert leaf is not None
    assert leaf.value == "e2"


async def test_a_reader_without_a_claim_always_asks_the_file(path: Path, clock: HeldClock) -> None:
    async with created(path, clock) as storage, opened(path, clock, read_only=True) as reader:
        await storage.commit(said("e1"))
        assert await reader.get_register(LANE_LEAF, "main") == await storage.get_register(LANE_LEAF, "main")
        await storage.commit(said("e2", "e1"))
        assert await reader.get_register(LANE_LEAF, "main") == await storage.get_register(LANE_LEAF, "main")


async def test_what_was_forgotten_is_asked_for_again(path: Path, clock: HeldClock) -> None:
    async with created(path, clock, initial=tx(custom("e", 0), RegisterSet(FACT_NAME, "", "n"))) as storage:
        facts = tx(*(RegisterSet(FACT_CUSTOM, f"k{number}", number) for number in range(MOST_REGISTERS + 1)))
        await storage.commit(facts)
        await storage.commit(tx(*(custom(f"e{number}", number) for number in range(MOST_ENTRIES + 1))))
        first, name = await storage.get_registers([(FACT_CUSTOM, "k0"), (FACT_NAME, "")])
        assert first is not None
        assert name is not None
        assert (first.value, name.value) == (0, "n")
        assert set(await storage.get_entries(["e", "e0", f"e{MOST_ENTRIES}"])) == {"e", "e0", f"e{MOST_ENTRIES}"}
