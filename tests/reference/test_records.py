"""The values of the model are what style and durability ask: frozen, keyword-only, described."""

import inspect
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pkgutil import walk_packages

import pytest

import restartpoint_reference
from restartpoint_reference import View

PACKAGE = restartpoint_reference.__name__


def records() -> Iterator[type]:
    """Every dataclass that a module of the model defines."""
    for found in walk_packages(restartpoint_reference.__path__, f"{PACKAGE}."):
        for _, kind in inspect.getmembers(import_module(found.name), inspect.isclass):
            if kind.__module__ == found.name and is_dataclass(kind):
                yield kind


RECORDS = sorted(records(), key=lambda kind: (kind.__module__, kind.__qualname__))
POSITIONAL = (View,)
"""What is made of two parts that nobody confuses."""


@pytest.mark.parametrize("kind", RECORDS, ids=lambda kind: kind.__qualname__)
def test_a_value_is_frozen_and_its_fields_are_named(kind: type) -> None:
    assert kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    if kind not in POSITIONAL:
        assert [field.name for field in fields(kind) if not field.kw_only] == []
