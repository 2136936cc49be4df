"""Providers run on both event loops."""

import pytest

__all__ = ["anyio_backend"]


@pytest.fixture(params=["asyncio", "trio"])
def anyio_backend(request: pytest.FixtureRequest) -> str:
    """Each async test runs on each loop."""
    return str(request.param)
