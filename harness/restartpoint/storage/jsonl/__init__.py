"""The JSONL backend: one file per session, one line and one write per commit (§1.7)."""

from restartpoint.storage.jsonl.files import Durability, FileCalls
from restartpoint.storage.jsonl.storage import JsonlStorage

__all__ = ["Durability", "FileCalls", "JsonlStorage"]
