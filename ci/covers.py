"""The pytest hooks behind `@pytest.mark.covers("ST-1.7-20")`: they refuse wrong marks and report what passed.

`--requirements-report PATH` writes `{"passed": {id: [tests]}, "failed": {id: [tests]}}`; a test that was skipped is in
neither. Works with pytest-xdist: the ids travel with each test's report.
"""

import json
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path

import pytest

from ci.catalogue import known_ids

__all__ = ["MOST_IDS_PER_TEST", "complaints", "pytest_addoption", "pytest_collection_modifyitems", "pytest_configure"]

MARK = "covers"
MOST_IDS_PER_TEST = 4


def pytest_addoption(parser: pytest.Parser) -> None:
    """Adds `--requirements-report`."""
    parser.addoption("--requirements-report", metavar="PATH", help="write which requirement ids passed, as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Registers the collector of results in the process that writes the report."""
    path = config.getoption("--requirements-report")
    if path and not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Report(Path(path)), "requirements-report")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Refuses the whole run when a mark is wrong, and hands each test's ids to its report."""
    known = known_ids()
    wrong = [f"{item.nodeid}: {text}" for item in items for text in complaints(item, known)]
    if wrong:
        raise pytest.UsageError("wrong `covers` marks:\n" + "\n".join(wrong))
    for item in items:
        item.user_properties.extend((MARK, one) for one in _ids(item))


def complaints(item: pytest.Item, known: Iterable[str]) -> list[str]:
    """What is wrong with the marks of one test, in words."""
    found = (
        [] if all(node is item for node, _ in item.iter_markers_with_node(MARK)) else ["a class or module is marked"]
    )
    ids = _ids(item)
    if len(ids) > MOST_IDS_PER_TEST:
        found.append(f"{len(ids)} ids; a test that claims more than {MOST_IDS_PER_TEST} claims too much")
    if any(not mark.args or mark.kwargs for mark in item.iter_markers(MARK)):
        found.append("the mark takes one or more ids and nothing else")
    found.extend(f"no requirement has the id {one!r}" for one in sorted(set(ids) - set(known)))
    return found


def _ids(item: pytest.Item) -> list[str]:
    return [str(one) for mark in item.iter_markers(MARK) for one in mark.args]


class _Report:
    """Collects outcomes by requirement id and writes them when the session ends."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._passed: dict[str, set[str]] = defaultdict(set)
        self._failed: dict[str, set[str]] = defaultdict(set)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped or (report.passed and report.when != "call"):
            return
        into = self._failed if report.failed else self._passed
        for name, value in report.user_properties:
            if name == MARK:
                into[str(value)].add(report.nodeid)

    def pytest_sessionfinish(self) -> None:
        outcomes = {"passed": self._passed, "failed": self._failed}
        content = {word: {one: sorted(tests) for one, tests in sorted(by.items())} for word, by in outcomes.items()}
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
