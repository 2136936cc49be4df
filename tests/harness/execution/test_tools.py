"""One tool call, phase by phase; the gate and the tool stand directly side by side."""

from collections.abc import Awaitable
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    UNSET,
    AfterTool,
    AfterToolPatch,
    ArgumentsRefused,
    BeforeTool,
    BeforeToolDecision,
    JsonObject,
    ToolBlock,
    ToolContext,
    ToolEndEvent,
    ToolResult,
    ToolStartEvent,
    ToolUpdateEvent,
    text_block,
)
from restartpoint.errors import HarnessClosed, HarnessFault
from restartpoint.execution import (
    AbortRequested,
    ClearedToolCall,
    ExecutedToolCall,
    ImmediateToolOutcome,
    OperationEnded,
    PreparedToolCall,
    apply_before_tool,
    execute_tool_call,
    finalize_tool_call,
    prepare_tool_call,
    tool_result_message,
)
from restartpoint.seams import InlineWork
from tests.harness.execution.stage import USAGE, Gate, PlainTool, call


def text_in(result: ToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, dict)
    return str(block["text"])


def refusing(arguments: JsonObject) -> JsonObject:
    if arguments.get("n") == 0:
        return {"n": 0, "filled": True}
    raise ArgumentsRefused("Expected `int`, got `str` - at `$.n`")


# --- prepare ----------------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-5.7-11", "RT-5.7-13")
@pytest.mark.parametrize("case", ["unknown", "throws", "invalid", "not json"])
def test_a_call_that_cannot_be_prepared_is_an_immediate_error(case: str) -> None:
    def broken(_arguments: JsonObject) -> JsonObject:
        raise ZeroDivisionError("oops")

    def infinite(_arguments: JsonObject) -> JsonObject:
        return {"n": float("inf")}

    tools = {
        "throws": PlainTool(prepare=broken),
        "invalid": PlainTool(prepare=refusing),
        "not json": PlainTool(prepare=infinite),
    }
    outcome = prepare_tool_call(call(case), tools)

    assert isinstance(outcome, ImmediateToolOutcome)
    assert (outcome.result.is_error, outcome.result.terminate) == (True, False)
    assert {
        "unknown": "There is no tool named 'unknown'.",
        "throws": "The arguments of 'throws' were refused: ZeroDivisionError: oops",
        "invalid": "The arguments of 'invalid' were refused: Expected `int`, got `str` - at `$.n`",
        "not json": "The arguments of 'not json' were refused: "
        "$.n: the number is not finite; JSON has no NaN or infinity",
    }[case] == text_in(outcome.result)


def test_a_prepared_call_has_the_arguments_that_its_tool_made() -> None:
    tool = PlainTool(prepare=refusing)
    prepared = prepare_tool_call(call(arguments={"n": 0}), {"echo": tool})

    assert prepared == PreparedToolCall(tool_call=call(arguments={"n": 0}), tool=tool, args={"n": 0, "filled": True})


def test_a_name_that_utf8_cannot_carry_is_answered_in_text_that_it_can() -> None:
    outcome = prepare_tool_call(call("a\udfff"), {})

    assert isinstance(outcome, ImmediateToolOutcome)
    assert text_in(outcome.result) == "There is no tool named 'a?'."


# --- before_tool ------------------------------------------------------------------------------------------------


def prepared(tool: PlainTool | None = None) -> PreparedToolCall:
    return PreparedToolCall(tool_call=call(), tool=tool or PlainTool(), args={"n": 0})


@pytest.mark.parametrize("decision", [None, BeforeToolDecision()])
def test_without_a_decision_the_call_is_cleared_as_it_was_prepared(decision: BeforeToolDecision | None) -> None:
    before = prepared()

    assert apply_before_tool(before, decision) == ClearedToolCall(tool_call=call(), tool=before.tool, args={"n": 0})


@pytest.mark.parametrize("terminate", [True, False])
def test_a_block_is_an_immediate_error_with_its_reason_and_its_wish_to_end_the_run(terminate: bool) -> None:
    block = ToolBlock(reason="not on Sundays", terminate=terminate)
    outcome = apply_before_tool(prepared(), BeforeToolDecision(args={"n": 1}, block=block))

    assert isinstance(outcome, ImmediateToolOutcome)
    assert text_in(outcome.result) == "This tool call was blocked: not on Sundays"
    assert (outcome.result.is_error, outcome.result.terminate) == (True, terminate)


@pytest.mark.covers("RT-5.7-14")
def test_replaced_arguments_are_validated_again() -> None:
    tool = PlainTool(prepare=refusing)
    good = apply_before_tool(prepared(tool), BeforeToolDecision(args={"n": 0}))
    bad = apply_before_tool(prepared(tool), BeforeToolDecision(args={"n": "zero"}))

    assert isinstance(good, ClearedToolCall)
    assert good.args == {"n": 0, "filled": True}
    assert isinstance(bad, ImmediateToolOutcome)
    assert text_in(bad.result) == "The arguments of 'echo' were refused: Expected `int`, got `str` - at `$.n`"
    assert tool.prepared == [{"n": 0}, {"n": "zero"}]


