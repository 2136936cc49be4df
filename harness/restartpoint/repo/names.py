"""Which session ids may become file names, on any file system (§2.8)."""

from __future__ import annotations

import re

from restartpoint.errors import InvalidSessionId

__all__ = ["check_session_id"]

_ALLOWED = re.compile(r"[A-Za-z0-9._-]{1,128}")
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


def check_session_id(id: str) -> None:
    """Return when the id is a file name on every common system and cannot lead out of its folder.

    Raises:
        InvalidSessionId: names the rule that the id breaks.
    """
    if not isinstance(id, str):
        raise InvalidSessionId(repr(id), f"it is a text, not {type(id).__name__}")
    if not _ALLOWED.fullmatch(id):
        raise InvalidSessionId(id, "it needs 1 to 128 characters out of ASCII letters, digits, and . _ -")
    if id.startswith(".") or id.endswith("."):
        raise InvalidSessionId(id, "it must not begin or end with a dot")
    if _DEVICES.fullmatch(id):
        raise InvalidSessionId(id, "Windows keeps that name for a device")
