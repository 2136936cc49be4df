"""The cooperative signal that tools and providers receive; setting it never cancels a task (§4.2)."""

from __future__ import annotations

import anyio

__all__ = ["Signal", "SignalAborted"]


class SignalAborted(Exception):
    """Raised by ``throw_if_aborted`` in work that stops cooperatively."""


class Signal:
    """Set at most once, with a reason."""

    def __init__(self) -> None:
        self._event = anyio.Event()
        self._reason: str | None = None

    @property
    def aborted(self) -> bool:
        """True once the signal was set."""
        return self._reason is not None

    @property
    def reason(self) -> str | None:
        """Why the signal was set, or None."""
        return self._reason

    def abort(self, reason: str) -> None:
        """Set the signal; a second call changes nothing."""
        if self._reason is None:
            self._reason = reason
            self._event.set()

    async def wait(self) -> str:
        """Return the reason once the signal is set."""
        await self._event.wait()
        return self._reason or ""

    def throw_if_aborted(self) -> None:
        """Return while the signal is not set.

        Raises:
            SignalAborted: with the reason, once it is.
        """
        if self._reason is not None:
            raise SignalAborted(self._reason)
