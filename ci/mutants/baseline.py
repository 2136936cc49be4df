"""One run of the tests on the sound sources: how long each test takes, and which functions it calls.

A mutant inside a function is held only against the tests that call the function; the others cannot notice it.
"""

import hashlib
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path

import pytest

from ci.mutants.loading import HIT, import_instead, instrumented
from ci.mutants.project import Project


@dataclass(frozen=True, kw_only=True)
class Test:
    """One test: the seconds of processor time that it took, and the functions that it called."""

    seconds: float
    calls: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Baseline:
    """What is known of the tests.

    ``early`` are functions that are called while modules are imported; ``cold`` the test files that call some while
    they are collected. What these would find cannot be judged by exchanging code after the fact.
    """

    tests: dict[str, Test]
    early: frozenset[str]
    cold: tuple[str, ...]


def file_of(test: str) -> str:
    """The file of a test's node id."""
    return test.partition("::")[0]


class Recorder:
    """A pytest plugin that notes what each test calls; ``heard`` is given to the instrumented modules."""

    def __init__(self) -> None:
        self.heard: set[str] = set()
        self.tests: dict[str, Test] = {}
        self.cold: set[str] = set()
        self.early: set[str] = set()

    def taken(self) -> frozenset[str]:
        """What was called since the last time."""
        calls = frozenset(self.heard)
        self.heard.clear()
        return calls

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector: pytest.Collector) -> Iterator[None]:
        """Notes the files that call the sources while they are collected."""
        self.early |= self.taken()
        report = yield
        if self.taken() and isinstance(collector, pytest.Module):
            self.cold.add(file_of(collector.nodeid))
        return report

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Notes what one test calls, its fixtures included, and its time."""
        self.taken()
        start = time.process_time()
        report = yield
        self.tests[item.nodeid] = Test(seconds=round(time.process_time() - start, 4), calls=self.taken())
        return report


def record(project: Project, target: Path) -> int:
    """Runs the tests in this process, on instrumented modules that are not imported yet, and writes what it saw."""
    recorder = Recorder()
    project.make_importable()
    codes = {
        module: (project.path(module), instrumented(project.source(module), module, project.path(module)))
        for module in project.modules
    }
    import_instead(codes, {HIT: recorder.heard.add})
    for name in (*project.modules, *project.early):
        import_module(name)
    recorder.early |= recorder.taken()
    result = int(pytest.main(project.pytest_arguments(project.tests), plugins=[recorder]))
    if result == 0:
        seen = {name: {"seconds": test.seconds, "calls": sorted(test.calls)} for name, test in recorder.tests.items()}
        document = {"tests": seen, "early": sorted(recorder.early), "cold": sorted(recorder.cold)}
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(document), encoding="utf-8")
    return result


def read(path: Path) -> Baseline:
    """What was recorded there."""
    document = json.loads(path.read_text(encoding="utf-8"))
    return Baseline(
        tests={
            name: Test(seconds=test["seconds"], calls=frozenset(test["calls"]))
            for name, test in document["tests"].items()
        },
        early=frozenset(document["early"]),
        cold=tuple(document["cold"]),
    )


def known_tests(project: Project, build: Path) -> Baseline:
    """What is known of the tests, recorded in a process of its own unless nothing changed since the last time."""
    path = place(project, build)
    if not path.exists():
        pid = os.fork()
        if pid == 0:
            os._exit(record(project, path))
        _, status = os.waitpid(pid, 0)
        if status != 0:
            raise RuntimeError("the tests do not pass without a mutant")
    return read(path)


def place(project: Project, build: Path) -> Path:
    """The file for a record of these sources and tests; any change of either has another one."""
    digest = hashlib.sha256(json.dumps(asdict(project), default=str).encode())
    folders = (project.sources, *{(project.root / test).parent for test in project.tests})
    for path in sorted({path for folder in folders for path in folder.rglob("*.py")}):
        digest.update(str(path).encode() + path.read_bytes())
    return build / f"tests-{digest.hexdigest()[:16]}.json"
