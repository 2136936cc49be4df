"""One session's durable store behind one port, and its backends (§1)."""

from restartpoint.storage.jsonl import Durability, FileCalls, JsonlStorage
from restartpoint.storage.memory import MemoryStorage
from restartpoint.storage.port import Storage
from restartpoint.storage.ram import SessionData
from restartpoint.storage.sqlite import LeaseSettings, SqliteStorage

__all__ = [
    "Durability",
    "FileCalls",
    "JsonlStorage",
    "LeaseSettings",
    "MemoryStorage",
    "SessionData",
    "SqliteStorage",
    "Storage",
]
