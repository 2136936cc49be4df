"""What is mutated, and which tests are held against it."""

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]


QUIET: Final = ("-p", "no:cacheprovider", "-W", "ignore::pytest.PytestAssertRewriteWarning")
"""Nothing is written, and that libraries are imported already is no concern."""


@dataclass(frozen=True, kw_only=True)
class Project:
    """Sources to mutate and the tests that have to notice; ``root`` is where pytest stands."""

    root: Path
    sources: Path
    modules: tuple[str, ...]
    tests: tuple[str, ...]
    libraries: tuple[str, ...] = ()
    """What the tests import and what imports nothing of the sources; imported once for all trials."""
    patience: float = 5.0
    """Seconds of processor time that any test may take, beside a multiple of what it takes on the sound sources."""
    early: tuple[str, ...] = ()
    """Modules of the tests that other tests share; imported first, so that what they call while imported is known."""

    def path(self, module: str) -> Path:
        """Where a module of the project lies."""
        return self.sources.joinpath(*module.split(".")).with_suffix(".py")

    def source(self, module: str) -> str:
        """The text of a module."""
        return self.path(module).read_text(encoding="utf-8")

    def make_importable(self) -> None:
        """From now on this process finds the sources and the tests."""
        sys.path[:0] = [str(self.sources), str(self.root)]

    def pytest_arguments(self, files: Iterable[str]) -> list[str]:
        """How pytest is started on test files: it stops at the first failure, and writes nothing."""
        ini = self.root / "pyproject.toml"
        settings = ["-c", str(ini), "--timeout=0"] if ini.exists() else ["-c", "/dev/null", "--import-mode=importlib"]
        paths = [str(self.root / file) for file in files]
        return [*settings, "--rootdir", str(self.root), "-x", "-q", "-s", *QUIET, *paths]


NOT_RUN: Final[Mapping[str, str]] = {
    "test_explore.py": "a search takes longer than all other tests; what only it would notice counts as surviving",
}
"""Tests of the model that no mutant meets."""

NOT_MUTATED: Final[Mapping[str, str]] = {
    "__init__": "holds imports only",
}
"""Modules of the transitions without mutants."""


def model() -> Project:
    """The transitions and the store of the reference model, and the tests of the model."""
    sources, tests = ROOT / "reference", ROOT / "tests" / "reference"
    rooms = sorted((sources / "restartpoint_reference" / "transitions").glob("*.py"))
    return Project(
        root=ROOT,
        sources=sources,
        modules=(
            "restartpoint_reference.store",
            *(f"restartpoint_reference.transitions.{room.stem}" for room in rooms if room.stem not in NOT_MUTATED),
        ),
        tests=tuple(
            str(path.relative_to(ROOT)) for path in sorted(tests.rglob("test_*.py")) if path.name not in NOT_RUN
        ),
        libraries=("hypothesis", "hypothesis.stateful", "jsonschema", "msgspec", "orjson", "rich.table", "typer"),
        early=("tests.reference.walk", "tests.reference.walks"),
    )
