"""The choices of what happens beside an operation: queues and drains, abort, facts, lanes, an administrator."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from restartpoint_reference.explore.choices.alphabet import CONFIGURATION, OTHER_CONFIGURATION, usage, user
from restartpoint_reference.explore.choices.moment import Choice, Moment
from restartpoint_reference.shapes import UNSET, JsonObject
from restartpoint_reference.transitions.cancellation import Abort
from restartpoint_reference.transitions.checkpoint import Drain
from restartpoint_reference.transitions.copies import CopiedLane, ForkInto, ImportV3
from restartpoint_reference.transitions.facts import FactAddress, RecordUsage, SessionId, SetFact
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.finalization import Finalize
from restartpoint_reference.transitions.frame import Inputs
from restartpoint_reference.transitions.queues import DeferredWrite, IdleWrite, QueuedId, QueuedMessage
from restartpoint_reference.transitions.session import Configuration, CreateLane
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.registers import ErrorCode, OperationError, Outcome, RunCompletion
from restartpoint_reference.vocabulary.states import RunState


def _message(at: Moment) -> Iterator[Inputs]:
    yield QueuedMessage(id=at.mint(), message=user("also"))


def _deferred_write(at: Moment) -> Iterator[Inputs]:
    for custom in at.alphabet.custom_writes:
        if custom:
            yield DeferredWrite(id=at.mint(), custom_type="note")
        else:
            yield DeferredWrite(id=at.mint(), message=user("note"))


def _idle_write(at: Moment) -> Iterator[Inputs]:
    for custom in at.alphabet.custom_writes:
        if custom:
            yield IdleWrite(id=at.mint(), custom_type="note")
        else:
            yield IdleWrite(id=at.mint(), message=user("note"))


def _writes(at: Moment) -> Iterable[Inputs]:
    """A later write may wait for the next drain, one that waited before may not (decision AMB-21)."""
    return (Drain(count=count) for count in range(1, len(at.view.run.inbox.writes) + 1))


def _revival(at: Moment) -> Iterator[Inputs]:
    """Each list of the inbox, with what one drain of it may take."""
    inbox = at.view.run.inbox
    for queue, ids in ((Queue.WRITES, inbox.writes), (Queue.STEER, inbox.steer), (Queue.FOLLOW_UP, inbox.follow_up)):
        for count in range(1, len(ids) + 1):
            yield Revival(queue=queue, count=count)


def _withdrawn(at: Moment) -> Iterable[Inputs]:
    state = at.view.operation_state
    inbox = state.inbox if isinstance(state, RunState) else None
    queued = () if inbox is None else (*inbox.steer, *inbox.follow_up, *inbox.writes)
    return (QueuedId(id=key) for key in queued)


def _withdrawn_next_run(at: Moment) -> Iterable[Inputs]:
    return (QueuedId(id=key) for key in at.view.lane_state.pending_next_run)


def _abort(_: Moment) -> Iterator[Inputs]:
    yield Abort(requested_at=0)


def _finalize(at: Moment) -> Iterator[Inputs]:
    """The outcome that an operation might have had, or another."""
    completion = RunCompletion.ASSISTANT if isinstance(at.view.operation_state, RunState) else UNSET
    yield Finalize(outcome=Outcome.ABORTED)
    yield Finalize(outcome=Outcome.COMPLETED, run_completion=completion)
    yield Finalize(
        outcome=Outcome.FAILED, error=OperationError(code=ErrorCode.PROVIDER_ERROR, message="given up")
    )  # fmt: skip


def _configuration(_: Moment) -> Iterator[Inputs]:
    yield Configuration(configuration=CONFIGURATION)


def _other_configuration(_: Moment) -> Iterator[Inputs]:
    yield Configuration(configuration=OTHER_CONFIGURATION)


def _fact(at: Moment) -> Iterator[Inputs]:
    yield SetFact(namespace=Namespace.FACT_NAME, key="", value="a name")
    yield SetFact(namespace=Namespace.FACT_CUSTOM, key="a fact", value=None)
    for key in at.view.state.entries:
        yield SetFact(namespace=Namespace.FACT_LABEL, key=key, value="here")


def _fact_address(at: Moment) -> Iterator[Inputs]:
    yield FactAddress(namespace=Namespace.FACT_NAME, key="")
    yield FactAddress(namespace=Namespace.FACT_CUSTOM, key="a fact")
    for key in at.view.state.entries:
        yield FactAddress(namespace=Namespace.FACT_LABEL, key=key)


def _usage(at: Moment) -> Iterator[Inputs]:
    yield RecordUsage(id=at.mint(), usage=usage(1))
    for key in at.view.state.entries:
        yield RecordUsage(id=at.mint(), usage=usage(1), entry_id=key, details="corrected")


def _create_lane(at: Moment) -> Iterator[Inputs]:
    for anchor in (None, *at.view.state.entries):
        yield CreateLane(configuration=CONFIGURATION, anchor=anchor)


def _fork(at: Moment) -> Iterator[Inputs]:
    key = at.mint()
    entry: JsonObject = {"id": key, "parentId": None, "type": "message", "message": user("copied")}
    facts = (SetFact(namespace=Namespace.FACT_LABEL, key=key, value="here"),)
    main = CopiedLane(name="main", configuration=CONFIGURATION, leaf_id=key)
    side = CopiedLane(name="side", configuration=CONFIGURATION, leaf_id=None)
    yield ForkInto(entries=(entry,), facts=facts, lanes=(main,))
    yield ForkInto(entries=(entry,), facts=(), lanes=(main, side))


def _import(at: Moment) -> Iterator[Inputs]:
    key = at.mint()
    entry: JsonObject = {"id": key, "parentId": None, "type": "message", "message": user("imported")}
    yield ImportV3(entries=(entry,), facts=(), leaf_id=key, usage_id=at.mint(1))


def _session_id(_: Moment) -> Iterator[Inputs]:
    yield SessionId(id="strand")


BESIDE: Final[Mapping[str, Choice]] = {
    "enqueue_steer": _message, "enqueue_follow_up": _message, "enqueue_next_run": _message,
    "defer_write": _deferred_write, "write_idle": _idle_write, "cancel_queued": _withdrawn,
    "cancel_next_run": _withdrawn_next_run, "apply_writes": _writes, "apply_projecting_writes": _writes,
    "apply_writes_in_failure": _writes, "revive_from_failure": _revival, "abort_run": _abort,
    "abort_structural": _abort, "finalize_externally": _finalize, "configure_lane": _other_configuration,
    "set_fact": _fact, "delete_fact": _fact_address, "record_usage": _usage, "ensure_id": _session_id,
    "seed_main": _configuration, "ensure_strand": _configuration, "create_lane": _create_lane, "fork_into": _fork,
    "import_v3": _import,
}  # fmt: skip
