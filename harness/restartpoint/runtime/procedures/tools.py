"""The calls of one response: one source-ordered start pass, one source-ordered settlement pass (§3.8, §4.5, §5.7)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, assert_never

from restartpoint.contract import (
    OP_TOOL_ARGS,
    UNSET,
    AgentMessage,
    AgentTool,
    BeforeTool,
    CallCompleted,
    CallEffectPending,
    CallPlanned,
    MissingIdentitySuspension,
    RunOutcome,
    SourceCall,
    ToolBatch,
    ToolCall,
    ToolResult,
    Transaction,
    Usage,
    source_call,
    stop_reason_of,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.execution import (
    ClearedToolCall,
    ExecutedToolCall,
    FinalizedToolCall,
    ImmediateToolOutcome,
    apply_before_tool,
    execute_tool_call,
    finalize_tool_call,
    prepare_tool_call,
    synthetic_outcome,
    texts,
    tool_result_message,
)  # fmt: skip
from restartpoint.runtime.identities import missing_for_call
from restartpoint.runtime.procedures.after_tool import after_tool_patch
from restartpoint.runtime.procedures.expect import open_call, same_batch
from restartpoint.runtime.promise import Promise
from restartpoint.runtime.transitions import Current, intend_tool, settle_call, tool_args_key, tool_args_prefix
from restartpoint.runtime.work import Work
from restartpoint.session import SessionMutator

__all__ = ["run_batch"]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Started:
    """A real call that runs, or ran, in a task of its own."""

    call: ClearedToolCall
    execution: Promise[ExecutedToolCall]


@dataclass(frozen=True, kw_only=True, slots=True)
class _Kept:
    """The outcome of a call that does not run in this activation."""

    outcome: ImmediateToolOutcome
    word: Literal["immediate", "truncated", "interrupted"] = "immediate"


_Position: TypeAlias = _Started | _Kept


@dataclass(frozen=True, kw_only=True, slots=True)
class _Batch:
    """One batch as its procedure sees it; ``tools`` is the captured active set, bound once."""

    work: Work
    turn_id: str
    message: AgentMessage
    tools: Mapping[str, AgentTool]
    application: object

    def source(self, call: ToolCall) -> SourceCall:
        found = source_call(self.message, call.source_index)
        if found is None:
            raise InvariantBroken(f"turn {self.turn_id} has no tool call at content[{call.source_index}]")
        return found


async def run_batch(work: Work, current: Current, durable: ToolBatch, *, orphans: bool) -> Current | RunOutcome:
    """The state after the last result, or a suspension before the first call that needs a tool nobody registered.

    ``orphans``: the batch was found by an activation, so its pending calls have no continuation.
    """
    message = await work.message(durable.assistant_entry_id)
    calls = [call for call in durable.calls if not isinstance(call, CallCompleted)]
    missing = [missing_for_call(work.services, durable, message, call) for call in calls]
    able = next((position for position, names in enumerate(missing) if names), len(calls))
    results: list[AgentMessage] = []
    if able:
        registered = work.services.settings.current.tools
        tools = {name: registered[name] for name in durable.configuration.active_tool_names if name in registered}
        application = await work.services.application.evaluated_tool_context()
        batch = _Batch(work=work, turn_id=durable.turn_id, message=message, tools=tools, application=application)
        if orphans:
            work.announce.turn_start(durable.turn_id, recovery=True)
        settled = await _settled(batch, current, durable, calls[:able], last=calls[-1], orphans=orphans)
        current, results = settled[-1][0], [result for _, result in settled]
    if able < len(calls):
        return MissingIdentitySuspension(
            run_id=work.operation_id, leaf_id=current.leaf_id, tools=missing[able], models=()
        )
    work.announce.turn_end(durable.turn_id, message, results)
    return current


async def _settled(
    batch: _Batch, current: Current, durable: ToolBatch, calls: Sequence[ToolCall], *, last: ToolCall, orphans: bool
) -> list[tuple[Current, AgentMessage]]:
    """Each of the calls with the state after its result; ``last`` is the last open one of the batch."""
    if stop_reason_of(batch.message) == "length":
        return [await _settle(batch, call, _truncated(batch, call), is_last=call is last) for call in calls]
    if _is_sequential(current, batch, durable):
        return [
            await _settle(batch, call, await _start(batch, call, orphans=orphans), is_last=call is last)
            for call in calls
        ]
    positions = [(call, await _start(batch, call, orphans=orphans)) for call in calls]
    return [await _settle(batch, call, position, is_last=call is last) for call, position in positions]


def _truncated(batch: _Batch, call: ToolCall) -> _Kept:
    return _Kept(outcome=synthetic_outcome(batch.source(call), texts.TRUNCATED_CALL), word="truncated")


def _is_sequential(current: Current, batch: _Batch, durable: ToolBatch) -> bool:
    """Whether the run's setting or any called tool asks for one call at a time."""
    called = (batch.tools.get(batch.source(call).name) for call in durable.calls)
    return current.state.settings.tool_execution == "sequential" or any(
        tool is not None and tool.execution_mode == "sequential" for tool in called
    )


# --- start ------------------------------------------------------------------------------------------------------


async def _start(batch: _Batch, call: ToolCall, *, orphans: bool) -> _Position:
    """Start the call in a task of its own, or keep the outcome that needs none."""
    match call:
        case CallPlanned():
            cleared = await _clear(batch, call)
            if isinstance(cleared, ImmediateToolOutcome):
                return _Kept(outcome=cleared)
            await _intend(batch, call, cleared)
            return await _dispatch(batch, cleared, replayed=False)
        case CallEffectPending():
            if not orphans:
                raise InvariantBroken(f"call {call.source_index} of turn {batch.turn_id} is pending in no task")
            return await _take_over(batch, call)
        case CallCompleted():
            raise InvariantBroken(f"call {call.source_index} of turn {batch.turn_id} is completed already")
        case _ as unreachable:
            assert_never(unreachable)


