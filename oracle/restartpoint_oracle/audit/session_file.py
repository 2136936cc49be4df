"""A JSONL session, line by line (§1.7): commits, after the rows that a rewritten file or a fork starts from.

A header with ``nextSeq`` says that the file was rewritten: what is numbered below are current rows. A file whose header
names a parent session may begin with one line of copied rows that no transition makes. A file that says neither and
begins with a line of one write was rewritten by somebody who kept the highest row: its rows end before the first line
that cannot be one.
"""

from __future__ import annotations

from collections.abc import Iterable

from restartpoint_oracle.audit.auditor import Auditor
from restartpoint_oracle.audit.findings import Finding, Kind
from restartpoint_oracle.audit.judging import SeenCommit
from restartpoint_oracle.audit.reading import read_line, shown
from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import Json, JsonObject

__all__ = ["audit_session"]

_FORMAT = 4
_STORAGE_VERSION = 1
_TEXTS = ("cwd", "parentSessionId", "legacyParentSessionPath")
_NUMBERS = ("createdAt", "nextSeq", "storeGeneration")
_PARENTS = ("parentSessionId", "legacyParentSessionPath")

_Elements = list[Json]


def audit_session(header: JsonObject, lines: Iterable[tuple[int, bytes]], auditor: Auditor) -> None:
    """Take every line after the header.

    Raises:
        Unreadable: the header is none of this format, or a line is no JSON.
    """
    auditor.format = "jsonl"
    auditor.session = _checked(header)
    rows: _Rows | None = _Rows(auditor, mark=_mark(header), copied=any(name in header for name in _PARENTS))
    for number, line in lines:
        value, faults = read_line(line, number)
        auditor.ambiguous(faults, number)
        elements: _Elements = value if isinstance(value, list) else [value]
        if rows is None or not rows.take(elements, number, alone=not isinstance(value, list)):
            if rows is not None:
                rows.end()
                rows = None
            auditor.commit(SeenCommit(elements=elements), number)
        if not auditor.going:
            return
    if rows is not None:
        rows.end()


def _checked(header: JsonObject) -> str:
    """The session's id."""
    version = header.get("storageVersion")
    if header.get("v") != _FORMAT:
        raise Unreadable(f"the header is not of format {_FORMAT}", line=1)
    if type(version) is not int or version < 1:
        raise Unreadable(f"storageVersion is {shown(version)}", line=1)
    if version > _STORAGE_VERSION:
        raise Unreadable(
            f"storage version {version} is newer than {_STORAGE_VERSION}, which this program knows", line=1
        )
    for name in _TEXTS:
        if not isinstance(header.get(name, ""), str):
            raise Unreadable(f"{name} of the header is {shown(header[name])}", line=1)
    for name in _NUMBERS:
        number = header.get(name, 1)
        if type(number) is not int or number < (name != "createdAt"):
            raise Unreadable(f"{name} of the header is {shown(number)}", line=1)
    if not isinstance(header.get("id"), str) or "createdAt" not in header:
        raise Unreadable("the header has no id or no createdAt", line=1)
    return str(header["id"])


def _mark(header: JsonObject) -> int | None:
    mark = header.get("nextSeq")
    return mark if type(mark) is int else None


class _Rows:
    """The rows at the start of a file, as long as it has any."""

    def __init__(self, auditor: Auditor, *, mark: int | None, copied: bool) -> None:
        self._auditor = auditor
        self._mark = mark
        self._copied = copied
        self._seen: dict[str, int] = {}
        self._line: int | None = None

    def take(self, elements: _Elements, number: int, *, alone: bool) -> bool:
        """Take the line if it holds rows."""
        first = self._line is None
        if self._mark is not None:
            taken = _first_seq(elements) < self._mark
        elif self._copied and first:
            taken = not self._auditor.begins_with(elements)
        else:
            taken = (
                alone and not self._copied and self._could_be_row(elements[0]) and (first or self._line == number - 1)
            )
        if taken:
            for element in elements:
                self._take(element, number)
            self._line = number
        return taken

    def end(self) -> None:
        """Hold the state to which the rows add up to everything, if there were any, and go on from it."""
        if self._line is not None:
            self._auditor.start(self._line, next_seq=self._mark or 0)

    def _take(self, element: Json, number: int) -> None:
        address = _address(element)
        if address is not None and address in self._seen:
            reason = f"a rewritten file holds current rows, but {address} stands in line {self._seen[address]} already"
            self._auditor.find(Finding(kind=Kind.ROWS, section="1.7", differences=(reason,)), number)
        if isinstance(element, dict) and element.get("op") == "delete":
            reason = "a rewritten file holds current rows, but this line deletes one"
            self._auditor.find(Finding(kind=Kind.ROWS, section="1.7", differences=(reason,)), number)
        if address is not None:
            self._seen[address] = number
        if self._auditor.going:
            self._auditor.row(element, number)

    def _could_be_row(self, element: Json) -> bool:
        deletes = isinstance(element, dict) and element.get("op") == "delete"
        return not deletes and _address(element) not in self._seen


def _address(element: Json) -> str | None:
    """Namespace and key of a register."""
    if not isinstance(element, dict) or element.get("kind") != "register":
        return None
    return f"{element.get('namespace')}/{element.get('key')}"


def _first_seq(elements: _Elements) -> int:
    first = elements[0] if elements else None
    seq = first.get("seq") if isinstance(first, dict) else None
    return seq if type(seq) is int else 0
