"""Pytest fixtures and hooks: import them into a ``conftest.py``, or name this module in the root's ``pytest_plugins``.

A test that is not judged says why (``@pytest.mark.unjudged("reason")``), and so does one whose requests are not what
the model projects (``@pytest.mark.unprojected("reason")``). The end of the run lists the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from restartpoint.repo import SessionRepository
from restartpoint_oracle.effects import EffectLog, check_growth, check_requests, check_sandwich
from restartpoint_oracle.judged import JudgedRepository

__all__ = [
    "Judging", "effect_log", "excuse", "excuse_of", "judged", "pytest_collection_modifyitems", "pytest_configure",
    "pytest_terminal_summary",
]  # fmt: skip

Judging: TypeAlias = Callable[[SessionRepository], JudgedRepository]

UNJUDGED, UNPROJECTED = "unjudged", "unprojected"
HEADS = {UNJUDGED: "not judged", UNPROJECTED: "requests not compared with the model"}


def pytest_configure(config: pytest.Config) -> None:
    """Declares the marks."""
    config.addinivalue_line("markers", f"{UNJUDGED}(reason): the sessions of this test are not judged, and why")
    config.addinivalue_line("markers", f"{UNPROJECTED}(reason): its requests are not what the model projects, and why")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses an opt-out without a reason, and hands each reason to the test's report."""
    for item in items:
        for name, head in HEADS.items():
            mark = item.get_closest_marker(name)
            if mark is not None and not (len(mark.args) == 1 and isinstance(mark.args[0], str) and mark.args[0]):
                raise pytest.UsageError(f"{item.nodeid}: a test marked {name} says why")
            if mark is not None:
                excuse(item, f"{head}: {mark.args[0]}")


def excuse_of(item: pytest.Item) -> str | None:
    """Why the sessions of this test are not judged; None when they are."""
    mark = item.get_closest_marker(UNJUDGED)
    return None if mark is None else str(mark.args[0])


def excuse(item: pytest.Item, what: str) -> None:
    """List what this test leaves out at the end of the run."""
    item.user_properties.append((UNJUDGED, what))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists what was left out, with the number of tests for each reason."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "when")]
    excuses = Counter(
        str(what)
        for report in reports
        if report.when == "call"
        for name, what in report.user_properties
        if name == UNJUDGED
    )
    if excuses:
        terminalreporter.section("left out by the judge")
        for what, times in sorted(excuses.items()):
            terminalreporter.line(f"{times} tests {what}" if times > 1 else f"1 test {what}")


@pytest.fixture
def effect_log(request: pytest.FixtureRequest) -> Iterator[EffectLog]:
    """The log of effects and judged commits of this test; sandwich, requests and growth are checked at its end.

    Wrap models, tools, hooks and timers with ``LoggedModels``, ``LoggedTool``, ``logged_hook`` and ``LoggedTimers``.
    """
    log = EffectLog()
    yield log
    check_sandwich(log)
    if request.node.get_closest_marker(UNPROJECTED) is None:
        check_requests(log)
        check_growth(log)


@pytest.fixture
def judged(effect_log: EffectLog) -> Iterator[Judging]:
    """Wraps a repository, so that every session it opens is judged and logged; findings fail the test at its end."""
    repositories: list[JudgedRepository] = []

    def wrap(repository: SessionRepository) -> JudgedRepository:
        made = JudgedRepository(repository, on_open=effect_log.follow)
        repositories.append(made)
        return made

    yield wrap
    for repository in repositories:
        repository.verify()
