"""Effects need a durable intent of their own, with its arguments and its context."""

from collections.abc import Callable
from typing import Any

import pytest

from restartpoint.contract import AgentMessage, Model, ModelRequest
from restartpoint.hooks import Hooks
from restartpoint_oracle import (
    EffectLog,
    EffectOutOfOrder,
    EffectStarted,
    Judged,
    JudgedStorage,
    ManualClock,
    RequestDiffers,
    WrongSettlement,
    check_growth,
    check_request_messages,
    check_requests,
    check_sandwich,
    log_hooks,
)
from restartpoint_reference import Namespace, project
from tests.oracle.replayed import open_judged, transaction_of
from tests.reference.walk import Walk
from tests.reference.walks import abort, deferred
from tests.reference.walks.runs import failed_run, plain_run, with_tools

MODEL = Model(provider="acme", model_id="m-1", api="scripted", context_window=8000, max_tokens=100)


def request(messages: list[AgentMessage]) -> ModelRequest:
    return ModelRequest(
        messages=messages, system_prompt=None, tools=(), thinking_level="off", stream_options={}, max_tokens=100
    )


def projected(storage: JudgedStorage) -> ModelRequest:
    leaf: Any = storage.judge.state.value(Namespace.LANE_LEAF, "main")
    return request([dict(message) for message in project(storage.judge.state, leaf)])


async def up_to(walk: Walk, name: str, log: EffectLog) -> JudgedStorage:
    """A judged session right after the first commit of that name."""
    position = walk.names.index(name)
    storage = await open_judged(walk.steps[: position + 1], ManualClock())
    log.follow(storage.judge)
    return storage


async def test_a_request_after_its_intent_with_the_projected_messages_is_in_order() -> None:
    log = EffectLog()
    storage = await up_to(plain_run(), "intend_assistant", log)
    log.provider(MODEL, projected(storage))
    check_sandwich(log)
    check_requests(log)
    check_request_messages(storage.judge, projected(storage))
    assert [type(event) for event in log.events] == [Judged] * 5 + [EffectStarted]


@pytest.mark.parametrize("name", ["accept_run", "start_generation", "settle_tool_calls", "finish_run"])
async def test_a_request_before_its_intent_or_after_its_settlement_is_out_of_order(name: str) -> None:
    log = EffectLog()
    storage = await up_to(plain_run(), name, log)
    log.provider(MODEL, projected(storage))
    with pytest.raises(EffectOutOfOrder, match=f"the last commit was {name}"):
        check_sandwich(log)


async def test_one_intent_allows_one_request() -> None:
    log = EffectLog()
    storage = await up_to(plain_run(), "intend_assistant", log)
    log.provider(MODEL, projected(storage))
    log.provider(MODEL, projected(storage))
    with pytest.raises(EffectOutOfOrder):
        check_sandwich(log)
    log = EffectLog()
    log.follow(storage.judge)
    log.provider(MODEL, projected(storage))
    log.restarted()
    log.provider(MODEL, projected(storage))
    check_sandwich(log)


MISTAKES: dict[str, Callable[[list[AgentMessage]], list[AgentMessage]]] = {
    "a message is missing": lambda messages: messages[:-1],
    "the messages are reversed": lambda messages: messages[::-1],
    "a message has another field": lambda messages: [*messages[:-1], {**messages[-1], "extra": 1}],
    "a number became another kind of number": lambda messages: [{**messages[0], "timestamp": 1.0}, *messages[1:]],
}


@pytest.mark.parametrize("mistake", MISTAKES.values(), ids=MISTAKES)
async def test_a_request_with_other_messages_is_found(
    mistake: Callable[[list[AgentMessage]], list[AgentMessage]],
) -> None:
    log = EffectLog()
    storage = await up_to(plain_run(), "intend_assistant", log)
    wrong = request(mistake(projected(storage).messages))
    log.provider(MODEL, wrong)
    check_sandwich(log)
    with pytest.raises(RequestDiffers):
        check_requests(log)
    with pytest.raises(RequestDiffers):
        check_request_messages(storage.judge, wrong)


async def test_a_tool_starts_under_its_intent_with_the_durable_arguments() -> None:
    log = EffectLog()
    await up_to(plain_run(), "intend_tool", log)
    log.tool("read", "t1", {"path": "/0"})
    check_sandwich(log)


async def test_a_tool_with_other_arguments_is_found() -> None:
    log = EffectLog()
    await up_to(plain_run(), "intend_tool", log)
    log.tool("read", "t1", {"path": "/elsewhere"})
    with pytest.raises(EffectOutOfOrder, match="other arguments"):
        check_sandwich(log)


async def test_a_planned_call_may_not_start_before_it_is_cleared() -> None:
    walk, log = with_tools(), EffectLog()
    storage = await open_judged(walk.steps, ManualClock())
    log.follow(storage.judge)
    log.tool("remove", "t1", {"path": "/1"})
    with pytest.raises(EffectOutOfOrder, match="tool remove started without"):
        check_sandwich(log)


