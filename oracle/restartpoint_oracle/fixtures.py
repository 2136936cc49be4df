"""Pytest fixtures and hooks: import them into a ``conftest.py``, or name this module in the root's ``pytest_plugins``.

A test that is not judged says why (``@pytest.mark.unjudged("reason")``), and the end of the run lists the reasons.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from restartpoint.repo import SessionRepository
from restartpoint_oracle.effects import EffectLog, check_growth, check_sandwich
from restartpoint_oracle.judged import JudgedRepository

__all__ = [
    "Judging", "effect_log", "excuse", "excuse_of", "judged", "pytest_collection_modifyitems", "pytest_configure",
    "pytest_terminal_summary",
]  # fmt: skip

Judging: TypeAlias = Callable[[SessionRepository], JudgedRepository]

MARK = "unjudged"


def pytest_configure(config: pytest.Config) -> None:
    """Declares the mark."""
    config.addinivalue_line("markers", f"{MARK}(reason): the sessions of this test are not judged, and why")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses an opt-out without a reason, and hands each reason to the test's report."""
    for item in items:
        mark = item.get_closest_marker(MARK)
        if mark is not None and not (len(mark.args) == 1 and isinstance(mark.args[0], str) and mark.args[0]):
            raise pytest.UsageError(f"{item.nodeid}: a test that is not judged says why")
        reason = excuse_of(item)
        if reason is not None:
            excuse(item, f"not judged: {reason}")


def excuse_of(item: pytest.Item) -> str | None:
    """Why the sessions of this test are not judged; None when they are."""
    mark = item.get_closest_marker(MARK)
    return None if mark is None else str(mark.args[0])


def excuse(item: pytest.Item, what: str) -> None:
    """List what this test leaves out at the end of the run."""
    item.user_properties.append((MARK, what))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Lists what was left out, with the number of tests for each reason."""
    reports = [report for found in terminalreporter.stats.values() for report in found if hasattr(report, "when")]
    excuses = Counter(
        str(what)
        for report in reports
        if report.when == "call"
        for name, what in report.user_properties
        if name == MARK
    )
    if excuses:
        terminalreporter.section("left out by the judge")
        for what, times in sorted(excuses.items()):
            terminalreporter.line(f"{times} tests {what}" if times > 1 else f"1 test {what}")


@pytest.fixture
def effect_log() -> Iterator[EffectLog]:
    """The log of effects and judged commits of this test; sandwich and growth are checked at its end.

    Wrap models, tools, hooks and timers with ``LoggedModels``, ``LoggedTool``, ``logged_hook`` and ``LoggedTimers``.
    """
    log = EffectLog()
    yield log
    check_sandwich(log)
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
