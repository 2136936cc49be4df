"""The advisory lock of a session file: `flock` on a sidecar that is never renamed (beyond §1.7).

`flock` belongs to one open of the sidecar, so a second open of the same session is refused in this process as in any
other, and the kernel drops the lock when the owner dies. The session file itself cannot carry it, since publishing
renames that file.
"""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from restartpoint.errors import SessionLocked, StorageError

__all__ = ["FileLock", "lock_path"]


def lock_path(path: Path) -> Path:
    """The sidecar of a session file."""
    return path.with_name(f"{path.name}.lock")


class FileLock:
    """A held lock. The sidecar stays on disk when it is released."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor

    @classmethod
    def acquire(cls, path: Path) -> FileLock:
        """The lock of the session file ``path``, which need not exist.

        Raises:
            SessionLocked: somebody holds it.
            StorageError: the sidecar cannot be opened or locked.
        """
        sidecar = lock_path(path)
        while True:
            try:
                descriptor = os.open(sidecar, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
            except OSError as error:
                raise StorageError(f"{sidecar}: the lock file cannot be opened: {error.strerror}") from error
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if _is_at(descriptor, sidecar):
                    return cls(sidecar, descriptor)
            except BlockingIOError:
                os.close(descriptor)
                raise SessionLocked(str(path)) from None
            except OSError as error:
                os.close(descriptor)
                raise StorageError(f"{sidecar}: this file system cannot lock it: {error.strerror}") from error
            # The holder before us deleted the session together with its sidecar; lock the new one.
            os.close(descriptor)

    def release(self, *, remove: bool = False) -> None:
        """Let others in; ``remove`` deletes the sidecar, for a session that was deleted under the lock."""
        if remove:
            self._path.unlink(missing_ok=True)
        fcntl.flock(self._descriptor, fcntl.LOCK_UN)
        os.close(self._descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether the path still leads to the open file."""
    try:
        there = path.stat()
    except FileNotFoundError:
        return False
    return os.path.samestat(os.fstat(descriptor), there)
