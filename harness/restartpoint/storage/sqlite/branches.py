"""The private branch index: paths to the root as chains of segments (§2.6).

A segment holds the rows of one stretch of a path, and names the base segment and the sequence number through which
the path goes on there. Rows of a segment all lie above its ``base_seq``. It carries no authority: it follows from the
entries, and only an explicit repair rebuilds it.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass

from restartpoint.errors import StorageCorruption

__all__ = ["Segment", "append", "newest_of_type", "oldest_of_type", "segments", "seq_of"]

_INSERT_ROW = "INSERT INTO branch_entries (branch_id, entry_id, entry_seq, entry_type) VALUES (?, ?, ?, ?)"
_INSERT_SEGMENT = """INSERT INTO branch_meta (branch_id, tip_entry_id, tip_seq, base_branch_id, base_seq)
    VALUES (?, ?, ?, ?, ?)"""
_AT_TIP = "SELECT branch_id FROM branch_meta WHERE tip_entry_id = ?"
_MOVE_TIP = "UPDATE branch_meta SET tip_entry_id = ?, tip_seq = ? WHERE branch_id = ?"
# The other columns are those of the row with the greatest tip, of which there is one: tips are unique.
_COVERING = """SELECT b.branch_id, b.entry_seq, m.base_branch_id, m.base_seq, max(m.tip_seq)
    FROM branch_entries b CROSS JOIN branch_meta m ON m.branch_id = b.branch_id
    WHERE b.entry_id = ?"""
_BASE = "SELECT base_branch_id, base_seq FROM branch_meta WHERE branch_id = ?"
_NEWEST_OF_TYPE = """SELECT entry_seq FROM branch_entries
    WHERE branch_id = ? AND entry_type = ? AND entry_seq > ? AND entry_seq <= ? ORDER BY entry_seq DESC LIMIT 1"""
_OLDEST_OF_TYPE = """SELECT entry_seq FROM branch_entries
    WHERE branch_id = ? AND entry_type = ? AND entry_seq > ? AND entry_seq <= ? ORDER BY entry_seq LIMIT 1"""
_SEQ_OF = "SELECT entry_seq FROM branch_entries WHERE branch_id = ? AND entry_id = ?"
_PLACEMENTS = "SELECT id, parent_id, seq, type FROM entries ORDER BY seq"
_COPY = """INSERT INTO branch_entries (branch_id, entry_id, entry_seq, entry_type)
    SELECT ?, entry_id, entry_seq, entry_type FROM branch_entries
    WHERE branch_id = ? AND entry_seq > ? AND entry_seq <= ?"""


@dataclass(frozen=True, slots=True)
class Segment:
    """The stretch of a path that one segment holds: sequence numbers above ``above`` up to and with ``through``."""

    branch_id: str
    above: int
    through: int


def segments(connection: sqlite3.Connection, entry_id: str) -> Iterator[Segment]:
    """The path from an entry to its root, newest segment first, each cut where the one before it begins.

    Bases are looked up only as far as the caller asks; an entry that the index does not hold yields nothing.
    """
    branch_id, seq, base_id, base_seq, _ = connection.execute(_COVERING, (entry_id,)).fetchone()
    if branch_id is None:
        return
    segment = Segment(branch_id, 0 if base_id is None else base_seq, seq)
    yield segment
    while base_id is not None:
        branch_id, through = base_id, segment.above
        base_id, base_seq = connection.execute(_BASE, (branch_id,)).fetchone()
        segment = Segment(branch_id, 0 if base_id is None else base_seq, through)
        yield segment


def newest_of_type(connection: sqlite3.Connection, segment: Segment, entry_type: str) -> int | None:
    """The sequence number of the stretch's newest entry of a type."""
    row = connection.execute(
        _NEWEST_OF_TYPE, (segment.branch_id, entry_type, segment.above, segment.through)
    ).fetchone()
    return None if row is None else row[0]


def oldest_of_type(connection: sqlite3.Connection, segment: Segment, entry_type: str) -> int | None:
    """The sequence number of the stretch's oldest entry of a type."""
    row = connection.execute(
        _OLDEST_OF_TYPE, (segment.branch_id, entry_type, segment.above, segment.through)
    ).fetchone()
    return None if row is None else row[0]


def seq_of(connection: sqlite3.Connection, segment: Segment, entry_id: str) -> int | None:
    """The sequence number of an entry if the stretch holds it."""
    row = connection.execute(_SEQ_OF, (segment.branch_id, entry_id)).fetchone()
    return row[0] if row is not None and segment.above < row[0] <= segment.through else None


def append(
    connection: sqlite3.Connection,
    entry_id: str,
    parent_id: str | None,
    seq: int,
    entry_type: str,
    tips: dict[str, str],
) -> None:
    """Index a new entry below its parent, which the index holds; ``tips`` remembers at which segment's tip it is.

    A parent at a tip costs one row. Elsewhere a new segment begins, named by the entry: it copies what follows the
    newest compaction on the path through the parent, so that what an append copies does not grow with the path.
    """
    branch_id = None if parent_id is None else tips.pop(parent_id, None) or _at_tip(connection, parent_id)
    if branch_id is not None:
        connection.execute(_MOVE_TIP, (entry_id, seq, branch_id))
    else:
        branch_id = entry_id
        base = None if parent_id is None else _copy_above_compaction(connection, parent_id, branch_id)
        base_id, base_seq = (None, None) if base is None else (base.branch_id, base.through)
        connection.execute(_INSERT_SEGMENT, (branch_id, entry_id, seq, base_id, base_seq))
    connection.execute(_INSERT_ROW, (branch_id, entry_id, seq, entry_type))
    tips[entry_id] = branch_id


def _at_tip(connection: sqlite3.Connection, entry_id: str) -> str | None:
    """The segment that ends at the entry."""
    row = connection.execute(_AT_TIP, (entry_id,)).fetchone()
    return None if row is None else row[0]


def _copy_above_compaction(connection: sqlite3.Connection, leaf_id: str, branch_id: str) -> Segment | None:
    """Copy the path through the leaf down to its newest compaction; the base is the segment cut at that compaction.

    The search goes down the whole chain, since the newest compaction may lie in a base.
    """
    found = False
    for segment in segments(connection, leaf_id):
        found = True
        compaction = newest_of_type(connection, segment, "compaction")
        above = segment.above if compaction is None else compaction
        connection.execute(_COPY, (branch_id, segment.branch_id, above, segment.through))
        if compaction is not None:
            return Segment(segment.branch_id, segment.above, compaction)
    if not found:
        raise unindexed(leaf_id)
    return None


def rebuild(connection: sqlite3.Connection) -> None:
    """Replace the whole index by one made anew from the entries, inside the transaction that is open."""
    connection.execute("DELETE FROM branch_entries")
    connection.execute("DELETE FROM branch_meta")
    tips: dict[str, str] = {}
    for entry_id, parent_id, seq, type_ in connection.execute(_PLACEMENTS):
        append(connection, entry_id, parent_id, seq, type_, tips)


def unindexed(entry_id: str) -> StorageCorruption:
    """What is wrong when the index does not hold an entry that exists."""
    return StorageCorruption(f"the branch index lacks entry {entry_id!r}; repair the session, which rebuilds it")
