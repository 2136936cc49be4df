"""Every backend, and the way from a scenario to its stage."""

from collections.abc import Callable
from pathlib import Path

import pytest

from restartpoint_oracle.fixtures import excuse
from tests.harness.runtime.doubles import Log
from tests.harness.runtime.places import BACKENDS, Place
from tests.harness.runtime.scenarios import SCENARIOS, Scenario
from tests.harness.runtime.stage import Stage, stage_of

__all__ = ["backend", "log", "place", "scenario", "staged"]


@pytest.fixture(params=sorted(BACKENDS))
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def place(backend: str, tmp_path: Path) -> Place:
    return BACKENDS[backend](tmp_path)


@pytest.fixture
def log(request: pytest.FixtureRequest) -> Log:
    made = Log()
    made.excuse = lambda what: excuse(request.node, what)
    return made


@pytest.fixture(params=sorted(SCENARIOS))
def scenario(request: pytest.FixtureRequest) -> Scenario:
    return SCENARIOS[request.param]


@pytest.fixture
def staged(place: Place, log: Log) -> Callable[[Scenario], Stage]:
    """The stage of a scenario: its script, its tools and its hooks, over a new session."""
    return lambda scenario: stage_of(scenario, place, log)
