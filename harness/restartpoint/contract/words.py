"""Foreign exceptions and texts in words that can be recorded: no lone surrogates, bounded, never a second exception."""

from __future__ import annotations

__all__ = ["LONGEST_ERROR", "error_text", "plain_text"]

LONGEST_ERROR = 4000
"""How many characters of an exception's text are kept; some carry whole web pages."""


def plain_text(text: str) -> str:
    """The text with every lone surrogate replaced by ``?``, so that UTF-8 can carry it."""
    return text.encode("utf-8", "replace").decode()


def error_text(error: BaseException) -> str:
    """An exception in words: its type and what it says; of a group, those of its members. At most a few thousand."""
    text = plain_text(_said(error))
    return text if len(text) <= LONGEST_ERROR else f"{text[:LONGEST_ERROR]} [...]"


def _said(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(_said(member) for member in error.exceptions)
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a foreign exception whose __str__ raises still has to be named
        said = ""
    name = type(error).__name__
    return f"{name}: {said}" if said else name
