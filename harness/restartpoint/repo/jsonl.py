"""Sessions as JSONL files of one folder (§1.7, §2.8)."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from restartpoint.contract import SessionMetadata
from restartpoint.repo.files import FileRepository
from restartpoint.seams import Clock, FaultPoints, IdGenerator
from restartpoint.session import first_transaction
from restartpoint.storage import Storage
from restartpoint.storage.jsonl import Durability, JsonlStorage

__all__ = ["JsonlRepository"]


class JsonlRepository(FileRepository):
    """Each session is ``<id>.jsonl``, with the sidecar ``<id>.jsonl.lock`` once it was open for writing.

    ``durability`` says what a resolved commit survives: "process" its end, "power" also the loss of power.
    """

    suffix = ".jsonl"

    def __init__(
        self,
        root: str | PathLike[str],
        *,
        durability: Durability = "process",
        clock: Clock | None = None,
        ids: IdGenerator | None = None,
        faults: FaultPoints | None = None,
    ) -> None:
        super().__init__(root, clock=clock, ids=ids, faults=faults)
        self._durability: Durability = durability

    async def _create_file(self, path: Path, metadata: SessionMetadata) -> Storage:
        return await JsonlStorage.create(
            path,
            metadata,
            first_transaction(),
            clock=self._clock,
            durability=self._durability,
            faults=self._faults,
        )

    async def _open_file(self, path: Path, *, read_only: bool) -> Storage:
        return await JsonlStorage.open(
            path, clock=self._clock, durability=self._durability, faults=self._faults, read_only=read_only
        )

    async def _read_metadata(self, path: Path) -> SessionMetadata:
        return await JsonlStorage.read_metadata(path)

    async def _delete_file(self, path: Path) -> None:
        await JsonlStorage.delete(path)
