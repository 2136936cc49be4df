"""Tests wait for no real time, mock none of our ports, and the project mentions no machine it was made on."""

import subprocess

import pytest

from tests.architecture.exceptions import SLEEPS_IN_TESTS
from tests.architecture.rules import imported_modules, waits
from tests.architecture.sources import ROOT, parse, sources_of_tests

FOREIGN = ("/" + "work/", ".." + "/shared", "/" + "root/")


def test_tests_wait_for_no_real_time() -> None:
    assert {place for source in sources_of_tests() for place in waits(source)} == SLEEPS_IN_TESTS.keys()


def test_tests_use_the_shipped_doubles_instead_of_mocks() -> None:
    mocking = {"unittest", "unittest.mock", "mock", "pytest_mock"}
    assert [source.name for source in sources_of_tests() if mocking & imported_modules(source)] == []


def test_the_project_names_no_path_of_the_machine_it_was_made_on() -> None:
    listing = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=False)
    if listing.returncode != 0:
        pytest.skip("not a git checkout")
    paths = [ROOT / name for name in listing.stdout.decode().split("\0") if name]
    texts = {path: path.read_bytes().decode("utf-8", errors="replace") for path in paths if path.is_file()}
    assert [str(path) for path, text in texts.items() if any(word in text for word in FOREIGN)] == []


@pytest.mark.parametrize("call", ["time.sleep(1)", "await anyio.sleep(0.1)", "sleep(delay)", "await asyncio.sleep(x)"])
def test_the_wait_rule_sees_sleeps(call: str) -> None:
    assert waits(parse(f"async def test_it():\n    {call}\n")) == {"restartpoint.example:test_it"}


@pytest.mark.parametrize("call", ["await anyio.sleep(0)", "await clock.sleep(5)", "sleeper.rest()"])
def test_the_wait_rule_accepts_yielding_and_the_virtual_clock(call: str) -> None:
    assert waits(parse(f"async def test_it():\n    {call}\n")) == set()
