"""What is true of every commit (§9.1): the invariants that speak of a change and not of a state, as named predicates.

Each takes what the commit changed and answers the sentences that say where it breaks the rule.
"""

from collections.abc import Callable, Iterator
from typing import Final

from restartpoint_reference.shapes import UNSET, Refused
from restartpoint_reference.store import Delta
from restartpoint_reference.transitions.frame import NotThis, View
from restartpoint_reference.vocabulary.entries import Namespace, Register
from restartpoint_reference.vocabulary.messages import StopReason, role
from restartpoint_reference.vocabulary.registers import LaneLastResult, LaneState, OperationKind


def _written(delta: Delta, namespace: Namespace) -> Iterator[tuple[str, Register | None, Register | None]]:
    """The registers of a namespace that the commit wrote: key, before, after."""
    for (held, key), (before, after) in delta.registers.items():
        if held is namespace:
            yield key, before, after


def _open(register: Register | None) -> str | None:
    """The operation that a ``lane.state`` names."""
    try:
        return None if register is None else register.read(LaneState.from_json).current_operation_id
    except Refused:
        return None


def leaves_move_by_append_or_navigation(delta: Delta) -> Iterator[str]:
    """A leaf moves onto an entry of the same commit, or by the navigation that is open on its lane (§9.1, 9)."""
    inserted = [entry.id for entry in delta.entries]
    for lane, before, after in _written(delta, Namespace.LANE_LEAF):
        if before is None or (after is not None and (after.value == before.value or after.value in inserted)):
            continue
        if _kind(delta, lane) is not OperationKind.NAVIGATION:
            yield f"lane.leaf/{lane} moves to {None if after is None else after.value} without an entry or a navigation"


def _kind(delta: Delta, lane: str) -> OperationKind | None:
    try:
        return View(delta.before, lane).operation.kind
    except NotThis:
        return None


def operations_are_accepted_by_idle_lanes(delta: Delta) -> Iterator[str]:
    """A lane names an operation only after it named none (§9.1, 14)."""
    for lane, before, after in _written(delta, Namespace.LANE_STATE):
        ended, begun = _open(before), _open(after)
        if ended is not None and begun not in (None, ended):
            yield f"lane {lane} turns from {ended} to {begun}"


def results_come_with_the_end(delta: Delta) -> Iterator[str]:
    """lane.lastResult is written exactly by the commit that ends the operation it names, once (§9.1, 16, 21)."""
    ended = {
        lane: _open(before) for lane, before, after in _written(delta, Namespace.LANE_STATE) if _open(after) is None
    }
    written = {lane: after for lane, _, after in _written(delta, Namespace.LANE_LAST_RESULT)}
    for lane in sorted({lane for lane, operation in ended.items() if operation is not None} | set(written)):
        named = _named(written.get(lane))
        if named is None or named != ended.get(lane):
            yield f"lane {lane} ends {ended.get(lane)} and writes the result of {named}"


def _named(register: Register | None) -> str | None:
    try:
        return None if register is None else register.read(LaneLastResult.from_json).operation_id
    except Refused:
        return None


def acceptance_data_is_written_once(delta: Delta) -> Iterator[str]:
    """What an operation was accepted with, its preparations and its calls' arguments never change (§1.3, §3.1)."""
    for (namespace, key), (before, after) in delta.registers.items():
        if namespace in _WRITTEN_ONCE and before is not None and after is not None:
            yield f"{namespace}/{key} is written again"


_WRITTEN_ONCE: Final = (Namespace.OP_META, Namespace.OP_PREPARATION, Namespace.OP_TOOL_ARGS)


def overflow_recovery_is_spent_by_a_compaction(delta: Delta) -> Iterator[str]:
    """A state says that overflow recovery was used only if the one before it did, or if it compacts one (§9.1, 18)."""
    for operation, before, after in _written(delta, Namespace.OP_STATE):
        now = UNSET if after is None else after.value
        if _says_used(now) and not (before is not None and _says_used(before.value)) and not _compacts_overflow(now):
            yield f"op.state/{operation} claims an overflow recovery that never took place"


def new_input_restores_overflow_recovery(delta: Delta) -> Iterator[str]:
    """A commit that adds a prompt or a tool result and owes a turn says that recovery is unused (§9.1, 18)."""
    added = [entry.id for entry in delta.entries if role(entry.message or {}) in ("user", "toolResult")]
    for operation, _, after in _written(delta, Namespace.OP_STATE):
        if added and after is not None and _says_used(after.value):
            yield f"op.state/{operation} has spent its overflow recovery, although {added[-1]} is new"


def _says_used(state: object) -> bool:
    """Whether what a run owes, will owe after its compaction, or generates has spent its overflow recovery (§3.2)."""
    match state:
        case {"phase": {"continuation": {"overflowRecoveryUsed": True}}}:
            return True
        case {"phase": {"resumeAfter": {"continuation": {"overflowRecoveryUsed": True}}}}:
            return True
        case {"phase": {"generation": {"context": {"overflowRecoveryUsed": True}}}}:
            return True
    return False


def _compacts_overflow(value: object) -> bool:
    match value:
        case {"phase": {"kind": "compaction", "reason": "overflow"}}:
            return True
    return False


def aborted_responses_come_with_cancellation(delta: Delta) -> Iterator[str]:
    """The commit that settles a request by an aborted response writes a state that is asked to stop (§9.1, 19)."""
    inserted = {entry.id: entry.message or {} for entry in delta.entries}
    for operation, before, after in _written(delta, Namespace.OP_STATE):
        response = inserted.get(_reserved_response(before), {})
        if response.get("stopReason") == StopReason.ABORTED and not _is_cancelled(after):
            yield f"op.state/{operation} settles by an aborted response without a cancellation"


def _reserved_response(register: Register | None) -> str:
    """The entry id that a pending request or poll reserved, empty when there is none (§3.2)."""
    match None if register is None else register.value:
        case {"phase": {"generation": {"responseEntryId": str() as id}}}:
            return id
        case {"phase": {"deferred": {"responseEntryId": str() as id}}}:
            return id
    return ""


def _is_cancelled(register: Register | None) -> bool:
    match None if register is None else register.value:
        case {"control": {"status": "cancel_requested"}}:
            return True
    return False


CHANGES: Final[tuple[tuple[str, Callable[[Delta], Iterator[str]]], ...]] = (
    ("9.1, 9", leaves_move_by_append_or_navigation),
    ("9.1, 14", operations_are_accepted_by_idle_lanes),
    ("9.1, 16", results_come_with_the_end),
    ("3.1", acceptance_data_is_written_once),
    ("9.1, 18", overflow_recovery_is_spent_by_a_compaction),
    ("9.1, 18", new_input_restores_overflow_recovery),
    ("9.1, 19", aborted_responses_come_with_cancellation),
)
"""Every rule that one commit can break, with its section and number."""
