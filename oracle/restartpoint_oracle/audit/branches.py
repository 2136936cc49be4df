"""Whether the private branch index of a SQLite session says of every path what the entries say (§2.6, §9.1, 10)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

from restartpoint_oracle.audit.rows import Branch, Place
from restartpoint_oracle.wire import Json
from restartpoint_reference import State

__all__ = ["branch_problems"]


def branch_problems(state: State, branches: Sequence[Branch], places: Sequence[Place]) -> Iterator[str]:
    """Where following a chain of segments does not give the path to the root; costs the number of rows.

    A chain is right when each segment climbs by parents to its tip and continues its base at the entry through which
    the base is named.
    """
    held: dict[Json, list[Place]] = defaultdict(list)
    for place in places:
        held[place[0]].append(place)
        entry = state.entries.get(str(place[1]))
        if entry is None or (entry.seq, entry.type.value) != (place[2], place[3]):
            yield f"branch {place[0]!r} holds {place[1]!r} as {place[3]} at {place[2]}, which no entry is"
    indexed = {place[1] for place in places}
    yield from (f"entry {key} is on no branch" for key in state.entries if key not in indexed)
    known = {branch[0]: branch for branch in branches}
    yield from (f"the rows of branch {name!r} belong to no segment" for name in held if name not in known)
    for branch in branches:
        yield from _segment_problems(state, branch, held, known)


def _segment_problems(
    state: State, branch: Branch, held: dict[Json, list[Place]], known: dict[Json, Branch]
) -> Iterator[str]:
    name, tip, tip_seq, base, base_seq = branch
    rows = held.get(name, [])
    if not rows or (rows[-1][1], rows[-1][2]) != (tip, tip_seq):
        yield f"the tip of branch {name!r} is not its newest row"
        return
    above: Json = None
    if base is not None:
        through = [place[1] for place in held.get(base, []) if place[2] == base_seq]
        below = known[base][4] if base in known else None
        if len(through) != 1 or (isinstance(below, int) and isinstance(base_seq, int) and base_seq <= below):
            yield f"branch {name!r} continues {base!r} at {base_seq}, which that segment does not hold"
            return
        above = through[0]
    for place in rows:
        entry = state.entries.get(str(place[1]))
        if entry is not None and entry.parent_id != above:
            yield f"branch {name!r} has {place[1]!r} follow {above!r}, but its parent is {entry.parent_id!r}"
        above = place[1]
