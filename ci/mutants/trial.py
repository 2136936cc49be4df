"""One mutant against the tests: in a process of its own, which ends with the first test that notices it."""

import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from functools import partial
from importlib import import_module
from types import FunctionType
from typing import Final, NoReturn

import pytest

from ci.mutants.baseline import Baseline, file_of
from ci.mutants.loading import (
    CannotPatch,
    function_key,
    functions_named,
    functions_of,
    import_instead,
    patch,
    redecorate,
)
from ci.mutants.mutant import Mutant
from ci.mutants.project import Project

TIMES: Final = 20
"""How many times as long as on the sound sources a test may take, beside the patience of the project."""
COLLECTION: Final = 60.0
"""Seconds of processor time for what is no test: an import, a collection."""
MEMORY: Final = 4 * 1024**3
"""Bytes of address space; a mutant that wants more is killed."""


class Outcome(IntEnum):
    """How a trial ended, as the exit code of its process."""

    SURVIVED = 0
    KILLED = 1
    UNBORN = 3
    """The package cannot even be imported: no test is needed to notice, so it counts as nothing."""
    UNPATCHED = 4
    TIMED_OUT = 5


def in_a_fork(trial: Callable[[], Outcome]) -> Outcome:
    """What the trial answers in a process of its own; one that hangs is ended by its processor time."""
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        _alone(trial)
    _, status = os.waitpid(pid, 0)
    if os.WIFSIGNALED(status):
        return Outcome.TIMED_OUT if os.WTERMSIG(status) == signal.SIGPROF else Outcome.KILLED
    return Outcome(os.WEXITSTATUS(status))


def _alone(trial: Callable[[], Outcome]) -> NoReturn:
    outcome = Outcome.KILLED
    try:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for number in range(3):
            os.dup2(nowhere, number)
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, resource.RLIM_INFINITY))
        allow(COLLECTION)
        outcome = trial()
    finally:
        os._exit(outcome)


def allow(seconds: float) -> None:
    """The process ends unless it asks again within this processor time."""
    signal.setitimer(signal.ITIMER_PROF, seconds)


class Watch:
    """A pytest plugin: only these tests run, in this order, within their time; the first failure ends the process."""

    def __init__(self, project: Project, baseline: Baseline, chosen: Sequence[str]) -> None:
        self._patience, self._tests = project.patience, baseline.tests
        self._order = {name: index for index, name in enumerate(chosen)}

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Keeps what was chosen."""
        items[:] = sorted(
            (item for item in items if item.nodeid in self._order), key=lambda item: self._order[item.nodeid]
        )

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        """Gives each test its time."""
        allow(self._patience + TIMES * self._tests[item.nodeid].seconds)
        report = yield
        allow(COLLECTION)
        return report

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """A test that fails kills."""
        if report.failed:
            os._exit(Outcome.KILLED)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """So does a file that cannot be collected."""
        if report.failed:
            os._exit(Outcome.KILLED)


# --- imported anew


def anew(project: Project, baseline: Baseline, mutant: Mutant, chosen: Sequence[str]) -> Outcome:
    """The mutated module is imported where nothing of the package was imported before, then file by file is tested."""
    project.make_importable()
    path = project.path(mutant.module)
    import_instead({mutant.module: (path, compile(mutant.applied(project.source(mutant.module)), str(path), "exec"))})
    try:
        import_module(mutant.module)
    except Exception:  # noqa: BLE001 - whatever it raises, it cannot be imported
        return Outcome.UNBORN
    for tests in portions(baseline, chosen):
        files = sorted({file_of(test) for test in tests})
        if pytest.main(project.pytest_arguments(files), plugins=[Watch(project, baseline, tests)]) != 0:
            return Outcome.KILLED
    return Outcome.SURVIVED


def portions(baseline: Baseline, chosen: Sequence[str]) -> Iterator[list[str]]:
    """File by file, the quickest first."""
    files: dict[str, list[str]] = {}
    for test in chosen:
        files.setdefault(file_of(test), []).append(test)
    yield from sorted(files.values(), key=lambda tests: sum(baseline.tests[test].seconds for test in tests))


def covering(project: Project, baseline: Baseline, mutant: Mutant) -> list[str]:
    """The tests that can notice a fault in a function, or in a decorator that names functions; the quickest first."""
    if mutant.function is not None:
        keys = {function_key(mutant.module, mutant.function)}
    else:
        keys = {
            key for module in project.modules for key in functions_named(project.source(module), module, mutant.named)
        }
    return sorted(
        (name for name, test in baseline.tests.items() if not keys.isdisjoint(test.calls)),
        key=lambda name: (baseline.tests[name].seconds, name),
    )


# --- patched into a process that is warm


class Warm:
    """A pytest plugin that collects the tests once and then answers one mutant after the other, each in a fork."""

    def __init__(
        self, project: Project, baseline: Baseline, asked: Iterator[Mutant], answer: Callable[[Outcome], None]
    ) -> None:
        self._project, self._baseline, self._asked, self._answer = project, baseline, asked, answer

    def pytest_runtestloop(self, session: pytest.Session) -> bool:
        """Stands in for the loop over the tests."""
        if session.testsfailed:
            raise session.Interrupted("the tests cannot be collected without a mutant")
        items = {item.nodeid: item for item in session.items}
        known = {module: functions_of(self._project.path(module)) for module in self._project.modules}
        session.config.pluginmanager.register(Watch(self._project, self._baseline, ()))
        for mutant in self._asked:
            chosen = [items[name] for name in self._names(mutant) if name in items]
            self._answer(in_a_fork(partial(self._try, mutant, chosen, known[mutant.module])))
        return True

    def _names(self, mutant: Mutant) -> list[str]:
        return covering(self._project, self._baseline, mutant) if mutant.operator else list(self._baseline.tests)

    def _try(self, mutant: Mutant, chosen: list[pytest.Item], functions: list[FunctionType]) -> Outcome:
        source = self._project.source(mutant.module)
        mutated, path = mutant.applied(source), self._project.path(mutant.module)
        try:
            if mutant.function is not None:
                patch(functions, source, mutated, path)
            elif mutant.named:
                redecorate(source, mutated, path, mutant.line)
        except CannotPatch:
            return Outcome.UNPATCHED
        for index, item in enumerate(chosen):
            following = chosen[index + 1] if index + 1 < len(chosen) else None
            item.config.hook.pytest_runtest_protocol(item=item, nextitem=following)
        return Outcome.SURVIVED
