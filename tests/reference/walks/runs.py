"""Runs with tools and their recovery, and what takes place beside them."""

from collections.abc import Callable
from dataclasses import replace

from restartpoint_reference import TRANSITIONS as T
from restartpoint_reference import Json, JsonObject, Namespace
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.facts import FactAddress, RecordUsage, SetFact
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration, SyntheticFailure
from restartpoint_reference.transitions.queues import IdleWrite, QueuedId, QueuedMessage
from restartpoint_reference.transitions.session import Configuration, CreateLane
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import IntendTool, ToolResult
from restartpoint_reference.vocabulary.registers import CompactionSettings, LaneConfiguration, ModelIdentity
from restartpoint_reference.vocabulary.states import QueueMode, Replay, RetryPolicy, RunSettings, ToolExecution
from tests.reference.walk import Walk, assistant, call, result, text, uid, usage, user
from tests.reference.walks.places import (
    CONFIGURED,
    CONTEXT,
    FAILURE,
    INPUT,
    MESSAGE,
    RESPONSE,
    RESULT,
    USAGE,
    WORDS,
    under,
)

CONFIGURATION = LaneConfiguration(
    model=ModelIdentity(provider="acme", model_id="m-1"), thinking_level="off", active_tool_names=("read", "remove")
)
OTHER_CONFIGURATION = LaneConfiguration(
    model=ModelIdentity(provider="acme", model_id="m-2"), thinking_level="high", active_tool_names=()
)
SETTINGS = RunSettings(
    compaction=CompactionSettings(enabled=True, reserve_tokens=100, keep_recent_tokens=200),
    steering_mode=QueueMode.ALL,
    follow_up_mode=QueueMode.ONE_AT_A_TIME,
    tool_execution=ToolExecution.PARALLEL,
)
RUN, STEP = uid(90, 1), uid(91, 2)
R1, U1, R2, U2 = uid(100, 1), uid(100, 2), uid(200, 1), uid(200, 2)
C1, C2 = uid(100, 11), uid(100, 12)
LIMIT = 100


def opened() -> Walk:
    """A configured session."""
    walk = Walk()
    walk.take(T["create_session"])
    walk.take(T["seed_main"], Configuration(configuration=CONFIGURATION))
    return walk


def prompted(settings: RunSettings = SETTINGS) -> Walk:
    """A run that was accepted."""
    walk = opened()
    walk.take(T["accept_run"], accepted(settings))
    return walk


def accepted(settings: RunSettings = SETTINGS, *, captured: int = 0) -> AcceptRun:
    return AcceptRun(
        operation_id=RUN,
        started_at=900,
        captured=captured,
        prompts=(NewMessage(id=uid(95, 1), message=user("what changed?")),),
        injected=(NewMessage(id=uid(95, 2), message=user("mind the date")),),
        settings=settings,
    )


def replace_execution(settings: RunSettings) -> RunSettings:
    """The same settings with sequential tools."""
    return replace(settings, tool_execution=ToolExecution.SEQUENTIAL)


def requested(attempts: int = 3, settings: RunSettings = SETTINGS) -> Walk:
    """A run whose first request may have been sent."""
    walk = prompted(settings)
    request(walk, STEP, R1, U1, attempts)
    return walk


def request(walk: Walk, step: str, response_id: str, usage_id: str, attempts: int = 3) -> None:
    policy = RetryPolicy(max_attempts=attempts, base_delay_ms=50)
    walk.take(
        T["start_generation"], StartGeneration(step_id=step, stream_options={"maxTokens": LIMIT}, retry_policy=policy)
    )
    intend(walk, response_id, usage_id)


def intend(walk: Walk, response_id: str, usage_id: str) -> None:
    inputs = IntendAssistant(
        response_entry_id=response_id, usage_id=usage_id, intended_output_limit=LIMIT, context_window=8000
    )
    walk.take(T["intend_assistant"], inputs)


def two_calls(stop: str = "toolUse", output: int = 7) -> JsonObject:
    return assistant(text("look"), call("t1", "remove"), text("and"), call("t2", "read"), stop=stop, output=output)


def with_tools(settings: RunSettings = SETTINGS, *, truncated: bool = False) -> Walk:
    """A run with a planned batch of two calls."""
    walk = requested(settings=settings)
    response = two_calls("length", LIMIT) if truncated else two_calls()
    walk.take(T["settle_tool_calls"], SettleToolCalls(response=response, result_ids=(C1, C2)))
    return walk


def clear(walk: Walk, index: int, replay: Replay = Replay.NEVER) -> None:
    walk.take(T["intend_tool"], IntendTool(source_index=index, arguments={"path": f"/{index}"}, replay=replay))


def ended(walk: Walk) -> Walk:
    """The walk taken to the end of its run by a last answer."""
    request(walk, uid(191, 2), R2, U2)
    walk.take(T["settle_stop"], Response(response=assistant(text("all done"))))
    walk.take(T["finish_run"])
    return walk


