"""Tools made of Python functions: ``@tool`` for typed ones, ``SchemaTool`` for a given JSON Schema (§3.8)."""

from restartpoint.tools.function import AnyFunction, ExecutionMode, FunctionTool, tool
from restartpoint.tools.results import NO_OUTPUT, tool_result
from restartpoint.tools.schema import SchemaFunction, SchemaTool

__all__ = [
    "NO_OUTPUT",
    "AnyFunction",
    "ExecutionMode",
    "FunctionTool",
    "SchemaFunction",
    "SchemaTool",
    "tool",
    "tool_result",
]
