"""Any file as what its first bytes say that it is, audited from beginning to end."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from restartpoint_oracle.audit.auditor import Auditor
from restartpoint_oracle.audit.database import MAGIC, audit_database
from restartpoint_oracle.audit.findings import Report
from restartpoint_oracle.audit.reading import Lines, opened, read_line
from restartpoint_oracle.audit.session_file import audit_session
from restartpoint_oracle.audit.trace import audit_trace
from restartpoint_oracle.errors import Unreadable

__all__ = ["Told", "audit", "young_garbage_only"]

Told = Callable[[int, int], None]
"""Is told, from time to time, how many bytes of how many are done."""

_EVERY = 1 << 16


def _nothing(done: int, total: int) -> None:
    del done, total


def audit(
    path: Path, *, keep_commits: bool = False, finalizations_admitted: bool = False, told: Told = _nothing
) -> Report:
    """The report on a file. It is only read; what cannot be read is told in the report, with everything before it.

    ``keep_commits`` keeps the name of every commit. ``finalizations_admitted`` says that somebody may have ended
    operations from outside (§4.9); otherwise each such end is a finding, unless a trace itself calls it that.
    """
    auditor = Auditor(str(path), keep_commits=keep_commits, finalizations_admitted=finalizations_admitted)
    try:
        with young_garbage_only():
            _audit(path, auditor, told)
    except Unreadable as reason:
        return auditor.report(unreadable=str(reason))
    except RecursionError:
        return auditor.report(unreadable="a value is nested too deeply")
    return auditor.report()


def _audit(path: Path, auditor: Auditor, told: Told) -> None:
    with opened(path) as file:
        database = file.read(len(MAGIC)) == MAGIC
        if not database:
            file.seek(0)
            lines = Lines(file)
            _audit_lines(lines, path.stat().st_size, auditor, told)
            auditor.torn_bytes = lines.torn
    if database:  # not while the file is open here: closing it would drop SQLite's own locks
        audit_database(path, auditor)


def _audit_lines(lines: Lines, total: int, auditor: Auditor, told: Told) -> None:
    following = _followed(lines, total, told)
    number, first = next(following, (0, b""))
    if not number:
        raise Unreadable("the first line is incomplete" if lines.torn else "the file is empty", line=1)
    header, faults = read_line(first, number)
    auditor.ambiguous(faults, number)
    if not isinstance(header, dict):
        raise Unreadable("no header of a session or a trace", line=1)
    match header.get("kind"):
        case "header":
            audit_session(header, following, auditor)
        case "trace":
            audit_trace(header, following, auditor)
        case _ if header.get("type") == "session":
            raise Unreadable("a session of format 3, which holds no operations to audit", line=1)
        case _:
            raise Unreadable("no header of a session or a trace", line=1)


def _followed(lines: Lines, total: int, told: Told) -> Iterator[tuple[int, bytes]]:
    due = _EVERY
    for numbered in lines:
        yield numbered
        if lines.offset >= due:
            told(lines.offset, total)
            due = lines.offset + _EVERY


@contextmanager
def young_garbage_only() -> Iterator[None]:
    """A state has no cycles; to look for some in all of it, again and again, would cost more the longer the file is."""
    young, middle, old = gc.get_threshold()
    gc.set_threshold(max(young, 10_000), middle, 1 << 30)
    try:
        yield
    finally:
        gc.set_threshold(young, middle, old)