# --- execute ----------------------------------------------------------------------------------------------------


def cleared(tool: PlainTool, **arguments: Any) -> ClearedToolCall:
    return ClearedToolCall(tool_call=call(), tool=tool, args=arguments)


async def executed(
    tool: PlainTool, gate: Gate | None = None, updates: list[ToolResult] | None = None, **arguments: Any
) -> ToolResult:
    heard = [] if updates is None else updates
    done = await execute_tool_call(
        cleared(tool, **arguments), gate or Gate(), heard.append, blocking=InlineWork(), application="app"
    )
    return done.result


@pytest.mark.covers("RT-5.7-15")
async def test_the_tool_is_invoked_directly_after_the_gate_with_its_signal() -> None:
    gate = Gate()
    seen: list[ToolContext] = []

    def execute(arguments: JsonObject, context: ToolContext) -> Awaitable[ToolResult]:
        gate.log.append(f"invoked with {arguments}")
        seen.append(context)
        return PlainTool()._run(arguments, context)

    result = await executed(PlainTool(execute), gate, n=1)

    assert gate.log == ["gate", "invoked with {'n': 1}"]
    assert result == ToolResult(content=[text_block("ran")])
    assert (seen[0].signal, seen[0].tool_call_id, seen[0].application) == (gate.signal, "c1", "app")


async def test_no_other_task_runs_between_the_gate_and_the_tool() -> None:
    gate = Gate()

    async def execute(_arguments: JsonObject, _context: ToolContext) -> ToolResult:
        gate.log.append("invoked")
        return ToolResult(content=[])

    async def intruder() -> None:
        for _ in range(20):
            gate.log.append("other")
            await anyio.lowlevel.checkpoint()

    async with anyio.create_task_group() as group:
        group.start_soon(intruder)
        await anyio.lowlevel.checkpoint()
        await executed(PlainTool(execute), gate)

    assert gate.log[gate.log.index("gate") + 1] == "invoked"


@pytest.mark.parametrize("error", [None, OperationEnded(), HarnessClosed(), HarnessFault()])
async def test_a_gate_that_refuses_means_that_the_tool_is_never_invoked(error: Exception | None) -> None:
    gate = Gate()
    if error is None:
        gate.begin_abort()
    else:
        gate.refusal = error

    def execute(_arguments: JsonObject, _context: ToolContext) -> Awaitable[ToolResult]:
        raise AssertionError("invoked")

    with pytest.raises(AbortRequested if error is None else type(error)):
        await executed(PlainTool(execute), gate)
    assert gate.log == ["gate"]


async def test_an_admitted_tool_goes_on_through_an_abort_and_its_real_result_counts() -> None:
    gate = Gate()

    async def execute(_arguments: JsonObject, context: ToolContext) -> ToolResult:
        reason = await context.signal.wait()
        return ToolResult(content=[text_block(f"stopped: {reason}")])

    results: list[ToolResult] = []

    async def run() -> None:
        results.append(await executed(PlainTool(execute), gate))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        gate.begin_abort()
        gate.signal.abort("by the user")

    assert results == [ToolResult(content=[text_block("stopped: by the user")])]


@pytest.mark.covers("RT-4.2-26")
async def test_real_calls_and_only_they_are_admitted_by_the_gate_in_either_order() -> None:
    first, second, never = Gate(), Gate(), Gate()

    def cancelling(gate: Gate) -> PlainTool:
        async def execute(_arguments: JsonObject, context: ToolContext) -> ToolResult:
            gate.log.append("invoked")
            gate.begin_abort()
            gate.signal.abort("asked")
            return ToolResult(content=[text_block(str(context.signal.aborted))])

        return PlainTool(execute)

    assert text_in(await executed(cancelling(first), first)) == "True"
    second.begin_abort()
    with pytest.raises(AbortRequested):
        await executed(cancelling(second), second)
    blocked = apply_before_tool(prepared(cancelling(never)), BeforeToolDecision(block=ToolBlock(reason="no")))
    unknown = prepare_tool_call(call("unknown"), {})

    assert isinstance(blocked, ImmediateToolOutcome)
    assert isinstance(unknown, ImmediateToolOutcome)
    assert (first.log, second.log, never.log) == (["gate", "invoked"], ["gate"], [])


@pytest.mark.covers("RT-3.8-08")
def test_hooks_events_and_context_name_a_call_by_its_id_and_tool_and_never_by_its_index() -> None:
    shown = [BeforeTool, AfterTool, ToolStartEvent, ToolUpdateEvent, ToolEndEvent]

    assert all({"tool_call_id", "tool_name"} <= set(one.__struct_fields__) for one in shown)
    assert "tool_call_id" in ToolContext.__struct_fields__
    assert [name for one in [*shown, ToolContext] for name in one.__struct_fields__ if "index" in name] == []


