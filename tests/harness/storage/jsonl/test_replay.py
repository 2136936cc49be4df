"""Opening a file: what replays, what is torn, and what is refused with line and byte."""

import json
from pathlib import Path
from typing import Any

import pytest

from restartpoint.contract import FACT_CUSTOM, LANE_STATE, STORAGE_VERSION, RegisterDelete, RegisterSet, SessionMetadata
from restartpoint.errors import CorruptFile, UnsupportedStorageVersion
from restartpoint.storage import JsonlStorage
from tests.harness.storage.stage import INITIAL, METADATA, PAYLOADS, HeldClock, contents, entry, said, say, tx, usage

HEADER = b'{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1}\n'


def line(value: Any) -> bytes:
    return json.dumps(value).encode() + b"\n"


def message(seq: int, id: str = "a", parent: str | None = None, timestamp: Any = 5) -> dict[str, Any]:
    return {
        "kind": "entry", "seq": seq, "timestamp": timestamp, "id": id, "parentId": parent, "type": "message",
        "message": {"role": "user"},
    }  # fmt: skip


def ledger(seq: Any, id: str = "u") -> dict[str, Any]:
    return {"kind": "usage", "seq": seq, "id": id, "adjustment": False, "usage": {}}


def register(seq: int, **changes: Any) -> dict[str, Any]:
    wire = {"kind": "register", "op": "set", "seq": seq, "namespace": "fact.label", "key": "a", "value": "x"}
    return {key: value for key, value in {**wire, **changes}.items() if value is not ...}


async def opened(path: Path, content: bytes) -> dict[str, Any]:
    """What a file of these bytes holds; it must not change by being opened."""
    path.write_bytes(content)
    storage = await JsonlStorage.open(path, clock=HeldClock())
    found = await contents(storage)
    await storage.close()
    assert path.read_bytes() == content
    return found


async def refused(path: Path, content: bytes) -> CorruptFile:
    path.write_bytes(content)
    with pytest.raises(CorruptFile) as error:
        await JsonlStorage.open(path, clock=HeldClock())
    assert path.read_bytes() == content
    with pytest.raises(CorruptFile) as again:
        await JsonlStorage.open(path, clock=HeldClock(), read_only=True)
    assert str(again.value) == str(error.value)
    return error.value


@pytest.mark.covers("ST-1.7-14", "ST-1.7-15", "ST-0.3-01")
async def test_a_reopened_session_equals_the_live_one(path: Path, clock: HeldClock) -> None:
    metadata = SessionMetadata(id="s1", created_at=3, cwd="/x", parent_session_id="p")
    storage = await JsonlStorage.create(path, metadata, INITIAL, clock=clock)
    await storage.commit(said("a"))
    clock.now -= 1000  # the clock of the machine was set back
    await storage.commit(tx(*(entry(f"e{n}", "a", payload) for n, payload in enumerate(PAYLOADS)), usage("u")))
    await storage.commit(tx(RegisterSet(FACT_CUSTOM, "k", None), RegisterSet(FACT_CUSTOM, "gone", 1)))
    await storage.commit(tx(RegisterDelete(FACT_CUSTOM, "gone"), RegisterDelete(FACT_CUSTOM, "absent")))
    live, next_seq = await contents(storage), storage.data.next_seq
    await storage.close()
    clock.now += 10**9
    again = await JsonlStorage.open(path, clock=clock)
    assert await contents(again) == live
    assert again.data.next_seq == next_seq  # the trailing delete counts
    await again.close()


@pytest.mark.covers("ST-1.7-16", "ST-1.7-30")
async def test_a_torn_last_line_is_dropped_whole_at_every_byte(path: Path, clock: HeldClock) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await storage.commit(said("a", None, "é\u2028"))
    before, start = await contents(storage), path.stat().st_size
    await storage.commit(tx(say("b", "a", "😀"), usage("u"), RegisterSet(FACT_CUSTOM, "k", {"x": [1]})))
    after = await contents(storage)
    await storage.close()
    whole = path.read_bytes()
    for end in range(start, len(whole)):
        assert await opened(path, whole[:end]) == before
        torn = await JsonlStorage.open(path, clock=clock)
        assert (await torn.commit(tx(usage("u2")))).first_seq == 5
        grown = await contents(torn)
        await torn.close()
        assert path.read_bytes() == whole[:start] + b'{"kind":"usage","seq":5,"id":"u2","adjustment":false,"usage":' + (
            b'{"input":1,"cost":{"total":0.1}}}\n'
        )
        assert await opened(path, path.read_bytes()) == grown
    assert await opened(path, whole) == after


