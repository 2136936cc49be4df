"""What a check of the invariants looks at: all of a state, or what one commit touched (§3.3, §9.1).

Every invariant is one predicate over a scope. Over the whole state it says what is unsound; over a commit it says the
same, at the cost of what the commit touched, provided that the state before it was sound.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import Refused
from restartpoint_reference.store import FIRST_SEQ, Delta, State, Stats
from restartpoint_reference.transitions.frame import NotThis, View, once
from restartpoint_reference.transitions.terminal import owned_pending_ids
from restartpoint_reference.vocabulary.entries import Entry, Namespace, Register, UsageRow
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import LaneState

OPERATION_REGISTERS = (Namespace.OP_META, Namespace.OP_STATE, Namespace.OP_TOOL_ARGS, Namespace.OP_PREPARATION)
LANE_REGISTERS = (Namespace.LANE_STATE, Namespace.LANE_LEAF, Namespace.LANE_CONFIG, Namespace.LANE_LAST_RESULT)


@dataclass(frozen=True, kw_only=True)
class Scope:
    """A state, and which of its lanes, operations, rows and registers to look at.

    ``before`` is the sound state that the commit was made from; None when everything is looked at.
    """

    state: State
    before: State | None
    lane_names: tuple[str, ...]
    operation_ids: tuple[str, ...]
    entries: tuple[Entry, ...]
    usage: tuple[UsageRow, ...]
    registers: tuple[Register, ...]
    touched_pending: tuple[str, ...]

    @once
    def named(self) -> tuple[View, ...]:
        """A view of every lane, whether or not it can be read."""
        return tuple(View(self.state, name) for name in self.lane_names)

    @once
    def lanes(self) -> tuple[View, ...]:
        """A view of every lane whose own registers can be read."""
        return tuple(filter(_is_readable, self.named))

    @once
    def operations(self) -> tuple[View, ...]:
        """A view of every open operation whose registers can be read."""
        return tuple(filter(_has_readable_operation, self.lanes))

    @property
    def reserving(self) -> tuple[View, ...]:
        """The open operations whose reserved ids a row or queued item may take: no register lists who reserves."""
        if self.before is None or not (self.entries or self.usage or self.touched_pending):
            return self.operations
        everywhere = {_lane_of(self.state, operation) for operation in self.state.namespaces[Namespace.OP_META]}
        elsewhere = _lanes(self.state, sorted(everywhere.difference(self.lane_names)))
        return (*self.operations, *filter(_has_readable_operation, elsewhere))

    @once
    def listed(self) -> tuple[str, ...]:
        """The queued ids that these lanes and their operations list, as often as they do."""
        return _listed_by(self.lanes, self.operations)

    @once
    def was_listed(self) -> frozenset[str]:
        """The queued ids that these lanes and their operations listed before the commit."""
        if self.before is None:
            return frozenset()
        lanes = _lanes(self.before, self.lane_names)
        return frozenset(_listed_by(lanes, filter(_has_readable_operation, lanes)))

    def is_listed_elsewhere(self, id: str) -> bool:
        """Whether another lane lists it: what waited in a sound state was listed by exactly one."""
        if self.before is None or id in self.was_listed:
            return False
        return self.before.register(Namespace.PENDING_ENTRY, id) is not None

    @property
    def base(self) -> tuple[int, Stats]:
        """The least sequence number of these rows and registers, and the statistics without them."""
        if self.before is None:
            return FIRST_SEQ, Stats(message_count=0, usage=zero_usage())
        return self.before.next_seq, self.before.stats


def whole(state: State) -> Scope:
    """Everything that the state holds; costs the size of the session."""
    operations = {_owner(key) for namespace in OPERATION_REGISTERS for key in state.namespaces[namespace]}
    return Scope(
        state=state,
        before=None,
        lane_names=tuple(_keys(state, LANE_REGISTERS)),
        operation_ids=tuple(sorted(operations)),
        entries=tuple(state.entries.values()),
        usage=tuple(sorted(state.usage.values(), key=lambda row: row.seq)),
        registers=tuple(register for held in state.namespaces.values() for register in held.values()),
        touched_pending=tuple(state.namespaces[Namespace.PENDING_ENTRY]),
    )


def touched(state: State, delta: Delta) -> Scope:
    """What the commit touched: the lanes and operations whose registers it wrote, with each other's, and its rows."""
    written = delta.registers
    lanes = {key for namespace, key in written if namespace in LANE_REGISTERS}
    operations = {_owner(key) for namespace, key in written if namespace in OPERATION_REGISTERS}
    operations.update(_open_on(state, lane) for lane in lanes)
    operations.update(_open_on(delta.before, lane) for lane in lanes if (Namespace.LANE_STATE, lane) in written)
    operations.discard("")
    lanes.update(_lane_of(state, operation) for operation in operations)
    lanes.update(
        _lane_of(delta.before, operation) for operation in operations if (Namespace.OP_META, operation) in written
    )
    lanes.discard("")
    return Scope(
        state=state,
        before=delta.before,
        lane_names=tuple(sorted(lanes)),
        operation_ids=tuple(sorted(operations)),
        entries=delta.entries,
        usage=delta.usage,
        registers=tuple(after for _, after in written.values() if after is not None),
        touched_pending=tuple(key for namespace, key in written if namespace is Namespace.PENDING_ENTRY),
    )


def _lanes(state: State, names: Iterable[str]) -> tuple[View, ...]:
    """A view of each of these lanes that exists and whose own registers can be read."""
    return tuple(filter(_is_readable, (View(state, name) for name in names)))


def _is_readable(view: View) -> bool:
    try:
        _ = (view.lane_state, view.leaf)
    except NotThis:
        return False
    return True


def _has_readable_operation(view: View) -> bool:
    if view.lane_state.current_operation_id is None:
        return False
    try:
        _ = (view.operation, view.operation_state)
    except NotThis:
        return False
    return True


def _listed_by(lanes: Iterable[View], operations: Iterable[View]) -> tuple[str, ...]:
    """The queued ids in the lists of these lanes and of these operations."""
    found = [key for view in lanes for key in view.lane_state.pending_next_run]
    found.extend(key for view in operations for key in owned_pending_ids(view))
    return tuple(found)


def _keys(state: State, namespaces: Iterable[Namespace]) -> list[str]:
    maps: list[PersistentMap[str, Register]] = [state.namespaces[namespace] for namespace in namespaces]
    return sorted({key for held in maps for key in held})


def _owner(key: str) -> str:
    """The operation that a key of ``op.*`` belongs to (§1.3)."""
    return key.partition(":")[0]


def _open_on(state: State, lane: str) -> str:
    """The operation that the lane names, empty when there is none or the register cannot be read."""
    register = state.register(Namespace.LANE_STATE, lane)
    try:
        held = None if register is None else register.read(LaneState.from_json).current_operation_id
    except Refused:
        return ""
    return "" if held is None else held


def _lane_of(state: State, operation: str) -> str:
    """The lane that the operation's acceptance data names, empty when there is none."""
    meta = state.value(Namespace.OP_META, operation)
    lane = meta.get("lane") if isinstance(meta, dict) else None
    return lane if isinstance(lane, str) else ""
