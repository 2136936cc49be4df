"""A handler that raises, or answers against its contract, is reported and skipped; before_tool blocks instead."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    UNSET,
    AfterResponseResult,
    AfterToolPatch,
    BeforeCompactionResult,
    BeforeNavigationResult,
    BeforePayloadResult,
    BeforeRequestResult,
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeToolDecision,
    BranchSummaryResult,
    CompactResult,
    ToolBlock,
    TransformContextResult,
    text_block,
)
from restartpoint.errors import HookAnswerRefused, InvalidJson
from restartpoint.hooks import BEFORE_TOOL_FAILED, BeforeRunOutcome, Hooks
from restartpoint.seams import Signal
from tests.harness.hooks.stage import PAYLOADS, hooks_and_failures, response


async def run(hooks: Hooks, name: str) -> object:
    payload = getattr(PAYLOADS, name)
    match name:
        case "before_resume":
            await hooks.before_resume(payload, UNSET)
            return None
        case "after_response":
            return await hooks.after_response(payload, Signal())
        case _:
            return await getattr(hooks, name)(payload)


UNCHANGED: dict[str, object] = {
    "before_run": BeforeRunOutcome(messages=[]),
    "before_resume": None,
    "before_run_end": None,
    "transform_context": PAYLOADS.transform_context.messages,
    "before_request": PAYLOADS.before_request.stream_options,
    "before_payload": PAYLOADS.before_payload.payload,
    "after_response": PAYLOADS.after_response.message,
    "after_tool": None,
    "before_compaction": None,
    "before_navigation": None,
}


@pytest.mark.parametrize("name", UNCHANGED)
@pytest.mark.parametrize("kind", ["plain", "async"])
async def test_a_handler_that_raises_is_reported_and_the_rest_go_on(name: Any, kind: str) -> None:
    hooks, failures = hooks_and_failures()
    calls: list[str] = []
    error = RuntimeError("broken")

    def plain(event: object) -> None:
        raise error

    async def later(event: object) -> None:
        await anyio.lowlevel.checkpoint()
        raise error

    hooks.on(name, plain if kind == "plain" else later, id="a")
    hooks.on(name, lambda event: calls.append(name), id="b")

    assert await run(hooks, name) == UNCHANGED[name]
    assert calls == [name]
    assert [(one.hook, one.lane, one.run_id, one.error) for one in failures] == [(name, "main", "op-1", error)]


@pytest.mark.covers("RT-5.6-04")
async def test_a_throwing_before_tool_handler_blocks_the_call_where_others_are_skipped() -> None:
    hooks, failures = hooks_and_failures()
    calls: list[str] = []

    def broken(event: object) -> None:
        raise RuntimeError("broken")

    hooks.on("before_tool", lambda event: BeforeToolDecision(args={"n": 1}))
    hooks.on("before_tool", broken)
    hooks.on("before_tool", lambda event: calls.append("later"))
    hooks.on("after_tool", broken)
    hooks.on("after_tool", lambda event: AfterToolPatch(is_error=True))

    assert await run(hooks, "before_tool") == BeforeToolDecision(block=ToolBlock(reason=BEFORE_TOOL_FAILED))
    assert calls == []
    assert await run(hooks, "after_tool") == AfterToolPatch(is_error=True)
    assert [one.hook for one in failures] == ["before_tool", "after_tool"]


VIOLATIONS: list[tuple[str, object]] = [
    ("before_run", "text"),
    ("before_run", BeforeRunResult(messages=["text"])),  # type: ignore[list-item]
    ("before_run", BeforeRunResult(messages=[{"content": "no role"}])),
    ("before_run", BeforeRunResult(messages=[{"role": "user", "n": float("nan")}])),
    ("before_run", BeforeRunResult(system_prompt=7)),  # type: ignore[arg-type]
    ("before_run", BeforeRunResult(resume_data=object())),  # type: ignore[arg-type]
    ("before_resume", True),
    ("before_run_end", BeforeRunEndResult(follow_up="\ud800")),
    ("transform_context", TransformContextResult(messages="text")),  # type: ignore[arg-type]
    ("before_request", BeforeRequestResult(stream_options={"temperature": float("inf")})),
    ("before_payload", {"payload": 1}),
    ("after_response", AfterResponseResult(message=response(role="user"))),
    ("after_response", AfterResponseResult(message=response(stopReason="pending"))),
    ("after_response", AfterResponseResult(message=response(stopReason="aborted"))),
    ("after_response", AfterResponseResult(message=response(content="text"))),
    ("after_response", AfterResponseResult(message=response(content=[text_block("\ud800")]))),
    ("after_tool", AfterToolPatch(content=["text"])),
    ("after_tool", AfterToolPatch(usage=[])),  # type: ignore[arg-type]
    ("after_tool", AfterToolPatch(details=float("nan"))),
    ("before_compaction", BeforeCompactionResult(decline=True, compaction=CompactResult(summary="s"))),
    ("before_compaction", BeforeCompactionResult(compaction=CompactResult(summary="s", details=float("nan")))),
    ("before_navigation", BeforeCompactionResult(decline=True)),
    ("before_navigation", BeforeNavigationResult(summary=BranchSummaryResult(summary="\ud800"))),
]


@pytest.mark.parametrize("name, returned", VIOLATIONS)
async def test_an_answer_against_the_contract_is_ignored_like_a_throw(name: Any, returned: Any) -> None:
    hooks, failures = hooks_and_failures()
    hooks.on(name, lambda event: returned, id="a")

    assert await run(hooks, name) == UNCHANGED[name]
    assert [one.hook for one in failures] == [name]
    assert isinstance(failures[0].error, HookAnswerRefused | InvalidJson)


@pytest.mark.parametrize(
    "returned",
    [
        {"block": True},
        BeforeToolDecision(args=[1]),  # type: ignore[arg-type]
        BeforeToolDecision(args={"n": float("nan")}),
        BeforeToolDecision(block=ToolBlock(reason=None)),  # type: ignore[arg-type]
    ],
)
async def test_a_before_tool_answer_against_the_contract_blocks_the_call(returned: Any) -> None:
    hooks, failures = hooks_and_failures()
    hooks.on("before_tool", lambda event: returned)

    assert await run(hooks, "before_tool") == BeforeToolDecision(block=ToolBlock(reason=BEFORE_TOOL_FAILED))
    assert len(failures) == 1


@pytest.mark.covers("RT-5.6-15")
async def test_after_response_keeps_the_role_and_says_aborted_only_after_the_signal() -> None:
    hooks, failures = hooks_and_failures()
    remove = hooks.on("after_response", lambda event: AfterResponseResult(message=response(role="user")))
    assert await hooks.after_response(PAYLOADS.after_response, Signal()) == response()
    remove()

    aborted = response(stopReason="aborted")
    hooks.on("after_response", lambda event: AfterResponseResult(message=aborted))
    signal = Signal()
    assert await hooks.after_response(PAYLOADS.after_response, signal) == response()
    assert len(failures) == 2

    signal.abort("asked")
    assert await hooks.after_response(PAYLOADS.after_response, signal) == aborted
    assert len(failures) == 2


async def test_a_violation_keeps_what_earlier_handlers_gave() -> None:
    hooks, failures = hooks_and_failures()
    hooks.on("before_payload", lambda event: BeforePayloadResult(payload="kept"))
    wrong: Any = "wrong"
    hooks.on("before_payload", lambda event: wrong)

    assert await hooks.before_payload(PAYLOADS.before_payload) == "kept"
    assert len(failures) == 1


@pytest.mark.covers("RT-4.2-32")
async def test_an_abort_between_handlers_does_not_stop_the_pipeline() -> None:
    hooks, _ = hooks_and_failures()
    signal = Signal()
    calls: list[str] = []

    async def first(event: object) -> None:
        signal.abort("in the middle")
        await anyio.lowlevel.checkpoint()
        calls.append("first")

    hooks.on("after_response", first)
    hooks.on("after_response", lambda event: calls.append("second"))
    await hooks.after_response(PAYLOADS.after_response, signal)

    assert calls == ["first", "second"]


async def test_cancellation_passes_through_a_handler() -> None:
    hooks, failures = hooks_and_failures()

    async def forever(event: object) -> None:
        await anyio.sleep_forever()

    hooks.on("before_tool", forever)
    async with anyio.create_task_group() as group:
        group.start_soon(hooks.before_tool, PAYLOADS.before_tool)
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    assert failures == []


async def test_the_first_handler_begins_in_the_step_that_starts_the_pipeline() -> None:
    hooks, _ = hooks_and_failures()
    calls: list[str] = []
    hooks.on("before_tool", lambda event: calls.append("begun"))

    running = hooks.before_tool(PAYLOADS.before_tool)
    assert calls == []
    try:
        running.send(None)
    except StopIteration:
        calls.append("ended")

    assert calls == ["begun", "ended"]
