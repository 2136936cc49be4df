"""Resolves the development environment anew and writes `ci/requirements-dev.lock`.

Run it with the oldest supported Python: what installs there, with its backports, installs on the newer ones too.
Standard library only, because it runs before anything is installed.
"""

import importlib.metadata
import re
import subprocess
import sys
import tempfile
import venv
from collections import defaultdict
from pathlib import Path

__all__ = ["main", "render"]

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "ci" / "requirements-dev.lock"
PROJECT = "restartpoint"
NOT_LOCKED = {PROJECT, "pip", "setuptools", "wheel"}
HEADER = f"""\
# Made by `make lock` on Python {".".join(map(str, sys.version_info[:2]))} from the ranges in pyproject.toml.
# After each pin: what asks for it.
"""


def normalise(name: str) -> str:
    """The canonical spelling of a distribution's name."""
    return re.sub(r"[-_.]+", "-", name).lower()


def required_names(distribution: importlib.metadata.Distribution) -> set[str]:
    """The names that a distribution requires; of extras only the project's own count."""
    ours = normalise(distribution.metadata["Name"]) == PROJECT
    lines = (line for line in distribution.requires or [] if ours or "extra ==" not in line)
    names = (re.match(r"[A-Za-z0-9._-]+", line) for line in lines)
    return {normalise(match.group()) for match in names if match}


def render(distributions: list[importlib.metadata.Distribution]) -> str:
    """The text of a lock file with one pin a line, sorted, each with the packages that ask for it."""
    pins = {normalise(found.metadata["Name"]): found.version for found in distributions}
    askers: dict[str, set[str]] = defaultdict(set)
    for found in distributions:
        for name in required_names(found) & pins.keys():
            askers[name].add(normalise(found.metadata["Name"]))
    lines = [
        f"{f'{name}=={version}':<40} # {', '.join(sorted(askers[name] - {name}))}".rstrip(" #")
        for name, version in sorted(pins.items())
        if name not in NOT_LOCKED
    ]
    return HEADER + "\n".join(lines) + "\n"


def main() -> None:
    """Installs the newest versions that the ranges allow into a fresh environment and pins all that came."""
    with tempfile.TemporaryDirectory() as folder:
        venv.create(folder, with_pip=True)
        python = Path(folder) / "bin" / "python"
        install = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        subprocess.run([*install, f"{ROOT}[dev]"], check=True)
        (packages,) = Path(folder).glob("lib/python*/site-packages")
        LOCK.write_text(render(list(importlib.metadata.distributions(path=[str(packages)]))), encoding="utf-8")
    print(f"wrote {LOCK.relative_to(ROOT)}")


if __name__ == "__main__":
    main()
