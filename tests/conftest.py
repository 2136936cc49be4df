"""What every test has: the hooks behind the `covers` mark, and asyncio as the event loop unless told otherwise."""

import pytest

from ci.covers import pytest_addoption, pytest_collection_modifyitems, pytest_configure

__all__ = ["anyio_backend", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]


@pytest.fixture
def anyio_backend() -> str:
    """The event loop of async tests; override with a fixture that has params to run on asyncio and trio."""
    return "asyncio"
