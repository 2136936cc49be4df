"""``restartpoint inspect`` on what is no sound session: one line that says what is wrong and where, exit code 2."""

import json
import os
import sqlite3
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import TypeAlias

import anyio
import pytest

from restartpoint.contract import OP_STATE, RegisterDelete
from restartpoint.providers import says
from restartpoint.repo import SqliteRepository
from tests.harness.cli.stage import PROGRAM, call, commit, open_repository, play_prompt

HEADER = b'{"v":4,"kind":"header","id":"x","storageVersion":1,"createdAt":1}\n'
FIRST = (
    b'[{"kind":"register","op":"set","seq":1,"namespace":"lane.leaf","key":"main","value":null},'
    b'{"kind":"register","op":"set","seq":2,"namespace":"lane.state","key":"main",'
    b'"value":{"currentOperationId":null,"pendingNextRun":[]}}]\n'
)
Prepare: TypeAlias = Callable[[Path], object]


def holds(content: bytes) -> Prepare:
    return lambda path: path.write_bytes(content)


def entry(**fields: object) -> bytes:
    whole = {"kind": "entry", "seq": 3, "timestamp": 1, "id": "a", "parentId": None, "type": "message", **fields}
    return json.dumps(whole).encode() + b"\n"


def refused(path: Path) -> str:
    """The one line that stderr gets."""
    result = call("inspect", str(path))
    assert (result.exit_code, result.stdout) == (2, "")
    assert result.stderr.endswith("\n")
    line = result.stderr.removesuffix("\n")
    assert "\n" not in line
    assert line.startswith("restartpoint: ")
    assert call("inspect", "--json", str(path)).stderr == result.stderr
    return line


@pytest.mark.parametrize(
    "prepare, reasons",
    [
        (lambda path: None, ["no such file"]),
        (lambda path: path.mkdir(), ["folder"]),
        (os.mkfifo, ["no regular file"]),
        (lambda path: path.symlink_to(path), ["cannot be read"]),
        (lambda path: path.symlink_to(path.with_name("nowhere")), ["no such file"]),
        (holds(b""), ["line 1", "empty"]),
        (holds(b"\x89PNG\r\n\x1a\n" + bytes(2000)), ["line 1 (byte 0)"]),
        (holds(b"hello, world\n"), ["line 1 (byte 0)"]),
        (holds(b"{}\n"), ["line 1 (byte 0)", "no header"]),
        (holds(HEADER[:-1]), ["line 1 (byte 0)", "incomplete"]),
        (holds(b'{"type":"session","version":3,"id":"x"}\n'), ["format 3"]),
        (holds(HEADER.replace(b'"storageVersion":1', b'"storageVersion":9')), ["storage version 9"]),
        (holds(HEADER + FIRST + b"{oops\n" + FIRST), ["line 3", f"byte {len(HEADER + FIRST)}"]),
        (holds(HEADER + FIRST + b"[]\n"), ["line 3", "empty"]),
        (holds(HEADER + FIRST + FIRST), ["line 3", "seq 1 does not follow seq 2"]),
        (holds(HEADER + FIRST + entry(message={"role": "user"}, parentId="gone")), ["line 3", "gone"]),
        (holds(HEADER + FIRST + entry(type="riddle")), ["line 3", "riddle"]),
        (holds(HEADER + FIRST + b"\xff\xfe\n"), ["line 3"]),
        (holds(HEADER + FIRST + b"[" * 200_000 + b"\n"), ["line 3"]),
        (holds(HEADER + FIRST.replace(b"null", b"7", 1)), ["line 2", "lane.leaf/main"]),
        (holds(b"SQLite format 3\0" + bytes(100)), []),
        (holds(b"SQLite format 3\0" + b"\xa5" * 8192), []),
    ],
)
def test_what_is_no_session_is_named_in_one_line(tmp_path: Path, prepare: Prepare, reasons: list[str]) -> None:
    path = tmp_path / "it"
    prepare(path)
    line = refused(path)
    assert [part for part in (str(path), *reasons) if part not in line] == []


