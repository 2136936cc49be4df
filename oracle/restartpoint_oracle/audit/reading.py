"""Files as lines and lines as JSON, read with the judge's own reader; nothing here writes, or waits for a program.

The reader is orjson, not the runtime's codec. It keeps the last of two equal keys and turns huge integers into floats,
so a line that it does not write back byte by byte is read a second time, for exactly these two faults.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, cast

import orjson

from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import Json, JsonObject

__all__ = ["LONGEST_LINE", "Lines", "opened", "read_line", "shown"]

LONGEST_LINE = 1 << 28
"""Bytes of the longest line that is read; a longer one is no session's."""

_SAFE_INTEGER = 2**53 - 1
_SAFE_DIGITS = 16


@contextmanager
def opened(path: Path) -> Iterator[BinaryIO]:
    """A regular file, open for reading; links are followed.

    Raises:
        Unreadable: there is none, it is something else, or it cannot be read, now or inside the block.
    """
    try:
        _check_regular(_mode(path))  # before it is opened, since to open a device may already do something
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        with os.fdopen(descriptor, "rb") as file:
            _check_regular(os.fstat(descriptor).st_mode)
            yield file
    except (FileNotFoundError, NotADirectoryError):
        raise Unreadable("there is no such file") from None
    except OSError as error:
        raise Unreadable(f"the file cannot be read: {error.strerror}") from error


def _mode(path: Path) -> int:
    try:
        return path.stat().st_mode
    except ValueError as error:
        raise Unreadable(f"this is no path: {error}") from None


def _check_regular(mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise Unreadable("this is a folder; name the files in it")
    if not stat.S_ISREG(mode):
        raise Unreadable("this is no regular file")


class Lines:
    """The whole lines of a file with their numbers from 1, without their ends; ``offset`` bytes were read as such.

    ``torn`` bytes follow the last of them, once all were read.
    """

    def __init__(self, file: BinaryIO, *, longest: int = LONGEST_LINE) -> None:
        self._file, self._longest = file, longest
        self.number, self.offset, self.torn = 0, 0, 0

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        while line := self._file.readline(self._longest + 1):
            if not line.endswith(b"\n"):
                if len(line) > self._longest:
                    raise Unreadable(f"the line is longer than {self._longest} bytes", line=self.number + 1)
                self.torn = len(line)
                return
            self.number += 1
            self.offset += len(line)
            yield self.number, line[:-1]


def shown(value: Json) -> str:
    """A value in a few words: what an object or an array holds is left out."""
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "an array"
    return repr(value)[:80]


def read_line(line: bytes, number: int) -> tuple[Json, tuple[str, ...]]:
    """The JSON value of a line, and why another reader might read another one.

    Raises:
        Unreadable: this is no JSON text, or one nested beyond all use.
    """
    try:
        value = cast("Json", orjson.loads(line))
    except orjson.JSONDecodeError as error:
        raise Unreadable(f"this is no JSON: {error.msg} (byte {error.pos} of the line)", line=number) from None
    try:
        plain = orjson.dumps(value) == line
    except orjson.JSONEncodeError:
        plain = False
    if plain:
        return value, ()
    try:
        return value, _ambiguities(line)
    except RecursionError:
        raise Unreadable("the JSON is nested too deeply", line=number) from None


def _ambiguities(line: bytes) -> tuple[str, ...]:
    found: list[str] = []

    def of_pairs(pairs: list[tuple[str, object]]) -> JsonObject:
        names = [name for name, _ in pairs]
        found.extend(f"the key {name!r} stands twice in one object" for name in _repeated(names))
        return {}

    def of_digits(digits: str) -> int:
        if len(digits.lstrip("-")) > _SAFE_DIGITS or abs(int(digits)) > _SAFE_INTEGER:
            found.append(f"the integer {digits[:40]} is beyond 2^53-1")
        return 0

    json.loads(line, object_pairs_hook=of_pairs, parse_int=of_digits)
    return tuple(found)


def _repeated(names: list[str]) -> list[str]:
    return sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
