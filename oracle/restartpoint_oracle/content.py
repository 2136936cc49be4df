"""All that a session holds, as JSON, from a storage and from the model, so that the two can be compared."""

from __future__ import annotations

from restartpoint.contract import NAMESPACES, EntryScan, UsageScan
from restartpoint.storage import Storage
from restartpoint_oracle.wire import Json, JsonObject, entry_json, register_json, stats_json, usage_json
from restartpoint_reference import EntryScan as ModelEntryScan
from restartpoint_reference import Namespace, State, list_registers, scan_entries, scan_usage
from restartpoint_reference import UsageScan as ModelUsageScan

__all__ = ["content_of_model", "content_of_storage", "state_of_content"]


async def content_of_storage(storage: Storage) -> JsonObject:
    """``{entries, registers, usage, stats}`` through the queries: rows by sequence, registers by namespace and key."""
    registers: list[Json] = []
    for namespace in NAMESPACES.values():
        registers.extend([register_json(one) for one in await storage.list_registers(namespace)])
    return {
        "entries": [entry_json(one) for one in await storage.scan_entries(EntryScan())],
        "registers": registers,
        "usage": [usage_json(one) for one in await storage.scan_usage(UsageScan())],
        "stats": stats_json(await storage.get_stats()),
    }


def content_of_model(state: State) -> JsonObject:
    """The same of a state of the model."""
    return {
        "entries": [one.to_json() for one in scan_entries(state, ModelEntryScan())],
        "registers": [one.to_json() for namespace in Namespace for one in list_registers(state, namespace)],
        "usage": [one.to_json() for one in scan_usage(state, ModelUsageScan())],
        "stats": state.stats.to_json(),
    }


def state_of_content(content: JsonObject) -> State:
    """The model's state of an existing session; raises ``Refused`` for rows that no session can hold."""
    entries, registers, usage = (content[part] for part in ("entries", "registers", "usage"))
    assert isinstance(entries, list)
    assert isinstance(registers, list)
    assert isinstance(usage, list)
    return State.from_parts(entries, registers, usage)