async def _clear(batch: _Batch, call: ToolCall) -> ClearedToolCall | ImmediateToolOutcome:
    prepared = prepare_tool_call(batch.source(call), batch.tools)
    if isinstance(prepared, ImmediateToolOutcome):
        return prepared
    work, hooks, source = batch.work, batch.work.services.hooks, prepared.tool_call
    if not hooks.registered("before_tool"):
        return apply_before_tool(prepared, None)
    await work.breakpoint("before_tool", "Run the before_tool hooks", **_details(batch, source))
    event = BeforeTool(
        lane=work.lane, run_id=work.operation_id, tool_call_id=source.id, tool_name=source.name, args=prepared.args
    )
    work.gate.assert_open()
    decision = await hooks.before_tool(event)
    return apply_before_tool(prepared, decision)


async def _intend(batch: _Batch, call: ToolCall, cleared: ClearedToolCall) -> None:
    replay = cleared.tool.replay
    await batch.work.breakpoint(
        "commit_tool_intent", "Record that a tool is about to run", **_details(batch, cleared.tool_call), replay=replay
    )

    async def decide(current: Current, _: SessionMutator) -> tuple[Transaction, Current]:
        durable = same_batch(current, batch.turn_id)
        open_call(durable, call)
        return intend_tool(current, durable, call.source_index, cleared.args, replay)

    await batch.work.transition(decide)


async def _dispatch(batch: _Batch, cleared: ClearedToolCall, *, replayed: bool) -> _Started:
    """Start the real call in a task that the harness owns; it asserts the gate itself, right before it runs."""
    work, source = batch.work, cleared.tool_call
    await work.breakpoint("tool_execute", "Run a tool", **_details(batch, source), replayed=replayed)
    work.announce.tool_start(batch.turn_id, source, cleared.args, recovery=replayed)

    def publish(partial: ToolResult) -> None:
        work.announce.tool_update(batch.turn_id, source, partial)

    execution = work.services.spawn(
        lambda: execute_tool_call(
            cleared, work.gate, publish, blocking=work.services.blocking, application=batch.application
        )
    )
    return _Started(call=cleared, execution=execution)


async def _take_over(batch: _Batch, call: CallEffectPending) -> _Position:
    """An orphaned call: replay it when both declarations say safe, else record that it was interrupted (T36, T37)."""
    work, source = batch.work, batch.source(call)
    tool = batch.tools.get(source.name)
    if call.replay == "safe" and tool is not None and tool.replay == "safe":
        key = tool_args_key(work.operation_id, batch.turn_id, call.source_index)
        register = await work.services.session.get_register(OP_TOOL_ARGS, key)
        if register is None:
            raise InvariantBroken(f"the arguments of pending call {key} are missing")
        return await _dispatch(batch, ClearedToolCall(tool_call=source, tool=tool, args=register.value), replayed=True)
    interrupted = synthetic_outcome(source, texts.INTERRUPTED_CALL)
    work.announce.tool_start(batch.turn_id, source, source.arguments, recovery=True)
    work.announce.tool_end(batch.turn_id, source, interrupted.result, recovery=True)
    return _Kept(outcome=interrupted, word="interrupted")


# --- settlement -------------------------------------------------------------------------------------------------


async def _settle(batch: _Batch, call: ToolCall, position: _Position, *, is_last: bool) -> tuple[Current, AgentMessage]:
    """Wait for the outcome at this source position and commit it; the state afterwards, and the result message."""
    work = batch.work
    if isinstance(position, _Started):
        executed = await position.execution.wait()
        patch = await after_tool_patch(work, batch.turn_id, position.call, executed)
        outcome: FinalizedToolCall | ImmediateToolOutcome = finalize_tool_call(position.call, executed, patch)
        work.announce.tool_end(batch.turn_id, outcome.tool_call, outcome.result)
    else:
        outcome = position.outcome
    result, source = outcome.result, outcome.tool_call
    message = tool_result_message(outcome, work.services.session.clock.now_ms())
    work.announce.message_start(message)
    work.announce.message_end(message, call.result_entry_id)
    await work.breakpoint(
        "commit_tool_result", "Record a tool result",
        **_details(batch, source), outcome=_outcome_word(position), isLast=is_last,
    )  # fmt: skip
    usage = None if result.usage is UNSET else result.usage
    return await _commit(batch, call, message, terminate=result.terminate, usage=usage), message


async def _commit(
    batch: _Batch, call: ToolCall, message: AgentMessage, *, terminate: bool, usage: Usage | None
) -> Current:
    work = batch.work

    async def decide(current: Current, mutator: SessionMutator) -> tuple[Transaction, Current]:
        durable = same_batch(current, batch.turn_id)
        prefix = tool_args_prefix(work.operation_id, batch.turn_id)
        is_last = sum(not isinstance(other, CallCompleted) for other in durable.calls) == 1
        arguments = await mutator.list_registers(OP_TOOL_ARGS, prefix) if is_last else []
        return settle_call(
            current,
            durable,
            call.source_index,
            message,
            terminate=terminate,
            usage=None if usage is None else (work.services.session.ids.next(), usage),
            tool_args_keys=[register.key for register in arguments],
        )

    return await work.transition(decide)


def _outcome_word(position: _Position) -> str:
    return "executed" if isinstance(position, _Started) else position.word


def _details(batch: _Batch, source: SourceCall) -> dict[str, str]:
    return {"turnId": batch.turn_id, "toolCallId": source.id, "toolName": source.name}
