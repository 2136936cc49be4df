"""Reading a session file back into memory: decoding, not recovery logic (§1.7).

A line is what ends in a newline. What follows the last newline is torn: it is dropped whole, even if it parses.
Everything else must be right, or the file is refused with the line and the byte where it is not.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, NamedTuple

import msgspec

from restartpoint.contract.codec import entry_from_wire, usage_row_from_wire
from restartpoint.contract.metadata import STORAGE_VERSION, SessionMetadata
from restartpoint.contract.registers import NAMESPACES
from restartpoint.errors import CorruptFile, UnsupportedStorageVersion
from restartpoint.storage.jsonl.lines import FORMAT
from restartpoint.storage.ram import SessionData

__all__ = ["Replayed", "read_header", "replay"]

_decode = msgspec.json.Decoder().decode

_LONGEST_HEADER = 1 << 20


class _Misfit(ValueError):
    """Something in a line that is valid JSON is wrong; the codec's errors are value errors too."""


@dataclass(frozen=True, kw_only=True)
class Replayed:
    """The state of a file, the length of its whole lines in bytes, and whether a torn line follows them."""

    data: SessionData
    length: int
    torn: bool


def read_header(path: Path, file: BinaryIO) -> SessionMetadata:
    """The identity of a session, from the first line only.

    Raises:
        CorruptFile: the first line is no header of this format.
        UnsupportedStorageVersion: a newer program wrote the file.
    """
    return _header(path, file.readline(_LONGEST_HEADER))[0]


def replay(path: Path, file: BinaryIO) -> Replayed:
    """The state that the whole lines of the file describe.

    Raises:
        CorruptFile: names the line (from 1) and the byte at which it starts (from 0).
        UnsupportedStorageVersion: a newer program wrote the file.
    """
    line = file.readline()
    metadata, next_seq = _header(path, line)
    reading = _Reading(SessionData(metadata))
    number, offset, torn = 1, len(line), False
    with _no_cycle_collection():
        for number, line in enumerate(file, 2):
            if not line.endswith(b"\n"):
                torn = True
                break
            try:
                reading.line(line, number, offset)
            except (ValueError, RecursionError) as error:
                raise CorruptFile(str(path), str(error), line=number, offset=offset) from error
            offset += len(line)
        reading.convert_registers(path)
    reading.data.next_seq = max(next_seq, reading.last_seq + 1)
    return Replayed(data=reading.data, length=offset, torn=torn)


@contextmanager
def _no_cycle_collection() -> Iterator[None]:
    """Parsed JSON has no cycles, and looking for some in all that was read so far is half of the time to open."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _header(path: Path, line: bytes) -> tuple[SessionMetadata, int]:
    """The metadata, and the lowest sequence number that the file allows next."""
    if not line.endswith(b"\n"):
        reason = "the file is empty" if not line else "the header line is incomplete"
        raise CorruptFile(str(path), f"{reason}; no session was ever published like this", line=1, offset=0)
    try:
        wire = _decode(line)
        if not isinstance(wire, dict):
            raise _Misfit("the first line is no header object")
        if wire.get("type") == "session" or wire.get("v") == 3:
            raise _Misfit("this is a session of format 3, which this version cannot open yet")
        if wire.get("v") != FORMAT or wire.get("kind") != "header":
            raise _Misfit(f"the first line is no header of format {FORMAT}")
        version = _whole(wire.get("storageVersion"), "storageVersion", 1)
        if version > STORAGE_VERSION:
            raise UnsupportedStorageVersion(str(path), version, STORAGE_VERSION)
        next_seq = _whole(wire.get("nextSeq", 1), "nextSeq", 1)
        return msgspec.convert(wire, SessionMetadata), next_seq
    except (ValueError, RecursionError) as error:
        raise CorruptFile(str(path), str(error), line=1, offset=0) from error


class _RawRegister(NamedTuple):
    """A register value that nothing has looked into yet, and where it stands."""

    value: object
    seq: int
    line: int
    offset: int


class _Reading:
    """The lines read so far. Register values stay parsed JSON until the end, since old ones may have old shapes."""

    def __init__(self, data: SessionData) -> None:
        self.data = data
        self.last_seq = 0
        self._registers: dict[tuple[str, str], _RawRegister] = {}

    def line(self, line: bytes, number: int, offset: int) -> None:
        """Take one line in; raises ``ValueError`` with the reason why it is wrong."""
        parsed = _decode(line)
        writes = parsed if isinstance(parsed, list) else [parsed]
        if not writes:
            raise _Misfit("the transaction is empty")
        timestamps: set[int] = set()
        for wire in writes:
            if not isinstance(wire, dict):
                raise _Misfit("a write is not an object")
            seq = _whole(wire.get("seq"), "seq", 1)
            if seq <= self.last_seq:
                raise _Misfit(f"seq {seq} does not follow seq {self.last_seq}")
            self.last_seq = seq
            kind = wire.get("kind")
            if kind == "register":
                self._register(wire, seq, number, offset)
            elif kind == "entry":
                timestamps.add(self._entry(wire))
            elif kind == "usage":
                self._usage(wire)
            else:
                raise _Misfit(f"{kind!r} is no kind of write")
        if len(timestamps) > 1:
            raise _Misfit("the entries of one transaction have different timestamps")

    def convert_registers(self, path: Path) -> None:
        """Give the current value of each register its type.

        Raises:
            CorruptFile: a current value does not have the shape of its namespace.
        """
        for (name, key), raw in self._registers.items():
            namespace = NAMESPACES[name]
            try:
                value = namespace.convert(raw.value)
            except ValueError as error:
                reason = f"the value of {name}/{key} does not fit: {error}"
                raise CorruptFile(str(path), reason, line=raw.line, offset=raw.offset) from error
            self.data.set_register(namespace, key, value, raw.seq)

    def _entry(self, wire: dict[str, object]) -> int:
        entry = entry_from_wire(wire)
        timestamp = _whole(wire.get("timestamp"), "timestamp", 0)
        if self.data.is_taken(entry.id):
            raise _Misfit(f"the id {entry.id!r} is taken by an earlier line")
        if entry.parent_id is not None and not self.data.is_entry(entry.parent_id):
            raise _Misfit(f"entry {entry.id!r} names the parent {entry.parent_id!r}, which no earlier line has")
        self.data.add_entry(entry)
        return timestamp

    def _usage(self, wire: dict[str, object]) -> None:
        row = usage_row_from_wire(wire)
        if self.data.is_taken(row.id):
            raise _Misfit(f"the id {row.id!r} is taken by an earlier line")
        self.data.add_usage(row)

    def _register(self, wire: dict[str, object], seq: int, number: int, offset: int) -> None:
        name, key = wire.get("namespace"), wire.get("key")
        if not isinstance(name, str) or name not in NAMESPACES:
            raise _Misfit(f"{name!r} is no register namespace")
        if not isinstance(key, str):
            raise _Misfit("a register has no key")
        op = wire.get("op")
        if op == "set":
            if "value" not in wire:
                raise _Misfit("a register is set to no value")
            self._registers[name, key] = _RawRegister(wire["value"], seq, number, offset)
        elif op == "delete":
            self._registers.pop((name, key), None)
        else:
            raise _Misfit(f"{op!r} is no register operation")


def _whole(value: object, name: str, least: int) -> int:
    if type(value) is not int or value < least:
        raise _Misfit(f"{name} is {value!r}, not a whole number from {least} up")
    return value