async def test_a_settled_call_may_not_start_again() -> None:
    log = EffectLog()
    await up_to(plain_run(), "complete_batch", log)
    log.tool("read", "t1", {"path": "/0"})
    with pytest.raises(EffectOutOfOrder):
        check_sandwich(log)


async def test_a_timer_waits_only_in_a_retry_wait() -> None:
    log = EffectLog()
    walk = failed_run()
    storage = await up_to(walk, "settle_retryable", log)
    log.timer(50)
    log.timer(10)
    check_sandwich(log)
    following = walk.steps[walk.names.index("settle_retryable") + 1]
    await storage.commit(transaction_of(following.elements))
    log.timer(50)
    with pytest.raises(EffectOutOfOrder, match="timer 50 ms"):
        check_sandwich(log)


async def test_hooks_have_no_intent() -> None:
    log = EffectLog()
    log.hook("before_run")
    check_sandwich(log)


async def test_every_call_of_a_logged_hook_is_in_its_place_among_the_commits() -> None:
    log, hooks = EffectLog(), Hooks(lambda *_: None)
    log_hooks(hooks, log)
    hooks.on("before_run_end", lambda event: None)
    (registered,) = hooks.handlers("before_run_end")
    storage = await up_to(plain_run(), "settle_stop", log)
    registered.handler(None)
    await storage.commit(transaction_of(plain_run().steps[-1].elements))
    found = [event.name for event in log.events if not isinstance(event, WrongSettlement)]
    assert found[-3:] == ["settle_stop", "before_run_end", "finish_run"]


@pytest.mark.parametrize("starts", [True, False])
async def test_a_result_settles_as_run_only_what_started(starts: bool) -> None:
    log, walk = EffectLog(), plain_run()
    storage = await up_to(walk, "intend_tool", log)
    if starts:
        log.tool("read", "t1", {"path": "/0"})
    following = walk.steps[walk.names.index("complete_batch")]
    await storage.commit(transaction_of(following.elements))
    if starts:
        check_sandwich(log)
    else:
        with pytest.raises(EffectOutOfOrder, match=r"settle_tool settles .* never started"):
            check_sandwich(log)


@pytest.mark.parametrize("starts", [True, False])
@pytest.mark.parametrize("walk, intent, settlement", [
    (plain_run, "intend_assistant", "settle_tool_calls"),
    (abort.received, "intend_assistant", "settle_cancelled"),
    (deferred.answered_for_another_handle, "intend_poll", "settle_poll_mismatch"),
])  # fmt: skip
async def test_a_response_settles_only_what_started(
    walk: Callable[[], Walk], intent: str, settlement: str, starts: bool
) -> None:
    log, steps = EffectLog(), walk().steps
    storage = await up_to(walk(), intent, log)
    if starts:
        log.provider(MODEL, projected(storage))
    first = walk().names.index(intent) + 1
    for step in steps[first : walk().names.index(settlement) + 1]:
        await storage.commit(transaction_of(step.elements))
    wrong = [event.reason for event in log.events if isinstance(event, WrongSettlement)]
    assert [reason.split()[0] for reason in wrong if settlement in reason] == ([] if starts else [settlement])


async def test_the_calls_of_an_answer_to_a_poll_have_the_arguments_of_their_step() -> None:
    log = EffectLog()
    storage = await up_to(deferred.answered_with_calls(), "intend_tool", log)
    (arguments,) = storage.judge.state.namespaces[Namespace.OP_TOOL_ARGS].values()
    assert isinstance(arguments.value, dict)
    assert arguments.value
    log.tool("remove", "t1", arguments.value)
    check_sandwich(log)


async def two_requests(change: Callable[[list[AgentMessage]], list[AgentMessage]]) -> EffectLog:
    """A run that asks twice, with a tool between; the second request is changed before it is sent."""
    log, walk = EffectLog(), plain_run()
    storage = await up_to(walk, "intend_assistant", log)
    log.provider(MODEL, projected(storage))
    for step in walk.steps[walk.names.index("intend_assistant") + 1 : -2]:
        await storage.commit(transaction_of(step.elements))
        if step.commit.name == "intend_tool":
            log.tool("read", "t1", {"path": "/0"})
    log.provider(MODEL, request(change(projected(storage).messages)))
    check_sandwich(log)
    return log


async def test_a_request_that_grew_at_the_tail_is_in_order() -> None:
    check_growth(await two_requests(lambda messages: messages))


@pytest.mark.covers("ST-2.5-11")
@pytest.mark.parametrize("mistake", ["an insertion", "a removal", "a change"])
async def test_a_request_that_changed_before_its_tail_is_found(mistake: str) -> None:
    change: Callable[[list[AgentMessage]], list[AgentMessage]] = {
        "an insertion": lambda messages: [messages[0], *messages],
        "a removal": lambda messages: messages[1:],
        "a change": lambda messages: [{**messages[0], "timestamp": 99}, *messages[1:]],
    }[mistake]
    log = await two_requests(change)
    with pytest.raises(RequestDiffers, match="does not begin with the one before it"):
        check_growth(log)
