"""The choices of runs: requests and their responses, polls, tool calls, and how both end under cancellation."""

from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Final

from restartpoint_reference.explore.choices.alphabet import LIMIT, Result, response, tool_result, usage, user
from restartpoint_reference.explore.choices.moment import Choice, Moment, minted
from restartpoint_reference.shapes import JsonObject
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.checkpoint import RunEndFollowUp
from restartpoint_reference.transitions.deferred import polled
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.generation import (
    IntendAssistant,
    Reservation,
    StartGeneration,
    SyntheticFailure,
    SyntheticResponse,
)
from restartpoint_reference.transitions.settlement import Response, SettleFailure, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import (
    INTERRUPTED,
    NOT_EXECUTED,
    IntendTool,
    ToolResult,
    next_to_settle,
)
from restartpoint_reference.vocabulary.messages import source_calls
from restartpoint_reference.vocabulary.states import CancelRequested, PendingCall, PlannedCall, Replay

# --- requests


def _accept_run(at: Moment) -> Iterator[Inputs]:
    yield AcceptRun(
        operation_id=at.mint(),
        started_at=0,
        captured=len(at.view.lane_state.pending_next_run),
        prompts=(NewMessage(id=at.mint(1), message=user("go")),),
        injected=(),
        settings=at.alphabet.settings,
    )


def _start_generation(at: Moment) -> Iterator[Inputs]:
    yield StartGeneration(step_id=at.mint(), stream_options={}, retry_policy=at.alphabet.policy)


def _intend_assistant(at: Moment) -> Iterator[Inputs]:
    yield IntendAssistant(
        response_entry_id=at.mint(), usage_id=at.mint(1), intended_output_limit=LIMIT, context_window=100
    )


def _reservation(at: Moment) -> Iterator[Inputs]:
    yield Reservation(response_entry_id=at.mint(), usage_id=at.mint(1))


def _response(at: Moment) -> Iterable[Inputs]:
    return (Response(response=said) for said in at.alphabet.responses)


def _tool_calls(at: Moment) -> Iterable[Inputs]:
    return _with_result_ids(at, at.view.pending.response_entry_id)


def _polled_tool_calls(at: Moment) -> Iterable[Inputs]:
    return _with_result_ids(at, polled(at.view).response_entry_id)


def _with_result_ids(at: Moment, response_id: str) -> Iterator[Inputs]:
    time = int(response_id.replace("-", "")[:12], 16)
    for said in at.alphabet.responses:
        ids = tuple(minted(time, 16 + index) for index, _ in enumerate(source_calls(said)))
        yield SettleToolCalls(response=said, result_ids=ids)


def _retryable(at: Moment) -> Iterable[Inputs]:
    return (SettleRetryable(response=said, not_before=1000) for said in at.alphabet.responses)


def _failure(at: Moment) -> Iterator[Inputs]:
    for said in at.alphabet.responses:
        for cut_short in (False, True):
            yield SettleFailure(response=said, error_message="failed", cut_short=cut_short)


def _plain_failure(at: Moment) -> Iterable[Inputs]:
    """A failure that is told from others by its code only, so one error stands for all."""
    errors = (said for said in at.alphabet.responses if said["stopReason"] == "error")
    return (SettleFailure(response=said, error_message="failed") for said in islice(errors, 1))


def _exhausted(_: Moment) -> Iterator[Inputs]:
    yield SyntheticFailure(api="scripted", timestamp=0, reason="unknown", error_message="unknown")


def _cancelled(_: Moment) -> Iterator[Inputs]:
    yield Response(response=response("aborted", error="stopped", calls=1))


def _unreceived(_: Moment) -> Iterator[Inputs]:
    yield SyntheticResponse(api="scripted", timestamp=0, reason="stopped")


def _cancelled_poll(at: Moment) -> Iterator[Inputs]:
    synthetic: JsonObject = {**response("aborted", error="stopped"), "usage": usage(0)}
    yield Response(response=synthetic)
    if not at.orphaned:
        yield from _cancelled(at)


def _follow_up(at: Moment) -> Iterator[Inputs]:
    yield RunEndFollowUp(id=at.mint(), message=user("more"))


# --- tools


def _intend_tool(at: Moment) -> Iterable[Inputs]:
    """Clearances go in source order within one activation, so the first planned call is next (§3.8)."""
    planned = [call.source_index for call in at.view.batch.calls if isinstance(call, PlannedCall)]
    return (IntendTool(source_index=planned[0], arguments={}, replay=replay) for replay in at.alphabet.replays)


def _result(at: Moment, result: Result) -> Inputs:
    index = next_to_settle(at.view.batch).source_index
    calls = {call.source_index: call for call in source_calls(at.view.message(at.view.batch.assistant_entry_id))}
    message = tool_result(calls[index].id, calls[index].name, result)
    if result.usage:
        return ToolResult(message=message, terminate=result.terminate, usage_id=at.mint(), usage=usage(1))
    return ToolResult(message=message, terminate=result.terminate)


def _results(at: Moment) -> Iterable[Inputs]:
    return (_result(at, result) for result in at.alphabet.results)


def _interrupted(at: Moment) -> Iterator[Inputs]:
    yield _result(at, Result(text=INTERRUPTED, error=True))


def _refused(at: Moment) -> Iterator[Inputs]:
    yield _result(at, Result(text="refused", error=True))


def _not_executed(at: Moment) -> Iterator[Inputs]:
    yield _result(at, Result(text=NOT_EXECUTED, error=True))


def _last(at: Moment) -> Iterator[Inputs]:
    """The last call settles as it would in the middle of the batch: an orphaned safe one may have run again (T37)."""
    cancelled = isinstance(at.view.run.control, CancelRequested)
    match next_to_settle(at.view.batch):
        case PlannedCall():
            yield from _not_executed(at) if cancelled else _refused(at)
        case PendingCall(replay=replay) if at.orphaned:
            yield from _interrupted(at)
            if replay is Replay.SAFE and not cancelled:
                yield from _results(at)
        case _:
            yield from _results(at)
            if cancelled:
                yield from _not_executed(at)


RUNS: Final[Mapping[str, Choice]] = {
    "accept_run": _accept_run, "start_generation": _start_generation, "intend_assistant": _intend_assistant,
    "settle_tool_calls": _tool_calls, "settle_retryable": _retryable, "settle_deferred": _response,
    "settle_invalid_deferred": _plain_failure, "settle_unpreparable_overflow": _failure, "settle_stop": _response,
    "settle_failure": _failure, "recover_exhausted_assistant": _exhausted, "settle_cancelled": _cancelled,
    "cancel_assistant": _unreceived, "append_run_end_follow_up": _follow_up,
    "intend_poll": _reservation, "replace_unknown_poll": _reservation, "settle_poll_pending": _response,
    "settle_poll_mismatch": _plain_failure, "settle_poll_failure": _plain_failure,
    "settle_poll_tool_calls": _polled_tool_calls, "settle_poll_ready": _response, "cancel_poll": _cancelled_poll,
    "intend_tool": _intend_tool, "settle_tool": _results, "refuse_tool": _refused, "refuse_truncated_tool": _refused,
    "interrupt_tool": _interrupted, "complete_batch": _last, "complete_terminating_batch": _last,
    "cancel_planned_tool": _not_executed, "cancel_refused_tool": _not_executed, "settle_cancelled_tool": _results,
    "interrupt_cancelled_tool": _interrupted,
}  # fmt: skip
