"""Entries, ledger rows and writes on disk: exact bytes, absent keys, and fields that this version does not know."""

import msgspec
import pytest

from restartpoint.contract import (
    FACT_CUSTOM,
    LANE_LEAF,
    BranchSummaryPayload,
    CompactionPayload,
    CustomPayload,
    Entry,
    EntryDraft,
    EntryPayload,
    EntryType,
    InsertEntry,
    InsertUsage,
    JsonObject,
    MessagePayload,
    RegisterDelete,
    RegisterSet,
    SessionMetadata,
    UsageDraft,
    UsageRow,
    Write,
    custom_type_of,
    encode_json,
    entry_from_wire,
    entry_payload_from_wire,
    entry_payload_to_wire,
    entry_to_wire,
    entry_type_of,
    usage_row_from_wire,
    usage_row_to_wire,
    write_to_wire,
)  # fmt: skip

USER: JsonObject = {"role": "user", "content": "hi", "timestamp": 1}
USAGE: JsonObject = {"input": 1, "cost": {"total": 0.5}, "vendor": "x"}
PLACED = '"seq":3,"timestamp":9,"id":"e","parentId":"p",'

ENTRIES: list[tuple[EntryPayload, str]] = [
    (MessagePayload(message=USER), '"type":"message","message":{"role":"user","content":"hi","timestamp":1}'),
    (
        MessagePayload(message={"role": "toolResult", "z": 1, "a": 2}, terminate=True),
        '"type":"message","message":{"role":"toolResult","z":1,"a":2},"terminate":true',
    ),
    (
        CompactionPayload(summary="s", retained_tail=[], tokens_before=5, from_hook=False),
        '"type":"compaction","summary":"s","retainedTail":[],"tokensBefore":5,"fromHook":false',
    ),
    (
        CompactionPayload(
            summary="s", retained_tail=[{"role": "user"}], tokens_before=0, from_hook=True, details=None, usage=USAGE
        ),
        '"type":"compaction","summary":"s","retainedTail":[{"role":"user"}],"tokensBefore":0,"details":null,'
        '"usage":{"input":1,"cost":{"total":0.5},"vendor":"x"},"fromHook":true',
    ),
    (
        BranchSummaryPayload(from_id="f", summary="s", from_hook=False),
        '"type":"branch_summary","fromId":"f","summary":"s","fromHook":false',
    ),
    (
        BranchSummaryPayload(from_id="f", summary="s", from_hook=True, details={"d": 1}, usage={}),
        '"type":"branch_summary","fromId":"f","summary":"s","details":{"d":1},"usage":{},"fromHook":true',
    ),
    (CustomPayload(custom_type="c"), '"type":"custom","customType":"c"'),
    (CustomPayload(custom_type="c", data=None), '"type":"custom","customType":"c","data":null'),
    (CustomPayload(custom_type="c", data={"k": []}), '"type":"custom","customType":"c","data":{"k":[]}'),
    (
        MessagePayload(message=USER, extra={"later": [1], "also": None}),
        '"type":"message","message":{"role":"user","content":"hi","timestamp":1},"later":[1],"also":null',
    ),
]  # fmt: skip


def entry(payload: EntryPayload) -> Entry:
    return Entry(id="e", parent_id="p", seq=3, timestamp=9, payload=payload)


@pytest.mark.covers("ST-2.1-01", "ST-2.1-02", "ST-2.1-03", "ST-2.1-04")
@pytest.mark.parametrize("payload, text", ENTRIES)
def test_an_entry_has_exactly_these_bytes_and_reads_back(payload: EntryPayload, text: str) -> None:
    encoded = f"{{{PLACED}{text}}}".encode()
    assert encode_json(entry_to_wire(entry(payload))) == encoded
    assert entry_from_wire(msgspec.json.decode(encoded)) == entry(payload)
    fields = entry_payload_to_wire(payload)
    assert entry_payload_from_wire(entry_type_of(payload).value, custom_type_of(payload), fields) == payload


@pytest.mark.covers("ST-1.4-01", "ST-1.7-70")
@pytest.mark.parametrize(
    "write, text",
    [
        (
            InsertEntry(EntryDraft(id="e", parent_id=None, payload=CustomPayload(custom_type="c"))),
            '{"kind":"entry","seq":3,"timestamp":9,"id":"e","parentId":null,"type":"custom","customType":"c"}',
        ),
        (
            InsertUsage(UsageDraft(id="u", usage=USAGE)),
            '{"kind":"usage","seq":3,"id":"u","adjustment":false,'
            '"usage":{"input":1,"cost":{"total":0.5},"vendor":"x"}}',
        ),
        (
            InsertUsage(UsageDraft(id="u", usage={}, adjustment=True, entry_id="e", details=None)),
            '{"kind":"usage","seq":3,"id":"u","entryId":"e","adjustment":true,"usage":{},"details":null}',
        ),
        (
            RegisterSet(LANE_LEAF, "main", None),
            '{"kind":"register","op":"set","seq":3,"namespace":"lane.leaf","key":"main","value":null}',
        ),
        (
            RegisterDelete(FACT_CUSTOM, "k"),
            '{"kind":"register","op":"delete","seq":3,"namespace":"fact.custom","key":"k"}',
        ),
    ],
)
def test_a_write_has_exactly_these_bytes(write: Write, text: str) -> None:
    assert encode_json(write_to_wire(write, 3, 9)) == text.encode()


