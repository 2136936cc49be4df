"""Fact events follow their commit, whoever wrote the fact (§2.4, §5.5)."""

import pytest

from restartpoint.contract import UNSET, CustomFactEvent, LabelFactEvent, NameFactEvent, user_message
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import Place
from tests.harness.runtime.stage import Stage


@pytest.mark.covers("RT-5.5-31")
async def test_every_change_of_a_fact_is_told_once_and_a_removal_as_unset(place: Place, log: Log) -> None:
    stage = Stage(place, [], log=log)
    told: list[object] = []
    async with stage.open() as harness:
        for kind in (NameFactEvent, LabelFactEvent, CustomFactEvent):
            harness.events.on(kind, told.append)
        entry_id = await stage.session.append_message(user_message("hello", 1))
        await stage.session.set_name("first")
        await harness.session.set_label(entry_id, "start")
        await stage.session.set_custom_fact("key", None)
        await stage.session.set_custom_fact("key", UNSET)
        await stage.session.set_custom_fact("key", UNSET)
        await stage.session.set_name(UNSET)
    assert told == [
        NameFactEvent(name="first"),
        LabelFactEvent(target_id=entry_id, label="start"),
        CustomFactEvent(key="key", value=None),
        CustomFactEvent(key="key", value=UNSET),
        NameFactEvent(name=UNSET),
    ]
