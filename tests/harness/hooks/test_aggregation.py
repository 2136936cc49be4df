"""Each hook's rule of aggregation: what later handlers see, and what the pipeline answers."""

from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    UNSET,
    AfterResponse,
    AfterResponseResult,
    AfterTool,
    AfterToolPatch,
    BeforeCompaction,
    BeforeCompactionResult,
    BeforeNavigation,
    BeforeNavigationResult,
    BeforePayload,
    BeforePayloadResult,
    BeforeRequest,
    BeforeRequestResult,
    BeforeResume,
    BeforeRun,
    BeforeRunEnd,
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeTool,
    BeforeToolDecision,
    BranchSummaryResult,
    CompactResult,
    ToolBlock,
    TransformContext,
    TransformContextResult,
    text_block,
    user_message,
)
from restartpoint.hooks import BeforeRunOutcome
from restartpoint.seams import Signal
from tests.harness.hooks.stage import PAYLOADS, hooks_and_failures, response


@pytest.mark.covers("RT-5.6-03")
async def test_handlers_run_one_after_another_in_registration_order_each_with_the_previous_output() -> None:
    hooks, _ = hooks_and_failures()
    running: list[str] = []
    extra = user_message("extra", 2)

    async def slow(event: TransformContext) -> TransformContextResult:
        running.append("slow begins")
        await anyio.lowlevel.checkpoint()
        running.append("slow ends")
        return TransformContextResult(messages=[*event.messages, extra])

    def quick(event: TransformContext) -> TransformContextResult:
        running.append(f"quick sees {len(event.messages)}")
        return TransformContextResult(messages=event.messages[1:])

    hooks.on("transform_context", slow)
    hooks.on("transform_context", quick)

    assert await hooks.transform_context(PAYLOADS.transform_context) == [extra]
    assert running == ["slow begins", "slow ends", "quick sees 2"]


@pytest.mark.covers("RT-5.6-08")
async def test_before_run_appends_messages_and_the_latest_system_prompt_wins() -> None:
    hooks, _ = hooks_and_failures()
    seen: list[tuple[int, str]] = []
    one, two = user_message("one", 1), user_message("two", 2)

    def first(event: BeforeRun) -> BeforeRunResult:
        return BeforeRunResult(messages=[one], system_prompt="first")

    def second(event: BeforeRun) -> BeforeRunResult:
        seen.append((len(event.prompt), event.system_prompt))
        return BeforeRunResult(messages=[two], resume_data={"n": 2})

    def third(event: BeforeRun) -> BeforeRunResult:
        seen.append((len(event.prompt), event.system_prompt))
        return BeforeRunResult(system_prompt="third", resume_data=None)

    for own, handler in (("a", first), ("b", second), ("c", third)):
        hooks.on("before_run", handler, id=own)

    assert await hooks.before_run(PAYLOADS.before_run) == BeforeRunOutcome(
        messages=[one, two], system_prompt="third", resume_data={"b": {"n": 2}, "c": None}
    )
    assert seen == [(2, "first"), (3, "first")]


async def test_before_run_without_answers_adds_nothing() -> None:
    hooks, _ = hooks_and_failures()

    assert await hooks.before_run(PAYLOADS.before_run) == BeforeRunOutcome(
        messages=[], system_prompt=UNSET, resume_data=UNSET
    )


@pytest.mark.covers("RT-5.6-07")
async def test_each_before_resume_handler_receives_its_own_data_only() -> None:
    hooks, _ = hooks_and_failures()
    seen: dict[str, object] = {}

    def keeping(id: str) -> Any:
        def handler(event: BeforeResume) -> None:
            seen[id] = event.resume_data

        return handler

    for own in ("a", "b", "c"):
        hooks.on("before_resume", keeping(own), id=own)
    await hooks.before_resume(PAYLOADS.before_resume, {"a": {"n": 1}, "b": None, "gone": 3})

    assert seen == {"a": {"n": 1}, "b": None, "c": UNSET}


async def test_before_resume_without_stored_data_says_so() -> None:
    hooks, _ = hooks_and_failures()
    seen: list[object] = []
    hooks.on("before_resume", lambda event: seen.append(event.resume_data), id="a")

    await hooks.before_resume(PAYLOADS.before_resume, UNSET)

    assert seen == [UNSET]


async def test_before_run_end_uses_the_latest_follow_up() -> None:
    hooks, _ = hooks_and_failures()
    assert await hooks.before_run_end(PAYLOADS.before_run_end) is None

    def asks(text: str) -> Any:
        def handler(event: BeforeRunEnd) -> BeforeRunEndResult | None:
            return BeforeRunEndResult(follow_up=text) if text else None

        return handler

    for text in ("one", "two", ""):
        hooks.on("before_run_end", asks(text))

    assert await hooks.before_run_end(PAYLOADS.before_run_end) == "two"


