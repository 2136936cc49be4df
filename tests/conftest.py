"""What every test has: the hooks behind the `covers` mark, and asyncio as the event loop unless told otherwise."""

import os

import pytest
from hypothesis import settings

from ci.covers import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["anyio_backend", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

# Timing never decides a test, and the same tree has the same result; RESTARTPOINT_EXPLORE=1 draws other examples.
settings.register_profile(
    "restartpoint", deadline=None, print_blob=True, derandomize="RESTARTPOINT_EXPLORE" not in os.environ
)
settings.load_profile("restartpoint")


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests; override with a fixture that has params to run on asyncio and trio."""
    return "asyncio"
