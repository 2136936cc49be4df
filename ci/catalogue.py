"""The requirement catalogues of `docs/requirements/`, as values."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

__all__ = ["CATALOGUES", "Landed", "Requirement", "known_ids", "load_landed", "load_requirements"]

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "requirements"
CATALOGUES = ("storage", "runtime")
LOADER = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, kw_only=True)
class Requirement:
    """One item: where it stands, how binding it is (`core`, `full` or `beyond`) and how it is checked."""

    id: str
    catalogue: str
    section: str
    priority: str
    check: str | None


@dataclass(frozen=True, kw_only=True)
class Landed:
    """The (catalogue, section) pairs that must be complete, and the ids that no test can cover, with reasons."""

    sections: frozenset[tuple[str, str]]
    exempt: dict[str, str]


def known_ids() -> frozenset[str]:
    """Every requirement id. Reads lines instead of YAML, because each test run needs it."""
    texts = ((FOLDER / f"{name}.yaml").read_text(encoding="utf-8") for name in CATALOGUES)
    return frozenset(found for text in texts for found in re.findall(r"^- id: (\S+)$", text, re.MULTILINE))


def load_requirements() -> list[Requirement]:
    """All items in the order of the catalogues; an item of several sections counts for the first it names."""
    return [_requirement(name, item) for name in CATALOGUES for item in _read(f"{name}.yaml")]


def _requirement(catalogue: str, item: dict[str, Any]) -> Requirement:
    section = re.split(r", |-(?=\d)", str(item["section"]))[0]
    return Requirement(
        id=item["id"], catalogue=catalogue, section=section, priority=item["priority"], check=item.get("check")
    )


def load_landed() -> Landed:
    """What `landed.yaml` says."""
    content = _read("landed.yaml")
    sections = frozenset((name, str(section)) for name in CATALOGUES for section in content.get(name) or ())
    return Landed(sections=sections, exempt=content.get("exempt") or {})


def _read(name: str) -> Any:
    with (FOLDER / name).open(encoding="utf-8") as file:
        return yaml.load(file, Loader=LOADER)
