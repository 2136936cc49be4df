"""The bytes of durable values: names, key order, absent keys; and what a reader refuses."""

from collections.abc import Iterator

import msgspec
import pytest

from restartpoint.contract import NAMESPACES, UNSET, encode_json
from tests.harness.contract.goldens import GOLDENS, Golden
from tests.harness.contract.shapes import reachable_structs


def parts(value: object) -> Iterator[msgspec.Struct]:
    """Every struct inside a durable value, itself included."""
    if isinstance(value, msgspec.Struct):
        yield value
        for name in value.__struct_fields__:
            yield from parts(getattr(value, name))
    elif isinstance(value, list | tuple):
        for item in value:
            yield from parts(item)


each_golden = pytest.mark.parametrize("golden", GOLDENS, ids=lambda golden: golden.name)


@each_golden
@pytest.mark.covers("ST-1.7-70", "AMB-01", "AMB-02")
def test_a_value_has_exactly_these_bytes_on_disk(golden: Golden) -> None:
    assert encode_json(golden.value) == golden.text.encode()


def of_group(group: str) -> pytest.MarkDecorator:
    chosen = [golden for golden in GOLDENS if golden.group == group]
    return pytest.mark.parametrize("golden", chosen, ids=lambda golden: golden.name)


def check_reads_back(golden: Golden) -> None:
    for read in (golden.namespace.decode(golden.text), golden.namespace.convert(msgspec.json.decode(golden.text))):
        assert (type(read), read) == (type(golden.value), golden.value)
        assert encode_json(read) == golden.text.encode()


@of_group("lane")
@pytest.mark.covers("ST-1.3-02", "ST-1.3-03", "ST-1.3-04", "RT-3.13-01")
def test_lane_registers_facts_and_pending_content_read_back(golden: Golden) -> None:
    check_reads_back(golden)


@of_group("operation")
@pytest.mark.covers("ST-1.3-16", "ST-1.3-17")
def test_operations_and_preparations_read_back(golden: Golden) -> None:
    check_reads_back(golden)


@of_group("run")
@pytest.mark.covers("RT-3.2-36", "RT-3.2-37", "RT-3.3-01", "ST-2.3-03")
def test_states_of_runs_read_back(golden: Golden) -> None:
    check_reads_back(golden)


@of_group("structural")
@pytest.mark.covers("RT-3.2-47", "RT-3.2-48", "RT-3.2-49", "RT-3.2-50")
def test_states_of_structural_operations_read_back(golden: Golden) -> None:
    check_reads_back(golden)


def test_every_durable_type_and_every_namespace_has_a_golden() -> None:
    shown = {type(part) for golden in GOLDENS for part in parts(golden.value)}
    assert {kind.__name__ for kind in reachable_structs()} == {kind.__name__ for kind in shown}
    assert {golden.namespace.name for golden in GOLDENS} == NAMESPACES.keys()


def test_every_optional_field_is_shown_present_and_absent() -> None:
    seen: dict[tuple[str, str], set[bool]] = {}
    for golden in GOLDENS:
        for part in parts(golden.value):
            for name, default in zip(
                reversed(part.__struct_fields__), reversed(part.__struct_defaults__), strict=False
            ):
                if default is UNSET:
                    seen.setdefault((type(part).__name__, name), set()).add(getattr(part, name) is UNSET)
    assert {field for field, both in seen.items() if len(both) < 2} == set()
    assert seen


def test_names_of_goldens_are_unique() -> None:
    assert len({golden.name for golden in GOLDENS}) == len(GOLDENS)


@pytest.mark.covers("ST-1.3-13")
def test_the_namespaces_are_the_specified_twelve() -> None:
    assert set(NAMESPACES) == {
        "lane.leaf", "lane.config", "lane.state", "lane.lastResult", "op.meta", "op.state", "op.tool_args",
        "op.preparation", "pending.entry", "fact.name", "fact.label", "fact.custom",
    }  # fmt: skip
    assert all(namespace.name == name for name, namespace in NAMESPACES.items())
    with pytest.raises(TypeError):
        NAMESPACES["op.more"] = NAMESPACES["op.meta"]  # type: ignore[index]


# --- what a reader refuses --------------------------------------------------------------------------------------


def struct_goldens() -> list[Golden]:
    return [golden for golden in GOLDENS if isinstance(golden.value, msgspec.Struct)]


@pytest.mark.parametrize("golden", struct_goldens(), ids=lambda golden: golden.name)
def test_an_unknown_or_missing_field_is_refused(golden: Golden) -> None:
    wire = msgspec.json.decode(golden.text)
    with pytest.raises(msgspec.ValidationError, match="unknown"):
        golden.namespace.convert({**wire, "unknown": 1})
    required = set(wire) - {encoded(golden.value, name) for name in optional(golden.value)}
    for key in required - with_defaults(golden.value):
        with pytest.raises(msgspec.ValidationError):
            golden.namespace.convert({name: value for name, value in wire.items() if name != key})


def optional(value: msgspec.Struct) -> list[str]:
    """The fields that may be absent."""
    return [field.name for field in msgspec.structs.fields(type(value)) if field.default is UNSET]


def with_defaults(value: msgspec.Struct) -> set[str]:
    """The fields of public settings, which have defaults."""
    fields = msgspec.structs.fields(type(value))
    return {field.encode_name for field in fields if field.default not in (UNSET, msgspec.NODEFAULT)}


def encoded(value: msgspec.Struct, name: str) -> str:
    return next(field.encode_name for field in msgspec.structs.fields(type(value)) if field.name == name)


RUNNING = {"status": "running"}
DECIDING = {"taskId": "t", "status": "deciding"}
SUMMARY = {"kind": "summary", "structural": DECIDING}
READY = {"kind": "ready_to_commit"}
COMPACTION = {"kind": "compaction", "control": RUNNING, "structural": DECIDING}
PLAIN = {"kind": "navigation", "control": RUNNING, "targetId": "e", "summarize": False, "phase": READY}
SUMMARIZED = {**PLAIN, "summarize": True, "phase": SUMMARY}


def test_the_values_that_the_next_test_breaks_are_accepted() -> None:
    for wire in (COMPACTION, PLAIN, SUMMARIZED, {**PLAIN, "targetId": None}):
        NAMESPACES["op.state"].convert(wire)


@pytest.mark.covers("RT-3.2-51")
@pytest.mark.parametrize(
    "name, wire",
    [
        ("op.state", {"kind": "finished"}),
        ("op.state", {**COMPACTION, "control": {"status": "paused"}}),
        ("op.state", {**COMPACTION, "structural": {**DECIDING, "status": "generating"}}),
        ("op.state", {**SUMMARIZED, "targetId": None}),
        ("op.state", {**SUMMARIZED, "phase": READY}),
        ("op.state", {**PLAIN, "customInstructions": "c"}),
        ("op.state", {**PLAIN, "phase": {**READY, "structural": DECIDING}}),
        ("op.state", {**PLAIN, "phase": SUMMARY}),
        ("lane.leaf", 7),
        ("lane.state", {"currentOperationId": None, "pendingNextRun": None}),
        ("lane.state", None),
        ("lane.config", {"model": {"provider": "p", "modelId": "m"}, "thinkingLevel": "huge", "activeToolNames": []}),
        ("pending.entry", {"type": "label"}),
        ("pending.entry", {"type": "message", "payload": []}),
        ("op.tool_args", []),
        ("fact.name", None),
        ("fact.label", 1),
    ],
)
def test_a_value_of_another_shape_is_refused(name: str, wire: object) -> None:
    with pytest.raises(msgspec.ValidationError):
        NAMESPACES[name].convert(wire)
