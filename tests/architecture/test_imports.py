"""Who may import what, beyond the layers that import-linter checks in `make check`."""

import pytest

from tests.architecture.exceptions import AMBIENT, BOUND_IMPORTS
from tests.architecture.rules import (
    ambient_reads,
    imported_modules,
    is_standard,
    outward_calls,
    root_imports,
    third_party,
)
from tests.architecture.sources import Source, in_package, parse, sources

MODEL_MAY_IMPORT = (
    "abc",
    "bisect",
    "collections",
    "copy",
    "dataclasses",
    "difflib",
    "enum",
    "fractions",
    "functools",
    "hashlib",
    "itertools",
    "json",
    "math",
    "operator",
    "re",
    "restartpoint_reference",
    "string",
    "types",
    "typing",
)
HARNESS_MAY_INSTALL = (
    "aiosqlite",
    "anyio",
    "jsonschema",
    "msgspec",
    "referencing",
    "restartpoint",
    "rich",
    "sniffio",
    "typer",
)
ORACLE_MAY_INSTALL = (
    *HARNESS_MAY_INSTALL,
    "hypothesis",
    "orjson",
    "pytest",
    "restartpoint_oracle",
    "restartpoint_reference",
)


def strangers(source: Source, *allowed: str) -> list[str]:
    return [f"{source.name} imports {name}" for name in sorted(third_party(source, *allowed)) if not is_standard(name)]


def unbound(source: Source) -> list[str]:
    """Imports that the harness allows only in stated packages, found elsewhere."""
    tops = {name.partition(".")[0] for name in imported_modules(source)}
    return [
        f"{source.name} imports {name}"
        for name in sorted(tops & BOUND_IMPORTS.keys())
        if not any(in_package(source.name, package) for package in BOUND_IMPORTS[name])
    ]


@pytest.mark.parametrize("source", sources("restartpoint_reference"), ids=lambda source: source.name)
def test_the_model_imports_a_short_list_of_the_standard_library_and_reaches_nothing_outside(source: Source) -> None:
    assert third_party(source, *MODEL_MAY_IMPORT) == set()
    assert outward_calls(source) == set()
    assert ambient_reads(source) == set()


def test_each_package_uses_only_what_its_installation_brings() -> None:
    harness = [text for source in sources("restartpoint") for text in strangers(source, *HARNESS_MAY_INSTALL)]
    oracle = [text for source in sources("restartpoint_oracle") for text in strangers(source, *ORACLE_MAY_INSTALL)]
    assert harness + oracle == []


def test_threads_processes_and_drivers_stay_in_the_packages_that_state_them() -> None:
    assert [text for source in sources("restartpoint") for text in unbound(source)] == []


def test_nothing_below_the_command_line_imports_the_public_face() -> None:
    assert [text for source in sources("restartpoint") for text in root_imports(source)] == []


def test_clocks_ids_and_chance_are_read_in_seams_only() -> None:
    readers = {source.name for source in sources("restartpoint", "restartpoint_oracle") if ambient_reads(source)}
    assert {name for name in readers if not in_package(name, "restartpoint.seams")} == AMBIENT.keys()


@pytest.mark.parametrize(
    "text, found",
    [
        ("import time\ntime.time()", {"time.time"}),
        ("from time import time as now\nnow()", {"time.time"}),
        ("import datetime as d\nd.datetime.now(d.UTC)", {"datetime.datetime.now"}),
        ("from datetime import datetime\ndatetime.utcnow()", {"datetime.datetime.utcnow"}),
        ("import random", {"random"}),
        ("from uuid import uuid4", {"uuid.uuid4"}),
        ("import os\nread = os.urandom", {"os.urandom"}),
        ("import time\nx: time.struct_time", set()),
        ("def f(time): return time.time()", set()),
    ],
)
def test_the_ambient_rule_follows_aliases(text: str, found: set[str]) -> None:
    assert ambient_reads(parse(text)) == found


def test_the_model_rule_sees_what_the_model_must_not_use() -> None:
    source = parse("import os.path\nfrom orjson import loads\nprint(open('x'))", name="restartpoint_reference.example")
    assert third_party(source, *MODEL_MAY_IMPORT) == {"os", "orjson"}
    assert outward_calls(source) == {"print", "open"}


def test_the_rules_see_a_stranger_a_thread_and_the_public_face() -> None:
    source = parse("import requests\nimport threading\nfrom restartpoint import Session", name="restartpoint.session.x")
    assert strangers(source, *HARNESS_MAY_INSTALL) == ["restartpoint.session.x imports requests"]
    assert unbound(source) == ["restartpoint.session.x imports threading"]
    assert len(root_imports(source)) == 1
