"""Which transition made an observed commit (§3): the model as judge of a system that it did not drive.

From a state and the writes that were seen, the inputs of a transition are extracted, its writes are computed anew from
them, and both must be equal as JSON, in the same order. A commit is explained by exactly one transition. What this does
not see is the sequence numbers and ids of §1.4: hold the same commit to ``apply`` as well.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Refused, Unset, differences, same
from restartpoint_reference.store import State
from restartpoint_reference.transitions import ALL, FROM_PHASE, WITHOUT_LANE
from restartpoint_reference.transitions.frame import Commit, Inputs, NotThis, Refusal, Seen, Transition, View, Writes
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    InsertEntry,
    InsertUsage,
    Namespace,
    Observed,
    SetRegister,
    Write,
)


@dataclass(frozen=True, kw_only=True)
class Explained:
    """The commit is this transition's. ``lane`` is None for commits of the session as a whole.

    ``detail`` names the settlement that completed a tool batch, as the transition it would be in mid-batch.
    """

    name: str
    id: str
    section: str
    lane: str | None
    inputs: Inputs
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Unexplained:
    """No transition makes this commit. ``nearest`` is the one that comes closest, None when the writes are unreadable.

    ``differences`` say, worded for a person, where the commit departs from it and which of its guards forbids it.
    """

    nearest: str | None
    section: str
    lane: str | None
    differences: tuple[str, ...]

    def __str__(self) -> str:
        head = "no transition makes this commit"
        if self.nearest is not None:
            head += f"; the nearest is {self.nearest} (§{self.section}) on lane {self.lane}"
        return "\n  - ".join((head, *self.differences))


def explain(state: State, observed_writes: Json | Observed, timestamp: int | Unset = UNSET) -> Explained | Unexplained:
    """The transition and inputs that make the observed commit from this state, or the nearest and the differences.

    ``observed_writes`` are the JSONL elements of one commit (§1.7) in order, sequence numbers and timestamps included.
    """
    try:
        observed = (
            observed_writes if isinstance(observed_writes, Observed) else Observed.from_json(observed_writes, timestamp)
        )
    except Refused as refused:
        return Unexplained(nearest=None, section="1.4", lane=None, differences=(f"writes{refused}",))
    if not observed.writes:
        return Unexplained(
            nearest=None, section="1.4", lane=None, differences=("a transaction has at least one write",)
        )
    lane = lane_of(state, observed.writes)
    view, seen = View(state, lane or ""), Seen(observed)
    misses: list[_Miss] = []
    for candidate in _candidates(view, lane):
        found = _attempt(candidate, view, seen)
        if isinstance(found, Explained):
            return found
        misses.append(found)
    return _nearest([_in_full(miss, view, seen) for miss in misses], seen, lane)


def lane_of(state: State, writes: Iterable[Write]) -> str | None:
    """The lane whose line the commit was made on: the one it names, or that of the operation that it writes."""
    registers = [write for write in writes if isinstance(write, SetRegister | DeleteRegister)]
    for write in registers:
        if write.namespace.value.startswith("lane."):
            return write.key
    for write in registers:
        if write.namespace.value.startswith("op."):
            meta = state.value(Namespace.OP_META, write.key.partition(":")[0])
            if isinstance(meta, dict) and isinstance(meta.get("lane"), str):
                return str(meta["lane"])
    return None


@dataclass(frozen=True, kw_only=True)
class _Miss:
    """A transition that does not make the commit, and as far as it came: its inputs, what forbids it, its writes."""

    transition: Transition
    inputs: Inputs | None = None
    reasons: tuple[str, ...] = ()
    writes: Writes | None = None


def _candidates(view: View, lane: str | None) -> tuple[Transition, ...]:
    if lane is None:
        return WITHOUT_LANE
    try:
        return FROM_PHASE[view.phase]
    except NotThis:
        return tuple(found for found in ALL if found.takes_lane)


def _attempt(candidate: Transition, view: View, seen: Seen) -> Explained | _Miss:
    """The commit as this transition, or why it is another. What differs is told once nothing else explains it."""
    try:
        inputs = candidate.extract(view, seen)
    except NotThis as reason:
        return _Miss(transition=candidate, reasons=(str(reason),))
    match candidate.commit(view, inputs):
        case Refusal(guard=guard, reason=given):
            return _Miss(
                transition=candidate, inputs=inputs, reasons=(f"{guard.replace('_', ' ')} does not hold: {given}",)
            )
        case Commit(writes=writes, lane=lane, detail=detail):
            if not _are_same(writes, seen.observed.writes):
                return _Miss(transition=candidate, inputs=inputs, writes=writes)
            return Explained(
                name=candidate.name,
                id=candidate.id,
                section=candidate.section,
                lane=lane,
                inputs=inputs,
                detail=detail,
            )


def _in_full(miss: _Miss, view: View, seen: Seen) -> _Miss:
    """A miss with the differences of the writes that it makes, or would make if nothing forbade it."""
    if miss.inputs is None:
        return miss
    try:
        writes = miss.transition.build(view, miss.inputs) if miss.writes is None else miss.writes
    except (NotThis, ValueError):
        return miss
    found = _write_differences(writes, seen.observed.writes)
    return replace(miss, reasons=(*miss.reasons, *found), writes=writes)


def _nearest(misses: Sequence[_Miss], seen: Seen, lane: str | None) -> Unexplained:
    if not misses:
        reason = f"nothing commits on lane {lane} now" if lane is not None else "the writes name no lane and no fact"
        return Unexplained(nearest=None, section="3", lane=lane, differences=(reason,))
    best = min(misses, key=lambda miss: (miss.inputs is None, miss.writes is None, len(miss.reasons)))
    reasons = best.reasons
    if best.inputs is None:
        signature = ", ".join(_signature(write) for write in seen.observed.writes)
        reasons = (*reasons, f"the commit is: {signature}")
    return Unexplained(nearest=best.transition.name, section=best.transition.section, lane=lane, differences=reasons)


def _are_same(expected: Sequence[Write], found: Sequence[Write]) -> bool:
    return len(expected) == len(found) and all(map(_same_write, expected, found))


def _write_differences(expected: Sequence[Write], found: Sequence[Write]) -> tuple[str, ...]:
    """How the writes that were seen depart from the computed ones, aligned by what they write to."""
    wanted, seen = [_signature(write) for write in expected], [_signature(write) for write in found]
    lines: list[str] = []
    for tag, low, high, start, end in SequenceMatcher(None, wanted, seen, autojunk=False).get_opcodes():
        if tag == "equal":
            for here, there in zip(range(low, high), range(start, end), strict=True):
                lines.extend(differences(expected[here].to_json(), found[there].to_json(), f"writes[{there}]"))
            continue
        lines.extend(f"missing at {start}: {text}" for text in wanted[low:high])
        lines.extend(f"unexpected writes[{start + at}]: {text}" for at, text in enumerate(seen[start:end]))
    return tuple(lines)


def _same_write(one: Write, other: Write) -> bool:
    """Whether two writes are equal as JSON, asked field by field: most inputs are the very objects that were seen."""
    match one, other:
        case SetRegister(), SetRegister():
            return one.namespace is other.namespace and one.key == other.key and same(one.value, other.value)
        case InsertEntry(entry=entry), InsertEntry(entry=seen):
            place = (entry.id, entry.parent_id, entry.type, entry.custom_type)
            return place == (seen.id, seen.parent_id, seen.type, seen.custom_type) and _same_fields(
                entry.payload, seen.payload
            )
        case InsertUsage(row=row), InsertUsage(row=noted):
            return _same_fields(row.to_json(), noted.to_json())
        case _:
            return one == other


def _same_fields(one: JsonObject, other: JsonObject) -> bool:
    return one.keys() == other.keys() and all(same(value, other[key]) for key, value in one.items())


def _signature(write: Write) -> str:
    match write:
        case InsertEntry(entry=entry):
            return f"insert entry {entry.id}"
        case InsertUsage(row=row):
            return f"insert usage {row.id}"
        case SetRegister():
            return f"set {write.namespace}/{write.key}"
        case DeleteRegister():
            return f"delete {write.namespace}/{write.key}"
