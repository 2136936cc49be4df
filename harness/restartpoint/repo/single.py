"""One session file, opened for reading whatever its name, folder and backend (`restartpoint inspect`)."""

from __future__ import annotations

from os import PathLike
from pathlib import Path

from restartpoint.errors import CorruptFile, NotBuiltYet, SessionNotFound
from restartpoint.repo.port import ReadOnlySession
from restartpoint.seams import SystemClock
from restartpoint.storage.jsonl import JsonlStorage

__all__ = ["open_session_file"]

_SQLITE = b"SQLite format 3\x00"


async def open_session_file(path: str | PathLike[str]) -> ReadOnlySession:
    """A reader of a JSONL or SQLite session; the content says which, links are followed.

    Takes no lock or lease and never writes; the session may be open elsewhere.

    Raises:
        SessionNotFound: there is no file at the path.
        CorruptFile: the file is no session, or cannot be read.
        UnsupportedStorageVersion: a newer program wrote it.
    """
    file, beginning = _beginning(Path(path))
    if beginning == _SQLITE:
        raise NotBuiltYet("1.7", "reading SQLite sessions")
    return ReadOnlySession(await JsonlStorage.open(file, clock=SystemClock(), read_only=True))


def _beginning(path: Path) -> tuple[Path, bytes]:
    """The file that the path leads to, and its first bytes."""
    try:
        resolved = path.resolve(strict=True)
        with resolved.open("rb") as file:
            return resolved, file.read(len(_SQLITE))
    except FileNotFoundError:
        raise SessionNotFound(str(path)) from None
    except OSError as error:
        raise CorruptFile(str(path), f"the file cannot be opened: {error.strerror}") from error