@pytest.mark.parametrize("error", [ValueError("no"), HarnessClosed("a harness inside the tool"), LookupError()])
async def test_whatever_a_tool_raises_is_its_error_result(error: Exception) -> None:
    async def execute(_arguments: JsonObject, _context: ToolContext) -> ToolResult:
        raise error

    result = await executed(PlainTool(execute))

    said = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    assert (result.is_error, text_in(result)) == (True, f"The tool failed: {said}")


async def test_a_tool_that_raises_before_it_is_awaited_fails_the_same_way() -> None:
    def execute(_arguments: JsonObject, _context: ToolContext) -> Awaitable[ToolResult]:
        raise ValueError("at once")

    assert text_in(await executed(PlainTool(execute))) == "The tool failed: ValueError: at once"


UNRECORDABLE: dict[str, Any] = {
    "text": "plain text",
    "nothing": None,
    "content that is text": ToolResult(content="hi"),  # type: ignore[arg-type]
    "a block that is text": ToolResult(content=["hi"]),
    "usage that is a number": ToolResult(content=[], usage=3),  # type: ignore[arg-type]
    "a number that JSON lacks": ToolResult(content=[], details={"x": float("nan")}),
    "a lone surrogate": ToolResult(content=[text_block("\udc80")]),
    "an object of Python": ToolResult(content=[], details=object()),  # type: ignore[arg-type]
}


@pytest.mark.parametrize("kind", UNRECORDABLE)
async def test_a_result_that_cannot_be_recorded_is_an_error_result(kind: str) -> None:
    async def execute(_arguments: JsonObject, _context: ToolContext) -> ToolResult:
        return UNRECORDABLE[kind]  # type: ignore[no-any-return]

    result = await executed(PlainTool(execute))

    assert result.is_error
    assert text_in(result).startswith("The tool returned a result that cannot be recorded: ")


async def test_updates_are_passed_on_until_the_call_settles() -> None:
    updates: list[ToolResult] = []
    contexts: list[ToolContext] = []

    async def execute(_arguments: JsonObject, context: ToolContext) -> ToolResult:
        contexts.append(context)
        context.update(ToolResult(content=[text_block("half")]))
        return ToolResult(content=[])

    await executed(PlainTool(execute), updates=updates)
    contexts[0].update(ToolResult(content=[text_block("late")]))

    assert updates == [ToolResult(content=[text_block("half")])]


# --- finalize ---------------------------------------------------------------------------------------------------

WHOLE = ToolResult(content=[text_block("a")], details=1, is_error=False, terminate=True, usage=USAGE)

PATCHES: list[tuple[AfterToolPatch | None, ToolResult]] = [
    (None, WHOLE),
    (AfterToolPatch(), WHOLE),
    (
        AfterToolPatch(content=[text_block("b")]),
        ToolResult(content=[text_block("b")], details=1, terminate=True, usage=USAGE),
    ),
    (
        AfterToolPatch(details=None),
        ToolResult(content=[text_block("a")], details=None, terminate=True, usage=USAGE),
    ),
    (
        AfterToolPatch(is_error=True, terminate=False),
        ToolResult(content=[text_block("a")], details=1, is_error=True, usage=USAGE),
    ),
    (
        AfterToolPatch(usage={"input": 1}),
        ToolResult(content=[text_block("a")], details=1, terminate=True, usage={"input": 1}),
    ),
]


@pytest.mark.covers("RT-5.7-16")
@pytest.mark.parametrize("patch, expected", PATCHES)
def test_the_after_tool_patch_replaces_exactly_the_fields_that_it_gives(
    patch: AfterToolPatch | None, expected: ToolResult
) -> None:
    final = finalize_tool_call(cleared(PlainTool()), ExecutedToolCall(result=WHOLE), patch)

    assert final.result == expected
    assert final.tool_call == call()


def test_a_result_message_names_the_call_and_never_holds_terminate() -> None:
    final = finalize_tool_call(cleared(PlainTool()), ExecutedToolCall(result=WHOLE), None)

    assert list(tool_result_message(final, 5).items()) == [
        ("role", "toolResult"),
        ("toolCallId", "c1"),
        ("toolName", "echo"),
        ("content", [text_block("a")]),
        ("details", 1),
        ("isError", False),
        ("timestamp", 5),
    ]


def test_absent_details_stay_absent() -> None:
    outcome = prepare_tool_call(call("unknown"), {})
    assert isinstance(outcome, ImmediateToolOutcome)
    assert outcome.result.details is UNSET

    message = tool_result_message(outcome, 5)
    assert "details" not in message
    assert message["isError"] is True
