"""Every test here runs on asyncio and on trio, over one session file, and may look at every statement it takes."""

import sqlite3
from pathlib import Path
from typing import Any

import pytest

from tests.harness.storage.sqlite.stage import Connections
from tests.harness.storage.stage import HeldClock

__all__ = ["anyio_backend", "clock", "connections", "path"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def clock() -> HeldClock:
    return HeldClock()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "s1.sqlite"


@pytest.fixture
def connections(monkeypatch: pytest.MonkeyPatch) -> Connections:
    """Every connection that is made from now on, with the statements that it ran."""
    seen, connect = Connections(), sqlite3.connect

    def traced(database: str, **options: Any) -> sqlite3.Connection:
        return seen.add(database, connect(database, **options))

    monkeypatch.setattr(sqlite3, "connect", traced)
    return seen
