"""Where the sources lie, and one source file as a value that rules can read."""

import ast
from dataclasses import dataclass
from functools import cache
from pathlib import Path

__all__ = ["ROOT", "Source", "in_package", "parse", "sources", "sources_of_tests"]

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = {
    "restartpoint_reference": ROOT / "reference",
    "restartpoint": ROOT / "harness",
    "restartpoint_oracle": ROOT / "oracle",
}


@dataclass(frozen=True, kw_only=True)
class Source:
    """One module: its dotted name, its text and its syntax tree."""

    name: str
    is_package: bool
    text: str
    tree: ast.Module


def parse(text: str, *, name: str = "restartpoint.example", is_package: bool = False) -> Source:
    """A Source from text; the negative tests of the rules use it."""
    return Source(name=name, is_package=is_package, text=text, tree=ast.parse(text))


def in_package(name: str, package: str) -> bool:
    """Whether a module is that package or lies in it."""
    return name == package or name.startswith(package + ".")


@cache
def sources(*packages: str) -> tuple[Source, ...]:
    """Every module of the named packages; of all three when none is named."""
    return tuple(
        source for package in packages or FOLDERS for source in _read(FOLDERS[package], FOLDERS[package] / package)
    )


@cache
def sources_of_tests() -> tuple[Source, ...]:
    """Every module below `tests/`."""
    return _read(ROOT, ROOT / "tests")


def _read(base: Path, folder: Path) -> tuple[Source, ...]:
    return tuple(_source(base, path) for path in sorted(folder.rglob("*.py")))


def _source(base: Path, path: Path) -> Source:
    parts = path.relative_to(base).with_suffix("").parts
    is_package = parts[-1] == "__init__"
    name = ".".join(parts[:-1] if is_package else parts)
    return parse(path.read_text(encoding="utf-8"), name=name, is_package=is_package)
