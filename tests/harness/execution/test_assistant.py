"""One assistant request: its order, what it survives, and what never travels through a provider."""

import copy
from typing import Any

import anyio
import anyio.lowlevel
import pytest

from restartpoint.contract import (
    UNSET,
    AgentMessage,
    AssistantEvent,
    JsonValue,
    Model,
    ModelRequest,
    RequestCallbacks,
    text_block,
    zero_usage,
)
from restartpoint.errors import HarnessClosed, HarnessFault
from restartpoint.execution import (
    AbortMarker,
    AbortRequested,
    OperationEnded,
    Request,
    ResponseMetadata,
    stream_assistant,
)
from restartpoint.providers import SCRIPTED_MODEL, ScriptedModels, ScriptedResponse, says
from restartpoint.seams import Signal
from tests.harness.execution.stage import MODEL, USAGE, Gate, Log, Observer, PlainTool, answer, configured, prompt


async def chatty(request: ModelRequest, callbacks: RequestCallbacks, signal: Signal) -> AgentMessage:
    """A provider that calls everything it may call."""
    await callbacks.before_payload({"messages": len(request.messages)})
    callbacks.on_response(200, {"x-id": "7"})
    await callbacks.emit(AssistantEvent(kind="start", message=answer(content=[], stopReason="pending")))
    await callbacks.emit(AssistantEvent(kind="delta", message=answer(stopReason="pending")))
    return answer()


@pytest.mark.covers("RT-5.7-02", "RT-5.7-06")
async def test_the_block_does_its_steps_in_the_specified_order() -> None:
    log: Log = []

    async def transform(messages: list[AgentMessage], _signal: Signal) -> list[AgentMessage]:
        log.append("transform_context")
        return messages

    def convert(messages: list[AgentMessage]) -> list[AgentMessage]:
        log.append("to_provider_messages")
        return messages

    async def request(given: ModelRequest, callbacks: RequestCallbacks, signal: Signal) -> AgentMessage:
        log.append("request")
        return await chatty(given, callbacks, signal)

    async def before_payload(payload: JsonValue, model: Model) -> JsonValue:
        log.append(f"before_payload {payload} {model.model_id}")
        return payload

    async def after_response(message: AgentMessage, metadata: ResponseMetadata) -> AgentMessage:
        log.append(f"after_response {metadata.status} {dict(metadata.headers)}")
        return {**message, "content": [text_block("changed")]}

    observer = Observer(log)
    final = await stream_assistant(
        prompt(),
        configured(
            log,
            request=request,
            observer=observer,
            transform_context=transform,
            to_provider_messages=convert,
            before_payload=before_payload,
            after_response=after_response,
        ),
    )

    assert log == [
        "transform_context",
        "to_provider_messages",
        "request",
        "before_payload {'messages': 1} m-1",
        "start",
        "update",
        "after_response 200 {'x-id': '7'}",
        "end",
    ]
    assert final == answer(content=[text_block("changed")]) == observer.last


async def test_the_request_carries_the_options_and_the_declared_tools() -> None:
    received: list[tuple[ModelRequest, Signal]] = []
    signal = Signal()

    async def request(given: ModelRequest, callbacks: RequestCallbacks, own: Signal) -> AgentMessage:
        received.append((given, own))
        return answer()

    config = configured(
        [], request=request, signal=signal, tools=(PlainTool(),), stream_options={"temperature": 1}, max_tokens=5
    )
    await stream_assistant(prompt(), config)

    ((given, own),) = received
    assert own is signal
    assert given.messages == prompt()
    assert [(tool.name, tool.description, tool.parameters) for tool in given.tools] == [
        ("echo", "for tests", {"type": "object"})
    ]
    assert (given.system_prompt, given.thinking_level, given.max_tokens) == ("be brief", "off", 5)
    assert given.stream_options == {"temperature": 1}


