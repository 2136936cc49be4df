"""``restartpoint audit``: what it prints for people and for programs, its exit codes, and the end of the demo."""

import json
import re
from importlib.metadata import EntryPoints
from pathlib import Path

import pytest
import typer
import typer.core
from typer.testing import CliRunner

from restartpoint.cli.consoles import out
from restartpoint.cli.demonstration.audited import installed, print_audit
from restartpoint_oracle.cli.audit import register
from tests.harness.cli.stage import application, call
from tests.oracle.audit.counting import names_of
from tests.oracle.audit.forgeries import FORGERIES
from tests.oracle.audit.histories import file_of, recorded

ROOT = Path(__file__).resolve().parents[3]
PLAIN = recorded()[0]
FORGERY = FORGERIES["a wrong parent"]


@pytest.fixture
def clean(tmp_path: Path) -> Path:
    path = tmp_path / "clean.jsonl"
    path.write_bytes(file_of(PLAIN))
    return path


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    path = tmp_path / "forged.jsonl"
    path.write_bytes(file_of(FORGERY.edited()[0]))
    return path


def test_a_clean_session_is_told_in_three_lines(clean: Path) -> None:
    result = call("audit", str(clean))
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.splitlines() == [
        str(clean), f"  jsonl session s-1, {len(PLAIN.commits)} commits judged", "  clean",
    ]  # fmt: skip


def test_every_commit_is_listed_with_its_transition(clean: Path) -> None:
    lines = call("audit", "--commits", str(clean), columns=120).stdout.splitlines()
    listed = [line.split() for line in lines if re.match(r"  \d+ ", line)]
    assert [int(cells[0]) for cells in listed] == [*range(1, len(PLAIN.commits) + 1)]
    assert [int(cells[1]) for cells in listed] == [*range(2, len(PLAIN.commits) + 2)]
    assert all(name in line for name, line in zip(names_of(PLAIN), lines[3:], strict=False))


def test_a_violation_names_file_line_commit_transition_section_and_differences(forged: Path) -> None:
    result = call("audit", str(forged))
    assert result.exit_code == 1
    line = next(line for line in result.stdout.splitlines() if "commit 8" in line)
    assert str(forged) in result.stdout
    assert re.search(r"line 9, commit 8, seqs \d+–\d+: .*the nearest is complete_batch on lane main \(§3.8\)", line)
    assert "    - writes[0].parentId: expected '018bcfe5" in result.stdout
    assert result.stdout.splitlines()[-1].endswith("1 violation")


def test_many_findings_are_folded_until_all_are_wanted(tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    whole = file_of(PLAIN).splitlines(keepends=True)
    path.write_bytes(whole[0] + whole[1] + b"".join(b'{"kind":"register","op":"set","seq":%d,"namespace":"op.meta",'
                     b'"key":"o%d","value":1}\n' % (number, number) for number in range(3, 40)))  # fmt: skip
    assert "findings more; --all shows them" in call("audit", str(path)).stdout
    assert call("audit", "--all", str(path)).stdout.count("no transition makes this commit") == 37


def test_the_worst_of_several_files_decides(clean: Path, forged: Path, tmp_path: Path) -> None:
    missing = tmp_path / "missing"
    assert call("audit", str(clean), str(clean)).exit_code == 0
    assert call("audit", str(forged), str(clean)).exit_code == 1
    result = call("audit", str(missing), str(forged), str(clean))
    assert result.exit_code == 2
    assert result.stderr == f"restartpoint: {missing}: there is no such file\n"
    assert "clean" in result.stdout


def documented() -> dict[str, str]:
    text = (ROOT / "docs" / "reference" / "cli.md").read_text("utf-8")
    return dict(re.findall(r"^## `restartpoint (\w+).*?`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))


def test_the_document_for_programs_has_the_fields_of_its_reference(clean: Path, forged: Path) -> None:
    result = call("audit", "--json", "--commits", str(clean), str(forged))
    document = json.loads(result.stdout)
    assert (result.exit_code, document["exitCode"], document["format"]) == (1, 1, 1)
    first, second = document["files"]
    assert [first["exitCode"], second["exitCode"]] == [0, 1]
    assert [commit["transition"] for commit in first["named"]] == [*names_of(PLAIN)]
    assert sum(first["transitions"].values()) == first["commits"] == len(PLAIN.commits)
    finding = second["findings"][0]
    assert (finding["kind"], finding["transition"], finding["section"]) == ("unexplained", "complete_batch", "3.8")
    page = documented()["audit"]
    for holder in (document, first, finding, first["named"][0]):
        assert [key for key in holder if f"`{key}`" not in page] == []
    assert "named" not in json.loads(call("audit", "--json", str(clean)).stdout)["files"][0]


def test_every_option_is_documented() -> None:
    app = typer.Typer()
    app.callback()(lambda: None)
    register(app)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    options = [
        option
        for parameter in group.commands["audit"].params
        if isinstance(parameter, typer.core.TyperOption)
        for option in parameter.opts
    ]
    assert options
    assert [option for option in options if f"`{option}`" not in documented()["audit"]] == []


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_of_a_long_file_is_shown_on_a_terminal_only(clean: Path, terminal: bool) -> None:
    whole = clean.read_bytes()
    note = b'{"kind":"register","op":"set","seq":900,"namespace":"fact.custom","key":"k","value":"%s"}\n'
    clean.write_bytes(whole + note % (b"x" * (2 << 20)))
    env = {"COLUMNS": "100", **({"FORCE_COLOR": "1"} if terminal else {})}
    result = CliRunner().invoke(application(), ["audit", str(clean)], env=env)
    assert result.exit_code == 0
    assert ("clean.jsonl" in result.stderr) == terminal


def test_the_demo_ends_with_every_commit_of_its_session_file(tmp_path: Path) -> None:
    result = call("demo", "--keep", str(tmp_path / "kept"))
    assert (result.exit_code, result.stderr) == (0, "")
    end = result.stdout.partition("Audit of the session file")[2]
    path = tmp_path / "kept" / "sessions" / "demo.jsonl"
    told = json.loads(call("audit", "--json", "--commits", str(path)).stdout)["files"][0]["named"]
    assert len(told) == len(path.read_bytes().splitlines()) - 1
    assert all(commit["transition"] in end for commit in told)
    assert end.index("create_session") < end.index("interrupt_tool") < end.index("finish_run") < end.index("clean")


def test_the_demo_says_when_no_audit_is_installed_and_fails_when_it_finds_something(
    forged: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert print_audit(out(), EntryPoints(), forged.parent, forged)
    assert "not installed; it comes with restartpoint[oracle]" in capsys.readouterr().out
    assert not print_audit(out(), installed(), forged.parent, forged)
    assert "forged.jsonl" in capsys.readouterr().out
