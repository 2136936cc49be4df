"""The scripted provider answers the same in every process, and tells when each request starts."""

from typing import Any

import anyio
import pytest

from restartpoint.contract import AgentMessage, JsonObject, Model, Models, response_objection, text_block
from restartpoint.errors import InvalidOptions
from restartpoint.providers import (
    SCRIPTED_MODEL,
    Script,
    ScriptedCall,
    ScriptedFailure,
    ScriptedModels,
    ScriptedResponse,
    asks,
    fails,
    load_script,
    says,
)
from tests.harness.providers.stage import Caller, HeldTimers, StillClock, conversation


def scripted(script: Any, **options: Any) -> ScriptedModels:
    return ScriptedModels(script, clock=StillClock(), **options)


def said(message: AgentMessage) -> str:
    content = message["content"]
    assert isinstance(content, list)
    return "".join(str(block["text"]) for block in content if isinstance(block, dict) and "text" in block)


async def test_an_answer_is_streamed_and_then_settled() -> None:
    models: Models = scripted([ScriptedResponse(chunks=["Hel", "lo"], thinking="hm", headers={"x": "1"})])
    caller = Caller()
    assert isinstance(models, ScriptedModels)
    settled = await caller.ask(models, conversation("hi"))

    assert caller.log == ["before_payload", "response 200", "start", "delta", "delta"]
    assert [said(event.message) for event in caller.events] == ["", "Hel", "Hello"]
    assert settled == {
        "role": "assistant",
        "content": [{"type": "thinking", "thinking": "hm"}, text_block("Hello")],
        "api": "scripted",
        "provider": "scripted",
        "model": "scripted-1",
        "usage": {
            "input": 10, "output": 2, "cacheRead": 0, "cacheWrite": 0, "totalTokens": 12,
            "cost": {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0},
        },
        "stopReason": "stop",
        "timestamp": 1000,
    }  # fmt: skip
    assert response_objection(settled) is None


async def test_drafts_are_never_changed_after_they_were_shown() -> None:
    caller = Caller()
    await caller.ask(scripted([ScriptedResponse(chunks=["a", "b"])]), conversation("hi"))

    contents = [event.message["content"] for event in caller.events]
    assert contents == [[], [text_block("a")], [text_block("ab")]]


async def test_calls_get_ids_that_are_the_same_in_every_process() -> None:
    script = [asks(ScriptedCall(name="a", arguments={"n": 1}), ScriptedCall(name="b", id="own")), says("done")]
    first = await Caller().ask(scripted(script), conversation("go"))
    again = await Caller().ask(scripted(script), conversation("go"))

    assert first == again
    assert first["stopReason"] == "toolUse"
    assert first["content"] == [
        {"type": "toolCall", "id": "call_0_0", "name": "a", "arguments": {"n": 1}},
        {"type": "toolCall", "id": "own", "name": "b", "arguments": {}},
    ]


async def test_a_new_process_goes_on_where_the_context_stands() -> None:
    script = [says("one"), says("two"), says("three")]
    resumed = scripted(script)

    assert said(await Caller().ask(resumed, conversation("go", "one", "and"))) == "two"
    assert said(await Caller().ask(resumed, conversation("go"))) == "one"


async def test_answers_may_depend_on_the_last_user_message() -> None:
    models = scripted(Script(prompts={"sum": [says("a"), says("b")]}, steps=[says("zero"), says("one")]))

    assert said(await Caller().ask(models, conversation("sum"))) == "a"
    assert said(await Caller().ask(models, [*conversation("x", "y", "sum"), conversation("", "a")[1]])) == "b"
    assert said(await Caller().ask(models, conversation("x", "y", "other"))) == "one"


async def test_in_order_of_arrival_the_context_does_not_matter() -> None:
    models = scripted(Script(steps=[says("one"), says("two")], order="arrival"))

    assert [said(await Caller().ask(models, conversation("same"))) for _ in range(2)] == ["one", "two"]


