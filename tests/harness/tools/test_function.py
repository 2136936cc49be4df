"""``@tool``: the schema comes from the signature, the arguments fit it, and what is returned becomes a result."""

import threading
from datetime import date
from typing import Annotated, Any, Literal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from restartpoint.contract import AgentTool, ArgumentsRefused, JsonObject, ToolContext, ToolResult, text_block
from restartpoint.seams import InlineWork, ThreadWork
from restartpoint.tools import NO_OUTPUT, FunctionTool, tool
from tests.harness.tools.stage import context


class Place(msgspec.Struct):
    path: str
    line: int = 1


@tool(replay="safe", execution_mode="sequential")
async def edit(
    place: Place,
    text: Annotated[str, msgspec.Meta(description="The new text", max_length=10)],
    own: ToolContext,
    mode: Literal["insert", "replace"] = "insert",
    tags: list[str] = ["a"],  # noqa: B006 - that a mutable default is copied is what a test below shows
    count: Annotated[int, msgspec.Meta(ge=1)] | None = None,
) -> str:
    """Edit a file.

    Careful.
    """
    return f"{own.tool_call_id} {place.path}:{place.line} {text} {mode} {tags} {count}"


def test_the_schema_is_that_of_the_signature_without_the_context() -> None:
    assert edit.parameters == {
        "type": "object",
        "properties": {
            "place": {"$ref": "#/$defs/Place"},
            "text": {"description": "The new text", "type": "string", "maxLength": 10},
            "mode": {"enum": ["insert", "replace"], "default": "insert"},
            "tags": {"type": "array", "items": {"type": "string"}},
            "count": {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "null"}], "default": None},
        },
        "required": ["place", "text"],
        "additionalProperties": False,
        "$defs": {
            "Place": {
                "title": "Place",
                "type": "object",
                "properties": {"path": {"type": "string"}, "line": {"type": "integer", "default": 1}},
                "required": ["path"],
            }
        },
    }


def test_name_and_description_are_the_functions_unless_given() -> None:
    @tool(name="other", description="Something else.")
    def whatever() -> None:
        """Ignored."""

    @tool
    def silent() -> None: ...

    assert (edit.name, edit.description) == ("edit", "Edit a file.\n\nCareful.")
    assert (whatever.name, whatever.description) == ("other", "Something else.")
    assert (silent.name, silent.description, repr(silent)) == ("silent", "", "<tool silent>")


@pytest.mark.covers("RT-3.8-10")
def test_a_tool_without_a_declaration_is_never_replayed_and_runs_in_parallel() -> None:
    @tool
    def plain() -> None: ...

    @tool()
    def called() -> None: ...

    declared: list[AgentTool] = [plain, called, edit]
    assert [(one.replay, one.execution_mode) for one in declared] == [
        ("never", "parallel"),
        ("never", "parallel"),
        ("safe", "sequential"),
    ]


def test_effective_arguments_have_every_default_in_the_order_of_the_signature() -> None:
    prepared = edit.prepare_arguments({"text": "t", "place": {"path": "p"}})

    assert list(prepared.items()) == [
        ("place", {"path": "p", "line": 1}),
        ("text", "t"),
        ("mode", "insert"),
        ("tags", ["a"]),
        ("count", None),
    ]
    assert edit.prepare_arguments(prepared) == prepared


@pytest.mark.parametrize(
    "arguments, said",
    [
        ({}, "Object missing required field `place`"),
        ({"place": {}, "text": ""}, "Object missing required field `path` - at `$.place`"),
        ({"place": {"path": "p", "line": "1"}, "text": ""}, "Expected `int`, got `str` - at `$.place.line`"),
        ({"place": {"path": "p"}, "text": "more than ten"}, "Expected `str` of length <= 10 - at `$.text`"),
        ({"place": {"path": "p"}, "text": "", "mode": "x"}, "Invalid enum value 'x' - at `$.mode`"),
        ({"place": {"path": "p"}, "text": "", "tags": ["a", 2]}, "Expected `str`, got `int` - at `$.tags[1]`"),
        ({"place": {"path": "p"}, "text": "", "own": 1}, "Object contains unknown field `own`"),
        ({"place": {"path": "p"}, "text": "", "count": 0}, "Expected `int` >= 1 - at `$.count`"),
    ],
)
def test_arguments_that_do_not_fit_are_refused_with_their_path(arguments: JsonObject, said: str) -> None:
    with pytest.raises(ArgumentsRefused) as refused:
        edit.prepare_arguments(arguments)
    assert str(refused.value) == said


async def test_an_async_function_receives_typed_values_and_the_context() -> None:
    given_place: JsonObject = {"place": {"path": "p", "line": 2}, "text": "t", "tags": []}

    assert await edit.execute(edit.prepare_arguments(given_place), context()) == ToolResult(
        content=[text_block("c1 p:2 t insert [] None")]
    )


async def test_a_mutable_default_is_new_for_each_call() -> None:
    @tool
    def grow(items: list[int] = [1]) -> int:  # noqa: B006
        items.append(2)
        return len(items)

    for _ in range(2):
        result = await grow.execute({}, context())
        assert result.details == 2