def plain_run() -> Walk:
    """The worked example of §0.4: one tool, then an answer."""
    walk = requested()
    response = assistant(call("t1", "read"), stop="toolUse")
    walk.take(T["settle_tool_calls"], SettleToolCalls(response=response, result_ids=(C1,)))
    clear(walk, 0)
    walk.take(T["complete_batch"], ToolResult(message=result("t1", "read")))
    return ended(walk)


def crash_mid_tool() -> Walk:
    """The worked example of §0.5: the unsafe call is interrupted, the next one runs."""
    walk = with_tools()
    clear(walk, 1)
    words = "This tool call was interrupted before its result was recorded."
    walk.take(T["interrupt_tool"], ToolResult(message=result("t1", "remove", words, error=True)))
    clear(walk, 3, Replay.SAFE)
    row = usage(input=3)
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read"), usage_id=uid(101, 5), usage=row))
    return ended(walk)


def parallel_tools() -> Walk:
    """Two overlapping calls settle in source order; the first reports usage, both ask to end the run."""
    walk = with_tools()
    clear(walk, 1)
    clear(walk, 3, Replay.SAFE)
    settled = ToolResult(message=result("t1", "remove"), terminate=True, usage_id=uid(101, 4), usage=usage(input=2))
    walk.take(T["settle_tool"], settled)
    walk.take(T["complete_terminating_batch"], ToolResult(message=result("t2", "read"), terminate=True))
    walk.take(T["finish_terminated_tools"])
    return walk


def refused_tools() -> Walk:
    """Both calls are refused before they start; the first block asks to end the run."""
    walk = with_tools()
    walk.take(T["refuse_tool"], ToolResult(message=result("t1", "remove", "blocked", error=True), terminate=True))
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read", "unknown tool", error=True)))
    return walk


def truncated_tools() -> Walk:
    """A response at its genuine limit executes none of its calls."""
    walk = with_tools(truncated=True)
    walk.take(T["refuse_truncated_tool"], ToolResult(message=result("t1", "remove", "cut", error=True)))
    walk.take(T["complete_batch"], ToolResult(message=result("t2", "read", "cut", error=True)))
    return walk


def failed_run() -> Walk:
    """A retry, then an error that no retry mends."""
    walk = requested()
    overloaded = assistant(stop="error", error="overloaded")
    walk.take(T["settle_retryable"], SettleRetryable(response=overloaded, not_before=5000))
    walk.take(T["end_retry_wait"])
    intend(walk, R2, U2)
    refused = assistant(stop="error", error="invalid api key")
    walk.take(T["settle_failure"], SettleFailure(response=refused, error_message="invalid api key"))
    walk.take(T["finish_failed"])
    return walk


def exhausted_run() -> Walk:
    """A retryable error at the cap."""
    walk = requested(attempts=1)
    overloaded = assistant(stop="error", error="429 too many requests")
    walk.take(T["settle_failure"], SettleFailure(response=overloaded, error_message="429", error_details={"n": 1}))
    walk.take(T["finish_failed"])
    return walk


def overflowed_run() -> Walk:
    """A request that does not fit, and nothing to compact."""
    walk = requested()
    message = assistant(stop="error", error="context window exceeded: cut below the limit", output=3)
    walk.take(T["settle_unpreparable_overflow"], SettleFailure(response=message, error_message="too big"))
    walk.take(T["finish_failed"])
    return walk


def deferred_run() -> Walk:
    """A provider that answers later."""
    walk = requested()
    handle: JsonObject = {"id": "job-1", "provider": "acme", "modelId": "m-1", "api": "scripted"}
    walk.take(T["settle_deferred"], Response(response={**assistant(stop="deferred"), "deferred": handle}))
    return walk


def deferred_without_handle() -> Walk:
    """A provider that answers later, but does not say where."""
    walk = requested()
    message = assistant(stop="error", error="the deferred response has no valid handle")
    walk.take(T["settle_invalid_deferred"], SettleFailure(response=message, error_message="no handle"))
    return walk


def orphaned_requests() -> Walk:
    """The outcome of every request is unknown, until no attempt is left."""
    walk = requested(attempts=2)
    walk.take(T["recover_assistant"])
    intend(walk, R2, U2)
    walk.take(
        T["recover_exhausted_assistant"],
        SyntheticFailure(api="scripted", timestamp=7, reason="outcome unknown", error_message="outcome unknown"),
    )
    walk.take(T["finish_failed"])
    return walk


def followed_up_run() -> Walk:
    """before_run_end asks for more."""
    walk = requested()
    walk.take(T["settle_stop"], Response(response=assistant(text("done"))))
    walk.take(T["append_run_end_follow_up"], RunEndFollowUp(id=uid(150, 1), message=user("and then?")))
    return ended(walk)


