"""The examples in the documents run as they stand."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
DOCUMENTS = [
    ROOT / "README.md",
    *sorted((ROOT / "docs" / "tutorial").glob("*.md")),
    *sorted((ROOT / "docs" / "guide").glob("*.md")),
]
LONGEST_README_EXAMPLE = 30


def examples(path: Path) -> list[str]:
    """The Python blocks of a document; a block that is no program is marked as another language or `pycon`."""
    return re.findall(r"^```python\n(.*?)^```$", path.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


CASES = [
    pytest.param(text, id=f"{path.name}-{number}")
    for path in DOCUMENTS
    for number, text in enumerate(examples(path), start=1)
]


@pytest.mark.parametrize("text", CASES)
def test_an_example_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    exec(compile(text, "example", "exec"), names)


def test_the_readme_examples_are_short() -> None:
    assert [text for text in examples(ROOT / "README.md") if len(text.splitlines()) > LONGEST_README_EXAMPLE] == []
