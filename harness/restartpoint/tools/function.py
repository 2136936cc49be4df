"""``@tool``: a tool made of a typed Python function (§3.8).

The JSON Schema of the arguments comes from the signature, the description from the docstring.
"""

from __future__ import annotations

import copy
import inspect
from collections.abc import Awaitable, Callable
from typing import Annotated, Any, Literal, TypeAlias, get_args, get_origin, get_type_hints, overload

import msgspec

from restartpoint.contract import ArgumentsRefused, JsonObject, Replay, ToolContext, ToolResult
from restartpoint.tools.calling import call_function

__all__ = ["ExecutionMode", "FunctionTool", "tool"]

ExecutionMode: TypeAlias = Literal["parallel", "sequential"]

_TAKES_MANY = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)


class FunctionTool:
    """An ``AgentTool`` that calls a function; calling the object calls the function itself."""

    def __init__(
        self,
        function: Callable[..., object],
        *,
        name: str,
        description: str,
        replay: Replay,
        execution_mode: ExecutionMode,
    ) -> None:
        self._function = function
        self._signature = _Signature(function)
        self.name = name
        self.description = description
        self.parameters: JsonObject = self._signature.schema
        self.replay: Replay = replay
        self.execution_mode: ExecutionMode = execution_mode

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._function(*args, **kwargs)

    def __repr__(self) -> str:
        return f"<tool {self.name}>"

    def prepare_arguments(self, arguments: JsonObject) -> JsonObject:
        """The arguments with every default filled in, in the order of the signature.

        Raises:
            ArgumentsRefused: says what does not fit and at which path.
        """
        return self._signature.to_json(self._signature.values(arguments))

    async def execute(self, arguments: JsonObject, context: ToolContext) -> ToolResult:
        """The function's result. A synchronous function runs through ``context.blocking``."""
        values = self._signature.keywords(arguments)
        own = self._signature.context_parameter

        def call(given: ToolContext) -> object:
            return self._function(**values) if own is None else self._function(**values, **{own: given})

        return await call_function(self._function, call, context)


class _Signature:
    """The parameters of a function as one struct type."""

    def __init__(self, function: Callable[..., object]) -> None:
        self._name = _name_of(function)
        hints = get_type_hints(function, include_extras=True)
        self.context_parameter: str | None = None
        fields: list[tuple[str, object] | tuple[str, object, object]] = []
        for parameter in inspect.signature(function).parameters.values():
            hint = self._hint(parameter, hints)
            if hint is ToolContext:
                self.context_parameter = parameter.name
            elif parameter.default is inspect.Parameter.empty:
                fields.append((parameter.name, hint))
            else:
                fields.append((parameter.name, hint, self._default(parameter, hint)))
        self._type: type[msgspec.Struct] = msgspec.defstruct(
            self._name, fields, kw_only=True, forbid_unknown_fields=True, module=function.__module__
        )
        self.schema = self._schema()

    def _hint(self, parameter: inspect.Parameter, hints: dict[str, Any]) -> object:
        where = f"parameter {parameter.name!r} of tool {self._name!r}"
        if parameter.kind in _TAKES_MANY or parameter.kind is inspect.Parameter.POSITIONAL_ONLY:
            raise TypeError(f"{where} cannot be given by name; a tool needs named parameters")
        if parameter.name not in hints:
            raise TypeError(f"{where} has no type; annotate it, since the model's schema is made of it")
        hint = hints[parameter.name]
        return get_args(hint)[0] if get_origin(hint) is Annotated and get_args(hint)[0] is ToolContext else hint

    def _default(self, parameter: inspect.Parameter, hint: object) -> object:
        default = parameter.default
        try:
            msgspec.convert(msgspec.to_builtins(default, str_keys=True), hint, str_keys=True)
        except (msgspec.ValidationError, TypeError) as error:
            where = f"parameter {parameter.name!r} of tool {self._name!r}"
            raise TypeError(f"the type and the default of {where} do not fit together or into JSON: {error}") from error
        if isinstance(default, list | dict | set):
            return msgspec.field(default_factory=lambda: copy.deepcopy(default))
        return default

    def _schema(self) -> JsonObject:
        try:
            (top,), components = msgspec.json.schema_components([self._type], ref_template="#/$defs/{name}")
        except TypeError as error:
            raise TypeError(f"tool {self._name!r} has a parameter that JSON cannot carry: {error}") from error
        own = top["$ref"].removeprefix("#/$defs/")
        schema: JsonObject = {key: value for key, value in components.pop(own).items() if key != "title"}
        schema.pop("description", None)
        if components:
            schema["$defs"] = components
        return schema

    def values(self, arguments: JsonObject) -> msgspec.Struct:
        try:
            return msgspec.convert(arguments, self._type, str_keys=True)
        except msgspec.ValidationError as error:
            raise ArgumentsRefused(str(error)) from error

    def keywords(self, arguments: JsonObject) -> dict[str, object]:
        values = self.values(arguments)
        return {name: getattr(values, name) for name in values.__struct_fields__}

    @staticmethod
    def to_json(values: msgspec.Struct) -> JsonObject:
        plain: JsonObject = msgspec.to_builtins(values, str_keys=True)
        return plain


def _name_of(function: Callable[..., object]) -> str:
    return str(getattr(function, "__name__", type(function).__name__))


AnyFunction: TypeAlias = Callable[..., "Awaitable[object] | object"]


@overload
def tool(function: AnyFunction, /) -> FunctionTool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    replay: Replay = "never",
    execution_mode: ExecutionMode = "parallel",
) -> Callable[[AnyFunction], FunctionTool]: ...


def tool(
    function: AnyFunction | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    replay: Replay = "never",
    execution_mode: ExecutionMode = "parallel",
) -> FunctionTool | Callable[[AnyFunction], FunctionTool]:
    """Make a tool of a function with annotated, named parameters.

    A parameter of type ``ToolContext`` is supplied by the harness and is not in the schema. A plain function runs on
    a worker thread. ``replay="safe"`` allows a call whose outcome a crash left unknown to run again with the same
    arguments; ``execution_mode="sequential"`` makes a batch with this tool run one call at a time.

    Raises:
        TypeError: a parameter has no type, cannot be given by name, has a type that JSON cannot carry, or a default
            that does not fit its type.
    """

    def make(function: AnyFunction) -> FunctionTool:
        return FunctionTool(
            function,
            name=name or _name_of(function),
            description=inspect.getdoc(function) or "" if description is None else description,
            replay=replay,
            execution_mode=execution_mode,
        )

    return make if function is None else make(function)
