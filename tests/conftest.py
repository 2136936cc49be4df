"""What every test has: the hooks behind the `covers` mark, and asyncio as the event loop unless told otherwise."""

import pytest
from hypothesis import settings

from ci.covers import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["anyio_backend", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

# Timing never decides a test, and one example is one example on every machine.
settings.register_profile("restartpoint", deadline=None, print_blob=True)
settings.load_profile("restartpoint")


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests; override with a fixture that has params to run on asyncio and trio."""
    return "asyncio"
