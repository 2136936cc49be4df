"""A tool whose arguments are described by a JSON Schema that somebody else wrote."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator
from typing import TypeAlias

from restartpoint.contract import ArgumentsRefused, JsonObject, JsonValue, Replay, ToolContext, ToolResult
from restartpoint.errors import InvalidOptions
from restartpoint.tools.calling import call_function
from restartpoint.tools.function import ExecutionMode

__all__ = ["SchemaFunction", "SchemaTool"]

SchemaFunction: TypeAlias = Callable[[JsonObject, ToolContext], "Awaitable[object] | object"]
"""Takes the arguments and the context; returns what a ``@tool`` function may return."""


class SchemaTool:
    """An ``AgentTool`` given by name, description, JSON Schema (draft 2020-12) and a function.

    Schemas are never fetched: a ``$ref`` must point into the schema itself.

    Raises:
        InvalidOptions: the schema is not a valid one, or does not describe an object.
    """

    def __init__(
        self,
        *,
        name: str,
        description: str,
        parameters: JsonObject,
        function: SchemaFunction,
        replay: Replay = "never",
        execution_mode: ExecutionMode = "parallel",
    ) -> None:
        self.name = name
        self.description = description
        self.parameters: JsonObject = parameters
        self.replay: Replay = replay
        self.execution_mode: ExecutionMode = execution_mode
        self._function = function
        self._objection = _checker(name, parameters)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """The arguments as they came.

        Raises:
            ArgumentsRefused: says what does not fit and at which path.
        """
        objection = self._objection(arguments)
        if objection is not None:
            raise ArgumentsRefused(objection)
        return arguments

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """The function's result."""
        return await call_function(self._function, lambda given: self._function(arguments, given), context)


def _checker(name: str, schema: JsonObject) -> Callable[[JsonObject], str | None]:
    import jsonschema
    import referencing.exceptions
    import referencing.jsonschema

    option = f"parameters of tool {name!r}"
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
        resource = referencing.jsonschema.DRAFT202012.create_resource(schema)
        resolver = referencing.Registry().with_resource("", resource).resolver()
        for reference in _references(schema):
            resolver.lookup(reference)
    except jsonschema.SchemaError as error:
        raise InvalidOptions(option, f"{error.json_path}: {error.message}") from error
    except referencing.exceptions.Unresolvable as error:
        raise InvalidOptions(option, f"the reference {error.ref!r} does not point into the schema") from error
    validator = jsonschema.Draft202012Validator(schema, registry=referencing.Registry())

    def objection(arguments: JsonObject) -> str | None:
        found = jsonschema.exceptions.best_match(validator.iter_errors(arguments))
        return None if found is None else f"{found.message} - at `{found.json_path}`"

    return objection


def _references(schema: JsonValue) -> Iterator[str]:
    if isinstance(schema, list):
        for child in schema:
            yield from _references(child)
    elif isinstance(schema, dict):
        yield from (found for key in ("$ref", "$dynamicRef") if isinstance(found := schema.get(key), str))
        for child in schema.values():
            yield from _references(child)
