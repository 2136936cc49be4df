"""Scenarios of the run operation; each function makes one with a new outside world."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from typing import Literal

import anyio

from restartpoint import AgentHarness, HarnessOptions
from restartpoint.contract import (
    LANE_STATE,
    PENDING_ENTRY,
    AgentTool,
    BeforeRunEnd,
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeTool,
    BeforeToolDecision,
    JsonObject,
    LaneState,
    PendingMessage,
    RegisterSet,
    Replay,
    ToolBlock,
    ToolResult,
    Transaction,
    Usage,
    text_block,
    text_of,
    user_message,
    zero_usage,
)
from restartpoint.providers import (
    SCRIPTED_MODEL,
    Script,
    ScriptedCall,
    ScriptedModels,
    ScriptedResponse,
    asks,
    fails,
    says,
)
from restartpoint.providers import Step as Answer
from restartpoint.session import Session, SessionMutator
from restartpoint.tools import tool
from restartpoint_oracle.crash.scenario import (
    Scenario,
    Step,
    appends,
    creates_lane,
    labels_leaf,
    on_session,
    prompts,
    records_usage,
    sets_fact,
    sets_name,
)

__all__ = ["SCENARIOS"]


def _saves(id: str) -> ScriptedCall:
    """A call of the unsafe tool. Its id is given, since one that counts answers would tell of a failed one."""
    return ScriptedCall(name="save", arguments={"path": f"path of {id}"}, id=id)


def _loads(id: str) -> ScriptedCall:
    """A call of the safe tool."""
    return ScriptedCall(name="load", arguments={"path": f"path of {id}"}, id=id)


def _spent(output: int) -> Usage:
    return {**zero_usage(), "output": output, "totalTokens": output}


def _answers(*steps: Answer, **prompted: list[Answer]) -> Callable[[], ScriptedModels]:
    """A vendor that follows these steps, or those of the prompt that was asked."""
    return lambda: ScriptedModels(Script(steps=[*steps], prompts=prompted))


def _save(replay: Replay = "never", execution_mode: Literal["parallel", "sequential"] = "parallel") -> AgentTool:
    @tool(name="save", replay=replay, execution_mode=execution_mode)
    def save(path: str) -> str:
        """Saves a file."""
        return f"saved {path}"

    return save


def _load(replay: Replay = "safe") -> AgentTool:
    @tool(name="load", replay=replay)
    async def load(path: str) -> str:
        """Loads a file."""
        await anyio.lowlevel.checkpoint()
        return f"loaded {path}"

    return load


def _submit() -> AgentTool:
    @tool(name="save")
    def submit(path: str) -> ToolResult:
        """Hands in the result and ends the run."""
        return ToolResult(content=[text_block(f"submitted {path}")], terminate=True, usage=_spent(3))

    return submit


def _both() -> Sequence[AgentTool]:
    return (_save(), _load())


def _one_by_one(options: HarnessOptions) -> HarnessOptions:
    return replace(options, tool_execution="sequential")


def plain() -> Scenario:
    """One prompt, one answer."""
    return Scenario(name="plain", script=[prompts("go")], models=_answers(says("hello")))


def safe_tool() -> Scenario:
    """A call that may run again."""
    return Scenario(
        name="safe tool",
        script=[prompts("go")],
        models=_answers(asks(_loads("l1")), says("done")),
        tools=lambda: (_load(),),
    )


def unsafe_tool() -> Scenario:
    """A call that must not run again."""
    return Scenario(
        name="unsafe tool",
        script=[prompts("go")],
        models=_answers(asks(_saves("s1")), says("done")),
        tools=lambda: (_save(),),
    )


def parallel_tools() -> Scenario:
    """Three calls side by side, two of them unsafe."""
    return Scenario(
        name="parallel tools",
        script=[prompts("go")],
        models=_answers(asks(_saves("s1"), _loads("l1"), _saves("s2")), says("done")),
        tools=_both,
    )


def sequential_tools() -> Scenario:
    """Calls one by one, by the option."""
    return Scenario(
        name="sequential tools",
        script=[prompts("go")],
        models=_answers(asks(_loads("l1"), _saves("s1"), _loads("l2")), says("done")),
        tools=_both,
        options=_one_by_one,
    )


def sequential_by_a_tool() -> Scenario:
    """Calls one by one, because one of the tools says so."""
    return Scenario(
        name="sequential by a tool",
        script=[prompts("go")],
        models=_answers(asks(_saves("s1"), _loads("l1")), says("done")),
        tools=lambda: (_save(execution_mode="sequential"), _load()),
    )


def terminating_batch() -> Scenario:
    """A tool that ends the run and reports what it spent; interrupted, it leaves the last word to the model."""
    return Scenario(
        name="terminating batch",
        script=[prompts("go"), prompts("more")],
        models=_answers(asks(_saves("s1")), says("so it was interrupted"), more=[says("more")]),
        tools=lambda: (_submit(),),
    )


def _blocking(harness: AgentHarness) -> object:
    def decide(event: BeforeTool) -> BeforeToolDecision | None:
        blocked = event.tool_name == "load"
        return BeforeToolDecision(block=ToolBlock(reason="not today")) if blocked else None

    return harness.hooks.on("before_tool", decide)


def refused_calls() -> Scenario:
    """Calls that are blocked, unknown or refused for their arguments, and one that runs."""
    unknown, misfit = ScriptedCall(name="gone", id="g1"), ScriptedCall(name="save", arguments={"path": 5}, id="s2")
    return Scenario(
        name="refused calls",
        script=[prompts("go")],
        models=_answers(asks(_loads("l1"), unknown, misfit, _saves("s1")), says("done")),
        tools=_both,
        prepare=_blocking,
    )


def truncated_calls() -> Scenario:
    """Calls of a response that was cut at its output limit; none runs."""
    cut = ScriptedResponse(calls=[_saves("s1"), _loads("l1")], stop_reason="length", usage=_spent(8192))
    return Scenario(name="truncated calls", script=[prompts("go")], models=_answers(cut, says("done")), tools=_both)


def provider_error() -> Scenario:
    """A run that fails, and another one that does not."""
    return Scenario(
        name="provider error",
        script=[prompts("go"), prompts("again")],
        models=_answers(fails("invalid request"), again=[says("hello")]),
    )


def deferred() -> Scenario:
    """A run that waits for a deferred response, open at the end; another lane goes on."""
    handle: JsonObject = {
        "id": "d-1",
        "provider": SCRIPTED_MODEL.provider,
        "modelId": SCRIPTED_MODEL.model_id,
        "api": SCRIPTED_MODEL.api,
    }
    return Scenario(
        name="deferred",
        script=[creates_lane("side"), prompts("go"), prompts("meanwhile", lane="side")],
        models=_answers(ScriptedResponse(deferred=handle), meanwhile=[says("hello")]),
    )


def _asking_once_more(harness: AgentHarness) -> object:
    def ask(event: BeforeRunEnd) -> BeforeRunEndResult | None:
        texts = [text_of(message) for message in event.messages]
        return None if "and then?" in texts else BeforeRunEndResult(follow_up="and then?")

    return harness.hooks.on("before_run_end", ask)


def follow_up() -> Scenario:
    """A before_run_end hook that keeps the run going once."""
    return Scenario(
        name="follow-up at the end",
        script=[prompts("go")],
        models=_answers(says("hello"), says("bye")),
        prepare=_asking_once_more,
    )


def _remembering(harness: AgentHarness) -> object:
    def add(_: object) -> BeforeRunResult:
        return BeforeRunResult(messages=[user_message("remember", 5)], system_prompt="be brief", resume_data={"n": 1})

    return harness.hooks.on("before_run", add, id="memory")


def injected_messages() -> Scenario:
    """A before_run hook that adds a message and a system prompt."""
    return Scenario(
        name="injected messages",
        script=[prompts("go")],
        models=_answers(says("hello")),
        prepare=_remembering,
    )


def _queues_next_run(text: str) -> Step:
    """Queues input for main's next run, as T80 writes it; the lane's own call is not built yet."""

    async def queue(session: Session) -> None:
        queued_id = session.ids.next()

        async def job(mutator: SessionMutator) -> None:
            state = await mutator.get_register(LANE_STATE, "main")
            assert state is not None
            queued = LaneState(
                current_operation_id=state.value.current_operation_id,
                pending_next_run=[*state.value.pending_next_run, queued_id],
            )
            message = PendingMessage(payload=user_message(text, 7))
            await mutator.commit(
                Transaction((RegisterSet(PENDING_ENTRY, queued_id, message), RegisterSet(LANE_STATE, "main", queued)))
            )

        await session.mutate("main", job)

    return on_session(f"next_run({text!r}) on main", queue)


def next_run_captured() -> Scenario:
    """Queued input that a run captures, and some that waits at the end."""
    return Scenario(
        name="next run captured",
        script=[_queues_next_run("first"), _queues_next_run("second"), prompts("go"), _queues_next_run("third")],
        models=_answers(says("hello")),
    )


def two_lanes() -> Scenario:
    """Two lanes that run side by side over shared history."""
    return Scenario(
        name="two lanes",
        script=[prompts("go"), creates_lane("side"), (prompts("left"), prompts("right", lane="side"))],
        models=_answers(says("hello"), left=[asks(_loads("l1")), says("l")], right=[asks(_saves("s1")), says("r")]),
        tools=_both,
    )


def writes_between_runs() -> Scenario:
    """Messages, custom entries and labels between runs."""
    return Scenario(
        name="writes between runs",
        script=[
            prompts("go"),
            appends(user_message("a note", 9)),
            on_session("append_custom_entry()", lambda session: session.append_custom_entry("note", {"n": 1})),
            labels_leaf("here"),
            prompts("more"),
        ],
        models=_answers(says("hello"), more=[says("bye")]),
    )


def facts_and_usage() -> Scenario:
    """Facts and ledger rows beside a run."""
    return Scenario(
        name="facts and usage",
        script=[
            sets_name("swept"),
            sets_fact("colour", None),
            (prompts("go"), sets_fact("colour", {"is": "red"}), records_usage(_spent(7))),
            records_usage(_spent(5)),
        ],
        models=_answers(asks(_loads("l1")), says("hello")),
        tools=_both,
    )


def many_turns() -> Scenario:
    """Several turns with calls, and several runs in one conversation."""
    return Scenario(
        name="many turns",
        script=[prompts("go"), prompts("more"), prompts("last")],
        models=_answers(
            asks(_loads("l1")),
            asks(_saves("s1"), _loads("l2")),
            says("done"),
            more=[asks(_saves("s2")), says("again")],
            last=[says("bye")],
        ),
        tools=_both,
    )


SCENARIOS: Mapping[str, Callable[[], Scenario]] = MappingProxyType({
    make.__name__: make
    for make in (
        plain, safe_tool, unsafe_tool, parallel_tools, sequential_tools, sequential_by_a_tool, terminating_batch,
        refused_calls, truncated_calls, provider_error, deferred, follow_up, injected_messages, next_run_captured,
        two_lanes, writes_between_runs, facts_and_usage, many_turns,
    )
})  # fmt: skip
"""What makes each scenario, by its name."""