@pytest.mark.skipif(os.geteuid() == 0, reason="nothing is unreadable for root")
def test_a_file_that_may_not_be_read_is_named_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(HEADER + FIRST)
    path.chmod(0)
    assert "Permission denied" in refused(path)


def test_a_hostile_name_does_not_control_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "a\x1b[31m\nb\u202ec"
    assert "a\\x1b[31m\\nb\\u202ec" in refused(path)


def test_a_torn_last_line_is_no_damage_and_is_pointed_out(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(HEADER + FIRST + entry(message={"role": "user", "content": "x"})[:-5])
    result = call("inspect", str(path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "torn" in result.stdout
    assert "Tree (0 entries)" in result.stdout
    torn = len(entry(message={"role": "user", "content": "x"})) - 5
    assert json.loads(call("inspect", "--json", str(path)).stdout)["tornBytes"] == torn


@pytest.mark.unjudged("the test damages its session")
def test_lanes_that_contradict_each_other_are_shown_and_named(tmp_path: Path) -> None:
    anyio.run(play_whole_run, tmp_path)
    path = open_repository("jsonl", tmp_path).path_of("broken")
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:4]))  # accepted, and no further
    operation = anyio.run(delete_operation_state, tmp_path)
    result = call("inspect", str(path))
    assert result.exit_code == 2
    assert "Tree (1 entry)" in result.stdout
    assert f"op.state/{operation} is missing" in result.stderr
    assert result.stderr.count("\n") == 1


async def play_whole_run(root: Path) -> None:
    async with open_repository("jsonl", root) as repository, await repository.create(id="broken") as session:
        await play_prompt(session, "Hi.", steps=[says("Yes.")])


