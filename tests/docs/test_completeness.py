"""What the documents claim to list completely, they list completely."""

import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from restartpoint import errors

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"


def concrete(kind: type[Exception]) -> Iterator[type[Exception]]:
    """The public exceptions below a kind that stand for one situation each."""
    for below in kind.__subclasses__():
        if not below.__name__.startswith("_"):
            yield below
        yield from concrete(below)


def test_every_rejection_stands_in_the_mapping_table() -> None:
    text = (DOCS / "why" / "adr" / "0004-rejections.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([A-Z]\w+)`", text)) - {"Rejected"}
    assert documented == {kind.__name__ for kind in concrete(errors.Rejected)} | {"HarnessFault", "HarnessClosed"}


def test_every_decision_is_listed_and_in_the_navigation() -> None:
    index = (DOCS / "why" / "index.md").read_text(encoding="utf-8")
    navigation = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    pages = [path.name for path in (DOCS / "why" / "adr").glob("0*.md")]
    assert pages
    assert [name for name in pages if f"adr/{name}" not in index or f"adr/{name}" not in navigation] == []


@pytest.mark.skipif(find_spec("restartpoint.cli") is None, reason="the command line is not built yet")
def test_every_command_and_option_is_documented() -> None:
    import typer
    import typer.core

    from restartpoint.cli import demo, inspect  # type: ignore[attr-defined,import-not-found,unused-ignore]

    app = typer.Typer()
    demo.register(app)
    inspect.register(app)
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    text = (DOCS / "reference" / "cli.md").read_text(encoding="utf-8")
    options = {
        (name, option)
        for name, command in group.commands.items()
        for parameter in command.params
        if isinstance(parameter, typer.core.TyperOption) and not parameter.hidden
        for option in parameter.opts
    }
    sections = dict(re.findall(r"^## `restartpoint (\w+).*?`\n(.*?)(?=^## |\Z)", text, re.MULTILINE | re.DOTALL))
    assert group.commands.keys() <= sections.keys()
    assert [(name, option) for name, option in sorted(options) if f"`{option}`" not in sections[name]] == []
