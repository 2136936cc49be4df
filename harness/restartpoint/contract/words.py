"""Foreign exceptions and texts in words that can be recorded: no lone surrogates, never a second exception."""

from __future__ import annotations

__all__ = ["error_text", "plain_text"]


def plain_text(text: str) -> str:
    """The text with every lone surrogate replaced by ``?``, so that UTF-8 can carry it."""
    return text.encode("utf-8", "replace").decode()


def error_text(error: BaseException) -> str:
    """An exception in words: its type and what it says."""
    try:
        said = str(error)
    except Exception:  # noqa: BLE001 - a foreign exception whose __str__ raises still has to be named
        said = ""
    name = type(error).__name__
    return plain_text(f"{name}: {said}" if said else name)
