"""The bytes of a session file."""

import io
import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    LANE_LEAF,
    CustomPayload,
    InsertEntry,
    InsertUsage,
    JsonValue,
    RegisterDelete,
    RegisterSet,
    SessionMetadata,
    UsageDraft,
    Write,
    encode_json,
    write_to_wire,
)
from restartpoint.storage import JsonlStorage
from restartpoint.storage.jsonl.lines import encode_header, encode_line
from restartpoint.storage.jsonl.replay import replay
from tests.harness.storage.stage import INITIAL, METADATA, PAYLOADS, HeldClock, custom, entry, said, say, tx, usage

HEADER = b'{"v":4,"kind":"header","id":"s1","storageVersion":1,"createdAt":1700000000000}\n'
CREATED = (
    b'[{"kind":"register","op":"set","seq":1,"namespace":"lane.leaf","key":"main","value":null},'
    b'{"kind":"register","op":"set","seq":2,"namespace":"lane.state","key":"main",'
    b'"value":{"currentOperationId":null,"pendingNextRun":[]}}]\n'
)


@pytest.mark.covers("ST-1.7-07", "ST-1.7-67")
def test_the_header_names_format_identity_version_and_age() -> None:
    assert encode_header(METADATA) == HEADER
    whole = SessionMetadata(
        id="s2", created_at=1, store_generation=2, cwd="/é", parent_session_id="s1", legacy_parent_session_path="old"
    )
    assert encode_header(whole).decode() == (
        '{"v":4,"kind":"header","id":"s2","storageVersion":1,"createdAt":1,"cwd":"/é","parentSessionId":"s1",'
        '"legacyParentSessionPath":"old","storeGeneration":2}\n'
    )


@pytest.mark.covers("ST-1.7-08", "ST-1.7-09", "ST-1.7-12", "ST-1.7-70")
async def test_a_session_file_is_a_header_and_one_line_per_commit(path: Path, clock: HeldClock) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    assert path.read_bytes() == HEADER + CREATED
    clock.now += 1
    await storage.commit(said("a"))
    await storage.commit(tx(usage("u")))
    assert path.read_bytes() == HEADER + CREATED + (
        b'[{"kind":"entry","seq":3,"timestamp":1700000000001,"id":"a","parentId":null,"type":"message",'
        b'"message":{"role":"user","content":[{"type":"text","text":"hello"}],"timestamp":1}},'
        b'{"kind":"register","op":"set","seq":4,"namespace":"lane.leaf","key":"main","value":"a"}]\n'
        b'{"kind":"usage","seq":5,"id":"u","adjustment":false,"usage":{"input":1,"cost":{"total":0.1}}}\n'
    )
    await storage.close()


@pytest.mark.covers("ST-1.7-10", "ST-1.7-11", "ST-1.1-13", "ST-1.1-15")
@pytest.mark.parametrize(
    "write, line",
    [
        (
            RegisterSet(LANE_LEAF, "main", None),
            '{"kind":"register","op":"set","seq":7,"namespace":"lane.leaf","key":"main","value":null}',
        ),
        (
            RegisterDelete(FACT_LABEL, "e"),
            '{"kind":"register","op":"delete","seq":7,"namespace":"fact.label","key":"e"}',
        ),
        (InsertUsage(UsageDraft(id="u", usage={})), '{"kind":"usage","seq":7,"id":"u","adjustment":false,"usage":{}}'),
        (
            InsertUsage(UsageDraft(id="u", usage={}, adjustment=True, entry_id="e", details=None)),
            '{"kind":"usage","seq":7,"id":"u","entryId":"e","adjustment":true,"usage":{},"details":null}',
        ),
        (
            custom("c", None),
            '{"kind":"entry","seq":7,"timestamp":9,"id":"c","parentId":null,"type":"custom","customType":"note","data":null}',
        ),
        (
            entry("c", "p", PAYLOADS[1]),
            '{"kind":"entry","seq":7,"timestamp":9,"id":"c","parentId":"p","type":"message",'
            '"message":{"role":"toolResult","content":[]},"terminate":true}',
        ),
    ],
)  # fmt: skip
def test_each_kind_of_write_has_its_keys_in_order(write: Write, line: str) -> None:
    assert encode_line((write,), 7, 9).decode() == line + "\n"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)  # fmt: skip
