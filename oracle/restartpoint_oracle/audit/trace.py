"""A trace of any implementation: one JSON object a line, in the format that docs/reference/traces.md tells.

The first line is ``{"kind":"trace","v":1}``; a ``state`` may follow, then ``commit`` and ``restart`` lines in order.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from restartpoint_oracle.audit.auditor import Auditor
from restartpoint_oracle.audit.damaged import refusing
from restartpoint_oracle.audit.findings import Finding, Kind
from restartpoint_oracle.audit.judging import SeenCommit
from restartpoint_oracle.audit.reading import read_line, shown
from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import UNSET, Json, JsonObject, Refused, State

__all__ = ["TRACE_FORMAT", "audit_trace"]

TRACE_FORMAT = 1
"""The version of the format, ``v`` in the first line."""

_KEYS: Final[Mapping[str, Mapping[str, type[object]]]] = {
    "trace": {"kind": str, "v": int, "session": str, "implementation": str, "restarts": bool},
    "state": {"kind": str, "entries": list, "registers": list, "usage": list, "nextSeq": int},
    "commit": {"kind": str, "writes": list, "seqs": list, "timestamp": int, "lane": str, "name": str},
    "restart": {"kind": str},
}
_REQUIRED: Final[Mapping[str, tuple[str, ...]]] = {
    "trace": ("v",),
    "state": (),
    "commit": ("writes", "seqs", "timestamp"),
    "restart": (),
}


def audit_trace(header: JsonObject, lines: Iterable[tuple[int, bytes]], auditor: Auditor) -> None:
    """Take every line after the first.

    Raises:
        Unreadable: the first line is of another version, or a line is no JSON or none of the lines of a trace.
    """
    auditor.format = "trace"
    _check("trace", header, 1)
    if header["v"] != TRACE_FORMAT:
        raise Unreadable(f"a trace of version {shown(header['v'])}; this program knows version {TRACE_FORMAT}", line=1)
    session = header.get("session")
    auditor.session = session if isinstance(session, str) else None
    if header.get("restarts") is True:
        auditor.expect_restarts()
    for number, line in lines:
        value, faults = read_line(line, number)
        auditor.ambiguous(faults, number)
        kind = value.get("kind") if isinstance(value, dict) else None
        if not isinstance(value, dict) or kind not in ("state", "commit", "restart"):
            raise Unreadable(f"no line of a trace: kind is {shown(kind)}", line=number)
        _check(kind, value, number)
        if kind == "state":
            _start(value, number, auditor)
        elif kind == "restart":
            auditor.restart()
        else:
            _commit(value, number, auditor)
        if not auditor.going:
            return


def _check(kind: str, holder: JsonObject, number: int) -> None:
    """Refuse a line that lacks a key, has one too many, or holds another type there."""
    known = _KEYS[kind]
    for key in _REQUIRED[kind]:
        if key not in holder:
            raise Unreadable(f"a {kind} line without {key}", line=number)
    for key, value in holder.items():
        if key not in known:
            raise Unreadable(f"a {kind} line has no {key!r}", line=number)
        if key != "kind" and (type(value) is not known[key]):
            raise Unreadable(f"{key} of a {kind} line is {shown(value)}", line=number)


def _start(holder: JsonObject, number: int, auditor: Auditor) -> None:
    if number != 2:
        raise Unreadable("a state stands in the second line or nowhere", line=number)
    entries, registers, usage = (_items(holder, name) for name in ("entries", "registers", "usage"))
    mark = holder.get("nextSeq")
    try:
        with refusing():
            state = State.from_parts(entries, registers, usage, next_seq=mark if isinstance(mark, int) else UNSET)
    except Refused as refused:
        auditor.find(Finding(kind=Kind.ROWS, section="1.1", differences=(str(refused),)), number)
        auditor.stop(f"the state of line {number} cannot be taken, so nothing after it is judged")
        return
    auditor.state(state, len(entries) + len(registers) + len(usage))
    auditor.start(number)


def _commit(holder: JsonObject, number: int, auditor: Auditor) -> None:
    writes, seqs, timestamp = _items(holder, "writes"), _items(holder, "seqs"), holder["timestamp"]
    assert isinstance(timestamp, int)
    if len(writes) != len(seqs):
        reason = f"{len(writes)} writes carry {len(seqs)} sequence numbers"
        auditor.find(Finding(kind=Kind.RULE, section="1.4", differences=(reason,)), number)
        auditor.stop(f"the commit of line {number} cannot be taken, so nothing after it is judged")
        return
    elements = [_placed(write, seq, timestamp) for write, seq in zip(writes, seqs, strict=True)]
    name, lane = holder.get("name"), holder.get("lane")
    commit = SeenCommit(
        elements=elements,
        timestamp=timestamp,
        claimed_name=name if isinstance(name, str) else None,
        claimed_lane=lane if isinstance(lane, str) else None,
    )
    auditor.commit(commit, number)


def _placed(write: Json, seq: Json, timestamp: int) -> Json:
    """The write as an element of a JSONL line."""
    if not isinstance(write, dict):
        return write
    placed: JsonObject = {**write, "seq": seq}
    return {**placed, "timestamp": timestamp} if write.get("kind") == "entry" else placed


def _items(holder: JsonObject, name: str) -> list[Json]:
    items = holder.get(name, [])
    assert isinstance(items, list)
    return items
