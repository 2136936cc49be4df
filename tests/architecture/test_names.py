"""Names say what a thing is, `__all__` says what is public, and an ignored check is named."""

import pytest

from tests.architecture.rules import bad_names, export_problems, module_state, nameless_ignores
from tests.architecture.sources import parse, sources, sources_of_tests


def test_no_module_or_class_is_named_after_nothing() -> None:
    assert [text for source in (*sources(), *sources_of_tests()) for text in bad_names(source)] == []


def test_every_package_exports_exactly_the_public_names_it_binds() -> None:
    assert [text for source in sources() if source.is_package for text in export_problems(source)] == []


def test_every_ignored_check_is_named() -> None:
    assert [text for source in (*sources(), *sources_of_tests()) for text in nameless_ignores(source)] == []


def test_no_module_holds_mutable_state() -> None:
    assert [text for source in sources() for text in module_state(source)] == []


@pytest.mark.parametrize("name", ["restartpoint.utils", "restartpoint.session.lane_helpers", "restartpoint.manager"])
def test_the_name_rule_sees_modules(name: str) -> None:
    assert bad_names(parse("", name=name)) != []


def test_the_name_rule_sees_classes_by_whole_words() -> None:
    assert bad_names(parse("class LaneManager: ...")) == ["restartpoint.example: Manager"]
    assert bad_names(parse("class Commonplace: ...")) == []


@pytest.mark.parametrize(
    "text",
    [
        "from restartpoint.errors import Closed",
        "from restartpoint.errors import Closed\n__all__ = []",
        "__all__ = ['Missing']",
        "__all__ = ['f', 'f']\ndef f(): ...",
        "LIMIT = 3\n__all__: list[str] = []",
    ],
)
def test_the_export_rule_sees_missing_and_superfluous_names(text: str) -> None:
    assert export_problems(parse(text, name="restartpoint.example", is_package=True)) != []


def test_the_export_rule_asks_for_nothing_that_came_from_elsewhere() -> None:
    text = "import json\nfrom typing import Final\nfrom restartpoint.a import b\n_LIMIT: Final = 3\n__all__ = ['b']"
    assert export_problems(parse(text, is_package=True)) == []


@pytest.mark.parametrize("comment", ["type: " + "ignore", "no" + "qa", "no" + "qa: all", "pyright: " + "ignore"])
def test_the_ignore_rule_sees_nameless_ones(comment: str) -> None:
    assert nameless_ignores(parse(f"x = 1  # {comment}")) != []


@pytest.mark.parametrize("comment", ["type: " + "ignore[arg-type]", "no" + "qa: E501", "a noise"])
def test_the_ignore_rule_accepts_named_ones(comment: str) -> None:
    assert nameless_ignores(parse(f"x = 1  # {comment}\ny = '# no" + "qa'")) == []


@pytest.mark.parametrize(
    "text",
    ["cache = {}", "_CACHE: dict[str, int] = {}", "table = {1: 2}", "X = set()", "def f():\n    global x\n    x = 1"],
)
def test_the_state_rule_sees_containers_that_can_grow(text: str) -> None:
    assert module_state(parse(text)) != []


@pytest.mark.parametrize("text", ["TABLE = {1: 2}", "__all__: list[str] = []", "_NAMES = frozenset({'a'})"])
def test_the_state_rule_accepts_constants(text: str) -> None:
    assert module_state(parse(text)) == []
