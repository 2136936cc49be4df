"""``restartpoint demo``: the whole story with real processes, and what its checks would notice."""

import re
from pathlib import Path

import anyio
import msgspec
import pytest

from restartpoint.cli.demonstration.checks import checks
from restartpoint.cli.demonstration.commits import last_seq, left_behind, read_recorded
from restartpoint.cli.demonstration.kill import KillAt, KillingFaults, parse_kill_at
from restartpoint.cli.demonstration.process import ChildFailed, run_child
from restartpoint.cli.demonstration.recovery import all_commits, finish_the_run, look
from restartpoint.cli.demonstration.scene import Backend, Effect, Stage
from restartpoint.cli.inspection import Inspection
from restartpoint.cli.words import entry_words
from restartpoint.contract import Entry
from tests.harness.cli.stage import call

BACKENDS: list[Backend] = ["jsonl", "sqlite"]


@pytest.mark.covers("ST-0.5-01")
@pytest.mark.parametrize("backend", BACKENDS)
def test_a_run_killed_inside_the_unsafe_tool_is_finished_and_the_tool_ran_once(
    backend: Backend, tmp_path: Path
) -> None:
    folder = tmp_path / "kept"
    result = call("demo", "--backend", backend, "--keep", str(folder))
    assert (result.exit_code, result.stderr) == (0, "")
    story = result.stdout
    assert "killed with SIGKILL in the middle of the unsafe tool" in story
    assert "write_notes was started and" in story
    assert story.count("write_notes  call_write  started") == 1
    assert "harness.resume()         the run completed" in story
    assert "write_notes (error): This tool call was interrupted" in story
    assert "Every commit (14)" in story
    assert "FAILED" not in story
    assert [path.name for path in (folder / "scratch").iterdir()] == ["note-1.txt"]
    reserved = re.search(r"(\w{6}) for the result of write_notes", story)
    final = anyio.run(look, Stage(folder), backend)
    assert reserved is not None
    assert final is not None
    assert final.entries[2].id.endswith(reserved[1])
    results = [entry_words(entry)[1].partition(":")[0] for entry in final.entries[2:4]]
    assert results == ["write_notes (error)", "read_notes"]
    pids = {effect.pid for effect in Stage(folder).effects()}
    assert len(pids) == 2
    assert call("inspect", str(folder / "sessions" / f"demo.{backend}")).exit_code == 0


def test_a_run_killed_while_the_model_answers_ends_failed_and_a_new_prompt_finishes_it() -> None:
    result = call("demo", "--kill-at", "request")
    assert (result.exit_code, result.stderr) == (0, "")
    assert "the model was asked (attempt 1 of 1), whether it answered is unknown" in result.stdout
    assert "the run failed: The outcome of the request is" in result.stdout
    assert 'harness.prompt("Please go on.")  the run completed' in result.stdout
    assert "FAILED" not in result.stdout


def test_a_place_that_never_comes_is_said_and_the_run_is_whole(tmp_path: Path) -> None:
    result = call("demo", "--kill-at", "99-", "--keep", str(tmp_path / "new"))
    assert (result.exit_code, result.stderr) == (0, "")
    assert "but the run ended before that" in " ".join(result.stdout.split())
    assert "the run had completed before the process died" in " ".join(result.stdout.split())
    assert "FAILED" not in result.stdout


def test_the_demo_says_the_same_every_time_apart_from_process_ids() -> None:
    first, second = (re.sub(r"pid \d+", "pid N", call("demo", "--kill-at", "9+").stdout) for _ in range(2))
    assert "pid N" in first
    assert first == second


def test_a_child_that_fails_is_no_kill(tmp_path: Path) -> None:
    folder = tmp_path / "no folder"
    folder.write_text("")
    with pytest.raises(ChildFailed, match="ended with code 1"):
        run_child(Stage(folder), "jsonl", "tool")


