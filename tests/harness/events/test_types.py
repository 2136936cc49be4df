"""The events as values: their type names, where a lane belongs, and copies that share nothing."""

from typing import get_args

import msgspec
import pytest

from restartpoint.contract import (
    EventType,
    HarnessEvent,
    ToolResult,
    UsageEvent,
    UsageRow,
    event_type,
    lane_of,
    text_block,
    zero_usage,
)
from restartpoint.events import isolated
from tests.harness.events.stage import begun, spoken

CLASSES: tuple[type[msgspec.Struct], ...] = get_args(HarnessEvent)
WITHOUT_A_LANE = {"NameFactEvent", "LabelFactEvent", "CustomFactEvent", "FaultEvent", "SettingUpdateEvent"}


def required(one: type[msgspec.Struct]) -> set[str]:
    return {field.name for field in msgspec.structs.fields(one) if field.required}


@pytest.mark.covers("RT-5.5-06")
def test_a_lane_is_required_absent_or_the_handlers_as_the_type_says() -> None:
    for one in CLASSES:
        names = set(one.__struct_fields__)
        if one.__name__ in WITHOUT_A_LANE:
            assert not names & {"lane", "recovery"}, one
        elif one.__name__ == "HandlerErrorEvent":
            assert {"lane", "recovery"} <= names - required(one)
        else:
            assert "lane" in required(one), one
            assert ("recovery" in names) is (one is not UsageEvent), one

    origin = UsageEvent(lane="side", row=UsageRow(id="u", seq=1, usage={}), totals=zero_usage())
    assert (lane_of(origin), lane_of(begun(lane="side"))) == (None, "side")


def test_every_type_name_has_a_class_and_every_class_a_type_name() -> None:
    tags = {str(one.__struct_config__.tag) for one in CLASSES}

    assert tags == set(get_args(EventType))
    assert event_type(begun()) == "run_start"


def test_an_event_as_json_begins_with_its_type_and_leaves_absent_fields_out() -> None:
    assert msgspec.json.encode(begun()) == b'{"type":"run_start","lane":"main","runId":"op-1"}'


def test_a_copy_shares_no_list_and_no_object_and_keeps_what_cannot_change() -> None:
    result = ToolResult(content=[text_block("x")], details={"deep": [{"n": 1}]})
    copied = isolated({"result": result, "pair": (1, [2])})

    assert copied == {"result": result, "pair": (1, [2])}
    own = copied["result"]
    assert isinstance(own, ToolResult)
    own.content.append("more")
    assert isinstance(own.details, dict)
    own.details["deep"] = None
    assert result == ToolResult(content=[text_block("x")], details={"deep": [{"n": 1}]})

    assert isolated(begun()) is not None
    event = begun()
    assert isolated(event) is event
    message = spoken()
    assert isolated(message).message is not message.message
