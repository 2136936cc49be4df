"""``restartpoint inspect`` on sound sessions: everything is there, for people and for programs."""

import json
import os
import re
import subprocess
from pathlib import Path
from typing import Any

import anyio
import pytest
from typer.testing import CliRunner

from restartpoint.contract import EntryScan, LaneConfiguration, ModelIdentity, user_message
from restartpoint.providers import ScriptedCall, asks, says
from tests.harness.cli.stage import HOSTILE, PROGRAM, application, call, commit, open_repository, play_prompt, settle

BACKENDS = ["jsonl", "sqlite"]
SIDE = "side \u202e [red]lane"
DANGEROUS = re.compile("[\x00-\x09\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]")


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def path(backend: str, tmp_path: Path) -> Path:
    """A session with two lanes, a branch, facts, a finished run with a tool, and hostile texts everywhere."""
    anyio.run(furnish, backend, tmp_path)
    return open_repository(backend, tmp_path).path_of("s1")


async def furnish(backend: str, root: Path) -> None:
    repository = open_repository(backend, root)
    async with repository, await repository.create(id="s1", cwd=HOSTILE) as session:
        await play_prompt(
            session,
            HOSTILE,
            steps=[asks(ScriptedCall(name="shout", arguments={"text": HOSTILE}), text=HOSTILE), says("Done.")],
        )
    async with open_repository(backend, root) as again, await again.open("s1") as session:
        first = (await session.scan_entries(EntryScan()))[0].id
        configuration = LaneConfiguration(
            model=ModelIdentity(provider="p", model_id=HOSTILE), thinking_level="off", active_tool_names=[HOSTILE]
        )
        side = await session.create_lane(SIDE, first, configuration)
        await side.append_message(user_message(HOSTILE, 1))
        await side.append_custom_entry(HOSTILE, {HOSTILE: HOSTILE})
        await session.set_name(HOSTILE)
        await session.set_label(first, HOSTILE)
        await session.set_custom_fact("key [red] \u202e", {"a": HOSTILE})
        await commit(session, settle("by-hand", 7))


def inspected(path: Path) -> Any:
    result = call("inspect", str(path), "--json")
    assert (result.exit_code, result.stderr) == (0, "")
    return json.loads(result.stdout)


def test_people_see_tree_lanes_operation_registers_and_ledger(path: Path) -> None:
    result = call("inspect", str(path), columns=200)
    assert (result.exit_code, result.stderr) == (0, "")
    for heading in ("Session s1", "Tree (6 entries)", "Lanes", "Open operation", "Registers (", "Ledger (3 rows)"):
        assert f"\n{heading}" in f"\n{result.stdout}"
    lines = result.stdout.splitlines()
    assert [line for line in lines if "Done." in line and line.endswith("◀ main")] != []
    assert [line for line in lines if "├─" in line] != []
    assert "last result: run completed" in result.stdout
    assert "entered by hand: 7 in" in result.stdout


@pytest.mark.parametrize("columns", [1, 20, 40, 80, 300])
def test_no_text_of_the_file_controls_the_terminal_at_any_width(path: Path, columns: int) -> None:
    result = call("inspect", str(path), columns=columns)
    assert result.exit_code == 0
    assert DANGEROUS.findall(result.stdout) == []
    assert DANGEROUS.findall(call("inspect", str(path), "--json").stdout) == []


def test_on_a_terminal_nothing_but_colours_is_sent(path: Path) -> None:
    shown = CliRunner().invoke(application(), ["inspect", str(path)], env={"FORCE_COLOR": "1", "COLUMNS": "80"}).stdout
    assert "\x1b[1m" in shown
    assert DANGEROUS.findall(re.sub(r"\x1b\[[0-9;]*m", "", shown)) == []
    assert "\x1b[31m" not in shown


@pytest.mark.parametrize("columns", [40, 80, 120])
def test_entries_registers_and_rows_stay_on_one_line_each(path: Path, columns: int) -> None:
    lines = call("inspect", str(path), columns=columns).stdout.splitlines()
    start = lines.index("Tree (6 entries)") + 1
    assert lines[start + 6] == ""
    assert max(map(len, lines[start : start + 6])) <= columns


def test_programs_get_one_document_with_everything(path: Path) -> None:
    found = inspected(path)
    assert list(found) == [
        "format", "path", "backend", "tornBytes", "problems", "session", "stats", "lanes", "operations", "entries",
        "registers", "usage",
    ]  # fmt: skip
    assert (found["format"], found["path"], found["tornBytes"], found["problems"]) == (1, str(path), 0, [])
    assert found["session"]["id"] == "s1"
    assert [lane["name"] for lane in found["lanes"]] == ["main", SIDE]
    assert len(found["entries"]) == 6
    assert found["entries"][0]["message"]["content"][0]["text"] == HOSTILE
    assert found["stats"]["usage"]["input"] == sum(row["usage"]["input"] for row in found["usage"])
    assert found["operations"] == []
    assert {register["namespace"] for register in found["registers"]} >= {"lane.leaf", "fact.name", "fact.custom"}


def test_the_file_is_not_changed_and_may_be_open_elsewhere(path: Path, backend: str) -> None:
    async def inspect_while_open() -> bytes:
        async with open_repository(backend, path.parent) as repository, await repository.open("s1"):
            before = path.read_bytes() if backend == "jsonl" else b""
            result = await anyio.run_process([*PROGRAM, "inspect", str(path)])
            assert b"Tree (6 entries)" in result.stdout
            return before

    before = anyio.run(inspect_while_open)
    assert before in (path.read_bytes(), b"")


def test_a_new_session_without_a_harness_is_sound(backend: str, tmp_path: Path) -> None:
    async def create() -> None:
        async with open_repository(backend, tmp_path) as repository, await repository.create(id="new"):
            pass

    anyio.run(create)
    result = call("inspect", str(open_repository(backend, tmp_path).path_of("new")))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "not configured yet" in result.stdout
    assert "(root) ◀ main" in result.stdout


def test_long_histories_are_folded_unless_all_is_wanted(backend: str, tmp_path: Path) -> None:
    async def talk_long() -> None:
        async with open_repository(backend, tmp_path) as repository, await repository.create(id="long") as session:
            for number in range(200):
                await session.append_message(user_message(f"message {number}.", 1))

    anyio.run(talk_long)
    path = open_repository(backend, tmp_path).path_of("long")
    short, whole = call("inspect", str(path)).stdout, call("inspect", str(path), "--all").stdout
    assert "more (--all)" in short
    assert "message 100." not in short
    assert "message 199." in short
    assert "more (--all)" not in whole
    assert "message 100." in whole


def test_a_link_to_a_session_is_followed(path: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(path)
    assert call("inspect", str(link)).exit_code == 0


def test_an_encoding_that_lacks_characters_gets_escapes(path: Path) -> None:
    result = subprocess.run(
        [*PROGRAM, "inspect", str(path)],
        env={**os.environ, "PYTHONIOENCODING": "ascii"},
        capture_output=True,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"Tree (6 entries)" in result.stdout
