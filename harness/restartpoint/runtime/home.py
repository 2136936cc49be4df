"""The event loop that a harness lives in: whoever calls it from elsewhere is refused before anything happens (§4.1)."""

from __future__ import annotations

from typing import Final

from anyio.lowlevel import RunVar

from restartpoint.errors import WrongEventLoop

__all__ = ["Home"]

_MARK: Final[RunVar[object]] = RunVar("restartpoint loop")
"""One object for each event loop, by which it is known again."""


class Home:
    """The loop that runs where this is made. A harness keeps its state without locks, so it serves that loop only."""

    def __init__(self) -> None:
        self._mark = _MARK.get(None) or object()
        _MARK.set(self._mark)

    def require(self) -> None:
        """Return in a task of the loop that this was made in.

        Raises:
            WrongEventLoop: another loop runs here, or none, or one that is between its tasks.
        """
        try:
            mark = _MARK.get(None)
        except RuntimeError as error:
            raise WrongEventLoop("no task of an event loop runs here") from error
        if mark is not self._mark:
            raise WrongEventLoop("another event loop runs here than the one that opened the harness")