objects = st.dictionaries(st.text(max_size=3), json_values, max_size=3)
writes = st.one_of(
    st.builds(lambda key, value: RegisterSet(FACT_CUSTOM, key, value), st.text(max_size=3), json_values),
    st.builds(lambda key: RegisterDelete(FACT_CUSTOM, key), st.text(max_size=3)),
    st.sampled_from(PAYLOADS).map(lambda payload: entry("e", "p", payload)),
    st.builds(lambda data: custom("e", data), json_values),
    st.builds(lambda details: InsertUsage(UsageDraft(id="u", usage={}, entry_id="e", details=details)), json_values),
    st.builds(lambda counts: InsertUsage(UsageDraft(id="u", usage=counts, adjustment=True)), objects),
)


@given(st.lists(writes, min_size=1, max_size=4))
def test_a_line_is_exactly_what_the_codec_of_the_contract_writes(chosen: list[Write]) -> None:
    wires = [write_to_wire(write, seq, 9) for seq, write in enumerate(chosen, 5)]
    line = encode_line(tuple(chosen), 5, 9)
    assert line == encode_json(wires if len(wires) > 1 else wires[0]) + b"\n"
    assert line.count(b"\n") == 1
    json.loads(line)


AWKWARD = ["\u2028 \u2029 \u0085 \x0b \x0c \x1c \r\n", "\0\x1f", "\U0001f600 é", '"\\/']


@pytest.mark.covers("ST-1.7-33")
@pytest.mark.parametrize("text", AWKWARD)
async def test_text_that_other_line_splitters_would_cut_survives(path: Path, clock: HeldClock, text: str) -> None:
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await storage.commit(tx(say("a", None, text), RegisterSet(FACT_CUSTOM, text, text)))
    written = await storage.get_entries(["a"])
    await storage.close()
    assert path.read_bytes().count(b"\n") == 3
    again = await JsonlStorage.open(path, clock=clock)
    assert await again.get_entries(["a"]) == written
    register = await again.get_register(FACT_CUSTOM, text)
    assert register is not None
    assert register.value == text
    await again.close()


@pytest.mark.covers("ST-1.1-18")
@given(json_values)
def test_values_come_back_as_they_were_down_to_the_type_of_each_number(value: JsonValue) -> None:
    line = encode_line((custom("c", value), RegisterSet(FACT_CUSTOM, "k", value)), 1, 1)
    data = replay(Path("s1.jsonl"), io.BytesIO(HEADER + line)).data
    register = data.get_register(FACT_CUSTOM, "k")
    assert register is not None
    assert repr(register.value) == repr(value)
    assert repr(data.get_entries(["c"])["c"].payload) == repr(CustomPayload(custom_type="note", data=value))


async def test_a_float_stays_a_float_and_unknown_fields_stay_after_reopening_twice(
    path: Path, clock: HeldClock
) -> None:
    shapes: list[InsertEntry] = [entry(f"e{number}", None, payload) for number, payload in enumerate(PAYLOADS)]
    storage = await JsonlStorage.create(path, METADATA, INITIAL, clock=clock)
    await storage.commit(tx(*shapes, custom("n", {"one": 1, "float": 1.0, "zero": -0.0, "big": 1e300, "null": None})))
    await storage.close()
    for _ in range(2):
        storage = await JsonlStorage.open(path, clock=clock)
        found = await storage.get_entries([*(shape.entry.id for shape in shapes), "n"])
        await storage.close()
    for shape in shapes:
        assert repr(found[shape.entry.id].payload) == repr(shape.entry.payload)
    assert "'one': 1, 'float': 1.0, 'zero': -0.0, 'big': 1e+300, 'null': None" in repr(found["n"].payload)
