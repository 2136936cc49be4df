"""An effect starts directly after the gate was asserted, and only at the listed places (§4.2)."""

import pytest

from tests.architecture.exceptions import EFFECT_STARTS
from tests.architecture.rules import effect_starts, loose_effect_starts
from tests.architecture.sources import parse, sources


@pytest.mark.covers("INV-23", "RT-4.2-30")
def test_the_places_that_start_an_effect_are_exactly_the_listed_ones() -> None:
    assert {place for source in sources("restartpoint") for place in effect_starts(source)} == EFFECT_STARTS.keys()


@pytest.mark.covers("RT-4.2-21")
def test_nothing_stands_between_the_gate_and_the_effect() -> None:
    assert [text for source in sources("restartpoint") for text in loose_effect_starts(source)] == []


@pytest.mark.parametrize(
    "following",
    [
        "log()\n    await effect()",
        "group.start_soon(effect)",
        "x = effect()\n    await x",
        "if x:\n        await effect()",
        "",
    ],
)
def test_the_rule_sees_what_stands_between(following: str) -> None:
    source = parse(f"async def start(gate):\n    gate.assert_open()\n    {following}\n")
    assert len(loose_effect_starts(source)) == 1
    assert effect_starts(source) == {"restartpoint.example:start"}


@pytest.mark.parametrize(
    "following",
    [
        "return await effect()",
        "x = await effect()",
        "async with effect():\n        pass",
        "async for _ in effect():\n        pass",
    ],
)
def test_the_rule_accepts_an_effect_that_begins_at_once(following: str) -> None:
    assert loose_effect_starts(parse(f"async def start(gate):\n    gate.assert_open()\n    {following}\n")) == []