@pytest.mark.covers("RT-5.6-11")
async def test_transform_context_without_an_answer_keeps_the_context() -> None:
    hooks, _ = hooks_and_failures()
    hooks.on("transform_context", lambda event: None)
    hooks.on("transform_context", lambda event: TransformContextResult(messages=[*event.messages, response()]))

    assert await hooks.transform_context(PAYLOADS.transform_context) == [
        *PAYLOADS.transform_context.messages,
        response(),
    ]
    assert len(PAYLOADS.transform_context.messages) == 1


async def test_request_patches_merge_field_by_field_and_key_by_key() -> None:
    hooks, _ = hooks_and_failures()
    seen: list[object] = []

    def first(event: BeforeRequest) -> BeforeRequestResult:
        return BeforeRequestResult(stream_options={"maxTokens": 9, "headers": {"b": "2"}, "temperature": 0})

    def second(event: BeforeRequest) -> BeforeRequestResult:
        seen.append(event.stream_options)
        return BeforeRequestResult(stream_options={"temperature": UNSET, "headers": {"a": UNSET}, "seed": None})

    hooks.on("before_request", first)
    hooks.on("before_request", second)

    assert await hooks.before_request(PAYLOADS.before_request) == {
        "headers": {"b": "2"},
        "maxTokens": 9,
        "seed": None,
    }
    assert seen == [{"headers": {"a": "1", "b": "2"}, "maxTokens": 9, "temperature": 0}]
    assert PAYLOADS.before_request.stream_options == {"headers": {"a": "1"}, "maxTokens": 5}


@pytest.mark.covers("RT-5.6-13")
async def test_a_signal_or_a_callback_in_a_request_patch_is_dropped() -> None:
    hooks, failures = hooks_and_failures()
    smuggled: dict[str, Any] = {
        "signal": Signal(),
        "onPayload": "x",
        "onResponse": print,
        "before_payload": 1,
        "anything": lambda: None,
        "temperature": 1,
    }
    hooks.on("before_request", lambda event: BeforeRequestResult(stream_options=smuggled))

    assert await hooks.before_request(PAYLOADS.before_request) == {
        "headers": {"a": "1"},
        "maxTokens": 5,
        "temperature": 1,
    }
    assert failures == []


@pytest.mark.covers("RT-5.6-14")
async def test_payload_replacements_chain_and_none_is_a_payload() -> None:
    hooks, _ = hooks_and_failures()

    def counting(event: BeforePayload) -> BeforePayloadResult:
        assert isinstance(event.payload, dict)
        return BeforePayloadResult(payload={"n": int(str(event.payload["n"])) + 1})

    hooks.on("before_payload", counting)
    hooks.on("before_payload", lambda event: None)
    hooks.on("before_payload", counting)
    assert await hooks.before_payload(PAYLOADS.before_payload) == {"n": 2}

    hooks.on("before_payload", lambda event: BeforePayloadResult(payload=None))
    assert await hooks.before_payload(PAYLOADS.before_payload) is None


async def test_response_replacements_chain() -> None:
    hooks, _ = hooks_and_failures()

    def adding(key: str) -> Any:
        def handler(event: AfterResponse) -> AfterResponseResult:
            return AfterResponseResult(message={**event.message, key: True})

        return handler

    hooks.on("after_response", adding("a"))
    hooks.on("after_response", lambda event: AfterResponseResult())
    hooks.on("after_response", adding("b"))

    assert await hooks.after_response(PAYLOADS.after_response, Signal()) == response(a=True, b=True)


@pytest.mark.covers("RT-5.6-16")
async def test_tool_arguments_chain_and_the_first_block_is_final() -> None:
    hooks, _ = hooks_and_failures()
    called: list[str] = []

    def adding(key: str, reason: str = "") -> Any:
        def handler(event: BeforeTool) -> BeforeToolDecision:
            called.append(f"{key} sees {sorted(event.args)}")
            block = ToolBlock(reason=reason, terminate=True) if reason else UNSET
            return BeforeToolDecision(args={**event.args, key: 1}, block=block)

        return handler

    hooks.on("before_tool", adding("a"))
    hooks.on("before_tool", lambda event: None)
    remove = hooks.on("before_tool", adding("b"))
    assert await hooks.before_tool(PAYLOADS.before_tool) == BeforeToolDecision(args={"n": 0, "a": 1, "b": 1})

    remove()
    called.clear()
    hooks.on("before_tool", adding("c", reason="no"))
    hooks.on("before_tool", adding("d", reason="never asked"))
    assert await hooks.before_tool(PAYLOADS.before_tool) == BeforeToolDecision(
        block=ToolBlock(reason="no", terminate=True)
    )
    assert called == ["a sees ['n']", "c sees ['a', 'n']"]


