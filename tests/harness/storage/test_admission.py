"""What is refused before anything is applied, and in which order."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from restartpoint.contract import (
    FACT_CUSTOM,
    FACT_LABEL,
    LANE_STATE,
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    OP_META,
    OP_STATE,
    PENDING_ENTRY,
    UNSET,
    CancelRequested,
    CompactionSettings,
    Expectation,
    FailureDrainPhase,
    Inbox,
    JsonValue,
    LaneState,
    Namespace,
    Operation,
    OperationError,
    PendingCustom,
    PendingMessage,
    RegisterDelete,
    RegisterSet,
    ResponseProvenance,
    RunIntent,
    Running,
    RunSettings,
    RunState,
    Transaction,
    Write,
    check_json,
)
from restartpoint.errors import (
    DuplicateId,
    EmptyTransaction,
    InvalidJson,
    InvariantBroken,
    MissingParent,
    StaleExpectation,
    StorageError,
)
from restartpoint.storage.admission import Encode, admit, check_alone, encode_values
from restartpoint.storage.jsonl.lines import encode_line
from tests.harness.storage.stage import PAYLOADS, custom, entry, tx, usage


def judge(transaction: Transaction) -> None:
    """Admission against a session that holds entry `e`, usage row `u`, and label `e` at seq 7."""
    admit(
        transaction,
        register_seq=lambda namespace, key: 7 if (namespace, key) == ("fact.label", "e") else None,
        is_taken=lambda known: known in {"e", "u"},
        is_entry=lambda known: known == "e",
    )


def fact(value: Any) -> Transaction:
    return tx(RegisterSet(FACT_CUSTOM, "k", value))


def nested(levels: int) -> JsonValue:
    value: JsonValue = []
    for _ in range(levels - 1):
        value = [value]
    return value


def test_every_kind_of_write_is_admitted() -> None:
    judge(
        tx(
            *(entry(f"n{number}", "e", payload) for number, payload in enumerate(PAYLOADS)),
            usage("r"),
            RegisterSet(FACT_LABEL, "e", "x"),
            RegisterDelete(FACT_LABEL, "absent"),
        )
    )


def test_a_transaction_without_writes_is_refused() -> None:
    with pytest.raises(EmptyTransaction):
        judge(tx())


@pytest.mark.parametrize(
    "value, path",
    [
        (math.nan, "writes[0].value"),
        ({"a": [1, math.inf]}, "writes[0].value.a[1]"),
        ({"a": -math.inf}, "writes[0].value.a"),
        ("\ud800", "writes[0].value"),
        ({"a": ["é\udfff"]}, "writes[0].value.a[0]"),
        ({"\ud800": 1}, "writes[0].value"),
        ({1: "x"}, "writes[0].value"),
        ({None: "x"}, "writes[0].value"),
        (MAX_SAFE_INTEGER + 1, "writes[0].value"),
        ([-MAX_SAFE_INTEGER - 1], "writes[0].value[0]"),
        ({"a": (1, 2)}, "writes[0].value.a"),
        (b"x", "writes[0].value"),
        ({"a": {1}}, "writes[0].value.a"),
        ([UNSET], "writes[0].value[0]"),
        (type("Text", (str,), {})("x"), "writes[0].value"),
        (type("Number", (int,), {})(1), "writes[0].value"),
        (type("Object", (dict,), {})(), "writes[0].value"),
    ],
)
def test_what_json_cannot_hold_is_refused_with_its_path(value: object, path: str) -> None:
    with pytest.raises(InvalidJson) as refused:
        judge(fact(value))
    assert refused.value.path.startswith(path)


@pytest.mark.parametrize("value", [MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, True, 1.5e308, "\0", "\u2028", {"": None}, []])
def test_the_edges_of_json_are_admitted(value: JsonValue) -> None:
    judge(fact(value))


def test_depth_is_bounded_where_the_contract_says() -> None:
    judge(fact(nested(MAX_DEPTH)))
    with pytest.raises(InvalidJson, match="nests deeper"):
        judge(fact(nested(MAX_DEPTH + 5)))


@pytest.mark.parametrize(
    "transaction",
    [
        tx(entry("\ud800")),
        tx(entry("n", "\ud800")),
        tx(custom("n", "\ud800")),
        tx(usage("\ud800")),
        tx(usage("r", math.nan)),
        tx(RegisterSet(FACT_LABEL, "\ud800", "x")),
        tx(RegisterDelete(FACT_LABEL, "\ud800")),
    ],
)
def test_every_part_of_every_write_is_looked_at(transaction: Transaction) -> None:
    with pytest.raises(InvalidJson):
        judge(transaction)


any_text = st.text(st.characters(codec=None), max_size=3)  # lone surrogates too
STATE = RunState(
    control=Running(),
    settings=RunSettings(
        compaction=CompactionSettings(), steering_mode="all", follow_up_mode="all", tool_execution="parallel"
    ),
    phase=FailureDrainPhase(error=OperationError(code="c", message="m"), provenance=ResponseProvenance(entry_id="e")),
    inbox=Inbox(steer=[], follow_up=[], writes=[]),
    latest_assistant_entry_id=None,
)


@pytest.mark.parametrize(
    "write, path",
    [
        (RegisterSet(PENDING_ENTRY, "k", PendingCustom(custom_type="t", payload=[math.nan])), "value.payload[0]"),
        (RegisterSet(PENDING_ENTRY, "k", PendingMessage(payload={"role": ()})), "value.payload.role"),  # type: ignore[dict-item]
        (RegisterSet(LANE_STATE, "k", LaneState(current_operation_id="\ud800", pending_next_run=[])), "value.current"),
        (
            RegisterSet(OP_STATE, "k", replace(STATE, control=CancelRequested(
                requested_at=MAX_SAFE_INTEGER + 1, drained_steer=[], drained_follow_up=[]
            ))),
            "value.control.requested_at",
        ),
        (
            RegisterSet(OP_STATE, "k", replace(STATE, settings=replace(
                STATE.settings, compaction=CompactionSettings(reserve_tokens=MAX_SAFE_INTEGER + 1)
            ))),
            "value.settings.compaction.reserve_tokens",
        ),
        (
            RegisterSet(OP_STATE, "k", replace(STATE, phase=replace(
                STATE.phase, error=OperationError(code="c", message="m", details={"x": math.inf})
            ))),
            "value.phase.error.details.x",
        ),
        (
            RegisterSet(OP_META, "k", Operation(
                operation_id="o", lane="main", source_leaf_id=None, started_at=1,
                intent=RunIntent(prompt_entry_ids=[], resume_data={"h": [math.nan]}),
            )),
            "value.intent.resume_data.h[0]",
        ),
    ],
)  # fmt: skip
def test_durable_structs_are_looked_into_wherever_something_can_be_wrong(write: Write, path: str) -> None:
    judge(tx(RegisterSet(OP_STATE, "k", STATE)))
    with pytest.raises(InvalidJson) as refused:
        judge(tx(write))
    assert refused.value.path.startswith(f"writes[0].{path}")


json_like = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | any_text | st.sampled_from([(), b"", UNSET, PAYLOADS[0]]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(any_text | st.integers(), inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.covers("ST-1.1-18")
@pytest.mark.parametrize("encode", [encode_values, encode_line])
@given(value=json_like)
def test_the_fast_check_agrees_with_the_check_of_the_contract(encode: Encode, value: object) -> None:
    def refuses(check: Any, *arguments: object) -> bool:
        try:
            check(*arguments)
        except InvalidJson:
            return True
        return False

    assert refuses(check_alone, fact(value), encode) == refuses(check_json, value)


@pytest.mark.parametrize(
    "state",
    [
        replace(STATE, phase={}),
        replace(STATE, control=None),
        replace(STATE, settings=replace(STATE.settings, compaction=CompactionSettings(reserve_tokens="many"))),  # type: ignore[arg-type]
    ],
)
def test_a_struct_whose_field_is_not_what_its_type_says_is_refused(state: RunState) -> None:
    with pytest.raises(InvalidJson, match="not what its type says"):
        judge(tx(RegisterSet(OP_STATE, "k", state)))


@pytest.mark.parametrize(
    "transaction",
    [
        tx(entry("e")),
        tx(entry("u")),
        tx(usage("e")),
        tx(usage("u")),
        tx(entry("n"), entry("n")),
        tx(entry("n"), usage("n")),
        tx(usage("n"), entry("n")),
        tx(usage("n"), usage("n")),
    ],
)
def test_a_taken_id_is_refused_whichever_store_has_it(transaction: Transaction) -> None:
    with pytest.raises(DuplicateId):
        judge(transaction)


@pytest.mark.parametrize(
    "transaction",
    [
        tx(entry("n", "nobody")),
        tx(entry("n", "n")),
        tx(entry("n", "u")),
        tx(usage("r"), entry("n", "r")),
        tx(entry("child", "parent"), entry("parent")),
    ],
)
def test_a_parent_must_be_an_entry_that_exists_or_was_inserted_before(transaction: Transaction) -> None:
    with pytest.raises(MissingParent):
        judge(transaction)


def test_a_parent_may_come_earlier_in_the_same_transaction() -> None:
    judge(tx(entry("parent", "e"), entry("child", "parent")))


def test_the_first_stale_expectation_is_named_with_both_numbers() -> None:
    expectations = (
        Expectation(FACT_LABEL, "e", 7),
        Expectation(FACT_LABEL, "absent", None),
        Expectation(FACT_LABEL, "e", 6),
        Expectation(FACT_LABEL, "other", 1),
    )
    judge(Transaction((usage("r"),), expectations[:2]))
    with pytest.raises(StaleExpectation) as refused:
        judge(Transaction((usage("r"),), expectations))
    assert (refused.value.key, refused.value.expected, refused.value.actual) == ("e", 6, 7)


STALE = (Expectation(FACT_LABEL, "e", None),)


@pytest.mark.parametrize(
    "transaction, error",
    [
        (Transaction((), STALE), EmptyTransaction),
        (Transaction((custom("e", math.nan),), STALE), InvalidJson),
        (Transaction((entry("e"),), STALE), StaleExpectation),
        (tx(entry("n", "nobody"), entry("e")), MissingParent),
        (tx(entry("e"), entry("n", "nobody")), DuplicateId),
        (tx(entry("e", "nobody")), DuplicateId),
    ],
)
def test_all_backends_find_the_same_fault_first(transaction: Transaction, error: type[StorageError]) -> None:
    with pytest.raises(error):
        judge(transaction)


def test_a_namespace_that_no_file_could_hold_is_a_defect_of_the_program() -> None:
    foreign: Namespace[str] = Namespace("strand.leaf", str)
    for write in (RegisterSet(foreign, "k", "v"), RegisterDelete(foreign, "k")):
        with pytest.raises(InvariantBroken):
            judge(tx(write))
