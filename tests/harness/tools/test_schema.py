"""Tools that are given by a JSON Schema."""

from collections.abc import Callable
from typing import Any

import pytest

from restartpoint.contract import ArgumentsRefused, JsonObject, ToolContext, ToolResult, text_block
from restartpoint.errors import InvalidOptions
from restartpoint.tools import SchemaTool
from tests.harness.tools.stage import context

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"paths": {"type": "array", "items": {"$ref": "#/$defs/path"}}},
    "required": ["paths"],
    "$defs": {"path": {"type": "string", "minLength": 1}},
}


def listing(arguments: JsonObject, own: ToolContext) -> JsonObject:
    return {"got": arguments["paths"], "call": own.tool_call_id}


def made(function: Callable[..., Any] = listing, **fields: Any) -> SchemaTool:
    return SchemaTool(**{"name": "ls", "description": "List.", "parameters": SCHEMA, "function": function, **fields})


def test_a_schema_tool_shows_what_it_was_given() -> None:
    given = made(replay="safe", execution_mode="sequential")

    assert (given.name, given.description, given.parameters) == ("ls", "List.", SCHEMA)
    assert (given.replay, given.execution_mode, repr(given)) == ("safe", "sequential", "<tool ls>")
    assert (made().replay, made().execution_mode) == ("never", "parallel")


def test_arguments_that_fit_stay_as_they_are() -> None:
    arguments: JsonObject = {"paths": ["a"], "extra": 1}

    assert made().prepare_arguments(arguments) is arguments


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({}, "'paths' is a required property - at `$`"),
        ({"paths": ["a", 3]}, "3 is not of type 'string' - at `$.paths[1]`"),
        ({"paths": [""]}, "'' should be non-empty - at `$.paths[0]`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_path(arguments: JsonObject, said: str) -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        made().prepare_arguments(arguments)
    assert str(refused.value) == said


async def test_plain_and_async_functions_run() -> None:
    async def later(arguments: JsonObject, own: ToolContext) -> str:
        return "later"

    assert await made().execute({"paths": ["a"]}, context()) == ToolResult(
        content=[text_block('{"got":["a"],"call":"c1"}')], details={"got": ["a"], "call": "c1"}
    )
    assert await made(later).execute({}, context()) == ToolResult(content=[text_block("later")])


@pytest.mark.parametrize("schema", [{"type": "thing"}, {"type": "object", "required": "paths"}])
def test_a_schema_that_is_none_is_refused_at_once(schema: JsonObject) -> None:
    with pytest.raises(InvalidOptions, match="parameters of tool 'ls'"):
        made(parameters=schema)


@pytest.mark.parametrize("reference", ["https://example.invalid/schema.json", "#/$defs/none", "other.json"])
def test_a_schema_is_never_fetched_and_its_references_must_point_into_it(reference: str) -> None:
    with pytest.raises(InvalidOptions, match="does not point into the schema"):
        made(parameters={"type": "object", "properties": {"a": {"$ref": reference}}})
