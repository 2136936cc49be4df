"""What the README says that the demo prints, it prints."""

import re
from importlib.metadata import entry_points
from pathlib import Path

from typer.testing import CliRunner

from restartpoint.cli.application import GROUP, build

README = Path(__file__).resolve().parents[2] / "README.md"


def without_process_ids(text: str) -> str:
    return re.sub(r"pid \d+", "pid N", text)


def test_the_output_of_the_demo_in_the_readme_is_real() -> None:
    """When the demo's output changes on purpose, put what `COLUMNS=80 restartpoint demo` prints into the README."""
    block = re.search(
        r"<!-- demo output: begin -->\n```text\n(.*?)```\n<!-- demo output: end -->",
        README.read_text("utf-8"),
        re.DOTALL,
    )
    assert block is not None
    printed = CliRunner().invoke(build(entry_points(group=GROUP)), ["demo"], env={"COLUMNS": "80"})
    assert printed.exit_code == 0
    assert without_process_ids(block[1]).strip() == without_process_ids(printed.stdout).strip()