async def test_before_tool_without_a_decision_answers_none() -> None:
    hooks, _ = hooks_and_failures()
    hooks.on("before_tool", lambda event: BeforeToolDecision())

    assert await hooks.before_tool(PAYLOADS.before_tool) is None


@pytest.mark.covers("RT-5.6-17")
async def test_result_patches_merge_field_by_field_and_later_handlers_see_them() -> None:
    hooks, _ = hooks_and_failures()
    seen: list[tuple[object, object, bool]] = []

    def first(event: AfterTool) -> AfterToolPatch:
        return AfterToolPatch(content=[text_block("first")], is_error=True, terminate=True)

    def second(event: AfterTool) -> AfterToolPatch:
        seen.append((event.content, event.details, event.is_error))
        return AfterToolPatch(details=None, usage={"input": 1})

    def third(event: AfterTool) -> AfterToolPatch:
        seen.append((event.content, event.details, event.is_error))
        return AfterToolPatch(is_error=False)

    for handler in (first, second, third):
        hooks.on("after_tool", handler)

    assert await hooks.after_tool(PAYLOADS.after_tool) == AfterToolPatch(
        content=[text_block("first")], details=None, is_error=False, usage={"input": 1}, terminate=True
    )
    assert seen == [([text_block("first")], UNSET, True), ([text_block("first")], None, True)]


async def test_after_tool_without_an_answer_patches_nothing() -> None:
    hooks, _ = hooks_and_failures()
    hooks.on("after_tool", lambda event: None)

    assert await hooks.after_tool(PAYLOADS.after_tool) is None


COMPACTIONS: list[tuple[list[BeforeCompactionResult | None], BeforeCompactionResult | None, int]] = [
    ([], None, 0),
    ([None, BeforeCompactionResult()], None, 2),
    ([BeforeCompactionResult(decline=True), None], BeforeCompactionResult(decline=True), 1),
    (
        [None, BeforeCompactionResult(compaction=CompactResult(summary="s")), BeforeCompactionResult(decline=True)],
        BeforeCompactionResult(compaction=CompactResult(summary="s")),
        2,
    ),
    (
        [
            BeforeCompactionResult(decline=True, compaction=CompactResult(summary="s")),
            BeforeCompactionResult(decline=True),
        ],
        BeforeCompactionResult(decline=True),
        2,
    ),
]


@pytest.mark.covers("RT-5.6-18")
@pytest.mark.parametrize("answers, expected, asked", COMPACTIONS)
async def test_a_compaction_hook_stops_at_the_first_refusal_or_result(
    answers: list[BeforeCompactionResult | None], expected: BeforeCompactionResult | None, asked: int
) -> None:
    hooks, failures = hooks_and_failures()
    calls: list[str] = []

    def answering(answer: BeforeCompactionResult | None) -> Any:
        def handler(event: BeforeCompaction) -> BeforeCompactionResult | None:
            calls.append(event.reason)
            return answer

        return handler

    for answer in answers:
        hooks.on("before_compaction", answering(answer))

    assert await hooks.before_compaction(PAYLOADS.before_compaction) == expected
    assert len(calls) == asked
    both = [one for one in answers if one is not None and one.decline and one.compaction is not UNSET]
    assert len(failures) == len(both)


NAVIGATIONS: list[tuple[list[BeforeNavigationResult | None], BeforeNavigationResult | None]] = [
    ([None, BeforeNavigationResult()], None),
    ([BeforeNavigationResult(decline=True), None], BeforeNavigationResult(decline=True)),
    (
        [
            BeforeNavigationResult(decline=True, summary=BranchSummaryResult(summary="x")),
            BeforeNavigationResult(summary=BranchSummaryResult(summary="s")),
            BeforeNavigationResult(decline=True),
        ],
        BeforeNavigationResult(summary=BranchSummaryResult(summary="s")),
    ),
]


@pytest.mark.covers("RT-5.6-19")
@pytest.mark.parametrize("answers, expected", NAVIGATIONS)
async def test_a_navigation_hook_stops_at_the_first_refusal_or_result(
    answers: list[BeforeNavigationResult | None], expected: BeforeNavigationResult | None
) -> None:
    hooks, _ = hooks_and_failures()

    def answering(answer: BeforeNavigationResult | None) -> Any:
        def handler(event: BeforeNavigation) -> BeforeNavigationResult | None:
            return answer

        return handler

    for answer in answers:
        hooks.on("before_navigation", answering(answer))

    assert await hooks.before_navigation(PAYLOADS.before_navigation) == expected
