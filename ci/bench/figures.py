"""One figure of a benchmark, in the shape in which every part prints it."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

__all__ = ["Row", "figure"]

Row = dict[str, str | int | float]


def figure(what: str, backend: str, history: int, samples: Sequence[float], unit: str) -> Row:
    """The row of one figure: ``n`` samples with their median, minimum and maximum."""
    return {
        "what": what,
        "backend": backend,
        "history": history,
        "n": len(samples),
        "median": round(statistics.median(samples), 3),
        "min": round(min(samples), 3),
        "max": round(max(samples), 3),
        "unit": unit,
    }
