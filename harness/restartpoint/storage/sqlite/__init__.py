"""The SQLite backend: one database file per session (§1.7)."""

from restartpoint.storage.sqlite.hop import AiosqliteHop, Hop, InlineHop, ThreadHop, default_hop
from restartpoint.storage.sqlite.lease import LeaseSettings
from restartpoint.storage.sqlite.storage import SqliteStorage

__all__ = ["AiosqliteHop", "Hop", "InlineHop", "LeaseSettings", "SqliteStorage", "ThreadHop", "default_hop"]
