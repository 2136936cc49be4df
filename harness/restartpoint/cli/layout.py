"""Rows of texts in columns that fit any width and end without trailing blanks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import zip_longest

from rich.console import Console
from rich.text import Text

__all__ = ["print_rows"]

_INDENT = 2
_GAP = 2
_LEAST_LAST = 24
_LEAST = 8


def print_rows(console: Console, rows: Sequence[Sequence[Text]]) -> None:
    """Print rows of equally many cells; the last column takes what is left and wraps, others wrap when they must."""
    if not rows:
        return
    widths = _widths(rows, console.width)
    for row in rows:
        cells = [list(cell.wrap(console, width, overflow="fold")) for cell, width in zip(row, widths, strict=True)]
        for parts in zip_longest(*cells, fillvalue=Text()):
            console.print(_joined(parts, widths), no_wrap=True, overflow="ignore", crop=False)


def _widths(rows: Sequence[Sequence[Text]], room: int) -> list[int]:
    natural = [max(1, *(cell.cell_len for cell in column)) for column in zip(*rows, strict=True)]
    others = natural[:-1]
    room -= _INDENT + _GAP * len(others)
    while room - sum(others) < _LEAST_LAST and max(others, default=0) > _LEAST:
        others[others.index(max(others))] -= 1
    return [*others, max(room - sum(others), _LEAST)]


def _joined(parts: Sequence[Text], widths: Sequence[int]) -> Text:
    line = Text(" " * _INDENT)
    for part, width in zip(parts[:-1], widths[:-1], strict=True):
        line.append_text(part)
        line.append(" " * (width - part.cell_len + _GAP))
    line.append_text(parts[-1])
    line.rstrip()
    return line
