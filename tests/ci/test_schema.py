"""The generated schemas are fresh, accept what the runtime writes, and refuse what it refuses."""

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator

from ci import schema
from restartpoint.contract import (
    CustomPayload,
    EntryDraft,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    SessionMetadata,
    UsageDraft,
    UsageRow,
    Write,
    encode_json,
    entry_to_wire,
    usage_row_to_wire,
    write_to_wire,
)  # fmt: skip
from tests.harness.contract.goldens import GOLDENS
from tests.harness.contract.test_goldens import COMPACTION, DECIDING, PLAIN, READY, SUMMARIZED, SUMMARY
from tests.harness.contract.test_wire import ENTRIES, entry

SCHEMAS = schema.schemas()


def accepts(name: str) -> Callable[[object], bool]:
    validator = Draft202012Validator(SCHEMAS[name])
    return lambda value: bool(validator.is_valid(value))


def plain(value: object) -> Any:
    return msgspec.json.decode(encode_json(value))


def test_the_schema_files_are_fresh() -> None:
    written = {path.name: path.read_text(encoding="utf-8") for path in schema.FOLDER.glob("*.json")}
    assert written == {name: schema.text_of(made) for name, made in SCHEMAS.items()}
    assert schema.main(["--check"]) == 0


def test_a_stale_or_superfluous_file_is_noticed_and_repaired(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(schema, "FOLDER", tmp_path)
    assert schema.main([]) == 0
    (tmp_path / "entry.json").write_text("{}")
    (tmp_path / "old.json").write_text("{}")
    assert schema.main(["--check"]) == 1
    assert "entry.json, old.json" in capsys.readouterr().out
    assert schema.main([]) == 0
    assert schema.main(["--check"]) == 0


@pytest.mark.parametrize("name", SCHEMAS)
def test_each_document_is_a_schema(name: str) -> None:
    Draft202012Validator.check_schema(SCHEMAS[name])


@pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)
def test_every_golden_is_accepted_and_none_with_an_unknown_field(golden: Any) -> None:
    wire = msgspec.json.decode(golden.text)
    accepted = accepts(f"register.{golden.namespace.name}.json")
    assert accepted(wire)
    if isinstance(golden.value, msgspec.Struct):
        assert not accepted({**wire, "unknown": 1})
    line = plain(write_to_wire(RegisterSet(golden.namespace, "k", golden.value), 1, 2))
    assert accepts("jsonl-line.json")(line)


@pytest.mark.parametrize(
    "wire, good",
    [
        (COMPACTION, True), (PLAIN, True), (SUMMARIZED, True), ({**PLAIN, "targetId": None}, True),
        ({**COMPACTION, "structural": {**DECIDING, "status": "generating"}}, False),
        ({**SUMMARIZED, "targetId": None}, False),
        ({**SUMMARIZED, "phase": READY}, False),
        ({**PLAIN, "customInstructions": "c"}, False),
        ({**PLAIN, "phase": {**READY, "structural": DECIDING}}, False),
        ({**PLAIN, "phase": SUMMARY}, False),
        ({"kind": "finished"}, False),
    ],
)  # fmt: skip
def test_the_relations_inside_a_state_are_part_of_the_schema(wire: dict[str, object], good: bool) -> None:
    assert accepts("register.op.state.json")(wire) is good


@pytest.mark.parametrize("payload", [payload for payload, _ in ENTRIES])
def test_entries_are_accepted_alone_and_as_lines(payload: Any) -> None:
    wire = plain(entry_to_wire(entry(payload)))
    assert accepts("entry.json")(wire)
    assert accepts("jsonl-line.json")({"kind": "entry", **wire})
    assert not accepts("jsonl-line.json")(wire)
    for key in ("id", "parentId", "seq", "timestamp", "type"):
        assert not accepts("entry.json")({name: value for name, value in wire.items() if name != key})


def test_rows_metadata_and_transactions_are_accepted() -> None:
    row = plain(usage_row_to_wire(UsageRow(id="u", seq=1, usage={}, details=None)))
    assert accepts("usage-row.json")(row)
    assert accepts("metadata.json")(plain(SessionMetadata(id="s", created_at=1)))
    leaf = GOLDENS[0].namespace
    draft = EntryDraft(id="e", parent_id=None, payload=CustomPayload(custom_type="c"))
    writes: tuple[Write, ...] = (
        InsertEntry(draft),
        InsertUsage(UsageDraft(id="u", usage={})),
        RegisterDelete(leaf, "k"),
    )
    line = [plain(write_to_wire(write, seq, 9)) for seq, write in enumerate(writes, 1)]
    accepted = accepts("jsonl-line.json")
    assert accepted(line)
    bad: object
    for bad in ([], [*line, 7], [{**line[2], "namespace": "lane.other"}], [{**line[2], "op": "set"}], {}):
        assert not accepted(bad)


def test_a_header_is_accepted_and_other_formats_are_not() -> None:
    accepted = accepts("jsonl-header.json")
    header = {"v": 4, "kind": "header", "id": "s", "storageVersion": 1, "createdAt": 1}
    assert accepted(header)
    assert accepted({**header, "cwd": "/", "nextSeq": 9, "storeGeneration": 2})
    assert not accepted({**header, "v": 3})
    assert not accepted({"v": 4, "kind": "header", "id": "s"})