async def test_a_reader_of_a_torn_file_never_touches_it(path: Path, clock: HeldClock) -> None:
    content = HEADER + line(message(1)) + line(ledger(2))[:-1]
    path.write_bytes(content)
    reader = await JsonlStorage.open(path, clock=clock, read_only=True)
    assert [found.id for found in (await contents(reader))["entries"]] == ["a"]
    await reader.close()
    assert path.read_bytes() == content
    assert [file.name for file in path.parent.iterdir()] == [path.name]


A, U = message(1), ledger(2)

INTERIOR: dict[str, tuple[bytes, str]] = {
    "garbage": (b"garbage\n", "malformed"),
    "an empty line": (b"\n", "truncated"),
    "half an object": (line(U)[:-2] + b"\n", "truncated"),
    "two objects": (line(U)[:-1] + line(ledger(3, "v")), "trailing"),
    "invalid UTF-8": (line(U).replace(b'"u"', b'"\xff"'), "UTF-8"),
    "a lone surrogate": (line(U).replace(b'"u"', b'"\\ud800"'), "truncated|surrogate"),
    "NaN": (line(U).replace(b"{}", b'{"input":NaN}'), "malformed"),
    "an endless number": (line(U).replace(b"{}", b'{"input":1e999}'), "out of range"),
    "a nest": (b"[" * 100_000 + b"\n", "recursion"),
    "a scalar": (b"1\n", "not an object"),
    "an empty transaction": (b"[]\n", "empty"),
    "a transaction of a transaction": (line([[U]]), "not an object"),
    "no kind": (line({"seq": 2}), "no kind"),
    "an unknown kind": (line({"kind": "value", "seq": 2}), "'value' is no kind"),
    "a second header": (line({"kind": "header", "seq": 2}), "'header' is no kind"),
    "no seq": (line({"kind": "usage", "id": "u"}), "seq is None"),
    "a seq of text": (line(ledger("2")), "seq is '2'"),
    "a seq of true": (line(ledger(True)), "seq is True"),
    "a seq of a float": (line(ledger(2.0)), "seq is 2.0"),
    "a repeated seq": (line(ledger(1)), "seq 1 does not follow seq 1"),
    "a falling seq": (line([ledger(5), ledger(4, "v")]), "seq 4 does not follow seq 5"),
    "a taken entry id": (line(message(2)), "'a' is taken"),
    "an entry id taken by usage": (line([U, message(3, "u")]), "'u' is taken"),
    "a usage id taken by an entry": (line(ledger(2, "a")), "'a' is taken"),
    "a missing parent": (line(message(2, "b", "nobody")), "'nobody', which no earlier line has"),
    "a parent that comes later": (line([message(2, "b", "c"), message(3, "c")]), "'c', which no earlier"),
    "an unknown entry type": (line({**message(2, "b"), "type": "note"}), "Unknown entry type"),
    "no message": (line({key: value for key, value in message(2, "b").items() if key != "message"}), "message"),
    "no parent id": (line({key: value for key, value in message(2, "b").items() if key != "parentId"}), "parent"),
    "a timestamp of text": (line(message(2, "b", None, "5")), "timestamp"),
    "a timestamp of a float": (line(message(2, "b", None, 5.0)), "timestamp|int"),
    "a negative timestamp": (line(message(2, "b", None, -1)), "timestamp is -1"),
    "two timestamps": (line([message(2, "b"), message(3, "c", None, 6)]), "different timestamps"),
    "usage of text": (line({**U, "usage": "x"}), "usage"),
    "an unknown namespace": (line(register(2, namespace="strand.leaf")), "'strand.leaf' is no register namespace"),
    "no namespace": (line(register(2, namespace=...)), "None is no register namespace"),
    "no key": (line(register(2, key=...)), "no key"),
    "no value": (line(register(2, value=...)), "no value"),
    "an unknown operation": (line(register(2, op="append")), "'append' is no register operation"),
}


@pytest.mark.covers("ST-1.7-17", "ST-1.2-10", "ST-1.7-29")
@pytest.mark.parametrize("bad, reason", INTERIOR.values(), ids=INTERIOR.keys())
@pytest.mark.parametrize("following", [b"", line(ledger(9, "z"))], ids=["last", "interior"])
async def test_a_wrong_line_is_refused_with_its_number_and_byte(
    path: Path, bad: bytes, reason: str, following: bytes
) -> None:
    before = HEADER + line(A)
    error = await refused(path, before + bad + following)
    assert (error.path, error.line, error.offset) == (str(path), 3, len(before))
    assert f"line 3 (byte {len(before)})" in str(error)
    assert any(word in error.reason for word in reason.split("|"))


