"""Runs the test suite on every supported Python that this machine has, each in its own environment under `.matrix/`.

Usage: `make matrix`, or `python -m ci.matrix [PYTEST ARGUMENTS]`. The exit code says whether all that ran passed;
versions that are missing are named and fail nothing.
"""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from shutil import which

from rich.console import Console
from rich.table import Table

__all__ = ["main"]

ROOT = Path(__file__).resolve().parent.parent
FOLDER = ROOT / ".matrix"
LOCK = ROOT / "ci" / "requirements-dev.lock"
VERSIONS = ((3, 11), (3, 12), (3, 13), (3, 14))
QUICK_CHECK_SECONDS = 30


def candidates(version: tuple[int, int]) -> Iterator[str]:
    """Where an interpreter of that version may lie: on the path, or switched off but installed by pyenv."""
    name = f"python{version[0]}.{version[1]}"
    if (found := which(name)) is not None:
        yield found
    for folder in sorted((Path.home() / ".pyenv" / "versions").glob(f"{version[0]}.{version[1]}.*"), reverse=True):
        yield str(folder / "bin" / "python")


def runs_as(command: str, version: tuple[int, int]) -> bool:
    """Whether the command really starts an interpreter of that version (a shim may exist and refuse)."""
    probe = f"import sys, venv; sys.exit(sys.version_info[:2] != {version})"
    try:
        done = subprocess.run([command, "-c", probe], capture_output=True, timeout=QUICK_CHECK_SECONDS, check=False)
    except OSError:
        return False
    return done.returncode == 0


def find(version: tuple[int, int]) -> str | None:
    """The first interpreter of that version that runs, or None."""
    return next((command for command in candidates(version) if runs_as(command, version)), None)


def set_up(interpreter: str, folder: Path) -> Path:
    """An environment with the locked versions and the project; its Python is returned. Free when nothing changed."""
    python, stamp = folder / "bin" / "python", folder / ".set-up"
    sources = (ROOT / "pyproject.toml", LOCK)
    if stamp.exists() and all(stamp.stat().st_mtime >= source.stat().st_mtime for source in sources):
        return python
    if not python.exists():
        subprocess.run([interpreter, "-m", "venv", str(folder)], check=True)
    pip = [str(python), "-m", "pip", "install", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "--requirement", str(LOCK)], check=True)
    subprocess.run([*pip, "--no-deps", "--no-build-isolation", "--editable", str(ROOT)], check=True)
    stamp.touch()
    return python


def run_one(version: tuple[int, int], arguments: Sequence[str]) -> tuple[str, bool]:
    """What happened on one version, in words, and whether the matrix may still pass."""
    interpreter = find(version)
    if interpreter is None:
        return "not found on this machine", True
    try:
        python = set_up(interpreter, FOLDER / f"{version[0]}.{version[1]}")
    except subprocess.CalledProcessError as error:
        return f"set-up failed with code {error.returncode}", False
    tests = [str(python), "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    code = subprocess.run(tests, cwd=ROOT, check=False).returncode
    return ("passed" if code == 0 else f"failed with code {code}"), code == 0


def main() -> int:
    """Runs every version in turn, prints one line for each, and returns the exit code."""
    arguments = sys.argv[1:] or ["-n", "2", "-q"]
    outcomes = {version: run_one(version, arguments) for version in VERSIONS}
    table = Table(title="test suite by Python version")
    table.add_column("Python")
    table.add_column("outcome")
    for version, (words, good) in outcomes.items():
        table.add_row(f"{version[0]}.{version[1]}", words, style=None if good else "red")
    Console().print(table)
    return 0 if all(good for _, good in outcomes.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