def queues_and_facts() -> Walk:
    """Everything that takes place beside a run."""
    walk = opened()
    first, second, third = uid(300, 1), uid(300, 2), uid(300, 3)
    walk.take(T["write_idle"], IdleWrite(id=uid(299, 1), message=user("hello")))
    walk.take(T["write_idle"], IdleWrite(id=uid(299, 2), custom_type="note", data={"n": None}))
    walk.take(T["write_idle"], IdleWrite(id=uid(299, 3), custom_type="mark"))
    for queued in (first, second, third):
        walk.take(T["enqueue_next_run"], QueuedMessage(id=queued, message=user(queued)))
    walk.take(T["cancel_next_run"], QueuedId(id=second))
    walk.take(T["set_fact"], SetFact(namespace=Namespace.FACT_NAME, key="", value="a name"))
    walk.take(T["set_fact"], SetFact(namespace=Namespace.FACT_CUSTOM, key="k", value=None))
    walk.take(T["set_fact"], SetFact(namespace=Namespace.FACT_LABEL, key=uid(299, 1), value="start"))
    walk.take(T["delete_fact"], FactAddress(namespace=Namespace.FACT_CUSTOM, key="k"))
    details: Json = {"invoice": 7}
    walk.take(T["record_usage"], RecordUsage(id=uid(301, 1), usage=usage(input=-4), details=details))
    walk.take(T["accept_run"], accepted(captured=1))
    walk.take(T["configure_lane"], Configuration(configuration=OTHER_CONFIGURATION))
    walk.lane = "slack:1719432.0021"
    walk.take(T["create_lane"], CreateLane(configuration=CONFIGURATION, anchor=uid(299, 2)))
    walk.take(T["enqueue_next_run"], QueuedMessage(id=uid(302, 1), message=user("later")))
    return walk


SCENARIOS: tuple[Callable[[], Walk], ...] = (
    plain_run, crash_mid_tool, parallel_tools, refused_tools, truncated_tools, failed_run, exhausted_run,
    overflowed_run, deferred_run, deferred_without_handle, orphaned_requests, followed_up_run,
    queues_and_facts,
)  # fmt: skip


FREE: dict[str, set[str]] = {
    # What a caller, a provider or a tool said, and when, exists once; a tool reports its usage once.
    "settle_stop": RESPONSE | WORDS,
    "settle_retryable": RESPONSE | {"op.state.value.phase.generation.notBefore"},
    "settle_deferred": RESPONSE - {f"{MESSAGE}.api"} | under(f"{MESSAGE}.deferred", "id"),
    "settle_tool": RESULT | USAGE | {"usage.id"},
    "complete_batch": RESULT | USAGE | {"usage.id"},
    "complete_terminating_batch": RESULT,
    "refuse_tool": WORDS,
    "refuse_truncated_tool": WORDS,
    "interrupt_tool": WORDS - {f"{MESSAGE}.content.*.type"},
    "write_idle": INPUT | {"entry.customType"} | under("entry.data", "n"),
    "append_run_end_follow_up": WORDS,
    "enqueue_next_run": {pattern.replace(MESSAGE, "pending.entry.value.payload") for pattern in INPUT},
    "record_usage": USAGE | {"usage.id"} | under("usage.details", "invoice"),
    "set_fact": {"fact.custom.key", "fact.custom.value", "fact.label.value", "fact.name.value"},
    # The words of an error are anybody's; its code and provenance are not.
    "settle_failure": FAILURE | under("op.state.value.phase.error.details", "n"),
    "settle_invalid_deferred": FAILURE,
    "settle_unpreparable_overflow": FAILURE,
    "recover_exhausted_assistant": FAILURE - under(MESSAGE, "model", "provider"),
    # Ids are minted outside, and those that only one place holds yet could have been others.
    "intend_assistant": {f"op.state.value.phase.generation.{name}" for name in ("responseEntryId", "usageId")}
    | {f"op.state.value.phase.generation.{name}" for name in ("contextWindow", "intendedOutputLimit")},
    "settle_tool_calls": RESPONSE
    | WORDS
    | {f"{MESSAGE}.content.*.{name}" for name in ("id", "name", "arguments", "arguments.path")}
    | {"op.state.value.phase.batch.calls.*.resultEntryId"},
    # Configuration and settings are captured from outside. A prompt that op.meta does not list is a hook's message.
    "accept_run": INPUT
    | {"op.meta.value.startedAt", "op.meta.value.intent.promptEntryIds.*"}
    | {f"op.state.value.settings.compaction.{name}" for name in ("enabled", "reserveTokens", "keepRecentTokens")},
    "start_generation": {f"{CONTEXT}.retryPolicy.{name}" for name in ("maxAttempts", "baseDelayMs")}
    | {f"{CONTEXT}.stepId"}
    | under(f"{CONTEXT}.streamOptions", "maxTokens"),
    "seed_main": CONFIGURED | {"lane.config.value.activeToolNames.*"},
    "create_lane": CONFIGURED | {"lane.config.value.activeToolNames.*"},
    "configure_lane": CONFIGURED,
    "intend_tool": under("op.tool_args.value", "path"),
}
"""Per transition, the places whose alteration nobody can see, because the commit could have been made so."""
