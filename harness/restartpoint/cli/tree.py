"""The entries of a session as rows: the trunk straight down, side branches indented, long stretches folded."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from typing import TypeAlias

import msgspec

from restartpoint.contract import Entry

__all__ = ["Fold", "Row", "folded", "rows_of"]

FOLD_ABOVE = 30
"""Stretches without a branch or a mark that are longer than this are folded."""

_HEAD, _TAIL = 5, 15


class Row(msgspec.Struct, frozen=True):
    """An entry at a depth of branching, from 0; ``opens`` is true on the first entry of a side branch."""

    depth: int
    opens: bool
    entry: Entry


class Fold(msgspec.Struct, frozen=True):
    """The number of entries that are left out."""

    depth: int
    count: int


Line: TypeAlias = Row | Fold


def rows_of(entries: Sequence[Entry], trunk_leaf: str | None) -> list[Row]:
    """Every entry once, parents first. ``entries`` come by ascending sequence number.

    Of several children, the one on the way to ``trunk_leaf`` goes on at the depth of its parent, else the one that the
    newest entry descends from; the others stand between, one level deeper. An entry whose parent does not come before
    it, which only a damaged tree has, stands like a root. Nothing recurses, however deep the tree.
    """
    by_id = {entry.id: entry for entry in entries}
    children: defaultdict[str | None, list[Entry]] = defaultdict(list)
    before: set[str] = set()
    for entry in entries:
        children[entry.parent_id if entry.parent_id in before else None].append(entry)
        before.add(entry.id)
    rank = _ranks(entries, by_id, trunk_leaf)
    rows: list[Row] = []
    waiting = _next(children[None], rank, 0)
    while waiting:
        row = waiting.pop()
        rows.append(row)
        waiting += _next(children.get(row.entry.id, []), rank, row.depth)
    return rows


def _ranks(entries: Sequence[Entry], by_id: dict[str, Entry], trunk_leaf: str | None) -> dict[str, tuple[bool, int]]:
    """For each entry: whether the trunk passes it, and the newest sequence number below it."""
    newest = {entry.id: entry.seq for entry in entries}
    for entry in reversed(entries):
        if entry.parent_id in newest:
            newest[entry.parent_id] = max(newest[entry.parent_id], newest[entry.id])
    trunk: set[str] = set()
    at = trunk_leaf
    while at is not None and at in by_id and at not in trunk:
        trunk.add(at)
        at = by_id[at].parent_id
    return {entry_id: (entry_id in trunk, seq) for entry_id, seq in newest.items()}


def _next(children: list[Entry], rank: dict[str, tuple[bool, int]], depth: int) -> list[Row]:
    """The children as a stack: the side branches by age on top, the trunk at the bottom."""
    if not children:
        return []
    trunk = max(children, key=lambda child: rank[child.id])
    sides = sorted((child for child in children if child is not trunk), key=lambda child: -child.seq)
    return [Row(depth, False, trunk), *(Row(depth + 1, True, child) for child in sides)]


def folded(rows: Sequence[Row], marked: Collection[str]) -> list[Line]:
    """The rows with long plain stretches folded; ``marked`` entries and the ends of stretches stay."""
    lines: list[Line] = []
    stretch: list[Row] = []
    for row in rows:
        if row.opens or row.entry.id in marked or (stretch and stretch[-1].depth != row.depth):
            lines += _fold(stretch)
            stretch = []
        if row.opens or row.entry.id in marked:
            lines.append(row)
        else:
            stretch.append(row)
    return [*lines, *_fold(stretch)]


def _fold(stretch: list[Row]) -> list[Line]:
    if len(stretch) <= FOLD_ABOVE:
        return list(stretch)
    left_out = len(stretch) - _HEAD - _TAIL
    return [*stretch[:_HEAD], Fold(stretch[0].depth, left_out), *stretch[-_TAIL:]]
