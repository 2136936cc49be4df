"""The quick checks of durable structs: they know every value that is right, and find one that is wrong anywhere."""

import math
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from restartpoint.contract import (
    FACT_CUSTOM,
    MAX_SAFE_INTEGER,
    UNSET,
    EntryDraft,
    InsertEntry,
    InsertUsage,
    RegisterSet,
    UsageDraft,
    Write,
)
from restartpoint.contract.json import are_surely_plain
from restartpoint.errors import InvalidJson
from restartpoint.storage.admission import check_alone
from restartpoint.storage.jsonl.lines import encode_line
from restartpoint.storage.plain import CHECKS, DEPTH
from tests.harness.contract.shapes import drafts, reachable_structs, registers, usage_drafts
from tests.harness.storage.stage import tx

writes = st.one_of(
    registers().map(lambda register: RegisterSet(register[0], "k", register[1])),
    drafts().map(InsertEntry),
    usage_drafts().map(InsertUsage),
)


def stored(write: Write) -> object:
    match write:
        case RegisterSet(value=value):
            return value
        case InsertEntry(entry=EntryDraft(payload=payload)):
            return payload
        case InsertUsage(row=row):
            return row
    raise AssertionError


def with_value(write: Write, value: Any) -> Write:
    match write:
        case RegisterSet():
            return RegisterSet(write.namespace, write.key, value)
        case InsertEntry():
            return InsertEntry(msgspec.structs.replace(write.entry, payload=value))
    return InsertUsage(value)


Path = tuple[str | int, ...]


def open_places(value: object, path: Path = ()) -> Iterator[Path]:
    """Where a value holds a whole number or an object."""
    if type(value) is int or isinstance(value, dict):
        yield path
    steps: Iterator[tuple[str | int, object]] = iter(())
    if isinstance(value, msgspec.Struct):
        steps = ((name, getattr(value, name)) for name in value.__struct_fields__)
    elif isinstance(value, dict):
        steps = iter(value.items())
    elif isinstance(value, list):
        steps = iter(enumerate(value))
    for step, part in steps:
        yield from open_places(part, (*path, step))


def spoiled(value: Any, path: Path, wrong: object) -> Any:
    """The value with something wrong instead of the number, or among the fields of the object."""
    if not path:
        return {**value, "wrong": wrong} if isinstance(value, dict) else wrong
    step, rest = path[0], path[1:]
    if isinstance(value, msgspec.Struct):
        return msgspec.structs.replace(value, **{str(step): spoiled(getattr(value, str(step)), rest, wrong)})
    changed = value.copy()
    changed[step] = spoiled(value[step], rest, wrong)
    return changed


def test_every_struct_that_a_register_can_hold_has_a_check() -> None:
    assert reachable_structs() <= CHECKS.keys()
    assert UsageDraft in CHECKS


@given(writes)
def test_whatever_is_right_passes_without_a_slow_look(write: Write) -> None:
    assert are_surely_plain([stored(write)], CHECKS, DEPTH)


@pytest.mark.covers("ST-1.1-18")
@given(writes, st.data())
def test_one_wrong_number_is_found_wherever_it_stands(write: Write, data: st.DataObject) -> None:
    places = list(open_places(stored(write)))
    assume(places)
    wrong = data.draw(st.sampled_from([MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1, math.nan, math.inf, -math.inf]))
    bad = with_value(write, spoiled(stored(write), data.draw(st.sampled_from(places)), wrong))
    assert not are_surely_plain([stored(bad)], CHECKS, DEPTH)
    with pytest.raises(InvalidJson, match=r"number|integer"):
        check_alone(tx(bad), encode_line)


@pytest.mark.parametrize("taken", [math.nan, UNSET, (1, 2), b"bytes", {1: "x"}, {"a": {1}}, MAX_SAFE_INTEGER + 1])
def test_what_the_encoder_takes_and_changes_or_leaves_out_is_refused(taken: Any) -> None:
    write = RegisterSet(FACT_CUSTOM, "k", taken)
    assert encode_line((write,), 1, 1)
    with pytest.raises(InvalidJson):
        check_alone(tx(write), encode_line)


def test_a_struct_that_no_namespace_knows_is_looked_at_slowly_and_taken() -> None:
    class Note(msgspec.Struct):
        text: str

    assert not are_surely_plain([Note("x")], CHECKS, DEPTH)
    assert b'{"text":"x"}' in check_alone(tx(RegisterSet(FACT_CUSTOM, "k", Note("x"))), encode_line)