@pytest.mark.covers("ST-1.1-13", "ST-1.1-15", "ST-1.1-12", "ST-1.1-11")
@pytest.mark.parametrize(
    "row, text",
    [
        (UsageRow(id="u", seq=1, usage=USAGE), '{"seq":1,"id":"u","adjustment":false,"usage":'
         '{"input":1,"cost":{"total":0.5},"vendor":"x"}}'),
        (UsageRow(id="u", seq=1, usage={}, entry_id="e"),
         '{"seq":1,"id":"u","entryId":"e","adjustment":false,"usage":{}}'),
        (UsageRow(id="u", seq=1, usage={}, details=None),
         '{"seq":1,"id":"u","adjustment":false,"usage":{},"details":null}'),
    ],
)  # fmt: skip
def test_a_ledger_row_has_exactly_these_bytes_and_reads_back(row: UsageRow, text: str) -> None:
    assert encode_json(usage_row_to_wire(row)) == text.encode()
    assert usage_row_from_wire(msgspec.json.decode(text)) == row


@pytest.mark.covers("ST-2.8-01")
@pytest.mark.parametrize(
    "metadata, text",
    [
        (SessionMetadata(id="s", created_at=1), '{"id":"s","createdAt":1,"storageVersion":1,"storeGeneration":1}'),
        (
            SessionMetadata(id="s", created_at=1, store_generation=2, cwd="/", parent_session_id="p",
                            legacy_parent_session_path="l"),
            '{"id":"s","createdAt":1,"storageVersion":1,"storeGeneration":2,"cwd":"/","parentSessionId":"p",'
            '"legacyParentSessionPath":"l"}',
        ),
    ],
)  # fmt: skip
def test_metadata_has_exactly_these_bytes_and_reads_back(metadata: SessionMetadata, text: str) -> None:
    assert encode_json(metadata) == text.encode()
    assert msgspec.json.decode(text, type=SessionMetadata) == metadata


@pytest.mark.covers("ST-2.8-22")
def test_metadata_without_a_generation_reads_as_the_first() -> None:
    read = msgspec.json.decode('{"id":"s","createdAt":1,"storageVersion":1}', type=SessionMetadata)
    assert read.store_generation == 1


@pytest.mark.covers("ST-1.1-06", "ST-1.1-07", "ST-2.1-07", "ST-0.2-02")
def test_there_are_four_types_and_only_custom_entries_have_a_custom_type() -> None:
    assert [kind.value for kind in EntryType] == ["message", "compaction", "branch_summary", "custom"]
    assert {entry_type_of(payload) for payload, _ in ENTRIES} == set(EntryType)
    for payload, _ in ENTRIES:
        placed = entry(payload)
        assert (placed.custom_type == "c") is (placed.type is EntryType.CUSTOM)
        assert ("customType" in entry_to_wire(placed)) is (placed.type is EntryType.CUSTOM)
    with pytest.raises(msgspec.ValidationError, match="label"):
        entry_from_wire({"seq": 3, "timestamp": 9, "id": "e", "parentId": None, "type": "label"})


@pytest.mark.covers("ST-2.1-12")
@pytest.mark.parametrize(
    "change",
    [
        {"message": None}, {"message": "hi"}, {"id": 7}, {"parentId": 7}, {"seq": "3"}, {"timestamp": None},
        {"terminate": 1}, {"type": "custom"}, {"type": None}, {"type": "compaction"}, {"type": "branch_summary"},
    ],
)  # fmt: skip
def test_an_entry_of_another_shape_is_refused(change: dict[str, object]) -> None:
    wire = {"seq": 3, "timestamp": 9, "id": "e", "parentId": None, "type": "message", "message": USER}
    assert entry_from_wire(dict(wire)).payload == MessagePayload(message=USER)
    with pytest.raises(msgspec.ValidationError):
        entry_from_wire({**wire, **change})
    for key in wire:
        with pytest.raises(msgspec.ValidationError):
            entry_from_wire({name: value for name, value in wire.items() if name != key})


def test_custom_payloads_alone_may_be_empty() -> None:
    assert entry_payload_from_wire("custom", "c", {}) == CustomPayload(custom_type="c")
    for kind in ("message", "compaction", "branch_summary"):
        with pytest.raises(msgspec.ValidationError):
            entry_payload_from_wire(kind, None, {})
