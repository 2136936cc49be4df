"""A process that has imported everything and forks a demo child for each line it reads: FOLDER BACKEND KILL_AT.

It answers each line with how that child ended: ``signal N`` or ``exit N``. Forking costs milliseconds where starting
Python costs half a second, and the forked child is killed by the same SIGKILL.
"""

import os
import sys
import traceback
from pathlib import Path
from typing import cast

import anyio

from restartpoint.cli.demonstration.child import play
from restartpoint.cli.demonstration.kill import parse_kill_at
from restartpoint.cli.demonstration.scene import Backend, Stage

__all__ = ["serve"]


def serve() -> None:
    for line in sys.stdin:
        folder, backend, kill_at = line.rstrip("\n").split("\t")
        pid = os.fork()
        if pid == 0:
            _play(folder, backend, kill_at)
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"signal {-code}\n" if code < 0 else f"exit {code}\n")
        sys.stdout.flush()


def _play(folder: str, backend: str, kill_at: str) -> None:
    code = 1
    try:
        anyio.run(play, Stage(Path(folder)), cast("Backend", backend), parse_kill_at(kill_at))
        code = 0
    finally:
        if code:
            traceback.print_exc()
        os._exit(code)


if __name__ == "__main__":
    serve()
