"""Whatever lies at a path, the audit says in one line what it is instead of a session; it never hangs or writes."""

import copy
import json
import os
import random
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from restartpoint_oracle.audit import Kind, SeenCommit, audit, judge, judge_state
from restartpoint_oracle.audit.reading import Lines
from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import Json, JsonObject
from tests.harness.cli.stage import ANSI, call
from tests.oracle.audit.histories import HEADER, Elements, file_of, lines_of, recorded
from tests.reference.test_alterations import leaves

Prepare = Callable[[Path], object]

SESSION = file_of(recorded()[0])
HEAD, FIRST, *_ = SESSION.splitlines(keepends=True)


def holds(content: bytes) -> Prepare:
    return lambda path: path.write_bytes(content)


def database(*statements: str) -> Prepare:
    def prepare(path: Path) -> None:
        with sqlite3.connect(path) as connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return prepare


UNREADABLE: dict[str, tuple[Prepare, str]] = {
    "nothing": (lambda path: None, "no such file"),
    "a folder": (lambda path: path.mkdir(), "folder"),
    "a pipe": (os.mkfifo, "no regular file"),
    "a device": (lambda path: path.symlink_to("/dev/zero"), "no regular file"),
    "a link in a circle": (lambda path: path.symlink_to(path), "cannot be read"),
    "a link to nowhere": (lambda path: path.symlink_to(path.with_name("nowhere")), "no such file"),
    "empty": (holds(b""), "empty"),
    "binary": (holds(b"\x89PNG\r\n\x1a\n" + bytes(2000)), "line 1"),
    "zeros": (holds(bytes(5000)), "line 1"),
    "text": (holds(b"hello, world\n"), "line 1: this is no JSON"),
    "an object": (holds(b"{}\n"), "no header"),
    "an array": (holds(b"[]\n"), "no header"),
    "a header that is cut": (holds(HEAD[:-9]), "first line is incomplete"),
    "a header of another format": (holds(HEAD.replace(b'"v":4', b'"v":5')), "not of format 4"),
    "format 3": (holds(b'{"type":"session","version":3,"id":"x"}\n'), "format 3"),
    "a header without an id": (holds(HEAD.replace(b'"id"', b'"di"')), "no id"),
    "a header of the future": (holds(HEAD.replace(b'"storageVersion":1', b'"storageVersion":2')), "newer than 1"),
    "a mark that is no number": (holds(HEAD.replace(b"}", b',"nextSeq":"9"}')), "nextSeq"),
    "a trace of the future": (holds(b'{"kind":"trace","v":2}\n'), "version 2"),
    "invalid UTF-8": (holds(HEAD + b'{"kind":"\xff"}\n'), "line 2: this is no JSON"),
    "a lone surrogate": (holds(HEAD + b'{"kind":"\\ud800"}\n'), "line 2: this is no JSON"),
    "not a number": (holds(HEAD + FIRST + FIRST.replace(b"null", b"NaN")), "line 3: this is no JSON"),
    "a number beyond all": (holds(HEAD + FIRST.replace(b"null", b"1e999")), "line 2: this is no JSON"),
    "deep nesting": (holds(HEAD + b"[" * 100_000 + b"]" * 100_000 + b"\n"), "line 2: this is no JSON: depth limit"),
    "a line that is cut in the middle": (holds(HEAD + FIRST[:40] + b"\n" + FIRST), "line 2: this is no JSON"),
    "an empty line": (holds(HEAD + b"\n"), "line 2: this is no JSON"),
    "another database": (database("CREATE TABLE entries(id TEXT)"), "this database is no session: no such"),
    "a database without a session": (
        database("CREATE TABLE session(storage_version, metadata, message_count, usage_payload, next_seq)"),
        "0 rows",
    ),
    "half a database": (holds(b"SQLite format 3\0" + bytes(500)), "the database cannot be read"),
    "garbage behind the magic": (holds(b"SQLite format 3\0" + os.urandom(5000)), "the database cannot be read"),
}  # fmt: skip


@pytest.mark.parametrize("name", UNREADABLE)
def test_what_is_no_session_is_told_in_one_line(name: str, tmp_path: Path) -> None:
    prepare, reason = UNREADABLE[name]
    path = tmp_path / "it"
    prepare(path)
    before = sorted(tmp_path.iterdir())
    report = audit(path)
    assert report.unreadable is not None
    assert reason in report.unreadable
    result = call("audit", str(path))
    assert result.exit_code == 2
    assert result.stderr.startswith("restartpoint: ")
    assert result.stderr.count("\n") == 1
    assert "Traceback" not in result.stdout
    assert sorted(tmp_path.iterdir()) == before


def test_nesting_that_only_some_interpreters_follow_is_told_without_a_traceback(tmp_path: Path) -> None:
    """Where an interpreter gives up the file is unreadable; one that goes on finds what is wrong in the commit."""
    path = tmp_path / "it"
    path.write_bytes(HEAD + b'[{"a":' * 500 + b"1" + b"}]" * 500 + b"\n")
    report = audit(path)
    told = report.unreadable or ""
    assert "nested too deeply" in told or (report.findings and report.stopped)
    result = call("audit", str(path))
    assert result.exit_code == report.exit_code
    assert result.exit_code in (1, 2)
    assert "Traceback" not in result.stdout + result.stderr


