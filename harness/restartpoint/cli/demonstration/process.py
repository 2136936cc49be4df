"""The child as its parent sees it: started, watched until it stands where it shall die, killed."""

from __future__ import annotations

import os
import select
import subprocess
import sys

import msgspec

from restartpoint.cli.demonstration.child import FINISHED, STANDING
from restartpoint.cli.demonstration.scene import Backend, Stage

__all__ = ["ChildFailed", "Ended", "run_child"]

_PATIENCE_S = 60
_KILLED = -9


class ChildFailed(Exception):
    """The child ended in another way than it was told to; its own words are on stderr."""


class Ended(msgspec.Struct, frozen=True):
    """How the child ended: killed, or alive because its place to die never came."""

    pid: int
    killed: bool


def run_child(stage: Stage, backend: Backend, kill_at: str) -> Ended:
    """Run the prompt in a child process and kill it at the place that ``kill_at`` names.

    Raises:
        ChildFailed: it failed, or came to nothing within a minute.
    """
    command = [sys.executable, "-m", "restartpoint.cli.demonstration.child", str(stage.folder), backend, kill_at]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            said = _first_line(process)
            if said == STANDING:
                process.kill()  # SIGKILL
            code = process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            raise ChildFailed("the child does not end") from None
        finally:
            process.kill()
    if code == _KILLED:
        return Ended(process.pid, killed=True)
    if code == 0 and said == FINISHED:
        return Ended(process.pid, killed=False)
    raise ChildFailed(f"the child ended with code {code}")


def _first_line(process: subprocess.Popen[bytes]) -> bytes:
    """The line that the child says, or nothing when it dies in silence."""
    assert process.stdout is not None
    descriptor, said = process.stdout.fileno(), b""
    while not said.endswith(b"\n"):
        ready, _, _ = select.select([descriptor], [], [], _PATIENCE_S)
        if not ready:
            raise ChildFailed("the child says nothing")
        part = os.read(descriptor, 64)
        if not part:
            break
        said += part
    return said
