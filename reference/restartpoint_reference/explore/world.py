"""What may happen next to a lane: the steps of its procedure, and what the world outside does within bounds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from restartpoint_reference.explore.alphabet import Alphabet
from restartpoint_reference.explore.choices import Moment, choices
from restartpoint_reference.procedure import next_steps
from restartpoint_reference.store import State
from restartpoint_reference.transitions.frame import Inputs, NotThis, Transition, View
from restartpoint_reference.transitions.table import TRANSITIONS
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    DeferredPending,
    DeferredPhase,
    Generating,
    GenerationPending,
    PendingCall,
    RunState,
    SummaryPending,
    ToolsPhase,
)

COSTS: Final[Mapping[str, str]] = MappingProxyType({
    "accept_run": "operations", "accept_compaction": "operations", "accept_navigation": "operations",
    "accept_summarized_navigation": "operations", "start_generation": "turns", "intend_poll": "polls",
    "mark_threshold_checked": "checks", "begin_threshold_compaction": "compactions", "settle_overflow": "compactions",
    "intend_summary_request": "requests", "enqueue_steer": "items", "enqueue_follow_up": "items",
    "enqueue_next_run": "items", "defer_write": "items", "write_idle": "items", "append_run_end_follow_up": "items",
    "cancel_queued": "withdrawals", "cancel_next_run": "withdrawals", "abort_run": "aborts",
    "abort_structural": "aborts", "finalize_externally": "aborts", "create_lane": "lanes",
    "configure_lane": "settings", "set_fact": "facts", "delete_fact": "facts", "record_usage": "facts",
})  # fmt: skip
"""What a transition uses up; every other one is free, since it only brings an operation nearer to its end."""


@dataclass(frozen=True, kw_only=True)
class Move:
    """A transition with inputs that the world may choose; a guard may still forbid it."""

    transition: Transition
    lane: str
    inputs: Inputs


@dataclass(frozen=True, kw_only=True)
class Slice:
    """A part of the state machine that is explored by itself: what the world may do, and how often.

    ``bounds`` limits crashes and what ``COSTS`` names, ``full`` has the wider limits of a long search; ``public`` names
    the calls that the world may make.
    """

    name: str
    summary: str
    opening: tuple[Move, ...]
    public: tuple[str, ...]
    alphabet: Alphabet
    bounds: Mapping[str, int]
    full: Mapping[str, int]


def lanes_of(state: State) -> tuple[View, ...]:
    """Every lane of a state, by name."""
    return tuple(View(state, lane) for lane in state.keys(Namespace.LANE_STATE))


def moves(slice: Slice, view: View, spent: Mapping[str, int], orphans: frozenset[str]) -> Iterator[Move]:
    """Every transition of this lane that the slice admits now, with each of the inputs that the world may choose."""
    at = Moment(view=view, alphabet=slice.alphabet, orphaned=next(iter(pending_effects(view)), "") in orphans)
    for name in (*next_steps(view, orphaned=at.orphaned), *slice.public):
        resource = COSTS.get(name)
        if resource is None or spent.get(resource, 0) < slice.bounds.get(resource, 0):
            for inputs in choices(name, at):
                yield Move(transition=TRANSITIONS[name], lane=view.lane, inputs=inputs)


def pending_effects(view: View) -> tuple[str, ...]:
    """The effects that may be under way, by what they reserved, in the order in which they settle."""
    try:
        match view.operation_state:
            case RunState(phase=AssistantPhase(generation=GenerationPending(response_entry_id=key))):
                return (key,)
            case RunState(phase=DeferredPhase(deferred=DeferredPending(response_entry_id=key))):
                return (key,)
            case RunState(phase=ToolsPhase(batch=batch)):
                return tuple(call.result_entry_id for call in batch.calls if isinstance(call, PendingCall))
        match view.structural:
            case Generating(task_id=task, generation=SummaryPending(attempt=attempt)):
                return (f"{task}:{attempt}",)
    except NotThis:
        pass
    return ()