async def test_a_step_may_have_an_answer_for_each_attempt_and_the_last_repeats() -> None:
    models = scripted([[fails("503"), says("worked")], says("next")])
    answers = [await Caller().ask(models, conversation("go")) for _ in range(3)]

    assert [answer["stopReason"] for answer in answers] == ["error", "stop", "stop"]
    assert answers[0]["errorMessage"] == "503"
    assert said(await Caller().ask(models, conversation("go", "worked", "on"))) == "next"


async def test_a_script_that_is_at_its_end_answers_with_an_error() -> None:
    answer = await Caller().ask(scripted([]), conversation("go"))

    assert (answer["stopReason"], answer["errorMessage"]) == ("error", "the script has no answer for step 0")


async def test_given_usage_is_reported_as_it_is() -> None:
    usage: JsonObject = {"input": 1, "output": 2, "cost": {"total": 0.5}}
    answer = await Caller().ask(scripted([ScriptedResponse(text="x", usage=usage)]), conversation("go"))

    assert answer["usage"] == usage


async def test_an_answer_may_raise_defer_or_begin_without_a_start() -> None:
    models = scripted(
        Script(
            prompts={
                "raise": [ScriptedResponse(raises="connection reset")],
                "defer": [ScriptedResponse(deferred={"id": "h"})],
                "quiet": [ScriptedResponse(text="x", streamed=False)],
                "cut": [ScriptedResponse(text="x", stop_reason="length")],
            }
        )
    )
    with pytest.raises(ScriptedFailure, match="connection reset"):
        await Caller().ask(models, conversation("raise"))
    deferred = await Caller().ask(models, conversation("defer"))
    quiet = Caller()
    await quiet.ask(models, conversation("quiet"))
    cut = await Caller().ask(models, conversation("cut"))

    assert (deferred["stopReason"], deferred["deferred"]) == ("deferred", {"id": "h"})
    assert quiet.log == ["before_payload", "response 200"]
    assert cut["stopReason"] == "length"


# --- time, stalls and signals -----------------------------------------------------------------------------------


async def test_a_delay_is_spent_on_the_injected_timers() -> None:
    timers = HeldTimers()
    models = scripted([ScriptedResponse(text="late", delay_ms=250)], timers=timers)
    caller = Caller()

    async with anyio.create_task_group() as group:
        group.start_soon(caller.ask, models, conversation("go"))
        await anyio.wait_all_tasks_blocked()
        assert (timers.asked, caller.log) == ([250], ["before_payload"])
        timers.ring.set()

    assert caller.log == ["before_payload", "response 200", "start", "delta"]


@pytest.mark.parametrize("place, before", [("request", []), ("stream", ["response 200", "start", "delta"])])
async def test_a_stall_lasts_until_it_is_released(place: Any, before: list[str]) -> None:
    models = scripted([ScriptedResponse(name="slow", chunks=["a", "b"], stall=place)])
    caller = Caller()
    answers: list[AgentMessage] = []

    async def ask() -> None:
        answers.append(await caller.ask(models, conversation("go")))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await models.reached("slow")
        await anyio.wait_all_tasks_blocked()
        assert caller.log == ["before_payload", *before]
        models.release("slow")

    assert caller.log == ["before_payload", "response 200", "start", "delta", "delta"]
    assert said(answers[0]) == "ab"


@pytest.mark.parametrize("place, kept", [("request", ""), ("stream", "a")])
async def test_a_signal_ends_a_stall_with_an_aborted_answer_that_keeps_its_usage(place: Any, kept: str) -> None:
    models = scripted([ScriptedResponse(name="slow", chunks=["a", "b"], stall=place)])
    caller = Caller()
    answers: list[AgentMessage] = []

    async def ask() -> None:
        answers.append(await caller.ask(models, conversation("go")))

    async with anyio.create_task_group() as group:
        group.start_soon(ask)
        await models.reached("slow")
        caller.signal.abort("asked")

    (answer,) = answers
    assert (answer["stopReason"], said(answer)) == ("aborted", kept)
    assert isinstance(answer["usage"], dict)
    assert answer["usage"]["input"] == 10


