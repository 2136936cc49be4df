"""The runs that every matrix of this folder goes through, as values: what is scripted, and what has to happen."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from restartpoint.contract import (
    BeforeRunEndResult,
    BeforeRunResult,
    BeforeToolDecision,
    JsonObject,
    ToolBlock,
    user_message,
    zero_usage,
)
from restartpoint.hooks import Hooks
from restartpoint.providers import SCRIPTED_MODEL, ScriptedCall, ScriptedResponse, Step, asks, fails, says
from tests.harness.runtime.doubles import Log, Tool

__all__ = ["HANDLE", "SCENARIOS", "Scenario", "saved_by", "spent"]


def _no_tools(log: Log) -> list[Tool]:
    return []


def _no_hooks(hooks: Hooks, log: Log) -> None:
    pass


@dataclass(frozen=True, kw_only=True)
class Scenario:
    """``lines`` are the commits by name and the effects, in order; ``actions`` the parked steps in manual drive."""

    name: str
    steps: list[Step]
    tools: Callable[[Log], list[Tool]] = _no_tools
    hooks: Callable[[Hooks, Log], None] = _no_hooks
    options: Mapping[str, Any] = field(default_factory=dict)
    outcome: str
    lines: list[str]
    actions: list[str]
    messages: list[str]
    overlapping: bool = False
    """Tools overlap, so that the order of their starts among the intents is the event loop's."""


def spent(output: int) -> JsonObject:
    """Usage that reports so many output tokens."""
    return {**zero_usage(), "output": output, "totalTokens": output}


def saved_by(**facts: Any) -> Callable[[Log], list[Tool]]:
    """One tool named save, made so."""
    return lambda log: [Tool(name="save", log=log, **facts)]


HANDLE: JsonObject = {
    "id": "d-1",
    "provider": SCRIPTED_MODEL.provider,
    "modelId": SCRIPTED_MODEL.model_id,
    "api": SCRIPTED_MODEL.api,
}

_SAVE = ScriptedCall(name="save", arguments={"path": "a"})
_LOAD = ScriptedCall(name="load")
_ASKED = ["accept_run", "start_generation", "intend_assistant", "request 0"]
_ANSWERED = ["start_generation", "intend_assistant", "request 1", "settle_stop", "finish_run"]
_ASK = ["commit_assistant_ready", "commit_assistant_intent", "assistant_request", "commit_assistant_settlement"]
_CALL = ["commit_tool_intent", "tool_execute", "commit_tool_result"]
_FINISH = ["commit_run_finish"]


def _two(**facts: Any) -> Callable[[Log], list[Tool]]:
    def make(log: Log) -> list[Tool]:
        save, load = Tool(name="save", log=log, hold=True, **facts), Tool(name="load", log=log)

        async def work(arguments: JsonObject, context: Any) -> Any:
            save.release()
            return await Tool(name="done", log=Log()).execute(arguments, context)

        load.work = work
        return [save, load]

    return make


def _one_by_one(log: Log) -> list[Tool]:
    return [Tool(name="save", log=log, execution_mode="sequential"), Tool(name="load", log=log)]


def _both(log: Log) -> list[Tool]:
    return [Tool(name="save", log=log), Tool(name="load", log=log)]


def _deciding(decision: BeforeToolDecision | Exception) -> Callable[[Hooks, Log], None]:
    def prepare(hooks: Hooks, log: Log) -> None:
        def handler(event: object) -> BeforeToolDecision:
            log.note("hook before_tool")
            if isinstance(decision, Exception):
                raise decision
            return decision

        hooks.on("before_tool", handler)

    return prepare


def _before_run(hooks: Hooks, log: Log) -> None:
    def handler(event: object) -> BeforeRunResult:
        log.note("hook before_run")
        message = user_message("remember", 5)
        return BeforeRunResult(messages=[message], system_prompt="be brief", resume_data={"n": 1})

    hooks.on("before_run", handler, id="memory")


def _follow_up_once(hooks: Hooks, log: Log) -> None:
    asked: list[int] = []

    def handler(event: object) -> BeforeRunEndResult | None:
        log.note("hook before_run_end")
        asked.append(1)
        return BeforeRunEndResult(follow_up="and then?") if len(asked) == 1 else None

    hooks.on("before_run_end", handler)


def _refused(name: str, text: str, *, hooks: Callable[[Hooks, Log], None] = _no_hooks, **facts: Any) -> Scenario:
    """One call that never runs and is answered with an error."""
    asked = ["hook before_tool"] if hooks is not _no_hooks else []
    parked = ["before_tool"] if hooks is not _no_hooks else []
    return Scenario(
        name=name,
        steps=[asks(_SAVE), says("done")],
        tools=saved_by(**facts) if facts.pop("registered", True) else _no_tools,
        hooks=hooks,
        outcome="RunCompleted",
        lines=[*_ASKED, "settle_tool_calls", *asked, "complete_batch", *_ANSWERED],
        actions=[*_ASK, *parked, "commit_tool_result", *_ASK, *_FINISH],
        messages=["user: go", "assistant: save", f"toolResult: {text}", "assistant: done"],
    )


