"""Exploring several slices of the model at once, each in a process of its own."""

from __future__ import annotations

import multiprocessing
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from queue import Empty
from typing import TYPE_CHECKING, Any

from restartpoint_reference import TRANSITIONS
from restartpoint_reference.explore import SLICES, Report, Slice, search

if TYPE_CHECKING:
    from multiprocessing.queues import Queue

__all__ = ["BadBounds", "bounded", "explore", "never_taken"]


class BadBounds(ValueError):
    """Bounds that name nothing, or slices that do not exist; the message says what there is."""


def bounded(part: Slice, bounds: str) -> Slice:
    """The slice within ``quick`` or ``full`` bounds, or ``quick`` ones with some limits replaced (``turns=3,crash=2``).

    Raises:
        BadBounds: a limit that no slice has, or that is no number.
    """
    if bounds == "quick":
        return part
    if bounds == "full":
        return replace(part, bounds={**part.bounds, **part.full})
    limits: dict[str, int] = {}
    for item in bounds.split(","):
        name, _, limit = item.partition("=")
        if not any(name in known.bounds for known in SLICES):
            names = sorted({name for known in SLICES for name in known.bounds})
            raise BadBounds(f"no limit {name!r}; there are quick, full, and limits on {', '.join(names)}")
        if not limit.isdecimal():
            raise BadBounds(f"the limit {name} is a number: {name}=2")
        limits[name] = int(limit)
    return replace(part, bounds={**part.bounds, **{name: limits[name] for name in limits if name in part.bounds}})


def explore(slices: Sequence[Slice], jobs: int) -> Iterator[tuple[Report, bool]]:
    """The reports of all slices as they come; the flag says that it is the last one of its slice."""
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager, ProcessPoolExecutor(jobs, mp_context=context) as pool:
        reports: Queue[tuple[Report, bool]] = manager.Queue()  # type: ignore[assignment]
        futures = [pool.submit(_explore, part.name, dict(part.bounds), reports) for part in slices]
        left = len(slices)
        while left:
            try:
                report, ended = reports.get(timeout=0.5)
            except Empty:
                for future in futures:
                    if future.done():
                        future.result()
                continue
            left -= ended
            yield report, ended


def _explore(name: str, bounds: dict[str, int], reports: Any) -> None:
    (part,) = (part for part in SLICES if part.name == name)
    last: Report | None = None
    for report in search(replace(part, bounds=bounds)):
        reports.put((report, False))
        last = report
    reports.put((last, True))


def never_taken(reports: Iterable[Report]) -> tuple[str, ...]:
    """The transitions of the model that none of these searches took."""
    taken = {name for report in reports for name in report.taken}
    return tuple(name for name in TRANSITIONS if name not in taken)
