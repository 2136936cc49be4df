"""What the repositories with one file per session have in common: a folder, names, headers (§2.8)."""

from __future__ import annotations

from abc import abstractmethod
from os import PathLike
from pathlib import Path

from restartpoint.contract import STORAGE_VERSION, SessionMetadata
from restartpoint.errors import (
    CorruptFile,
    InvalidSessionId,
    SessionExists,
    SessionNotFound,
    StorageError,
    StorageInUse,
    UnsupportedStorageVersion,
)  # fmt: skip
from restartpoint.repo.names import check_session_id
from restartpoint.repo.port import Listing, SessionRepository, Unreadable
from restartpoint.seams import Clock, FaultPoints, IdGenerator
from restartpoint.storage import Storage

__all__ = ["FileRepository"]


class FileRepository(SessionRepository):
    """Sessions as files of one folder, each named by its session's id and the backend's suffix.

    The folder is made, for its owner only, when the first session is created. Other files in it are left alone;
    ids are checked before they become names and links are refused, so no session lies outside of the folder.
    """

    suffix: str
    """How the backend's session files end, dot included."""

    def __init__(
        self,
        root: str | PathLike[str],
        *,
        clock: Clock | None = None,
        ids: IdGenerator | None = None,
        faults: FaultPoints | None = None,
    ) -> None:
        super().__init__(clock=clock, ids=ids, faults=faults)
        self._root = Path(root)

    @property
    def root(self) -> Path:
        """The folder."""
        return self._root

    def path_of(self, session_id: str) -> Path:
        """The file of that session, whether or not it exists.

        Raises:
            InvalidSessionId: the id cannot become a file name.
        """
        check_session_id(session_id)
        return self._root / f"{session_id}{self.suffix}"

    async def list(self) -> Listing:
        """Every session by ascending id, from headers only, and each file with the suffix that is no session."""
        self._assert_open()
        sessions: list[SessionMetadata] = []
        unreadable: list[Unreadable] = []
        for path in _names(self._root, self.suffix):
            try:
                sessions.append(await self._listed(path))
            except SessionNotFound:
                continue  # deleted since the folder was read
            except (StorageError, UnsupportedStorageVersion, InvalidSessionId) as error:
                unreadable.append(Unreadable(path=str(path), reason=str(error)))
        sessions.sort(key=lambda metadata: metadata.id)
        return Listing(sessions=tuple(sessions), unreadable=tuple(unreadable))

    async def _listed(self, path: Path) -> SessionMetadata:
        session_id = path.name.removesuffix(self.suffix)
        check_session_id(session_id)
        metadata = await self._read_metadata(path)
        _check_identity(metadata, path, session_id)
        return metadata

    async def _create(self, metadata: SessionMetadata) -> Storage:
        path = self.path_of(metadata.id)
        _make_folder(self._root)
        try:
            return await self._create_file(path, metadata)
        except StorageInUse:
            # Somebody creates it at this moment or has it open; either way the id is taken.
            raise SessionExists(metadata.id) from None

    async def _open_storage(self, session_id: str) -> Storage:
        return await self._open_checked(session_id, read_only=False)

    async def _open_for_reading(self, session_id: str) -> Storage:
        return await self._open_checked(session_id, read_only=True)

    async def _open_checked(self, session_id: str, *, read_only: bool) -> Storage:
        path = self.path_of(session_id)
        try:
            storage = await self._open_file(path, read_only=read_only)
        except SessionNotFound:
            raise SessionNotFound(session_id) from None
        try:
            _check_identity(storage.metadata, path, session_id)
        except BaseException:
            await storage.close()
            raise
        return storage

    async def _delete(self, session_id: str) -> None:
        try:
            await self._delete_file(self.path_of(session_id))
        except SessionNotFound:
            raise SessionNotFound(session_id) from None

    # --- what a backend supplies --------------------------------------------------------------------------------

    @abstractmethod
    async def _create_file(self, path: Path, metadata: SessionMetadata) -> Storage:
        """A new file with the first transaction, published whole; raises ``SessionExists`` or ``StorageInUse``."""

    @abstractmethod
    async def _open_file(self, path: Path, *, read_only: bool) -> Storage:
        """The storage in an existing file."""

    @abstractmethod
    async def _read_metadata(self, path: Path) -> SessionMetadata:
        """The identity of the session in a file, from its header, without any claim."""

    @abstractmethod
    async def _delete_file(self, path: Path) -> None:
        """Remove a file and its sidecars; raises ``SessionNotFound`` or ``StorageInUse``."""


def _check_identity(metadata: SessionMetadata, path: Path, session_id: str) -> None:
    if metadata.id != session_id:
        raise CorruptFile(str(path), f"the file says that it is session {metadata.id!r}; give it back that name")
    if metadata.storage_version != STORAGE_VERSION:
        raise UnsupportedStorageVersion(str(path), metadata.storage_version, STORAGE_VERSION)


def _names(root: Path, suffix: str) -> list[Path]:
    """The candidates in a folder, by name; none when there is no folder."""
    try:
        return sorted(path for path in root.iterdir() if path.name.endswith(suffix) and not path.name.startswith("."))
    except FileNotFoundError:
        return []
    except OSError as error:
        raise StorageError(f"{root}: the sessions cannot be listed: {error.strerror}") from error


def _make_folder(root: Path) -> None:
    try:
        root.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StorageError(f"{root}: the folder of sessions cannot be made: {error.strerror}") from error
