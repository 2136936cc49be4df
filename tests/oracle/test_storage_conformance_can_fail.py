"""The suite and the machine find seeded mistakes, each by the clause that it breaks."""

from collections.abc import Iterator

import pytest

from restartpoint.errors import RestartpointError
from restartpoint.storage import MemoryStorage, SessionData
from restartpoint_oracle import LockstepBroken, OracleFinding
from restartpoint_oracle.conformance import Check, checks_of
from restartpoint_oracle.conformance.storage import StorageBench, StorageChecks, run_storage_suite
from restartpoint_oracle.machine import RULES, run_storage_machine
from restartpoint_oracle.places import MemoryPlace
from tests.oracle import broken
from tests.oracle.broken import BROKEN, BrokenPlace


def checks(prefix: str) -> Iterator[Check]:
    return (check for check in checks_of(StorageChecks()) if check.name.startswith(prefix))


async def run_all(prefix: str, place: BrokenPlace) -> None:
    for check in checks(prefix):
        async with StorageBench(place) as bench:
            await check.run(bench)


@pytest.mark.parametrize(
    "prefix, storage, data",
    BROKEN,
    ids=[f"{(data if storage is MemoryStorage else storage).__name__}" for _, storage, data in BROKEN],
)
async def test_a_seeded_mistake_is_found_by_its_clause(
    prefix: str, storage: type[MemoryStorage], data: type[SessionData]
) -> None:
    with pytest.raises((OracleFinding, RestartpointError)):
        await run_all(prefix, BrokenPlace(storage, data))


def test_every_clause_has_a_check_and_every_check_a_clause() -> None:
    found = {clause for check in checks("test_") for clause in check.clauses if clause.startswith("P")}
    assert found == {f"P{number}" for number in range(1, 17)}
    assert [check.name for check in checks("test_") if not check.clauses] == []


async def test_the_suite_runs_without_a_test_runner_and_names_what_it_found() -> None:
    verdicts = await run_storage_suite(lambda name: MemoryPlace())
    assert [verdict for verdict in verdicts if not verdict.passed] == []
    assert [verdict.check for verdict in verdicts] == [check.name for check in checks("test_")]


@pytest.mark.parametrize(
    "storage, data",
    [
        (broken.RefusalsUseANumber, SessionData),
        (broken.IgnoresExpectations, SessionData),
        (MemoryStorage, broken.RowsHaveTheirOwnIds),
        (MemoryStorage, broken.DeletesLeaveNull),
        (MemoryStorage, broken.CursorsAreInclusive),
        (MemoryStorage, broken.UnknownFieldsGo),
    ],
    ids=lambda kind: kind.__name__,
)
def test_the_machine_finds_a_seeded_mistake(storage: type[MemoryStorage], data: type[SessionData]) -> None:
    with pytest.raises(OracleFinding):
        run_storage_machine(lambda: [MemoryPlace(), BrokenPlace(storage, data)], runs=2000, steps=30, shrink=False)


def test_a_machine_in_which_a_rule_never_ran_fails() -> None:
    with pytest.raises(LockstepBroken, match="never ran"):
        run_storage_machine(lambda: [MemoryPlace()], runs=1, steps=1)
    assert len(RULES) == len(set(RULES))
