"""Every backend passes the one suite, on asyncio and on trio."""

from pathlib import Path

import pytest

from restartpoint.storage.sqlite import InlineHop
from restartpoint_oracle.conformance.storage import StorageFactory, StorageSuite
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, SqlitePlace


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
        return JsonlPlace(tmp_path)


class TestSqlite(OnBothLoops, StorageSuite):
    @pytest.fixture
    def storage_factory(self, tmp_path: Path) -> StorageFactory:
        return SqlitePlace(tmp_path)


class TestSqliteInline(StorageSuite):
    @pytest.fixture
    def storage_factory(self, tmp_path: Path) -> StorageFactory:
        return SqlitePlace(tmp_path, new_hop=InlineHop)
