"""The examples in the documents run as they stand, each page from top to bottom."""

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


CASES = [pytest.param(path, id=path.name) for path in DOCUMENTS if examples(path)]


@pytest.mark.parametrize("path", CASES)
def test_the_examples_of_a_page_run_one_after_another(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for number, text in enumerate(examples(path), start=1):
        exec(compile(text, f"{path.name}, block {number}", "exec", dont_inherit=True), names)


def test_the_readme_examples_are_short() -> None:
    assert [text for text in examples(ROOT / "README.md") if len(text.splitlines()) > LONGEST_README_EXAMPLE] == []
