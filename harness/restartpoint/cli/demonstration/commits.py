"""Every commit of the demo: recorded as it is told, read from a JSONL file, or reconstructed from what it left."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeAlias

import msgspec

from restartpoint.contract import (
    NAMESPACES,
    CommitResult,
    Entry,
    Register,
    Transaction,
    UsageRow,
    encode_json,
    entry_to_wire,
    usage_row_to_wire,
    write_to_wire,
)  # fmt: skip
from restartpoint.session import SessionReader

__all__ = ["CommitRecord", "Recorder", "Wire", "last_seq", "left_behind", "read_jsonl", "read_recorded"]

Wire: TypeAlias = dict[str, Any]
"""A committed write as an element of a JSONL line."""


class CommitRecord(msgspec.Struct, frozen=True, kw_only=True):
    """The writes of one commit, in order. ``process`` counts from 1; not ``told``: nobody saw it succeed."""

    process: int
    writes: list[Wire]
    told: bool = True


class Recorder:
    """Appends each commit that a process is told of to a file of its own. A commit listener of a session."""

    def __init__(self, path: Path, process: int) -> None:
        self._path = path
        self._process = process

    def __call__(self, lane: str, transaction: Transaction, result: CommitResult) -> None:
        del lane
        writes = [
            write_to_wire(write, seq, result.timestamp)
            for write, seq in zip(transaction.writes, result.seqs, strict=True)
        ]
        self._append(writes)

    async def created(self, session: SessionReader) -> None:
        """Record the commit that created the session, which no listener can see."""
        registers = [register for space in NAMESPACES.values() for register in await session.list_registers(space)]
        self._append(left_behind((), registers, (), after=0))

    def _append(self, writes: Sequence[object]) -> None:
        line = encode_json({"process": self._process, "writes": writes})
        with self._path.open("ab", buffering=0) as file:
            file.write(line + b"\n")


def read_recorded(path: Path) -> list[CommitRecord]:
    """The commits that the processes were told of; none when there is no file."""
    if not path.exists():
        return []
    return [msgspec.json.decode(line, type=CommitRecord) for line in path.read_bytes().splitlines()]


def read_jsonl(path: Path, told: Sequence[CommitRecord]) -> list[CommitRecord]:
    """The commits in a session file; who made them is taken from the ``told`` ones of the same sequence numbers."""
    if not path.exists():
        return []
    processes = {last_seq(record): record.process for record in told}
    lines = [msgspec.json.decode(line) for line in path.read_bytes().split(b"\n")[1:-1]]
    records: list[CommitRecord] = []
    for line in lines:
        writes = line if isinstance(line, list) else [line]
        process = processes.get(writes[-1]["seq"])
        known = records[-1].process if records else 1
        records.append(CommitRecord(process=process or known, writes=writes, told=process is not None))
    return records


def last_seq(record: CommitRecord) -> int:
    """The sequence number of a commit's last write."""
    return int(record.writes[-1]["seq"])


def left_behind(
    entries: Sequence[Entry], registers: Sequence[Register[Any]], usage: Sequence[UsageRow], *, after: int
) -> list[Wire]:
    """What a session holds of the writes after a sequence number, in order; deletions leave nothing to see."""
    writes = [
        *({"kind": "entry", **entry_to_wire(entry)} for entry in entries if entry.seq > after),
        *({"kind": "usage", **usage_row_to_wire(row)} for row in usage if row.seq > after),
        *(
            {
                "kind": "register",
                "op": "set",
                "seq": register.seq,
                "namespace": register.namespace.name,
                "key": register.key,
                "value": register.value,
            }
            for register in registers
            if register.seq > after
        ),
    ]
    plain: list[Wire] = msgspec.json.decode(encode_json(sorted(writes, key=lambda write: write["seq"])))
    return plain