HEADERS: dict[str, tuple[bytes, str]] = {
    "an empty file": (b"", "empty"),
    "no newline": (HEADER[:-1], "incomplete"),
    "garbage": (b"garbage\n", "malformed"),
    "an array": (b"[]\n", "no header object"),
    "another format": (HEADER.replace(b":4", b":5"), "format 4"),
    "another kind": (HEADER.replace(b"header", b"entry"), "format 4"),
    "no version": (HEADER.replace(b'"storageVersion":1,', b""), "storageVersion is None"),
    "version zero": (HEADER.replace(b'storageVersion":1', b'storageVersion":0'), "storageVersion is 0"),
    "no id": (HEADER.replace(b'"id":"s1",', b""), "id"),
    "an age of text": (HEADER.replace(b'createdAt":1', b'createdAt":"1"'), "created"),
    "a next seq of text": (HEADER.replace(b"}", b',"nextSeq":"1"}'), "nextSeq is '1'"),
    "format 3": (b'{"type":"session","version":3,"id":"s1"}\n', "format 3"),
}


@pytest.mark.covers("ST-1.7-13", "ST-1.7-31")
@pytest.mark.parametrize("header, reason", HEADERS.values(), ids=HEADERS.keys())
async def test_a_file_without_a_right_header_is_refused(path: Path, header: bytes, reason: str) -> None:
    error = await refused(path, header)
    assert (error.line, error.offset) == (1, 0)
    assert reason in error.reason
    with pytest.raises(CorruptFile):
        await JsonlStorage.read_metadata(path)


@pytest.mark.covers("ST-1.7-02")
async def test_a_file_of_a_newer_version_is_refused_and_left_alone(path: Path) -> None:
    newer = HEADER.replace(b'storageVersion":1', f'storageVersion":{STORAGE_VERSION + 1}'.encode())
    path.write_bytes(newer + line({"kind": "hologram", "seq": 1}))
    for read_only in (False, True):
        with pytest.raises(UnsupportedStorageVersion) as error:
            await JsonlStorage.open(path, clock=HeldClock(), read_only=read_only)
        assert (error.value.version, error.value.supported) == (STORAGE_VERSION + 1, STORAGE_VERSION)
    assert path.read_bytes().startswith(newer)


async def test_metadata_is_read_from_the_first_line_alone(path: Path) -> None:
    path.write_bytes(HEADER.replace(b"}", b',"cwd":"/x","storeGeneration":3,"later":true}') + b"garbage\n")
    metadata = await JsonlStorage.read_metadata(path)
    assert metadata == SessionMetadata(id="s1", created_at=1, cwd="/x", store_generation=3)


@pytest.mark.covers("ST-1.4-06", "ST-1.7-29")
async def test_gaps_in_seqs_falling_times_and_spaces_are_legal(path: Path) -> None:
    found = await opened(
        path,
        HEADER
        + line(message(10, timestamp=9))
        + line([message(20, "b", "a", 3), ledger(25), message(30, "c", "b", 3)])
        + b'  {"kind" : "usage", "id":"v" , "seq":31,"usage":{}}\r\n'
        + line(message(40, "d", None, 0)),
    )
    assert [(row.id, row.seq, row.timestamp) for row in found["entries"]] == [
        ("a", 10, 9), ("b", 20, 3), ("c", 30, 3), ("d", 40, 0),
    ]  # fmt: skip
    assert [row.seq for row in found["usage"]] == [25, 31]


@pytest.mark.covers("ST-1.4-19")
@pytest.mark.parametrize("header, first", [(HEADER, 8), (HEADER.replace(b"}", b',"nextSeq":50}'), 50)])
async def test_the_next_seq_is_above_every_seq_ever_given_out(path: Path, header: bytes, first: int) -> None:
    path.write_bytes(header + line(message(1)) + line(register(7, op="delete", value=...)))
    storage = await JsonlStorage.open(path, clock=HeldClock())
    assert (await storage.commit(tx(usage("u")))).first_seq == first
    await storage.close()


@pytest.mark.covers("ST-1.7-18")
async def test_a_superseded_value_of_an_old_shape_replays_and_a_current_one_is_refused(path: Path) -> None:
    old = register(1, namespace="lane.state", key="main", value={"operation": None})
    gone = register(2, namespace="op.state", key="o", value={"kind": "run", "step": 7})
    now = register(4, namespace="lane.state", key="main", value={"currentOperationId": None, "pendingNextRun": []})
    bygone = HEADER + line([old, gone])
    found = await opened(path, bygone + line(register(3, namespace="op.state", key="o", op="delete")) + line(now))
    assert [(name, key, seq) for name, key, _, seq in found["registers"]] == [("lane.state", "main", 4)]
    storage = await JsonlStorage.open(path, clock=HeldClock())
    lane = await storage.get_register(LANE_STATE, "main")
    assert lane is not None
    assert lane.value.pending_next_run == []
    await storage.close()
    error = await refused(path, bygone + line(now))
    assert (error.line, error.offset) == (2, len(HEADER))
    assert "op.state/o does not fit" in error.reason
