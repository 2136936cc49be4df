"""Repositories: where sessions are created, found, opened once, and deleted (§2.8)."""

from restartpoint.repo.files import FileRepository
from restartpoint.repo.jsonl import JsonlRepository
from restartpoint.repo.memory import MemoryRepository
from restartpoint.repo.names import check_session_id
from restartpoint.repo.port import Listing, ReadOnlySession, SessionRef, SessionRepository, Unreadable
from restartpoint.repo.single import open_session_file
from restartpoint.repo.sqlite import SqliteRepository

__all__ = [
    "FileRepository",
    "JsonlRepository",
    "Listing",
    "MemoryRepository",
    "ReadOnlySession",
    "SessionRef",
    "SessionRepository",
    "SqliteRepository",
    "Unreadable",
    "check_session_id",
    "open_session_file",
]