@pytest.mark.covers("RT-5.7-03")
async def test_the_given_messages_are_never_changed() -> None:
    given = prompt()
    before = copy.deepcopy(given)

    async def transform(messages: list[AgentMessage], _signal: Signal) -> list[AgentMessage]:
        return [*messages, {"role": "user", "content": "more", "timestamp": 2}]

    seen: list[int] = []

    async def request(received: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        seen.append(len(received.messages))
        return answer()

    await stream_assistant(given, configured([], request=request, transform_context=transform))

    assert (given, seen) == (before, [2])


async def test_messages_may_be_converted_by_an_async_function() -> None:
    seen: list[AgentMessage] = []

    async def convert(messages: list[AgentMessage]) -> list[AgentMessage]:
        return [{"role": "user", "content": "converted", "timestamp": 0}]

    async def request(received: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        seen.extend(received.messages)
        return answer()

    await stream_assistant(prompt(), configured([], request=request, to_provider_messages=convert))

    assert seen == [{"role": "user", "content": "converted", "timestamp": 0}]


@pytest.mark.covers("RT-5.7-04")
async def test_a_response_without_a_start_is_shown_started_and_ended_with_its_final_value() -> None:
    log: Log = []
    observer = Observer(log)

    async def after_response(message: AgentMessage, _metadata: ResponseMetadata) -> AgentMessage:
        log.append("after_response")
        return {**message, "timestamp": 3}

    await stream_assistant(prompt(), configured(log, observer=observer, after_response=after_response))

    assert log == ["after_response", "start", "end"]
    assert observer.shown == [answer(timestamp=3)] == [observer.last]


async def test_a_stream_that_begins_with_a_delta_is_shown_started_once() -> None:
    log: Log = []

    async def request(_request: ModelRequest, callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        for kind in ("delta", "start", "delta"):
            await callbacks.emit(AssistantEvent(kind=kind, message=answer(stopReason="pending")))
        return answer()

    await stream_assistant(prompt(), configured(log, request=request))

    assert log == ["start", "update", "update", "end"]


async def test_what_a_provider_calls_after_the_settlement_is_ignored() -> None:
    log: Log = []
    kept: list[RequestCallbacks] = []

    async def request(given: ModelRequest, callbacks: RequestCallbacks, signal: Signal) -> AgentMessage:
        kept.append(callbacks)
        return await chatty(given, callbacks, signal)

    async def before_payload(payload: JsonValue, _model: Model) -> JsonValue:
        log.append(f"hook {payload}")
        return "replaced"

    observer = Observer(log)
    config = configured(log, request=request, observer=observer, before_payload=before_payload)
    await stream_assistant(prompt(), config)
    settled = list(log)
    await kept[0].emit(AssistantEvent(kind="delta", message=answer(stopReason="pending")))

    assert await kept[0].before_payload("late") == "late"
    assert log == settled == ["hook {'messages': 1}", "start", "update", "end"]


async def test_headers_that_come_after_the_settlement_are_ignored() -> None:
    kept: list[RequestCallbacks] = []
    seen: list[int | None] = []

    async def request(_request: ModelRequest, callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        kept.append(callbacks)
        callbacks.on_response(200, {})
        return answer()

    async def after_response(message: AgentMessage, metadata: ResponseMetadata) -> AgentMessage:
        kept[0].on_response(500, {})
        seen.append(metadata.status)
        return message

    await stream_assistant(prompt(), configured([], request=request, after_response=after_response))

    assert seen == [200]


# --- abort and close --------------------------------------------------------------------------------------------


@pytest.mark.covers("RT-5.7-05")
async def test_an_abort_at_after_response_waits_for_the_marker_and_keeps_the_raw_message() -> None:
    log: Log = []
    marker = AbortMarker()

    async def after_response(_message: AgentMessage, _metadata: ResponseMetadata) -> AgentMessage:
        log.append("parked")
        raise AbortRequested(marker)

    finals: list[AgentMessage] = []

    async def run() -> None:
        finals.append(await stream_assistant(prompt(), configured(log, after_response=after_response)))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert log == ["parked"]
        log.append("durable")
        marker.resolve()

    assert log == ["parked", "durable", "start", "end"]
    assert finals == [answer()]


async def test_an_abort_at_before_payload_never_reaches_the_provider() -> None:
    marker = AbortMarker()
    log: Log = []

    async def before_payload(_payload: JsonValue, _model: Model) -> JsonValue:
        raise AbortRequested(marker)

    async def request(_request: ModelRequest, callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        sent = await callbacks.before_payload("the payload")
        log.append(f"sent {sent}")
        return answer(stopReason="aborted")

    finals: list[AgentMessage] = []

    async def run() -> None:
        config = configured([], request=request, before_payload=before_payload)
        finals.append(await stream_assistant(prompt(), config))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await anyio.wait_all_tasks_blocked()
        assert log == []
        marker.resolve()

    assert log == ["sent the payload"]
    assert finals == [answer(stopReason="aborted")]


@pytest.mark.parametrize("swallowed", [True, False])
async def test_a_fault_at_before_payload_is_raised_even_when_the_provider_swallows_it(swallowed: bool) -> None:
    async def before_payload(_payload: JsonValue, _model: Model) -> JsonValue:
        raise HarnessFault("a commit failed")

    async def request(_request: ModelRequest, callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        try:
            await callbacks.before_payload("x")
        except HarnessFault:
            if not swallowed:
                raise RuntimeError("the provider's own words") from None
        return answer()

    with pytest.raises(HarnessFault):
        await stream_assistant(prompt(), configured([], request=request, before_payload=before_payload))


async def test_a_failed_abort_mutation_at_before_payload_is_raised() -> None:
    marker = AbortMarker()
    marker.reject(HarnessFault("a commit failed"))

    async def before_payload(_payload: JsonValue, _model: Model) -> JsonValue:
        raise AbortRequested(marker)

    with pytest.raises(HarnessFault):
        await stream_assistant(prompt(), configured([], request=chatty, before_payload=before_payload))


async def test_before_payload_replaces_the_payload_or_keeps_it() -> None:
    sent: list[JsonValue] = []

    async def request(_request: ModelRequest, callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        sent.append(await callbacks.before_payload(1))
        sent.append(await callbacks.before_payload(2))
        return answer()

    async def before_payload(payload: JsonValue, _model: Model) -> Any:
        return UNSET if payload == 1 else None

    await stream_assistant(prompt(), configured([], request=request, before_payload=before_payload))

    assert sent == [1, None]


@pytest.mark.parametrize("error", [OperationEnded(), HarnessClosed(), HarnessFault()])
async def test_a_gate_that_refuses_the_request_ends_the_block_without_a_lifecycle(error: Exception) -> None:
    log: Log = []
    gate = Gate(log)
    gate.refusal = error

    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        gate.assert_open()
        return answer()

    with pytest.raises(type(error)):
        await stream_assistant(prompt(), configured(log, request=request))
    assert log == ["gate"]


async def test_a_request_that_an_abort_preceded_is_never_made() -> None:
    log: Log = []
    gate = Gate(log)
    gate.begin_abort()

    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        gate.assert_open()
        log.append("models")
        return answer()

    with pytest.raises(AbortRequested) as refused:
        await stream_assistant(prompt(), configured(log, request=request))
    assert log == ["gate"]
    assert refused.value.cancellation is gate.marker


def admitted(models: ScriptedModels, gate: Gate) -> Request:
    """The smallest adapter: resolve, assert, await, with nothing between the last two."""

    async def request(given: ModelRequest, callbacks: RequestCallbacks, signal: Signal) -> AgentMessage:
        model = models.resolve(SCRIPTED_MODEL.identity)
        assert model is not None
        gate.assert_open()
        return await models.request(model, given, callbacks, signal)

    return request


async def test_no_other_task_runs_between_the_gate_and_the_provider() -> None:
    gate = Gate()
    models = ScriptedModels([says("x")], record=lambda kind, _facts: gate.log.append(kind))

    async def intruder() -> None:
        for _ in range(20):
            gate.log.append("other")
            await anyio.lowlevel.checkpoint()

    async def convert(messages: list[AgentMessage]) -> list[AgentMessage]:
        await anyio.lowlevel.checkpoint()
        return messages

    async with anyio.create_task_group() as group:
        group.start_soon(intruder)
        await anyio.lowlevel.checkpoint()
        config = configured([], request=admitted(models, gate), signal=gate.signal, to_provider_messages=convert)
        await stream_assistant(prompt(), config)

    assert gate.log[gate.log.index("gate") + 1] == "assistant_request"


async def test_a_request_that_began_before_the_abort_owns_the_signal_and_settles_as_aborted() -> None:
    gate = Gate()
    models = ScriptedModels([ScriptedResponse(name="slow", chunks=["a", "b"], stall="stream")])
    finals: list[AgentMessage] = []

    async def run() -> None:
        config = configured([], request=admitted(models, gate), signal=gate.signal)
        finals.append(await stream_assistant(prompt(), config))

    async with anyio.create_task_group() as group:
        group.start_soon(run)
        await models.reached("slow")
        gate.begin_abort()
        await anyio.wait_all_tasks_blocked()
        assert finals == []
        gate.signal.abort("asked")

    assert models.requests[0].signal is gate.signal
    assert [(final["stopReason"], final["content"]) for final in finals] == [("aborted", [text_block("a")])]


async def test_cancellation_from_outside_passes_through_the_block() -> None:
    log: Log = []

    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        await anyio.sleep_forever()
        return answer()

    async with anyio.create_task_group() as group:
        group.start_soon(stream_assistant, prompt(), configured(log, request=request))
        await anyio.wait_all_tasks_blocked()
        group.cancel_scope.cancel()

    assert log == []


# --- failures become responses ----------------------------------------------------------------------------------


def raising(error: Exception) -> Any:
    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        raise error

    return request


async def test_what_a_provider_raises_is_an_error_response_of_the_captured_model() -> None:
    final = await stream_assistant(prompt(), configured([], request=raising(LookupError("model gone"))))

    assert final == {
        "role": "assistant",
        "content": [],
        "api": "acme-api",
        "provider": "acme",
        "model": "m-1",
        "usage": zero_usage(),
        "stopReason": "error",
        "errorMessage": "LookupError: model gone",
        "timestamp": 99,
    }


async def test_an_error_text_is_made_safe_to_record() -> None:
    final = await stream_assistant(prompt(), configured([], request=raising(ValueError("bad \ud800 text"))))

    assert final["errorMessage"] == "ValueError: bad ? text"


async def test_an_error_that_cannot_even_say_what_it_is_still_becomes_a_response() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise RuntimeError

    final = await stream_assistant(prompt(), configured([], request=raising(Mute())))

    assert final["errorMessage"] == "Mute"


async def test_an_error_after_the_signal_is_an_aborted_response() -> None:
    signal = Signal()
    signal.abort("the user left")

    final = await stream_assistant(prompt(), configured([], request=raising(OSError("cut")), signal=signal))

    assert final["stopReason"] == "aborted"


async def test_a_conversion_that_fails_is_no_response_since_it_is_computation_of_the_application() -> None:
    def convert(_messages: list[AgentMessage]) -> list[AgentMessage]:
        raise TypeError("no such role")

    with pytest.raises(TypeError, match="no such role"):
        await stream_assistant(prompt(), configured([], to_provider_messages=convert))


async def test_a_failing_observer_is_a_defect_and_not_a_failed_response() -> None:
    class Broken(Observer):
        def start(self, message: AgentMessage) -> None:
            raise KeyError("observer")

    with pytest.raises(KeyError):
        await stream_assistant(prompt(), configured([], request=chatty, observer=Broken([])))


MALFORMED: dict[str, Any] = {
    "nothing": None,
    "a list": [],
    "the wrong role": answer(role="user"),
    "no stop reason": {key: value for key, value in answer().items() if key != "stopReason"},
    "a pending response": answer(stopReason="pending"),
    "an unknown stop reason": answer(stopReason="tired"),
    "a stop reason that is no text": answer(stopReason=["stop"]),
    "content that is text": answer(content="hi"),
    "a block that is text": answer(content=["hi"]),
    "a block without a type": answer(content=[{"text": "hi"}]),
    "a call without an id": answer(content=[{"type": "toolCall", "name": "a", "arguments": {}}]),
    "a call with an empty id": answer(content=[{"type": "toolCall", "id": "", "name": "a", "arguments": {}}]),
    "a call without a name": answer(content=[{"type": "toolCall", "id": "1", "arguments": {}}]),
    "arguments that are text": answer(content=[{"type": "toolCall", "id": "1", "name": "a", "arguments": "{}"}]),
    "two calls of one id": answer(content=[{"type": "toolCall", "id": "1", "name": "a", "arguments": {}}] * 2),
    "a number that JSON lacks": answer(content=[{"type": "text", "text": "x", "score": float("nan")}]),
    "a lone surrogate": answer(content=[text_block("\ud800")]),
    "an object of Python": answer(content=[{"type": "text", "text": object()}]),
}


@pytest.mark.parametrize("kind", MALFORMED)
async def test_a_malformed_response_is_an_error_that_keeps_the_reported_usage(kind: str) -> None:
    log: Log = []
    returned = MALFORMED[kind]

    async def request(_request: ModelRequest, _callbacks: RequestCallbacks, _signal: Signal) -> AgentMessage:
        return returned  # type: ignore[no-any-return]

    final = await stream_assistant(prompt(), configured(log, request=request))

    assert (final["stopReason"], final["content"], final["provider"]) == ("error", [], MODEL.provider)
    assert str(final["errorMessage"]).startswith("The provider's response cannot be used: ")
    assert final["usage"] == (USAGE if isinstance(returned, dict) else zero_usage())
    assert log == ["start", "end"]


@pytest.mark.parametrize("usage", ["many", [1], {"input": float("inf")}])
async def test_usage_that_cannot_be_recorded_counts_as_zero(usage: Any) -> None:
    final = await stream_assistant(prompt(), configured([], returns=answer(usage=usage)))

    assert (final["stopReason"], final["usage"]) == ("error", zero_usage())


async def test_fields_that_only_the_provider_knows_survive() -> None:
    odd = answer(responseId="r-9", content=[{"type": "thinking", "thinking": "hm", "signature": "s"}], usage={})

    assert await stream_assistant(prompt(), configured([], returns=odd)) == odd


# --- the abort marker -------------------------------------------------------------------------------------------


async def test_an_abort_marker_may_be_awaited_often_and_by_many() -> None:
    marker = AbortMarker()
    done: list[int] = []

    async def wait(number: int) -> None:
        await marker
        await marker
        done.append(number)

    async with anyio.create_task_group() as group:
        for number in range(3):
            group.start_soon(wait, number)
        await anyio.wait_all_tasks_blocked()
        assert (done, marker.settled) == ([], False)
        marker.resolve()
        marker.reject(HarnessFault("too late"))

    assert sorted(done) == [0, 1, 2]


async def test_a_rejected_marker_raises_for_every_waiter() -> None:
    marker = AbortMarker()
    marker.reject(HarnessFault("the commit failed"))

    for _ in range(2):
        with pytest.raises(HarnessFault, match="the commit failed"):
            await marker
