"""What the layers below the runtime know of it, and what no layer may ever do to stored rows (§0.2, §0.6, §1)."""

import ast
import inspect
import re
from collections.abc import Iterator

import pytest

from restartpoint import AgentHarness, AgentLane
from restartpoint.session import Session, SessionTree
from tests.architecture.rules import imported_modules
from tests.architecture.sources import ROOT, Source, in_package, parse, sources

BELOW = {
    "restartpoint.storage": ("restartpoint.contract", "restartpoint.seams", "restartpoint.errors"),
    "restartpoint.session": (
        "restartpoint.storage", "restartpoint.contract", "restartpoint.seams", "restartpoint.errors",
    ),
}  # fmt: skip
OPAQUE = {
    "restartpoint.contract.codec", "restartpoint.contract.entries", "restartpoint.contract.json",
    "restartpoint.contract.metadata", "restartpoint.contract.queries", "restartpoint.contract.registers",
    "restartpoint.contract.usage", "restartpoint.contract.writes",
}  # fmt: skip
"""The modules of the contract that storage may know: rows, registers, writes and queries, and how they become text."""

CONTRACT = "restartpoint.contract"
REMOVAL = re.compile(r"\b(DELETE\s+FROM|UPDATE|REPLACE\s+INTO|DROP\s+TABLE)\s+(entries|usage_ledger)\b", re.IGNORECASE)


def upward(source: Source, package: str) -> list[str]:
    """Imports of the harness from a module of that package that are neither its own nor of a layer below."""
    allowed = (package, *BELOW[package])
    ours = {name for name in imported_modules(source) if in_package(name, "restartpoint")}
    return sorted(name for name in ours if not any(in_package(name, one) for one in allowed))


def of_package(package: str) -> list[Source]:
    return [source for source in sources("restartpoint") if in_package(source.name, package)]


def imported_names(source: Source) -> Iterator[tuple[str, str]]:
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ImportFrom) and node.module is not None:
            yield from ((node.module, alias.name) for alias in node.names)


def texts(source: Source) -> Iterator[str]:
    """Every string of a module, the parts of formatted ones included."""
    for node in ast.walk(source.tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


@pytest.mark.covers("ST-0.2-07")
@pytest.mark.parametrize("package", BELOW)
def test_storage_and_session_import_nothing_above_them(package: str) -> None:
    assert of_package(package)
    assert {source.name: upward(source, package) for source in of_package(package) if upward(source, package)} == {}


def test_the_rule_sees_an_import_of_an_upper_layer() -> None:
    source = parse("from restartpoint.session import Session", name="restartpoint.storage.x")
    assert upward(source, "restartpoint.storage") == ["restartpoint.session"]


@pytest.mark.covers("ST-1-01")
def test_storage_knows_rows_registers_and_queries_and_no_lane_operation_or_agent() -> None:
    names = [
        (source.name, module, name)
        for source in of_package("restartpoint.storage")
        for module, name in imported_names(source)
        if in_package(module, CONTRACT)
    ]
    assert {module for _, module, _ in names} <= OPAQUE
    agent_like = re.compile(r"LANE_|OP_|Lane|Operation|Run[A-Z]|Agent")
    assert [one for one in names if agent_like.match(one[2])] == []


@pytest.mark.covers("ST-0.8-03")
def test_backends_import_no_validator_of_shapes_and_the_guide_says_what_a_file_edited_by_hand_is() -> None:
    backends = of_package("restartpoint.storage")
    taken = {name for source in backends for module, name in imported_names(source) if in_package(module, CONTRACT)}
    checks = {name for name in taken if name.startswith(("check", "valid"))}
    assert checks == {"check_json"}
    assert not any({"jsonschema", "referencing"} & imported_modules(source) for source in backends)
    guide = (ROOT / "docs" / "guide" / "backends.md").read_text(encoding="utf-8")
    assert "edited by hand" in guide


@pytest.mark.covers("ST-1.2-09")
def test_no_statement_of_the_harness_removes_or_changes_an_entry_or_a_ledger_row() -> None:
    found = [
        (source.name, text) for source in sources("restartpoint") for text in texts(source) if REMOVAL.search(text)
    ]
    assert found == []


@pytest.mark.parametrize(
    "text", ["DELETE FROM entries WHERE id = ?", "update usage_ledger set usage = 1", "DROP TABLE entries"]
)
def test_the_rule_sees_statements_that_remove_rows(text: str) -> None:
    assert REMOVAL.search(text)


@pytest.mark.covers("ST-2.8-12", "ST-2.3-11")
def test_lanes_are_created_by_one_method_with_a_whole_configuration_and_never_removed_or_renamed() -> None:
    surfaces: dict[type, set[str]] = {
        Session: {"create_lane"},
        SessionTree: set(),
        AgentLane: set(),
        AgentHarness: {"create_lane"},
    }
    for surface, creators in surfaces.items():
        names = {name for name in dir(surface) if not name.startswith("_")}
        assert {name for name in names if "create" in name} == creators, surface
        assert not {name for name in names if re.search(r"(delete|remove|rename|drop).*lane", name)}, surface
    configuration = inspect.signature(Session.create_lane).parameters["configuration"]
    assert configuration.default is inspect.Parameter.empty
