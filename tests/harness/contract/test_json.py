"""The edge where values that JSON cannot hold are refused, with the path of the first one."""

from collections import OrderedDict
from enum import IntEnum, StrEnum
from typing import Any

import pytest

from restartpoint.contract import (
    MAX_DEPTH,
    MAX_SAFE_INTEGER,
    CustomPayload,
    EntryDraft,
    MessagePayload,
    UsageDraft,
    check_json,
)  # fmt: skip
from restartpoint.errors import InvalidJson


class Number(IntEnum):
    ONE = 1


class Text(StrEnum):
    ONE = "one"


def nested(depth: int) -> Any:
    value: Any = 0
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.covers("ST-1.1-18")
@pytest.mark.parametrize(
    "value",
    [
        None, True, 0, -1, MAX_SAFE_INTEGER, -MAX_SAFE_INTEGER, 0.0, -0.0, 1e308, 5e-324, "", "\u2028\x00", "😀", [],
        {}, [[], {}], {"": None, "é": [1, 1.0]}, nested(MAX_DEPTH),
    ],
)  # fmt: skip
def test_json_is_accepted(value: object) -> None:
    check_json(value)


BAD = [
    float("nan"), float("inf"), float("-inf"), MAX_SAFE_INTEGER + 1, -MAX_SAFE_INTEGER - 1, 10**30, "\ud800", "a\udfff",
    b"bytes", {1, 2}, pytest.param(object(), id="object"), 1j, Number.ONE, Text.ONE, range(3), OrderedDict,
]  # fmt: skip


@pytest.mark.covers("ST-1.1-18")
@pytest.mark.parametrize("bad", BAD, ids=repr)
def test_anything_else_is_refused_wherever_it_stands(bad: object) -> None:
    for value, path in (
        (bad, "$"),
        ([1, bad], "$[1]"),
        ({"a": {"b": [0, bad]}}, "$.a.b[1]"),
        (CustomPayload(custom_type="c", data={"d": bad}), "$.data.d"),  # type: ignore[dict-item]
        (MessagePayload(message={}, extra={"x": bad}), "$.extra.x"),  # type: ignore[dict-item]
        (UsageDraft(id="u", usage={"input": bad}), "$.usage.input"),  # type: ignore[dict-item]
    ):
        with pytest.raises(InvalidJson) as caught:
            check_json(value)
        assert caught.value.path == path


@pytest.mark.parametrize("key", ["\ud800", 1, None, True, b"x", ("a",)])
def test_keys_are_text(key: object) -> None:
    with pytest.raises(InvalidJson, match="key"):
        check_json({"outer": {key: 1}})


def test_values_that_nest_too_deep_are_refused_instead_of_exhausting_the_stack() -> None:
    for depth in (MAX_DEPTH + 2, 100_000):
        with pytest.raises(InvalidJson, match="deeper"):
            check_json(nested(depth))


def test_the_path_begins_where_the_caller_says() -> None:
    with pytest.raises(InvalidJson) as caught:
        check_json({"a": [float("nan")]}, "writes[2].value")
    assert caught.value.path == "writes[2].value.a[0]"
    assert str(caught.value).startswith("writes[2].value.a[0]: ")


def test_an_absent_field_of_a_struct_is_no_value() -> None:
    check_json(EntryDraft(id="e", parent_id=None, payload=CustomPayload(custom_type="c")))