async def delete_operation_state(root: Path) -> str:
    async with open_repository("jsonl", root) as repository, await repository.open("broken") as session:
        operation = (await session.list_registers(OP_STATE))[0].key
        await commit(session, RegisterDelete(OP_STATE, operation))
        return operation


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A SQLite session after one run."""

    async def play() -> None:
        async with SqliteRepository(tmp_path) as repository, await repository.create(id="s") as session:
            await play_prompt(session, "Hi.")

    anyio.run(play)
    return SqliteRepository(tmp_path).path_of("s")


def alter(path: Path, *statements: str) -> None:
    connection = sqlite3.connect(path)
    for statement in statements:
        connection.execute(statement)
    connection.commit()
    connection.close()


@pytest.mark.parametrize(
    "statement, reason",
    [
        ("DROP TABLE session", "no session"),
        ("DELETE FROM session", "0 rows"),
        ("UPDATE session SET storage_version = 9", "storage version 9"),
        ("UPDATE registers SET value = '{oops' WHERE namespace = 'lane.state'", "does not fit"),
        ("UPDATE entries SET payload = '7'", "does not fit"),
        ("UPDATE entries SET payload = replace(hex(zeroblob(50000)), '0', '[')", "does not fit"),
        ("UPDATE usage_ledger SET usage = '[['", "does not fit"),
    ],
)
def test_a_database_that_is_no_sound_session_is_named_in_one_line(database: Path, statement: str, reason: str) -> None:
    alter(database, statement)
    line = refused(database)
    assert str(database) in line
    assert reason in line


def test_a_cut_and_an_overwritten_database_are_named_in_one_line(database: Path) -> None:
    whole = database.read_bytes()
    database.write_bytes(whole[: len(whole) // 2])
    assert str(database) in refused(database)
    database.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    assert str(database) in refused(database)


@pytest.mark.slow  # SQLite waits some seconds for the other program
def test_a_database_that_another_program_keeps_for_itself_is_named_in_one_line(database: Path) -> None:
    holder = sqlite3.connect(database, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("BEGIN EXCLUSIVE")
    result = subprocess.run([*PROGRAM, "inspect", str(database)], capture_output=True, text=True, check=False)
    holder.close()
    assert (result.returncode, result.stdout) == (2, "")
    assert "locked" in result.stderr
    assert result.stderr.count("\n") == 1


@pytest.mark.parametrize(
    "statement, reason",
    [
        ("UPDATE entries SET parent_id = 'gone' WHERE parent_id IS NOT NULL", "names the parent 'gone'"),
        ("UPDATE entries SET parent_id = id", "which is not before it"),
        ("UPDATE session SET message_count = 7", "counts 7 messages and holds 2"),
        ("DELETE FROM usage_ledger", "is not the sum of its ledger"),
        ("DELETE FROM registers WHERE namespace = 'lane.leaf'", "lane.leaf is missing"),
    ],
)
def test_a_database_that_contradicts_itself_is_shown_and_named(database: Path, statement: str, reason: str) -> None:
    alter(database, statement)
    result = call("inspect", str(database))
    assert result.exit_code == 2
    assert "Tree (2 entries)" in result.stdout
    assert result.stdout.count(" user Hi.") == 1
    assert reason in result.stderr


def register(namespace: str, key: str, value: object, seq: int = 3) -> bytes:
    cell = {"kind": "register", "op": "set", "seq": seq, "namespace": namespace, "key": key, "value": value}
    return json.dumps(cell).encode() + b"\n"


META = {
    "operationId": "o",
    "lane": "main",
    "sourceLeafId": None,
    "startedAt": 1,
    "intent": {"kind": "run", "promptEntryIds": []},
}


@pytest.mark.parametrize(
    "line, reason",
    [
        (register("lane.leaf", "main", "gone"), "lane.leaf names 'gone', which does not exist"),
        (register("lane.leaf", "side", None), "lane.config, lane.state is missing"),
        (b'{"kind":"register","op":"delete","seq":3,"namespace":"lane.leaf","key":"main"}\n', "lane.leaf is missing"),
        (register("op.meta", "o", META), "op.meta/o belongs to no open operation"),
        (register("op.tool_args", "o:s:0", {}), "op.tool_args/o:s:0 belongs to no open operation"),
    ],
)
def test_a_file_whose_registers_contradict_each_other_is_shown_and_named(
    tmp_path: Path, line: bytes, reason: str
) -> None:
    path = tmp_path / "it"
    path.write_bytes(HEADER + FIRST + line)
    result = call("inspect", str(path))
    assert result.exit_code == 2
    assert "Tree (0 entries)" in result.stdout
    assert reason in result.stderr
    assert result.stderr.count("\n") == 1
    assert len(json.loads(call("inspect", "--json", str(path)).stdout)["problems"]) == 1


@pytest.mark.parametrize(
    "message",
    [
        {"role": {"a": 1}, "content": [7, None, {"type": "text", "text": 9}]},
        {"role": "assistant", "content": [{"type": "toolCall"}], "stopReason": 7, "errorMessage": [1]},
        {"role": "toolResult", "toolName": {"a": 1}},
        {"role": "user", "content": 10**30},
        {},
    ],
)
def test_messages_of_any_shape_are_shown(tmp_path: Path, message: dict[str, object]) -> None:
    path = tmp_path / "it"
    path.write_bytes(HEADER + FIRST + entry(message=message, timestamp=10**17))
    assert call("inspect", str(path)).exit_code == 0
    assert len(json.loads(call("inspect", "--json", str(path)).stdout)["entries"]) == 1


def test_a_deep_value_within_the_limits_is_shown(tmp_path: Path) -> None:
    path, value = tmp_path / "it", "[" * 500 + "]" * 500
    fact = f'{{"kind":"register","op":"set","seq":3,"namespace":"fact.custom","key":"deep","value":{value}}}\n'
    path.write_bytes(HEADER + FIRST + fact.encode())
    result = call("inspect", str(path))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "[[[[[" in result.stdout
    assert value in call("inspect", "--json", str(path)).stdout


def test_huge_texts_are_cut_for_people_and_whole_for_programs(tmp_path: Path) -> None:
    path = tmp_path / "it"
    path.write_bytes(HEADER + FIRST + entry(message={"role": "user", "content": "\x1b" * 10**6}))
    assert len(call("inspect", str(path)).stdout) < 5000
    document = json.loads(call("inspect", "--json", str(path)).stdout)
    assert document["entries"][0]["message"]["content"] == "\x1b" * 10**6
