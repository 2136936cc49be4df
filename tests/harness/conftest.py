"""Every session that a test of the harness opens is judged, unless the test says why not (`@pytest.mark.unjudged`)."""

from collections.abc import Iterator

import pytest

from restartpoint.repo import SessionRepository
from restartpoint.session import Session
from restartpoint.storage import Storage
from restartpoint_oracle import JudgedStorage
from restartpoint_oracle.fixtures import excuse_of

__all__ = ["everything_is_judged"]


@pytest.fixture(autouse=True)
def everything_is_judged(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whatever storage a repository opens for writing is judged; a finding fails the test, at once or at its end.

    Stages make sessions without a repository and hold a judge of their own (`runtime.court`).
    """
    if excuse_of(request.node) is not None:
        yield
        return
    storages: list[JudgedStorage] = []
    open_session = SessionRepository._session

    async def open_judged(repository: SessionRepository, storage: Storage) -> Session:
        if not isinstance(storage, JudgedStorage):
            storages.append(storage := await JudgedStorage.over(storage))
        return await open_session(repository, storage)

    monkeypatch.setattr(SessionRepository, "_session", open_judged)
    yield
    for judged in storages:
        judged.judge.verify()
