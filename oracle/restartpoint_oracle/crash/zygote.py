"""A process that has imported everything and forks a child for each order that it reads; each child kills itself.

It answers each line with how the child ended: ``signal N`` or ``exit N``. Forking costs milliseconds where starting
Python costs half a second, and the forked child dies by the same SIGKILL. SIGALRM ends a child that does neither.
"""

from __future__ import annotations

import os
import signal
import sys
import traceback
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import cast

import anyio
import msgspec

from restartpoint_oracle.crash.chronicle import Chronicle
from restartpoint_oracle.crash.mortal import Stop
from restartpoint_oracle.crash.orders import CHRONICLE, Order, importable
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.crash.sweep import MakeScenario
from restartpoint_oracle.places import Place

__all__ = ["serve"]

_LONGEST_S = 60


def serve() -> None:
    """Carry out orders until there are no more."""
    for line in sys.stdin:
        order = msgspec.json.decode(line, type=Order)
        make_scenario, make_place = importable(order.scenario), importable(order.place)
        pid = os.fork()
        if pid == 0:
            _play(order, cast("MakeScenario", make_scenario), cast("Callable[[Path], Place]", make_place))
        _, status = os.waitpid(pid, 0)
        code = os.waitstatus_to_exitcode(status)
        sys.stdout.write(f"signal {-code}\n" if code < 0 else f"exit {code}\n")
        sys.stdout.flush()


def _play(order: Order, make_scenario: MakeScenario, make_place: Callable[[Path], Place]) -> None:
    code = 1
    try:
        signal.alarm(_LONGEST_S)
        folder = Path(order.folder)
        descriptor = os.open(folder / CHRONICLE, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        chronicle = Chronicle(sink=partial(os.write, descriptor))
        run = Run(make_scenario(), make_place(folder), chronicle=chronicle)
        anyio.run(partial(run.begin, stop=Stop(order.commit, order.before), kill=_die))
        code = 0
    except BaseException:  # noqa: BLE001 - the child of a fork never returns into its parent's code
        traceback.print_exc()
    finally:
        os._exit(code)


def _die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    serve()
