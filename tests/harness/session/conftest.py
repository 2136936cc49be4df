"""Every test of `session` runs on asyncio and on trio, over each backend."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from restartpoint.session import Session
from tests.harness.repo.stage import KINDS, maker
from tests.harness.session.stage import Commits, StandingClock

__all__ = ["anyio_backend", "clock", "commits", "session"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture(params=KINDS)
async def session(request: pytest.FixtureRequest, clock: StandingClock, tmp_path: Path) -> AsyncIterator[Session]:
    async with maker(str(request.param), tmp_path, clock)() as repository, await repository.create() as session:
        yield session


@pytest.fixture
def commits(session: Session) -> Commits:
    return Commits(session)
