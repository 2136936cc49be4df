"""The runner of mutants finds what tests miss, ends what hangs, and writes nothing into the tree."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from ci.mutants.mutant import Mutant, mutants
from ci.mutants.operators import LEFT_OUT, operators
from ci.mutants.project import ROOT, Project, model
from ci.mutants.survivors import complaints, count, key, reasons
from ci.mutants.trial import Outcome
from ci.mutants.workers import Tried

TINY = '''
"""A module with a loop, a bound, a default, and something that nobody tests."""

LIMITS = (3, 5)


def clamp(value: int, least: int | None = None) -> int:
    """The value, at least zero."""
    if value < 0:
        return 0
    return value


def drained(waiting: int) -> int:
    """What is left when everything is taken."""
    while waiting > 0:
        waiting = waiting - 1
    return waiting


def unloved(value: int) -> bool:
    """Whether nobody cares."""
    return value in LIMITS


def doubled(value: int) -> int:
    """Twice the value; no test is small enough to see a plus."""
    return value + value


TWICE = doubled(2)
'''
TESTS = """
import tiny


def test_clamp():
    assert tiny.clamp(-2) == 0
    assert tiny.clamp(2) == 2


def test_drained():
    assert tiny.drained(3) == 0


def test_limits():
    assert sum(tiny.LIMITS) == 8


def test_twice():
    assert tiny.TWICE == 4
"""
SCRIPT = """
import json, sys
from pathlib import Path
from ci.mutants.baseline import known_tests
from ci.mutants.mutant import mutants
from ci.mutants.operators import operators
from ci.mutants.project import Project
from ci.mutants.workers import try_all