def _ended(
    name: str, step: ScriptedResponse, settlement: str, *, outcome: str = "RunFailed", text: str = ""
) -> Scenario:
    """One response that ends the run or suspends it."""
    ends = {"RunFailed": ["finish_failed"], "RunCompleted": ["finish_run"], "RunDeferred": []}[outcome]
    return Scenario(
        name=name,
        steps=[step],
        tools=saved_by(),
        outcome=outcome,
        lines=[*_ASKED, settlement, *ends],
        actions=[*_ASK, *(_FINISH if ends else [])],
        messages=["user: go", f"assistant: {text}"],
    )


_ALL = [
    _ended("text", says("hello"), "settle_stop", outcome="RunCompleted", text="hello"),
    _ended(
        "a call is asked for but none is there", ScriptedResponse(text="hm", stop_reason="toolUse"), "settle_stop",
        outcome="RunCompleted", text="hm",
    ),
    _ended(
        "genuine length", ScriptedResponse(text="long", stop_reason="length", usage=spent(8192)), "settle_stop",
        outcome="RunCompleted", text="long",
    ),
    _ended("provider error", fails("invalid request"), "settle_failure"),
    _ended("retryable error at the cap", fails("overloaded"), "settle_failure"),
    _ended("provider raises", ScriptedResponse(raises="boom"), "settle_failure"),
    _ended("overflow by error", fails("prompt is too long"), "settle_unpreparable_overflow"),
    _ended(
        "overflow by length", ScriptedResponse(text="cut", stop_reason="length", usage=spent(5)),
        "settle_unpreparable_overflow", text="cut",
    ),
    _ended("deferred", ScriptedResponse(deferred=HANDLE), "settle_deferred", outcome="RunDeferred"),
    _ended("deferred without an id", ScriptedResponse(deferred={"id": ""}), "settle_invalid_deferred"),
    Scenario(
        name="one tool",
        steps=[asks(_SAVE), says("done")],
        tools=saved_by(),
        outcome="RunCompleted",
        lines=[*_ASKED, "settle_tool_calls", "intend_tool", "tool save", "complete_batch", *_ANSWERED],
        actions=[*_ASK, *_CALL, *_ASK, *_FINISH],
        messages=["user: go", "assistant: save", "toolResult: save done", "assistant: done"],
    ),
    Scenario(
        name="a stop with calls runs them",
        steps=[ScriptedResponse(calls=[_SAVE], stop_reason="stop"), says("done")],
        tools=saved_by(),
        outcome="RunCompleted",
        lines=[*_ASKED, "settle_tool_calls", "intend_tool", "tool save", "complete_batch", *_ANSWERED],
        actions=[*_ASK, *_CALL, *_ASK, *_FINISH],
        messages=["user: go", "assistant: save", "toolResult: save done", "assistant: done"],
    ),
    Scenario(
        name="two tools side by side",
        steps=[asks(_SAVE, _LOAD), says("done")],
        tools=_two(),
        outcome="RunCompleted",
        lines=[
            *_ASKED, "settle_tool_calls", "intend_tool", "intend_tool", "tool save", "tool load", "settle_tool",
            "complete_batch", *_ANSWERED,
        ],
        actions=[
            *_ASK, "commit_tool_intent", "tool_execute", "commit_tool_intent", "tool_execute", "commit_tool_result",
            "commit_tool_result", *_ASK, *_FINISH,
        ],
        messages=[
            "user: go", "assistant: save load", "toolResult: save done", "toolResult: done done", "assistant: done",
        ],
        overlapping=True,
    ),
    *(
        Scenario(
            name=name,
            steps=[asks(_SAVE, _LOAD), says("done")],
            tools=tools,
            options=options,
            outcome="RunCompleted",
            lines=[
                *_ASKED, "settle_tool_calls", "intend_tool", "tool save", "settle_tool", "intend_tool", "tool load",
                "complete_batch", *_ANSWERED,
            ],
            actions=[*_ASK, *_CALL, *_CALL, *_ASK, *_FINISH],
            messages=[
                "user: go", "assistant: save load", "toolResult: save done", "toolResult: load done", "assistant: done",
            ],
        )
        for name, tools, options in (
            ("sequential by the option", _both, {"tool_execution": "sequential"}),
            ("sequential by one tool", _one_by_one, {}),
        )
    ),
    _refused("unknown tool", "There is no tool named 'save'.", registered=False),
    _refused("refused arguments", "The arguments of 'save' were refused: path is not allowed", refuses="path"),
    _refused(
        "broken preparation of arguments", "The arguments of 'save' were refused: RuntimeError: boom", breaks="boom",
    ),
    _refused(
        "blocked", "This tool call was blocked: not today",
        hooks=_deciding(BeforeToolDecision(block=ToolBlock(reason="not today"))),
    ),
    _refused(
        "a before_tool handler throws", "This tool call was blocked: a before_tool hook failed",
        hooks=_deciding(RuntimeError("boom")),
    ),
    _refused(
        "replaced arguments are refused", "The arguments of 'save' were refused: secret is not allowed",
        hooks=_deciding(BeforeToolDecision(args={"path": "secret"})), refuses="secret",
    ),
    Scenario(
        name="replaced arguments",
        steps=[asks(_SAVE), says("done")],
        tools=saved_by(),
        hooks=_deciding(BeforeToolDecision(args={"path": "b"})),
        outcome="RunCompleted",
        lines=[
            *_ASKED, "settle_tool_calls", "hook before_tool", "intend_tool", "tool save", "complete_batch", *_ANSWERED,
        ],
        actions=[*_ASK, "before_tool", *_CALL, *_ASK, *_FINISH],
        messages=["user: go", "assistant: save", "toolResult: save done", "assistant: done"],
    ),
    Scenario(
        name="blocked and terminating",
        steps=[asks(_SAVE)],
        tools=saved_by(),
        hooks=_deciding(BeforeToolDecision(block=ToolBlock(reason="enough", terminate=True))),
        outcome="RunCompleted",
        lines=[
            *_ASKED, "settle_tool_calls", "hook before_tool", "complete_terminating_batch", "finish_terminated_tools",
        ],
        actions=[*_ASK, "before_tool", "commit_tool_result", *_FINISH],
        messages=["user: go", "assistant: save", "toolResult: This tool call was blocked: enough"],
    ),
    Scenario(
        name="a tool raises",
        steps=[asks(_SAVE), says("done")],
        tools=saved_by(fails="disk full"),
        outcome="RunCompleted",
        lines=[*_ASKED, "settle_tool_calls", "intend_tool", "tool save", "complete_batch", *_ANSWERED],
        actions=[*_ASK, *_CALL, *_ASK, *_FINISH],
        messages=[
            "user: go", "assistant: save", "toolResult: The tool failed: RuntimeError: disk full", "assistant: done",
        ],
    ),
    Scenario(
        name="every tool terminates",
        steps=[asks(_SAVE)],
        tools=saved_by(terminate=True, usage=spent(3)),
        outcome="RunCompleted",
        lines=[
            *_ASKED, "settle_tool_calls", "intend_tool", "tool save", "complete_terminating_batch",
            "finish_terminated_tools",
        ],
        actions=[*_ASK, *_CALL, *_FINISH],
        messages=["user: go", "assistant: save", "toolResult: save done"],
    ),
    Scenario(
        name="genuine length with calls",
        steps=[ScriptedResponse(calls=[_SAVE, _LOAD], stop_reason="length", usage=spent(8192)), says("done")],
        tools=_both,
        outcome="RunCompleted",
        lines=[*_ASKED, "settle_tool_calls", "refuse_truncated_tool", "complete_batch", *_ANSWERED],
        actions=[*_ASK, "commit_tool_result", "commit_tool_result", *_ASK, *_FINISH],
        messages=[
            "user: go", "assistant: save load",
            *["toolResult: This tool call was not executed: the response reached its output limit, so the arguments "
              "may be incomplete. Call the tool again with complete arguments."] * 2,
            "assistant: done",
        ],
    ),
    Scenario(
        name="before_run adds",
        steps=[says("hello")],
        hooks=_before_run,
        outcome="RunCompleted",
        lines=["hook before_run", *_ASKED, "settle_stop", "finish_run"],
        actions=["before_run", *_ASK, *_FINISH],
        messages=["user: go", "user: remember", "assistant: hello"],
    ),
    Scenario(
        name="a follow-up at the end",
        steps=[says("hello"), says("bye")],
        hooks=_follow_up_once,
        outcome="RunCompleted",
        lines=[
            *_ASKED, "settle_stop", "hook before_run_end", "append_run_end_follow_up", "start_generation",
            "intend_assistant", "request 1", "settle_stop", "hook before_run_end", "finish_run",
        ],
        actions=[*_ASK, "before_run_end", "commit_run_end_follow_up", *_ASK, "before_run_end", *_FINISH],
        messages=["user: go", "assistant: hello", "user: and then?", "assistant: bye"],
    ),
]  # fmt: skip

SCENARIOS: dict[str, Scenario] = {scenario.name: scenario for scenario in _ALL}
