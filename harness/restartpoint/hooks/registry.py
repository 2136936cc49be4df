"""The registered handlers of every hook, in registration order (§5.6)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal, TypeAlias, TypeVar, overload

import msgspec

from restartpoint.contract import (
    AfterResponse,
    AfterResponseResult,
    AfterTool,
    AfterToolPatch,
    BeforeCompaction,
    BeforeCompactionResult,
    BeforeNavigation,
    BeforeNavigationResult,
    BeforePayload,
    BeforePayloadResult,
    BeforeRequest,
    BeforeRequestResult,
    BeforeResume,
    BeforeRun,
    BeforeRunEnd,
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeTool,
    BeforeToolDecision,
    HookName,
    TransformContext,
    TransformContextResult,
)
from restartpoint.errors import InvalidOptions

__all__ = ["Handler", "HookFailure", "Registered", "Registry"]

E = TypeVar("E")
R = TypeVar("R")

Handler: TypeAlias = Callable[[E], R | None | Awaitable[R | None]]
"""Takes the hook's payload; answers, or returns None to change nothing. Plain or async."""

_NEED_AN_ID = frozenset({"before_run", "before_resume"})


class HookFailure(msgspec.Struct, frozen=True, kw_only=True):
    """A handler raised or broke the contract of its hook; its answer was ignored."""

    hook: HookName
    lane: str
    run_id: str
    error: BaseException


class Registered(msgspec.Struct, frozen=True, eq=False):
    """One registration; equal only to itself."""

    handler: Callable[[Any], object]
    id: str | None


class Registry:
    """Who handles what. Registration is harness-global and may change while operations run."""

    def __init__(self) -> None:
        self._handlers: dict[HookName, tuple[Registered, ...]] = {}

    def registered(self, name: HookName) -> bool:
        """Whether the hook has a handler; without one there is no barrier and no gate check (AMB-64)."""
        return bool(self._handlers.get(name))

    def handlers(self, name: HookName) -> tuple[Registered, ...]:
        """The handlers of a hook as they are now, oldest first."""
        return self._handlers.get(name, ())

    @overload
    def on(self, name: Literal["before_run"], handler: Handler[BeforeRun, BeforeRunResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_resume"], handler: Handler[BeforeResume, None], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_run_end"], handler: Handler[BeforeRunEnd, BeforeRunEndResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["transform_context"], handler: Handler[TransformContext, TransformContextResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_request"], handler: Handler[BeforeRequest, BeforeRequestResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_payload"], handler: Handler[BeforePayload, BeforePayloadResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["after_response"], handler: Handler[AfterResponse, AfterResponseResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_tool"], handler: Handler[BeforeTool, BeforeToolDecision], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["after_tool"], handler: Handler[AfterTool, AfterToolPatch], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_compaction"], handler: Handler[BeforeCompaction, BeforeCompactionResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501
    @overload
    def on(self, name: Literal["before_navigation"], handler: Handler[BeforeNavigation, BeforeNavigationResult], *, id: str | None = None) -> Callable[[], None]: ...  # fmt: skip  # noqa: E501

    def on(self, name: HookName, handler: Callable[[Any], object], *, id: str | None = None) -> Callable[[], None]:
        """Register a handler and return the function that removes it.

        before_run and before_resume need an ``id`` that stays the same across restarts, since resume data is stored
        under it; it must be unique within the hook (§5.6).

        Raises:
            InvalidOptions: such an id is missing or taken.
        """
        present = self.handlers(name)
        if name in _NEED_AN_ID:
            if not id:
                raise InvalidOptions(f"hooks.on({name!r})", "give the handler an id that is stable across restarts")
            if any(other.id == id for other in present):
                raise InvalidOptions(f"hooks.on({name!r})", f"the id {id!r} is taken; remove that handler first")
        one = Registered(handler, id)
        self._handlers[name] = (*present, one)

        def remove() -> None:
            self._handlers[name] = tuple(other for other in self.handlers(name) if other is not one)

        return remove
