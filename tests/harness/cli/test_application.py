"""The program: its commands come from entry points, and what is wrong is said in one line."""

import os
import subprocess
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from restartpoint.cli.application import GROUP, build
from tests.harness.cli.stage import PROGRAM, call


def register(app: typer.Typer) -> None:
    """What a stranger's package offers as its entry point."""

    @app.command("greet")
    def _greet() -> None:
        typer.echo("hello")


@pytest.mark.parametrize("command", ["audit", "demo", "explore", "inspect"])
def test_the_own_commands_are_found_and_explain_themselves(command: str) -> None:
    assert command in call("--help").stdout
    assert call(command, "--help").exit_code == 0


def test_another_package_adds_a_command() -> None:
    app = build([EntryPoint(name="greet", value=f"{__name__}:register", group=GROUP)])
    assert CliRunner().invoke(app, ["greet"]).stdout == "hello\n"


@pytest.mark.parametrize("value", ["restartpoint_nowhere:register", f"{__name__}:nothing"])
def test_a_command_that_cannot_be_loaded_is_named_and_hinders_no_other(
    value: str, capsys: pytest.CaptureFixture[str]
) -> None:
    broken = EntryPoint(name="broken", value=value, group=GROUP)
    app = build([broken, EntryPoint(name="greet", value=f"{__name__}:register", group=GROUP)])
    said = capsys.readouterr().err
    assert "the command broken" in said
    assert said.count("\n") == 1
    assert CliRunner().invoke(app, ["greet"]).stdout == "hello\n"


def test_a_command_whose_package_is_not_installed_says_so_when_it_is_called(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "strangers_command.py").write_text("import strangers_dependency\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    lacking = EntryPoint(name="lacking", value="strangers_command:register", group=GROUP)
    app = build([lacking, EntryPoint(name="greet", value=f"{__name__}:register", group=GROUP)])
    assert capsys.readouterr().err == ""
    result = CliRunner().invoke(app, ["lacking", "--json", "a file"])
    assert result.exit_code == 2
    assert "lacking needs the package strangers_dependency" in result.stderr
    assert "strangers_dependency" in CliRunner().invoke(app, ["--help"]).stdout
    assert CliRunner().invoke(app, ["greet"]).stdout == "hello\n"


def test_a_reader_that_stops_early_gets_no_traceback(tmp_path: object) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    result = subprocess.run([*PROGRAM, "demo", "--help"], stdout=writing, stderr=subprocess.PIPE, check=False)
    os.close(writing)
    assert b"Traceback" not in result.stderr
