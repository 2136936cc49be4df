"""The effect gate: orders an abort against the start of ordinary work, synchronously (§4.2)."""

from __future__ import annotations

from restartpoint.errors import RestartpointError
from restartpoint.execution import AbortMarker, AbortRequested, OperationEnded
from restartpoint.seams import Signal

__all__ = ["EffectGate"]


class EffectGate:
    """Open, then aborting or closed. It owns the operation's cooperative signal."""

    def __init__(self) -> None:
        self.signal = Signal()
        self._cancellation: AbortMarker | None = None
        self._closed: RestartpointError | OperationEnded | None = None

    def assert_open(self) -> None:
        """Return while ordinary work may start.

        Raises:
            AbortRequested: an abort has begun.
            HarnessClosed, HarnessFault, OperationEnded: the operation may not go on in this process.
        """
        if self._closed is not None:
            raise self._closed
        if self._cancellation is not None:
            raise AbortRequested(self._cancellation)

    def begin_abort(self, cancellation: AbortMarker) -> None:
        """Refuse every later start; ``cancellation`` settles when the durable marker is decided."""
        if self._closed is None and self._cancellation is None:
            self._cancellation = cancellation

    def signal_abort(self) -> None:
        """Tell the work that has started to stop; only after the cancellation is durable."""
        self.signal.abort("aborted")

    def close(self, error: RestartpointError | OperationEnded) -> None:
        """Refuse every later start with that error and tell started work to stop."""
        if self._closed is None:
            self._closed = error
        self.signal.abort(type(error).__name__)
