from pathlib import Path
import pytest
from restartpoint.storage.sqlite import SqliteStorage
from restartpoint_oracle.conformance.storage import StorageFactory, StorageSuite
class Place:
    def __init__(self, path): self.path=path
    async def create(self, metadata, initial, *, clock, faults):
        return await SqliteStorage.create(self.path, metadata, initial, clock=clock, faults=faults)
    async def reopen(self, *, clock, faults):
        return await SqliteStorage.open(self.path, clock=clock, faults=faults)
class TestSqlite(StorageSuite):
    @pytest.fixture(params=["asyncio", "trio"])
    def anyio_backend(self, request): return str(request.param)
    @pytest.fixture
    def storage_factory(self, tmp_path: Path): return Place(tmp_path / "session.sqlite")