root = Path(sys.argv[1])
project = Project(root=root, sources=root, modules=("tiny",), tests=("test_tiny.py",), patience=0.3)
made = mutants(project, "tiny", operators())
tried = try_all(project, known_tests(project, Path(sys.argv[2])), made, 2, lambda _: None)
print("RESULT" + json.dumps([[one.mutant.before, one.mutant.after, one.outcome.name] for one in tried]))
"""


@pytest.fixture(scope="module")
def tiny(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tiny")
    (root / "tiny.py").write_text(TINY)
    (root / "test_tiny.py").write_text(TESTS)
    return root


@pytest.fixture(scope="module")
def outcomes(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], str]:
    """What became of each mutant, by the line before and after; the runner has a process of its own."""
    build = tmp_path_factory.mktemp("build")
    command = [sys.executable, "-B", "-c", SCRIPT, str(tiny), str(build)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.partition("RESULT")[2])
    return {(before, after): outcome for before, after, outcome in found}


def test_what_a_test_notices_is_killed(outcomes: dict[tuple[str, str], str]) -> None:
    assert outcomes["if value < 0:", "if not value < 0:"] == "KILLED"
    assert outcomes["LIMITS = (3, 5)", "LIMITS = (3,)"] == "KILLED"
    assert outcomes["LIMITS = (3, 5)", "LIMITS = (5,)"] == "KILLED"
    assert outcomes["LIMITS = (3, 5)", "LIMITS = ( 4, 5)"] == "KILLED"


def test_what_no_test_notices_survives(outcomes: dict[tuple[str, str], str]) -> None:
    assert outcomes["if value < 0:", "if value <= 0:"] == "SURVIVED"
    assert outcomes["return value in LIMITS", "return value not in LIMITS"] == "SURVIVED"


def test_what_runs_while_the_module_is_imported_is_imported_anew(outcomes: dict[tuple[str, str], str]) -> None:
    assert outcomes["return value + value", "return value - value"] == "KILLED"


def test_a_mutant_that_hangs_is_ended(outcomes: dict[tuple[str, str], str]) -> None:
    assert outcomes["waiting = waiting - 1", "waiting = waiting + 1"] == "TIMED_OUT"


def test_nothing_is_written_beside_the_sources(tiny: Path, outcomes: dict[tuple[str, str], str]) -> None:
    assert sorted(path.name for path in tiny.rglob("*") if "__pycache__" not in path.parts) == [
        "test_tiny.py",
        "tiny.py",
    ]
    assert (tiny / "tiny.py").read_text() == TINY
    assert outcomes


# --- the mutants


def project_of(folder: Path, text: str) -> Project:
    (folder / "one.py").write_text(text)
    return Project(root=folder, sources=folder, modules=("one",), tests=())


def made(folder: Path, text: str) -> list[tuple[str, str]]:
    found = mutants(project_of(folder, text), "one", operators())
    return [(one.operator, one.after) for one in found]


def test_type_hints_have_no_mutants(tmp_path: Path) -> None:
    assert made(tmp_path, "x: int | None = None\n\ndef f(a: int | str) -> int | None:\n    return a\n") == []


def test_what_only_a_type_checker_reads_has_no_mutants(tmp_path: Path) -> None:
    text = "if TYPE_CHECKING:\n    x = 1\nT = TypeVar('T', contravariant=True)\n"
    assert made(tmp_path, text) == []


def test_two_wordings_of_one_fault_are_one_mutant(tmp_path: Path) -> None:
    text = "def f(a):\n    if a is None:\n        return a\n"
    assert made(tmp_path, text) == [("AddNot", "if not a is None:")]


def test_a_tuple_loses_each_item_and_keeps_its_comma(tmp_path: Path) -> None:
    text = "x = (\n    a,\n    b\n)\ny = (a, b)\n"
    dropped = [one for one in mutants(project_of(tmp_path, text), "one", operators()) if one.operator == "DropItem"]
    results = [one.applied(text) for one in dropped]
    assert len(results) == 4
    assert all(result.count("\n") == text.count("\n") for result in results)
    assert [one.line for one in dropped] == [2, 2, 5, 5]


def test_faults_are_made_where_the_operators_of_cosmic_ray_see_none(tmp_path: Path) -> None:
    guarded = "    match a:\n        case int() if a > g(a):\n            return [b for b in a if b > a]\n"
    text = f"def f(a):\n{guarded}    return a in b\n"
    assert {name for name, _ in made(tmp_path, text)} >= {"NegateCaseGuard", "NegateFilter", "SwapMembership"}


def test_every_operator_that_is_left_out_exists_and_says_why() -> None:
    from cosmic_ray.plugins import operator_names  # type: ignore[import-untyped]

    assert {name.partition("/")[2] for name in operator_names()} >= set(LEFT_OUT)
    assert not set(LEFT_OUT) & set(operators(every=True))
    assert set(operators()) < set(operators(every=True))


# --- the verdict


def tried(after: str, outcome: Outcome) -> Tried:
    mutant = Mutant(
        module="m", line=1, owner="f", function=1, operator="AddNot", before="a", after=after, start=0, end=1, text=""
    )
    return Tried(mutant=mutant, outcome=outcome, seconds=0.0)


KILLED = [tried(f"killed {index}", Outcome.KILLED) for index in range(99)]


def test_a_survivor_needs_a_reason() -> None:
    survivor = tried("lives", Outcome.SURVIVED)
    assert "without a reason" in complaints([*KILLED, survivor], {})[0]
    assert complaints([*KILLED, survivor], {key(survivor.mutant): "because"}) == []


def test_a_reason_needs_a_survivor() -> None:
    assert "does not survive" in complaints(KILLED, {key(KILLED[0].mutant): "because"})[0]
    assert complaints(KILLED, {("another", "f", "a", "b"): "of a module that was not tried"}) == []


def test_too_few_killed_are_a_failure_and_the_unborn_count_as_nothing() -> None:
    some = [*KILLED[:18], tried("hangs", Outcome.TIMED_OUT), tried("unborn", Outcome.UNBORN)]
    lives = tried("lives", Outcome.SURVIVED)
    listed = {key(lives.mutant): "because"}
    assert count([*some, lives]).share == pytest.approx(0.95)
    assert complaints([*some, lives], listed) == []
    assert "at least 95%" in complaints([*some[1:], lives], listed)[0]


def test_the_list_of_survivors_names_modules_and_lines_that_exist() -> None:
    project = model()
    for (module, _, before, _), reason in reasons().items():
        assert module in project.modules
        assert before in [line.strip() for line in project.source(module).splitlines()], before
        assert reason.endswith(".")
