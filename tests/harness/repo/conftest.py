"""Every test of `repository` runs on each kind of repository, on asyncio and on trio."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from restartpoint.repo import FileRepository, SessionRepository
from tests.harness.repo.stage import FILES, KINDS, make_files, maker
from tests.harness.session.stage import StandingClock

__all__ = ["anyio_backend", "clock", "files", "kind", "repository", "root"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "deep" / "sessions"


@pytest.fixture(params=KINDS)
async def repository(
    request: pytest.FixtureRequest, root: Path, clock: StandingClock
) -> AsyncIterator[SessionRepository]:
    async with maker(str(request.param), root, clock)() as repository:
        yield repository


@pytest.fixture(params=sorted(FILES))
def kind(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
async def files(kind: str, root: Path, clock: StandingClock) -> AsyncIterator[FileRepository]:
    async with make_files(kind, root, clock) as files:
        yield files
