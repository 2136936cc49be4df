"""The inputs that the world may choose for each transition: ids minted now, and the messages of an alphabet.

A choice may be one that a guard forbids: the transition decides. An id names the moment at which it was minted, the
session's next sequence number, so no earlier commit can have minted it.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final, TypeAlias

from restartpoint_reference.explore.alphabet import LIMIT, Alphabet, Result, tool_result, usage, user
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.frame import Inputs, Nothing, View
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration, SyntheticFailure
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import INTERRUPTED, IntendTool, ToolResult, next_to_settle
from restartpoint_reference.vocabulary.messages import source_calls
from restartpoint_reference.vocabulary.states import PendingCall, PlannedCall, Replay, RetryPolicy


@dataclass(frozen=True, kw_only=True)
class Moment:
    """A lane, what the world may say, and whether the process that made the pending effect is gone."""

    view: View
    alphabet: Alphabet
    orphaned: bool


Choice: TypeAlias = Callable[[Moment], Iterable[Inputs]]


def mint(view: View, tail: int = 0) -> str:
    """A new id of this moment; the tail tells apart those of one commit."""
    return minted(view.state.next_seq, tail)


def minted(time: int, tail: int) -> str:
    """A UUIDv7 of this time (§1.2)."""
    prefix = f"{time:012x}"
    return f"{prefix[:8]}-{prefix[8:]}-7000-8000-{tail:012x}"


def _nothing(_: Moment) -> Iterable[Inputs]:
    return (Nothing(),)


# --- runs


def _accept_run(at: Moment) -> Iterable[Inputs]:
    prompt = NewMessage(id=mint(at.view, 1), message=user("go"))
    yield AcceptRun(
        operation_id=mint(at.view), started_at=0, captured=len(at.view.lane_state.pending_next_run), prompts=(prompt,),
        injected=(), settings=at.alphabet.settings,
    )  # fmt: skip


def _start_generation(at: Moment) -> Iterable[Inputs]:
    policy = RetryPolicy(max_attempts=at.alphabet.attempts, base_delay_ms=1)
    yield StartGeneration(step_id=mint(at.view), stream_options={}, retry_policy=policy)


def _intend_assistant(at: Moment) -> Iterable[Inputs]:
    yield IntendAssistant(
        response_entry_id=mint(at.view), usage_id=mint(at.view, 1), intended_output_limit=LIMIT, context_window=100
    )


def _settle_response(at: Moment) -> Iterable[Inputs]:
    return (Response(response=said) for said in at.alphabet.responses)


def _settle_tool_calls(at: Moment) -> Iterable[Inputs]:
    time = int(at.view.pending.response_entry_id.replace("-", "")[:12], 16)
    for said in at.alphabet.responses:
        ids = tuple(minted(time, 16 + index) for index, _ in enumerate(source_calls(said)))
        yield SettleToolCalls(response=said, result_ids=ids)


def _settle_retryable(at: Moment) -> Iterable[Inputs]:
    return (SettleRetryable(response=said, not_before=1000) for said in at.alphabet.responses)


def _settle_failure(at: Moment) -> Iterable[Inputs]:
    return (SettleFailure(response=said, error_message="failed") for said in at.alphabet.responses)


def _recover_exhausted(_: Moment) -> Iterable[Inputs]:
    yield SyntheticFailure(api="scripted", timestamp=0, reason="unknown", error_message="unknown")


def _follow_up(at: Moment) -> Iterable[Inputs]:
    yield RunEndFollowUp(id=mint(at.view), message=user("more"))


# --- tools


def _intend_tool(at: Moment) -> Iterable[Inputs]:
    """Clearances go in source order within one activation, so only the first planned call may be next (§3.8)."""
    planned = [call.source_index for call in at.view.batch.calls if isinstance(call, PlannedCall)]
    return (IntendTool(source_index=planned[0], arguments={}, replay=replay) for replay in at.alphabet.replays)


def _result(view: View, result: Result) -> Inputs:
    index = next_to_settle(view.batch).source_index
    calls = {call.source_index: call for call in source_calls(view.message(view.batch.assistant_entry_id))}
    message = tool_result(calls[index].id, calls[index].name, result)
    if result.usage:
        return ToolResult(message=message, terminate=result.terminate, usage_id=mint(view), usage=usage(1))
    return ToolResult(message=message, terminate=result.terminate)


def _results(at: Moment) -> Iterable[Inputs]:
    return (_result(at.view, result) for result in at.alphabet.results)


def _interrupted(at: Moment) -> Iterable[Inputs]:
    yield _result(at.view, Result(text=INTERRUPTED, error=True))


def _refused(at: Moment) -> Iterable[Inputs]:
    yield _result(at.view, Result(text="refused", error=True))


def _completed(at: Moment) -> Iterable[Inputs]:
    """The last call settles as it would in the middle of the batch."""
    if isinstance(next_to_settle(at.view.batch), PlannedCall):
        return _refused(at)
    return (*_interrupted(at), *_replayed(at)) if at.orphaned else _results(at)


def _replayed(at: Moment) -> Iterable[Inputs]:
    """An orphaned call that is safe may run again, and then settles by its own result (T37)."""
    call = next_to_settle(at.view.batch)
    safe = isinstance(call, PendingCall) and call.replay is Replay.SAFE
    return _results(at) if safe else ()


CHOICES: Final[Mapping[str, Choice]] = MappingProxyType({
    "accept_run": _accept_run,
    "start_generation": _start_generation,
    "intend_assistant": _intend_assistant,
    "settle_tool_calls": _settle_tool_calls,
    "settle_retryable": _settle_retryable,
    "settle_deferred": _settle_response,
    "settle_invalid_deferred": _settle_failure,
    "settle_unpreparable_overflow": _settle_failure,
    "settle_stop": _settle_response,
    "settle_failure": _settle_failure,
    "recover_exhausted_assistant": _recover_exhausted,
    "append_run_end_follow_up": _follow_up,
    "intend_tool": _intend_tool,
    "settle_tool": _results,
    "refuse_tool": _refused,
    "refuse_truncated_tool": _refused,
    "interrupt_tool": _interrupted,
    "complete_batch": _completed,
    "complete_terminating_batch": _completed,
})  # fmt: skip
"""Per transition, its possible inputs; those that are not here have none (`Nothing`)."""


def choices(name: str, at: Moment) -> Iterable[Inputs]:
    """The inputs that the world may choose for this transition now."""
    return CHOICES.get(name, _nothing)(at)
