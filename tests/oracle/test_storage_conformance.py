"""Every backend passes the one suite, on asyncio and on trio."""

from pathlib import Path

import pytest

from restartpoint_oracle.conformance.storage import StorageFactory, StorageSuite
from tests.oracle.backends import JsonlPlace, MemoryPlace


class OnBothLoops:
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request: pytest.FixtureRequest) -> str:
        return str(request.param)


class TestMemory(OnBothLoops, StorageSuite):
    @pytest.fixture
    def storage_factory(self) -> StorageFactory:
        return MemoryPlace()


class TestJsonl(OnBothLoops, StorageSuite):
    @pytest.fixture
    def storage_factory(self, tmp_path: Path) -> StorageFactory:
        return JsonlPlace(tmp_path / "session.jsonl")
