"""Text of strangers, made harmless: what a model, a tool or a file says never controls the terminal."""

from __future__ import annotations

import re
from unicodedata import category

from rich.text import Text

__all__ = ["safe_text"]

# Controls (Cc: escape sequences, line breaks, C1), invisible formats (Cf: bidi overrides and isolates, zero-width,
# tags), lone surrogates (Cs), and the separators that some programs take for line breaks (Zl, Zp).
_ACTIVE = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})

_PLAIN = re.compile(r"[ -~]*")


def safe_text(text: str, *, longest: int | None = None, style: str = "") -> Text:
    r"""The text on one line, with each character that could act on a terminal written as an escape (``\x1b``).

    The result is rich text, so brackets are no markup. A text longer than ``longest`` characters is cut and ends in
    ``…``; the cut comes before the escapes, so huge texts cost nothing. Backslashes stay single: this is for reading.
    """
    if longest is not None and len(text) > longest:
        text = text[: max(longest - 1, 0)] + "…"
    if not _PLAIN.fullmatch(text):
        text = "".join(_escaped(character) if category(character) in _ACTIVE else character for character in text)
    return Text(text, style=style)


def _escaped(character: str) -> str:
    code = ord(character)
    match character:
        case "\n":
            return "\\n"
        case "\r":
            return "\\r"
        case "\t":
            return "\\t"
        case _ if code <= 0xFF:
            return f"\\x{code:02x}"
        case _ if code <= 0xFFFF:
            return f"\\u{code:04x}"
        case _:
            return f"\\U{code:08x}"
