"""A value that one task settles and any number of tasks wait for."""

from __future__ import annotations

from typing import Generic, TypeVar

import anyio

__all__ = ["Promise"]

T = TypeVar("T")


class Promise(Generic[T]):
    """Settled once, with a value or an exception; a waiter that is cancelled only detaches."""

    def __init__(self) -> None:
        self._settled = anyio.Event()
        self._value: tuple[T] | None = None
        self._error: BaseException | None = None

    @property
    def settled(self) -> bool:
        """True once a value or an exception is there."""
        return self._settled.is_set()

    def resolve(self, value: T) -> None:
        """Settle with a value; later settlements change nothing."""
        if not self._settled.is_set():
            self._value = (value,)
            self._settled.set()

    def reject(self, error: BaseException) -> None:
        """Settle with an exception; later settlements change nothing."""
        if not self._settled.is_set():
            self._error = error
            self._settled.set()

    async def wait(self) -> T:
        """The value once it is there, or the exception raised."""
        await self._settled.wait()
        if self._value is None:
            assert self._error is not None
            raise self._error
        return self._value[0]
