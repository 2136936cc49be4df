"""What every test has: the hooks behind the marks `covers` and `unjudged`, and asyncio unless it says else."""

import os

import pytest
from hypothesis import settings

from ci import covers
from ci.covers import pytest_addoption
from restartpoint_oracle import fixtures
from restartpoint_oracle.fixtures import pytest_terminal_summary

__all__ = [
    "anyio_backend", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure", "pytest_terminal_summary",
]  # fmt: skip

# Timing never decides a test, and the same tree has the same result; RESTARTPOINT_EXPLORE=1 draws other examples.
settings.register_profile(
    "restartpoint", deadline=None, print_blob=True, derandomize="RESTARTPOINT_EXPLORE" not in os.environ
)
settings.load_profile("restartpoint")


def pytest_configure(config: pytest.Config) -> None:
    covers.pytest_configure(config)
    fixtures.pytest_configure(config)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    covers.pytest_collection_modifyitems(items)
    fixtures.pytest_collection_modifyitems(items)


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests; override with a fixture that has params to run on asyncio and trio."""
    return "asyncio"
