"""Every test here runs on asyncio and on trio, over a session in memory."""

from collections.abc import AsyncIterator

import pytest

from restartpoint.repo import MemoryRepository
from restartpoint.session import Session
from tests.harness.session.stage import Commits, StandingClock, counted_ids

__all__ = ["anyio_backend", "clock", "commits", "repository", "session"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def repository(clock: StandingClock) -> MemoryRepository:
    return MemoryRepository(clock=clock, ids=counted_ids(clock))


@pytest.fixture
async def session(repository: MemoryRepository) -> AsyncIterator[Session]:
    async with await repository.create() as session:
        yield session


@pytest.fixture
def commits(session: Session) -> Commits:
    return Commits(session)