async def test_an_answer_says_aborted_only_when_the_signal_is_set() -> None:
    models = scripted([says("fine")])

    assert (await Caller().ask(models, conversation("go")))["stopReason"] == "stop"


async def test_a_stall_that_was_released_before_does_not_wait() -> None:
    models = scripted([ScriptedResponse(name="slow", text="x", stall="request")])
    models.release("slow")

    assert said(await Caller().ask(models, conversation("go"))) == "x"


async def test_cancelling_a_stalled_request_ends_it() -> None:
    models = scripted([ScriptedResponse(name="slow", text="x", stall="request")])
    caller = Caller()
    async with anyio.create_task_group() as group:
        group.start_soon(caller.ask, models, conversation("go"))
        await models.reached("slow")
        group.cancel_scope.cancel()

    assert caller.log == ["before_payload"]


# --- records ----------------------------------------------------------------------------------------------------


def test_a_request_is_recorded_in_the_very_step_that_starts_it() -> None:
    started: list[tuple[str, JsonObject]] = []
    models = scripted([says("x", name="hello")], record=lambda kind, facts: started.append((kind, facts)))

    running = Caller().ask(models, conversation("go"))
    assert started == []
    with pytest.raises(StopIteration):
        running.send(None)

    assert started == [("assistant_request", {"answer": "hello", "model": "scripted-1", "step": 0})]


async def test_requests_are_kept_as_they_came_unless_told_otherwise() -> None:
    keeping, forgetful = scripted([says("x", name="hello")]), scripted([says("x")], keep_requests=False)
    caller, messages = Caller(), conversation("go")
    await caller.ask(keeping, messages)
    await caller.ask(forgetful, messages)

    (kept,) = keeping.requests
    assert kept.request.messages is messages
    assert (kept.signal, kept.answer, kept.model) == (caller.signal, "hello", SCRIPTED_MODEL)
    assert forgetful.requests == []


def test_models_can_be_registered_and_taken_away() -> None:
    other = Model(provider="acme", model_id="m", api="a", context_window=9, max_tokens=1)
    models = scripted([], models=[other])

    assert models.resolve(other.identity) is other
    assert models.resolve(SCRIPTED_MODEL.identity) is None
    models.unregister(other.identity)
    models.unregister(other.identity)
    models.register(SCRIPTED_MODEL)
    assert models.resolve(other.identity) is None
    assert models.resolve(SCRIPTED_MODEL.identity) is SCRIPTED_MODEL


# --- scripts as JSON --------------------------------------------------------------------------------------------


async def test_a_script_can_be_loaded_from_json() -> None:
    script = load_script(
        """
        {"prompts": {"go": [
            {"name": "first", "text": "working", "calls": [{"name": "write", "arguments": {"path": "a"}}]},
            [{"error": "503"}, {"text": "done", "delayMs": 0, "stopReason": "stop"}]
        ]}}
        """
    )
    first = await Caller().ask(scripted(script), conversation("go"))
    second = await Caller().ask(scripted(script), [*conversation("go"), first])

    assert script.prompts["go"][0] == asks(
        ScriptedCall(name="write", arguments={"path": "a"}), text="working", name="first"
    )
    assert (first["stopReason"], second["errorMessage"]) == ("toolUse", "503")


@pytest.mark.parametrize(
    "source, said_about_it",
    [
        ('{"steps": [{"tex": "x"}]}', "tex"),
        ('{"steps": [{"delayMs": "x"}]}', r"steps\[0\].delayMs"),
        ('{"order": "random"}', "order"),
        ("{", "script"),
    ],
)
def test_a_script_that_does_not_fit_is_refused_with_its_path(source: str, said_about_it: str) -> None:
    with pytest.raises(InvalidOptions, match=said_about_it):
        load_script(source)
