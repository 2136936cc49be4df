"""A lane in short: its leaf, and whether its open operation runs, waits, or is being aborted (§5.2, §5.4)."""

from __future__ import annotations

from restartpoint.contract import (
    LANE_LEAF,
    LANE_STATE,
    OP_META,
    OP_STATE,
    CancelRequested,
    LaneInfo,
    LaneOperation,
    OperationStatus,
    kind_of,
)
from restartpoint.errors import InvariantBroken
from restartpoint.runtime.owner import LaneOwner
from restartpoint.session import SessionReader

__all__ = ["lane_info"]


async def lane_info(reader: SessionReader, owner: LaneOwner) -> LaneInfo:
    """The lane as its registers and this process say now."""
    state, leaf = await reader.get_registers([(LANE_STATE, owner.lane), (LANE_LEAF, owner.lane)])
    if state is None or leaf is None:
        raise InvariantBroken(f"lane {owner.lane!r} has no state or no leaf")
    operation_id = state.value.current_operation_id
    operation = None if operation_id is None else await _operation(reader, owner, operation_id)
    return LaneInfo(name=owner.lane, leaf_id=leaf.value, operation=operation)


async def _operation(reader: SessionReader, owner: LaneOwner, operation_id: str) -> LaneOperation | None:
    meta, state = await reader.get_registers([(OP_META, operation_id), (OP_STATE, operation_id)])
    if meta is None or state is None:
        return None  # it ended between the two reads
    status: OperationStatus = "suspended" if owner.active is None else "running"
    if isinstance(state.value.control, CancelRequested):
        status = "aborting"
    return LaneOperation(id=operation_id, kind=kind_of(meta.value.intent), status=status)