def test_a_file_that_may_not_be_read_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "it"
    path.write_bytes(SESSION)

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)  # whoever runs the tests may be allowed to read everything
    assert audit(path).unreadable == "the file cannot be read: Permission denied"


def test_a_line_without_an_end_is_given_up(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(b"a\n" + b"b" * 100)
    with path.open("rb") as file, pytest.raises(Unreadable, match="line 2: the line is longer than 64 bytes"):
        list(Lines(file, longest=64))


CONTENT: dict[str, tuple[bytes, Kind, str]] = {
    "two equal keys": (FIRST.replace(b'"seq":1', b'"seq":7,"seq":1'), Kind.TEXT, "'seq' stands twice"),
    "a huge integer": (FIRST.replace(b'"seq":2', b'"seq":123456789012345678901234567890'), Kind.TEXT, "beyond 2^53-1"),
    "a big integer": (FIRST.replace(b'"seq":2', b'"seq":9007199254740993'), Kind.UNEXPLAINED, "beyond 2^53-1"),
    "a scalar": (b"7\n", Kind.ROWS, "expected object"),
    "an array of scalars": (b"[7]\n", Kind.UNEXPLAINED, "expected object"),
    "an empty array": (b"[]\n", Kind.UNEXPLAINED, "at least one write"),
    "another kind": (b'[{"kind":"blob","seq":1}]\n', Kind.UNEXPLAINED, "not a kind of write"),
    "a number that is text": (FIRST.replace(b'"seq":1', b'"seq":"1"'), Kind.UNEXPLAINED, "expected integer"),
    "a number of false": (FIRST.replace(b'"seq":1', b'"seq":true'), Kind.UNEXPLAINED, "expected integer"),
    "a register of another shape": (
        FIRST.replace(b'"pendingNextRun":[]', b'"pendingNextRun":{}'),
        Kind.UNEXPLAINED,
        "",
    ),
    "a name of escapes": (FIRST.replace(b'"main"', b'"\\u001b[2J"'), Kind.UNEXPLAINED, ""),
}


@pytest.mark.parametrize("name", CONTENT)
def test_wrong_content_is_a_violation_and_not_an_unreadable_file(name: str, tmp_path: Path) -> None:
    line, kind, reason = CONTENT[name]
    path = tmp_path / "it"
    path.write_bytes(HEAD + line)
    report = audit(path)
    assert report.exit_code == 1
    assert report.findings[0].kind is kind
    assert any(reason in difference for difference in report.findings[0].differences)
    assert call("audit", str(path)).exit_code == 1


def test_what_was_found_before_a_file_becomes_unreadable_is_told(tmp_path: Path) -> None:
    path = tmp_path / "it"
    again = FIRST.replace(b'"seq":1', b'"seq":3').replace(b'"seq":2', b'"seq":4')
    path.write_bytes(HEAD + FIRST + again + b"{\n")
    result = call("audit", str(path), "--json")
    (file,) = json.loads(result.stdout)["files"]
    assert (result.exit_code, file["exitCode"]) == (2, 2)
    assert [finding["line"] for finding in file["findings"]] == [3]
    assert file["unreadable"].startswith("line 4: this is no JSON")


STRANGE: tuple[Json, ...] = (None, [], {}, "x", "", -1, 0, 1e300, True, [None], [{}], {"kind": "run"}, "main", 7)


@pytest.mark.parametrize("seed", range(10))
def test_no_damage_inside_a_commit_raises_anything(seed: int) -> None:
    chance = random.Random(seed)
    history = recorded()[seed * 9]
    standings = history.standings
    for at, elements in enumerate(history.commits):
        for _ in range(5):
            damaged: Elements = copy.deepcopy(elements)
            for _ in range(2):
                *way, last = chance.choice([path for path in leaves(damaged) if len(path) > 1])
                holder: Any = damaged
                for step in way:
                    holder = holder[step]
                holder[last] = copy.deepcopy(chance.choice(STRANGE))
            verdict = judge(standings[at], SeenCommit(elements=damaged))
            if verdict.after is not None and at + 1 < len(history.commits):
                verdict = judge(verdict.after, SeenCommit(elements=history.commits[at + 1]))
            if verdict.after is not None:
                judge_state(verdict.after)


def test_text_of_a_file_never_acts_on_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "it"
    fact: JsonObject = {"kind": "register", "op": "set", "seq": 3, "namespace": ANSI, "key": ANSI, "value": ANSI}
    path.write_bytes(file_of(recorded()[0], header={**HEADER, "id": ANSI}) + lines_of([fact]))
    result = call("audit", str(path), "--commits")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "\\x1b[31m" in result.stdout
    assert "\x1b" not in call("audit", str(path), "--json").stdout
