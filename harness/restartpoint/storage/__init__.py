"""One session's durable store behind one port, and its backends (§1)."""

from restartpoint.storage.port import Storage

__all__ = ["Storage"]
