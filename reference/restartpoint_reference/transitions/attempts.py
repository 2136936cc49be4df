"""Attempts at a summary, their requests, and the waits between them (§3.2, §3.9)."""

from dataclasses import dataclass, replace

from restartpoint_reference.classify import backoff, is_retryable
from restartpoint_reference.shapes import UNSET, JsonObject
from restartpoint_reference.transitions.frame import (
    GENERATING,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    transition,
)
from restartpoint_reference.transitions.structural import (
    a_request_settled,
    attempt,
    no_request_is_open,
    preparation,
    request_is_open,
    seen_structural,
    set_generation,
    summary_attempts_remain,
    taken,
)
from restartpoint_reference.vocabulary.entries import InsertUsage, NewUsage
from restartpoint_reference.vocabulary.registers import CompactionPreparation
from restartpoint_reference.vocabulary.states import (
    Generating,
    NestedRequest,
    SummaryPending,
    SummaryReady,
    SummaryRetryWait,
)


@transition(
    "T57",
    section="3.9",
    phases=GENERATING,
    inputs=Nothing,
    guards=(control_is_running,),
    extract=lambda _view, _seen: Nothing(),
)
def intend_summary(view: View, _: Nothing) -> Writes:
    """The intent of one attempt, which has made no request yet."""
    match view.structural:
        case Generating(generation=SummaryReady(context=context, next_attempt=number)):
            return set_generation(view, SummaryPending(context=context, attempt=number, usage_ids=()))
    raise NotThis("no summary is ready")


@dataclass(frozen=True, kw_only=True)
class IntendSummaryRequest(Inputs):
    """The id minted for the request's usage."""

    usage_id: str


def _requested(view: View, seen: Seen) -> IntendSummaryRequest:
    match seen_structural(view, seen):
        case Generating(generation=SummaryPending(request=NestedRequest(usage_id=key))):
            return IntendSummaryRequest(usage_id=key)
    raise NotThis("the state that is set has no open request")


def another_request_is_due(view: View, _: Inputs) -> str | None:
    """One request makes a summary; a turn that is split takes a second one (§3.2)."""
    found = preparation(view)
    due = 2 if isinstance(found, CompactionPreparation) and found.is_split_turn else 1
    return None if len(attempt(view).usage_ids) < due else f"the attempt made its {due} requests"


def usage_id_is_new(view: View, inputs: IntendSummaryRequest) -> str | None:
    """The reserved id names nothing yet, and is not the result's (§2.2)."""
    reserved = attempt(view).context.result_entry_id
    return f"{reserved} is reserved" if inputs.usage_id == reserved else taken(view, inputs.usage_id)


@transition(
    "T58",
    section="3.2, 3.9",
    phases=GENERATING,
    inputs=IntendSummaryRequest,
    guards=(control_is_running, no_request_is_open, another_request_is_due, usage_id_is_new),
    extract=_requested,
)
def intend_summary_request(view: View, inputs: IntendSummaryRequest) -> Writes:
    """The intent of one request of the attempt, numbered from zero, before it is sent."""
    pending = attempt(view)
    request = NestedRequest(index=len(pending.usage_ids), usage_id=inputs.usage_id)
    return set_generation(view, replace(pending, request=request))


@dataclass(frozen=True, kw_only=True)
class SettleSummaryRequest(Inputs):
    """What the request cost; its content stays in the process."""

    usage: JsonObject


def _settled(_: View, seen: Seen) -> SettleSummaryRequest:
    if not seen.usage:
        raise NotThis("no usage row is inserted")
    return SettleSummaryRequest(usage=seen.usage[0].usage)


@transition(
    "T59",
    section="3.2, 3.9, 4.6",
    phases=GENERATING,
    inputs=SettleSummaryRequest,
    guards=(request_is_open,),
    extract=_settled,
)
def settle_summary_request(view: View, inputs: SettleSummaryRequest) -> Writes:
    """The request returned, however: its usage is durable, cancelled or not (decision AMB-44)."""
    pending = attempt(view)
    match pending.request:
        case NestedRequest(usage_id=key):
            row = NewUsage(id=key, adjustment=False, usage=inputs.usage)
            settled = replace(pending, request=UNSET, usage_ids=(*pending.usage_ids, key))
            return (InsertUsage(row=row), *set_generation(view, settled))
    raise NotThis("no request is open")


# --- waiting


@dataclass(frozen=True, kw_only=True)
class RetrySummary(Inputs):
    """The error of the failed request, and when the next attempt may start (decision AMB-28)."""

    error_message: str
    not_before: int


def _retried(view: View, seen: Seen) -> RetrySummary:
    match seen_structural(view, seen):
        case Generating(generation=SummaryRetryWait(error_message=words, not_before=time)):
            return RetrySummary(error_message=words, not_before=time)
    raise NotThis("the state that is set waits for no retry")


def error_is_of_the_moment(_: View, inputs: RetrySummary) -> str | None:
    """A later attempt may succeed where this one failed (decision AMB-27)."""
    return None if is_retryable(inputs.error_message) else f"no retry mends {inputs.error_message!r}"


def summary_delay_is_kept(view: View, inputs: RetrySummary) -> str | None:
    """The wait is at least the backoff of the failed attempt (decision AMB-28)."""
    least = backoff(attempt(view).context.retry_policy.base_delay_ms, attempt(view).attempt)
    return None if inputs.not_before >= least else f"notBefore {inputs.not_before} is below the delay {least}"


@transition(
    "T60",
    section="3.9",
    phases=GENERATING,
    inputs=RetrySummary,
    guards=(
        control_is_running, no_request_is_open, a_request_settled, summary_attempts_remain, error_is_of_the_moment,
        summary_delay_is_kept,
    ),
    extract=_retried,
)  # fmt: skip
def retry_summary(view: View, inputs: RetrySummary) -> Writes:
    """The attempt failed for the moment and attempts remain: the next one waits for its time."""
    pending = attempt(view)
    wait = SummaryRetryWait(
        context=pending.context,
        next_attempt=pending.attempt + 1,
        not_before=inputs.not_before,
        error_message=inputs.error_message,
    )
    return set_generation(view, wait)


@transition(
    "T61",
    section="3.9, 4.5",
    phases=GENERATING,
    inputs=Nothing,
    guards=(control_is_running,),
    extract=lambda _view, _seen: Nothing(),
)
def end_summary_retry_wait(view: View, _: Nothing) -> Writes:
    """The wait is over: the next attempt is ready, which its intent will follow (decision AMB-32)."""
    match view.structural:
        case Generating(generation=SummaryRetryWait(context=context, next_attempt=number)):
            return set_generation(view, SummaryReady(context=context, next_attempt=number))
    raise NotThis("no summary waits for a retry")
