"""The processes that try mutants: each worker has a warm process beside it, and forks a new one for every trial."""

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import import_module
from traceback import print_exc
from typing import TextIO

import pytest

from ci.mutants.baseline import Baseline, file_of
from ci.mutants.loading import function_key
from ci.mutants.mutant import Mutant
from ci.mutants.project import Project
from ci.mutants.trial import Outcome, Warm, anew, covering, in_a_fork


@dataclass(frozen=True, kw_only=True)
class Tried:
    """A mutant and what became of it."""

    mutant: Mutant
    outcome: Outcome
    seconds: float


def try_all(
    project: Project, baseline: Baseline, mutants: Sequence[Mutant], workers: int, told: Callable[[Tried], None]
) -> list[Tried]:
    """Every mutant tried, in their order; ``told`` hears of each as soon as it is done."""
    for name in project.libraries:
        import_module(name)
    _check_that_nothing_survives(project, baseline)
    source, sink = os.pipe()
    for number in range(workers):
        if os.fork() == 0:
            os.close(source)
            _work(project, baseline, mutants, range(number, len(mutants), workers), os.fdopen(sink, "w", buffering=1))
    os.close(sink)
    done: dict[int, Tried] = {}
    with os.fdopen(source) as lines:
        for line in lines:
            index, outcome, seconds = line.split()
            done[int(index)] = Tried(mutant=mutants[int(index)], outcome=Outcome(int(outcome)), seconds=float(seconds))
            told(done[int(index)])
    for _ in range(workers):
        os.wait()
    if len(done) != len(mutants):
        raise RuntimeError(f"a worker ended early: {len(mutants) - len(done)} mutants were not tried")
    return [done[index] for index in range(len(mutants))]


def _check_that_nothing_survives(project: Project, baseline: Baseline) -> None:
    """The sound sources pass in both kinds of trial: all warm tests, and the quickest of each file imported anew."""
    nothing = Mutant.nothing(project.modules[0])
    asking = _Asking(project, baseline, [nothing])
    warm = asking.ask(0)
    asking.end()
    by_time = sorted(baseline.tests, key=lambda test: -baseline.tests[test].seconds)
    quickest = {file_of(test): test for test in by_time}
    cold = in_a_fork(partial(anew, project, baseline, nothing, list(quickest.values())))
    if (warm, cold) != (Outcome.SURVIVED, Outcome.SURVIVED):
        raise RuntimeError(f"without a mutant the tests end in {warm.name} (warm) and {cold.name} (imported anew)")


def _work(project: Project, baseline: Baseline, mutants: Sequence[Mutant], mine: Sequence[int], sink: TextIO) -> None:
    code = 1
    try:
        asking = _Asking(project, baseline, mutants)
        for index in mine:
            start = time.monotonic()
            outcome = _tried(project, baseline, mutants[index], partial(asking.ask, index))
            print(index, int(outcome), round(time.monotonic() - start, 2), file=sink)
        asking.end()
        code = 0
    except BaseException:  # noqa: BLE001 - the process ends here, and its parent says that it did
        print_exc()
    finally:
        os._exit(code)


def _tried(project: Project, baseline: Baseline, mutant: Mutant, warmly: Callable[[], Outcome]) -> Outcome:
    chosen = list(baseline.tests)
    if is_late(baseline, mutant):
        outcome = warmly()
        if outcome is not Outcome.SURVIVED and outcome is not Outcome.UNPATCHED:
            return outcome
        if outcome is Outcome.SURVIVED:
            chosen = [test for test in covering(project, baseline, mutant) if file_of(test) in baseline.cold]
            if not chosen:
                return outcome
    return in_a_fork(partial(anew, project, baseline, mutant, chosen))


def is_late(baseline: Baseline, mutant: Mutant) -> bool:
    """Whether the fault lies where nothing was called while modules were imported: code can be exchanged afterwards."""
    if mutant.function is None:
        return bool(mutant.named)
    return function_key(mutant.module, mutant.function) not in baseline.early


class _Asking:
    """The warm process of one worker, started by the first question."""

    def __init__(self, project: Project, baseline: Baseline, mutants: Sequence[Mutant]) -> None:
        self._project, self._baseline, self._mutants = project, baseline, mutants
        self._pipes: tuple[TextIO, TextIO] | None = None

    def ask(self, index: int) -> Outcome:
        """What the tests outside the cold files say of this mutant."""
        if self._pipes is None:
            self._pipes = self._start()
        questions, answers = self._pipes
        print(index, file=questions)
        answer = answers.readline()
        if not answer:
            raise RuntimeError("the warm process ended: do the tests pass without a mutant?")
        return Outcome(int(answer))

    def end(self) -> None:
        """No more questions."""
        if self._pipes is not None:
            self._pipes[0].close()
            os.wait()

    def _start(self) -> tuple[TextIO, TextIO]:
        (heard, asking), (answers, answering) = os.pipe(), os.pipe()
        if os.fork() == 0:
            os.close(asking)
            os.close(answers)
            self._serve(os.fdopen(heard), os.fdopen(answering, "w", buffering=1))
        os.close(heard)
        os.close(answering)
        return os.fdopen(asking, "w", buffering=1), os.fdopen(answers)

    def _serve(self, questions: TextIO, answers: TextIO) -> None:
        try:
            nowhere = os.open(os.devnull, os.O_RDWR)
            for number in range(3):
                os.dup2(nowhere, number)
            self._project.make_importable()
            asked = (self._mutants[int(line)] for line in questions)
            warm = Warm(self._project, self._baseline, asked, lambda outcome: print(int(outcome), file=answers))
            files = [test for test in self._project.tests if test not in self._baseline.cold]
            pytest.main(self._project.pytest_arguments(files), plugins=[warm])
        finally:
            os._exit(0)
