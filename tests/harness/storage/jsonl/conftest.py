"""Every test here runs on asyncio and on trio, over one session file."""

from pathlib import Path

import pytest

from tests.harness.storage.stage import HeldClock

__all__ = ["anyio_backend", "clock", "path"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s1.jsonl"
