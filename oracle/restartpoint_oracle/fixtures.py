"""Pytest fixtures: import them into a ``conftest.py``, or name this module in the root's ``pytest_plugins``."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeAlias

import pytest

from restartpoint.repo import SessionRepository
from restartpoint_oracle.effects import EffectLog, check_sandwich
from restartpoint_oracle.judged import JudgedRepository

__all__ = ["Judging", "effect_log", "judged"]

Judging: TypeAlias = Callable[[SessionRepository], JudgedRepository]


@pytest.fixture
def effect_log() -> Iterator[EffectLog]:
    """The log of effects and judged commits of this test; the sandwich is checked at its end.

    Wrap models, tools and timers with ``LoggedModels``, ``LoggedTool`` and ``LoggedTimers``.
    """
    log = EffectLog()
    yield log
    check_sandwich(log)


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
