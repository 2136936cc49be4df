"""Any durable value survives its own bytes: nothing is lost, reordered, or turned into another number."""

from typing import Any

import msgspec
import pytest
from hypothesis import given

from restartpoint.contract import (
    Entry,
    EntryDraft,
    InsertEntry,
    InsertUsage,
    MessagePayload,
    Namespace,
    UsageDraft,
    check_json,
    encode_json,
    entry_from_wire,
    entry_to_wire,
    usage_row_from_wire,
    write_to_wire,
)  # fmt: skip
from tests.harness.contract.shapes import drafts, json_objects, json_values, registers, usage_drafts


def decoded(data: bytes) -> Any:
    return msgspec.json.decode(data)


@pytest.mark.covers("ST-1.1-01", "ST-1.1-18")
@given(json_values)
def test_json_values_are_accepted_and_survive(value: Any) -> None:
    check_json(value)
    data = encode_json(value)
    assert decoded(data) == value
    assert encode_json(decoded(data)) == data


@given(registers())
def test_register_values_are_accepted_and_survive(register: tuple[Namespace[Any], Any]) -> None:
    namespace, value = register
    check_json(value)
    data = encode_json(value)
    for read in (namespace.decode(data), namespace.convert(decoded(data))):
        assert (type(read), read) == (type(value), value)
        assert encode_json(read) == data


@pytest.mark.covers("ST-2.1-05")
@given(drafts())
def test_entries_survive_with_the_fields_that_this_version_does_not_know(draft: EntryDraft) -> None:
    check_json(draft)
    data = encode_json(write_to_wire(InsertEntry(draft), 5, 6))
    read = entry_from_wire(decoded(data))
    assert read == Entry(id=draft.id, parent_id=draft.parent_id, seq=5, timestamp=6, payload=draft.payload)
    assert encode_json({"kind": "entry", **entry_to_wire(read)}) == data


@given(json_objects, json_objects)
def test_unknown_fields_of_a_message_and_of_its_entry_keep_their_order(message: Any, more: Any) -> None:
    more = {f"more {key}": value for key, value in more.items()}
    wire = {"seq": 1, "timestamp": 2, "id": "e", "parentId": None, "type": "message", "message": message, **more}
    read = entry_from_wire(decoded(encode_json(wire)))
    assert encode_json(entry_to_wire(read)) == encode_json(wire)
    assert isinstance(read.payload, MessagePayload)
    assert list(read.payload.extra) == list(more)


@pytest.mark.covers("ST-1.1-12", "ST-1.1-14")
@given(usage_drafts())
def test_ledger_rows_survive(draft: UsageDraft) -> None:
    data = encode_json(write_to_wire(InsertUsage(draft), 5, 6))
    row = usage_row_from_wire(decoded(data))
    assert (row.id, row.seq, row.usage, row.adjustment) == (draft.id, 5, draft.usage, draft.adjustment)
    assert (row.entry_id, row.details) == (draft.entry_id, draft.details)