@pytest.mark.parametrize("text", ["", "0", "-1", "3*", "3--", "three", "tool+", "99999999", "٣"])
def test_an_unknown_place_to_die_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="neither tool nor request"):
        parse_kill_at(text)
    result = call("demo", f"--kill-at={text}")
    assert result.exit_code == 2
    assert "--kill-at" in result.stderr


@pytest.mark.parametrize(
    "text, place",
    [
        ("tool", KillAt("tool")),
        ("request", KillAt("request")),
        ("3", KillAt("told", 3)),
        ("3-", KillAt("before", 3)),
        ("12+", KillAt("after", 12)),
    ],
)
def test_a_place_to_die_is_read_as_written(text: str, place: KillAt) -> None:
    assert parse_kill_at(text) == place


def test_a_folder_with_something_in_it_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("mine")
    result = call("demo", "--keep", str(tmp_path))
    assert result.exit_code == 2
    assert [path.name for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize("place, deaths", [("before", [2]), ("after", [2]), ("told", [2])])
def test_the_creation_of_the_session_counts_as_the_first_commit(place: str, deaths: list[int]) -> None:
    happened: list[str] = []
    faults = KillingFaults(
        parse_kill_at({"before": "2-", "after": "2+", "told": "2"}[place]), lambda: happened.append("died")
    )
    faults.creating()
    faults.reach("commit.before_write")
    faults.reach("commit.after_write")
    faults.created()
    faults.announced()
    assert happened == []
    faults.reach("commit.before_write")
    assert (happened == ["died"]) is (place == "before")


# --- the checks can fail ----------------------------------------------------------------------------------------


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    """A run that nobody killed."""
    anyio.run(finish_the_run, Stage(tmp_path), "jsonl")
    return Stage(tmp_path)


@pytest.fixture
def final(stage: Stage) -> Inspection:
    inspection = anyio.run(look, stage, "jsonl")
    assert inspection is not None
    return inspection


def failing(inspection: Inspection, effects: list[Effect]) -> list[str]:
    return [check.claim for check in checks(inspection, effects) if not check.holds]


def without(inspection: Inspection, index: int) -> tuple[Entry, ...]:
    return (*inspection.entries[:index], *inspection.entries[index + 1 :])


def test_a_whole_run_passes_every_check(stage: Stage, final: Inspection) -> None:
    assert failing(final, stage.effects()) == []


def test_a_second_start_of_the_unsafe_tool_is_noticed(stage: Stage, final: Inspection) -> None:
    assert failing(final, [*stage.effects(), stage.effects()[0]]) == ["the unsafe tool was started at most once"]


def test_an_invented_result_is_noticed(stage: Stage, final: Inspection) -> None:
    assert failing(final, []) == ["a result that says it succeeded comes from a tool that ran to its end"]


def test_a_missing_result_a_missing_row_and_a_left_register_are_noticed(stage: Stage, final: Inspection) -> None:
    cut = msgspec.structs.replace(
        final,
        entries=without(final, 2),
        usage=final.usage[1:],
        lanes=tuple(msgspec.structs.replace(lane, last_result=None) for lane in final.lanes),
    )
    assert len(failing(cut, stage.effects())) >= 3


def test_the_commits_of_a_file_are_those_that_were_told(stage: Stage, final: Inspection) -> None:
    recorded = read_recorded(stage.commits)
    assert [record.writes for record in all_commits(stage, "jsonl", final)] == [record.writes for record in recorded]
    assert all(record.told for record in all_commits(stage, "jsonl", final))


def test_what_a_commit_left_behind_is_the_part_of_it_that_can_still_be_seen(stage: Stage, final: Inspection) -> None:
    last = read_recorded(stage.commits)[-1]
    after = int(last.writes[0]["seq"]) - 1
    seen = left_behind(final.entries, final.registers, final.usage, after=after)
    assert seen == [write for write in last.writes if write.get("op") != "delete"]
    assert seen[-1]["seq"] == last_seq(last)
