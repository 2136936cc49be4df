"""The sweep with real processes: each dies by SIGKILL around a commit, and this process finds what it left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp

import msgspec

from restartpoint_oracle.crash.chronicle import Chronicle, read_line
from restartpoint_oracle.crash.orders import CHRONICLE, Order, name_of
from restartpoint_oracle.crash.report import SweepReport
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.crash.sweep import MakeScenario, Sweeping, stops_around
from restartpoint_oracle.places import Place

__all__ = ["sweep_killed"]


async def sweep_killed(
    scenario: MakeScenario, place: Callable[[Path], Place], folder: Path, *, every: int = 1
) -> SweepReport:
    """As ``sweep``, with a process of its own for each run, which SIGKILL ends; ``every``-th boundary only, if given.

    The killed process and this one have the folder of a place in common, nothing else. So ``scenario`` and ``place``
    are found by their names in a module, and a scenario whose tools shall remember anything keeps it in files.

    Raises:
        LookupError: ``scenario`` or ``place`` cannot be imported by another process.
    """
    names = name_of(scenario), name_of(place)
    sweeping = await Sweeping.over(scenario, lambda: place(_new(folder)))
    with _zygote() as ended:
        for stop in [*stops_around(sweeping.commits)][::every]:
            mine = _new(folder)
            order = Order(scenario=names[0], place=names[1], folder=str(mine), commit=stop.commit, before=stop.before)
            run = Run(scenario(), place(mine))
            await sweeping.judge(f"by SIGKILL {sweeping.name_of(stop)}", run, _finishing(run, order, ended))
    return sweeping.report


def _new(folder: Path) -> Path:
    return Path(mkdtemp(dir=folder))


def _finishing(run: Run, order: Order, ended: Callable[[Order], str]) -> Callable[[], Awaitable[object]]:
    async def finish() -> None:
        how = ended(order)
        if how != f"signal {signal.SIGKILL.value}":
            raise RuntimeError(f"the process did not die where it should but ended with {how}")
        lines = (Path(order.folder) / CHRONICLE).read_bytes().splitlines()
        run.chronicle = Chronicle(map(read_line, lines))
        await run.go_on(await run.found())

    return finish


@contextmanager
def _zygote() -> Iterator[Callable[[Order], str]]:
    """Has an order carried out by a child of a process that is ready, and tells how the child ended."""
    command = [sys.executable, "-m", "restartpoint_oracle.crash.zygote"]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(path or "." for path in sys.path)}
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        orders, answers = process.stdin, process.stdout

        def ended(order: Order) -> str:
            orders.write(msgspec.json.encode(order) + b"\n")
            orders.flush()
            return answers.readline().decode().strip() or "no answer"

        yield ended
        orders.close()