async def test_values_that_json_writes_as_text_arrive_as_what_they_are() -> None:
    @tool
    def weekday(day: date, table: dict[int, str]) -> str:
        return table[day.isoweekday()]

    prepared = weekday.prepare_arguments({"day": "2024-02-29", "table": {"4": "Thursday"}})

    assert prepared == {"day": "2024-02-29", "table": {"4": "Thursday"}}
    assert (await weekday.execute(prepared, context())).content == [text_block("Thursday")]


async def test_a_plain_function_runs_on_a_worker_thread_and_may_publish_from_there() -> None:
    loop_thread = threading.get_ident()
    threads: list[int] = []
    updates: list[tuple[int, ToolResult]] = []

    @tool
    def work(own: ToolContext) -> str:
        threads.append(threading.get_ident())
        own.update(ToolResult(content=[text_block("half")]))
        return "done"

    given_context = context(lambda partial: updates.append((threading.get_ident(), partial)), ThreadWork())
    result = await work.execute({}, given_context)

    assert result == ToolResult(content=[text_block("done")])
    assert threads != [loop_thread]
    assert updates == [(loop_thread, ToolResult(content=[text_block("half")]))]


async def test_in_simulation_a_plain_function_runs_in_place() -> None:
    threads: list[int] = []
    updates: list[ToolResult] = []

    @tool
    def work(own: ToolContext) -> None:
        threads.append(threading.get_ident())
        own.update(ToolResult(content=[]))

    await work.execute({}, context(updates.append, InlineWork()))

    assert threads == [threading.get_ident()]
    assert len(updates) == 1


class Found(msgspec.Struct):
    path: str
    lines: list[int]


RETURNS: list[tuple[object, ToolResult]] = [
    ("text", ToolResult(content=[text_block("text")])),
    (None, ToolResult(content=[text_block(NO_OUTPUT)])),
    ("", ToolResult(content=[text_block(NO_OUTPUT)])),
    (3, ToolResult(content=[text_block("3")], details=3)),
    (False, ToolResult(content=[text_block("false")], details=False)),
    ([1, {"a": None}], ToolResult(content=[text_block('[1,{"a":null}]')], details=[1, {"a": None}])),
    (
        Found(path="p", lines=[1]),
        ToolResult(content=[text_block('{"path":"p","lines":[1]}')], details={"path": "p", "lines": [1]}),
    ),
    (
        ToolResult(content=[], terminate=True, is_error=True),
        ToolResult(content=[], terminate=True, is_error=True),
    ),
]


@pytest.mark.parametrize("returned, expected", RETURNS)
async def test_what_a_function_returns_becomes_a_result(returned: object, expected: ToolResult) -> None:
    @tool
    async def later() -> object:
        return returned

    @tool
    def now() -> object:
        return returned

    assert await later.execute({}, context()) == expected
    assert await now.execute({}, context()) == expected


async def test_a_value_without_a_json_form_is_an_error_of_the_tool() -> None:
    @tool
    def odd() -> object:
        return object()

    with pytest.raises(TypeError):
        await odd.execute({}, context())


def test_the_function_can_still_be_called_directly() -> None:
    @tool
    def double(n: int) -> int:
        return 2 * n

    assert double(4) == 8


def test_a_context_may_be_annotated() -> None:
    @tool
    def work(own: Annotated[ToolContext, "supplied"]) -> None: ...

    assert work.parameters["properties"] == {}


def positional(a: int, /) -> None: ...


def starred(*a: int) -> None: ...


def open_ended(**a: int) -> None: ...


def untyped(a) -> None: ...  # type: ignore[no-untyped-def]


def wrong_default(a: int = "x") -> None: ...  # type: ignore[assignment]


def foreign(a: threading.Thread) -> None: ...


def contradictory(a: Annotated[int | None, msgspec.Meta(ge=1)] = None) -> None: ...


@pytest.mark.parametrize(
    "function, said",
    [
        (positional, "cannot be given by name"),
        (starred, "cannot be given by name"),
        (open_ended, "cannot be given by name"),
        (untyped, "has no type"),
        (wrong_default, "do not fit together"),
        (foreign, "JSON cannot carry"),
        (contradictory, "parameter 'a' of tool 'contradictory'"),
    ],
)
def test_a_signature_that_cannot_become_a_schema_is_refused_at_once(function: Any, said: str) -> None:
    with pytest.raises(TypeError, match=said):
        tool(function)


@tool
def sample(n: int, x: float = 0.5, flags: dict[str, bool] | None = None, kind: Literal["a", "b"] = "a") -> None:
    """For the property below."""


@given(
    arguments=st.fixed_dictionaries(
        {"n": st.one_of(st.integers(-(2**53), 2**53), st.text(max_size=2))},
        optional={
            "x": st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.integers(-9, 9)),
            "flags": st.dictionaries(st.text(max_size=2), st.booleans(), max_size=2),
            "kind": st.sampled_from(["a", "b", "c"]),
            "extra": st.just(1),
        },
    )
)
def test_preparing_twice_changes_nothing(arguments: JsonObject) -> None:
    assert isinstance(sample, FunctionTool)
    try:
        once = sample.prepare_arguments(arguments)
    except ArgumentsRefused:
        return
    assert sample.prepare_arguments(once) == once
    assert {name: once[name] for name in arguments} == arguments
