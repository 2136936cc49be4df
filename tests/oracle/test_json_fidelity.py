"""Any JSON value that is legal comes back unchanged from every backend, and any other is refused."""

import asyncio
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import hypothesis
import pytest
from hypothesis import strategies as st

from restartpoint.contract import FACT_CUSTOM, MAX_SAFE_INTEGER, RegisterSet, Transaction
from restartpoint.errors import InvalidJson
from restartpoint.seams import NoFaults
from restartpoint.storage import Storage
from restartpoint.storage.sqlite import InlineHop
from restartpoint_oracle import ManualClock
from restartpoint_oracle.places import JsonlPlace, MemoryPlace, Place, SqlitePlace
from restartpoint_oracle.samples import FIRST_TRANSACTION, METADATA
from restartpoint_oracle.wire import json_text

T = TypeVar("T")
TEXT = st.text(st.characters(codec="utf-8"))
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers(-MAX_SAFE_INTEGER, MAX_SAFE_INTEGER)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXT
)
LEGAL = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(TEXT, inner), max_leaves=20)
ILLEGAL = (
    st.sampled_from([float("nan"), float("inf"), -float("inf"), b"", set(), object()])
    | st.integers(min_value=MAX_SAFE_INTEGER + 1)
    | st.integers(max_value=-MAX_SAFE_INTEGER - 1)
    | st.characters(categories=["Cs"])
)
SETTINGS = hypothesis.settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture],
)


class Open:
    """Every backend with one session open, on a loop of its own, with no thread."""

    def __init__(self, folder: Path) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = ManualClock()
        self.places: list[Place] = [MemoryPlace(), JsonlPlace(folder), SqlitePlace(folder, new_hop=InlineHop)]
        self.storages: list[Storage] = [
            self.run(place.create(METADATA, FIRST_TRANSACTION, clock=self.clock, faults=NoFaults()))
            for place in self.places
        ]

    def run(self, awaitable: Awaitable[T]) -> T:
        async def run() -> T:
            return await awaitable

        return self.loop.run_until_complete(run())

    def reopen(self) -> None:
        for position, place in enumerate(self.places):
            self.run(self.storages[position].close())
            self.storages[position] = self.run(place.reopen(clock=self.clock, faults=NoFaults()))

    def close(self) -> None:
        for storage in self.storages:
            self.run(storage.close())
        self.loop.close()


@pytest.fixture
def backends(tmp_path: Path) -> Iterator[Open]:
    opened = Open(tmp_path)
    yield opened
    opened.close()


@pytest.mark.covers("ST-1.1-01")
@SETTINGS
@hypothesis.given(value=LEGAL)
def test_every_legal_value_comes_back_unchanged_also_after_a_reopen(backends: Open, value: Any) -> None:
    for storage in backends.storages:
        backends.run(storage.commit(Transaction((RegisterSet(FACT_CUSTOM, "k", value),))))
    backends.reopen()
    for storage in backends.storages:
        found = backends.run(storage.get_register(FACT_CUSTOM, "k"))
        assert found is not None
        assert json_text(found.value) == json_text(value)


@pytest.mark.covers("ST-1.1-18")
@SETTINGS
@hypothesis.given(value=ILLEGAL, legal=LEGAL, in_list=st.booleans())
def test_every_other_value_is_refused_wherever_it_stands(backends: Open, value: Any, legal: Any, in_list: bool) -> None:
    around = [legal, value] if in_list else {"a": legal, "b": value}
    for storage in backends.storages:
        with pytest.raises(InvalidJson):
            backends.run(storage.commit(Transaction((RegisterSet(FACT_CUSTOM, "k", around),))))
