"""What a session file holds, read once: identity, lanes, entries, registers, open operations, ledger."""

from __future__ import annotations

import re
from typing import Any

import msgspec

from restartpoint.cli.opening import SessionFile
from restartpoint.cli.operation import Standing, standing_of
from restartpoint.cli.soundness import lane_problems, ledger_problems, operation_problems, tree_problems
from restartpoint.contract import (
    LANE_CONFIG,
    LANE_LAST_RESULT,
    LANE_LEAF,
    LANE_STATE,
    NAMESPACES,
    OP_META,
    OP_STATE,
    Entry,
    EntryScan,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    MessagePayload,
    Operation,
    OperationState,
    Register,
    RunState,
    SessionMetadata,
    SessionStats,
    ToolsPhase,
    UsageRow,
    UsageScan,
    encode_json,
    entry_to_wire,
    source_calls,
    usage_row_to_wire,
)
from restartpoint.session import SessionReader

__all__ = ["DOCUMENT_FORMAT", "Inspection", "LaneView", "OpenOperation", "document", "inspect_session"]

DOCUMENT_FORMAT = 1
"""The version of the JSON document; a change that a program could trip over raises it."""


class LaneView(msgspec.Struct, frozen=True, kw_only=True):
    """A lane as its registers say; None where a register is missing."""

    name: str
    leaf_id: str | None
    state: LaneState | None
    configuration: LaneConfiguration | None
    last_result: LaneLastResult | None


class OpenOperation(msgspec.Struct, frozen=True, kw_only=True):
    """An operation that has not ended. ``meta`` is None only in a damaged session."""

    id: str
    meta: Operation | None
    state: OperationState
    standing: Standing


class Inspection(msgspec.Struct, frozen=True, kw_only=True):
    """A session as one value. Entries and rows ascend by sequence number, registers by namespace and key."""

    path: str
    backend: str
    torn_bytes: int
    metadata: SessionMetadata
    stats: SessionStats
    lanes: tuple[LaneView, ...]
    entries: tuple[Entry, ...]
    registers: tuple[Register[Any], ...]
    operations: tuple[OpenOperation, ...]
    usage: tuple[UsageRow, ...]
    problems: tuple[str, ...]
    """What contradicts itself, one text each; empty in a sound session."""


async def inspect_session(file: SessionFile) -> Inspection:
    """Everything in an open session file."""
    session = file.session
    entries = await session.scan_entries(EntryScan())
    usage, stats = await session.scan_usage(UsageScan()), await session.get_stats()
    registers = [register for namespace in NAMESPACES.values() for register in await session.list_registers(namespace)]
    lanes = await _lanes(session)
    return Inspection(
        path=str(file.path),
        backend=file.backend,
        torn_bytes=file.torn_bytes,
        metadata=session.metadata,
        stats=stats,
        lanes=lanes,
        entries=tuple(entries),
        registers=tuple(registers),
        operations=await _operations(session, {entry.id: entry for entry in entries}),
        usage=tuple(usage),
        problems=(
            *tree_problems(entries),
            *ledger_problems(entries, usage, stats),
            *[text for lane in lanes for text in await lane_problems(session, lane.name)],
            *await operation_problems(session),
        ),
    )


async def _lanes(session: SessionReader) -> tuple[LaneView, ...]:
    leaves = {register.key: register.value for register in await session.list_registers(LANE_LEAF)}
    states = {register.key: register.value for register in await session.list_registers(LANE_STATE)}
    configurations = {register.key: register.value for register in await session.list_registers(LANE_CONFIG)}
    results = {register.key: register.value for register in await session.list_registers(LANE_LAST_RESULT)}
    return tuple(
        LaneView(
            name=name,
            leaf_id=leaves.get(name),
            state=states.get(name),
            configuration=configurations.get(name),
            last_result=results.get(name),
        )
        for name in sorted({*leaves, *states, *configurations, *results})
    )


async def _operations(session: SessionReader, entries: dict[str, Entry]) -> tuple[OpenOperation, ...]:
    metas = {register.key: register.value for register in await session.list_registers(OP_META)}
    return tuple(
        OpenOperation(
            id=register.key,
            meta=metas.get(register.key),
            state=register.value,
            standing=standing_of(register.value, _tool_names(register.value, entries)),
        )
        for register in await session.list_registers(OP_STATE)
    )


def _tool_names(state: OperationState, entries: dict[str, Entry]) -> dict[int, str]:
    """The names of the tools in the open batch, by source position."""
    if not isinstance(state, RunState) or not isinstance(state.phase, ToolsPhase):
        return {}
    source = entries.get(state.phase.batch.assistant_entry_id)
    if source is None or not isinstance(source.payload, MessagePayload):
        return {}
    return {call.source_index: call.name for call in source_calls(source.payload.message)}


# --- for programs -----------------------------------------------------------------------------------------------


def document(inspection: Inspection) -> str:
    """The inspection as one line of ASCII JSON, in the field names of the files; safe to show on a terminal."""
    wire = {
        "format": DOCUMENT_FORMAT,
        "path": inspection.path,
        "backend": inspection.backend,
        "tornBytes": inspection.torn_bytes,
        "problems": inspection.problems,
        "session": inspection.metadata,
        "stats": {"messageCount": inspection.stats.message_count, "usage": inspection.stats.usage},
        "lanes": [_lane_document(lane) for lane in inspection.lanes],
        "operations": [_operation_document(operation) for operation in inspection.operations],
        "entries": [entry_to_wire(entry) for entry in inspection.entries],
        "registers": [
            {"namespace": register.namespace.name, "key": register.key, "seq": register.seq, "value": register.value}
            for register in inspection.registers
        ],
        "usage": [usage_row_to_wire(row) for row in inspection.usage],
    }
    text = encode_json(_without_surrogates(wire)).decode()
    return _BEYOND_ASCII.sub(_escape, text)


def _lane_document(lane: LaneView) -> dict[str, object]:
    return {
        "name": lane.name,
        "leafId": lane.leaf_id,
        "currentOperationId": None if lane.state is None else lane.state.current_operation_id,
        "pendingNextRun": [] if lane.state is None else lane.state.pending_next_run,
        "configuration": lane.configuration,
        "lastResult": lane.last_result,
    }


def _operation_document(operation: OpenOperation) -> dict[str, object]:
    standing = operation.standing
    return {
        "operationId": operation.id,
        "lane": None if operation.meta is None else operation.meta.lane,
        "kind": type(operation.state).__struct_config__.tag,
        "control": type(operation.state.control).__struct_config__.tag,
        "phase": standing.phase,
        "reserved": [{"id": reserved.id, "purpose": reserved.purpose} for reserved in standing.reserved],
        "resume": standing.resume,
    }


def _without_surrogates(wire: dict[str, object]) -> dict[str, object]:
    """The path as text that JSON can carry: bytes of a file name that are no UTF-8 become escapes."""
    return {**wire, "path": str(wire["path"]).encode(errors="backslashreplace").decode()}


# Characters outside ASCII occur only inside the strings of a document, where an escape means the same.
_BEYOND_ASCII = re.compile(r"[^ -~]")


def _escape(found: re.Match[str]) -> str:
    units = found[0].encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
