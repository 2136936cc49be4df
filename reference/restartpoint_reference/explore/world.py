"""What may happen next to a lane: the steps of its procedure, and what the world outside does within bounds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from restartpoint_reference.explore.choices import Alphabet, Moment, choices
from restartpoint_reference.procedure import next_steps, pending_effect, pending_effects
from restartpoint_reference.store import State
from restartpoint_reference.transitions.frame import OPEN, Inputs, Transition, View
from restartpoint_reference.transitions.table import TRANSITIONS

COSTS: Final[Mapping[str, str]] = MappingProxyType({
    "accept_run": "operations", "accept_compaction": "operations", "accept_navigation": "operations",
    "accept_summarized_navigation": "operations", "start_generation": "turns", "intend_poll": "polls",
    "mark_threshold_checked": "checks", "begin_threshold_compaction": "compactions", "settle_overflow": "compactions",
    "intend_summary_request": "requests", "enqueue_steer": "items", "enqueue_follow_up": "items",
    "enqueue_next_run": "items", "defer_write": "items", "write_idle": "items", "append_run_end_follow_up": "items",
    "cancel_queued": "withdrawals", "cancel_next_run": "withdrawals", "abort_run": "aborts",
    "abort_structural": "aborts", "finalize_externally": "aborts", "create_lane": "lanes", "ensure_strand": "lanes",
    "configure_lane": "settings", "set_fact": "facts", "delete_fact": "facts", "record_usage": "facts",
    "ensure_id": "facts",
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

    ``lanes`` need not exist yet. ``bounds`` limits crashes and what ``COSTS`` names, ``full`` has the wider limits of a
    long search; ``public`` names the calls that the world may make.
    """

    name: str
    summary: str
    lanes: tuple[str, ...] = ("main",)
    opening: tuple[Move, ...]
    public: tuple[str, ...]
    alphabet: Alphabet
    bounds: Mapping[str, int]
    full: Mapping[str, int]


def lanes_of(slice: Slice, state: State) -> tuple[View, ...]:
    """The lanes of the slice in a state."""
    return tuple(View(state, lane) for lane in slice.lanes)


def moves(slice: Slice, view: View, spent: Mapping[str, int], orphans: frozenset[str]) -> Iterator[Move]:
    """Every transition of this lane that the slice admits now, with each of the inputs that the world may choose."""
    at = Moment(view=view, alphabet=slice.alphabet, orphaned=pending_effect(view) in orphans)
    called = (name for name in slice.public if view.phase in TRANSITIONS[name].phases)
    for name in (*next_steps(view, orphaned=at.orphaned), *called):
        resource = COSTS.get(name)
        if resource is None or spent.get(resource, 0) < slice.bounds.get(resource, 0):
            for inputs in choices(name, at):
                yield Move(transition=TRANSITIONS[name], lane=view.lane, inputs=inputs)


def effects(slice: Slice, state: State) -> frozenset[str]:
    """What may be under way on any lane, by its identity."""
    busy = (view for view in lanes_of(slice, state) if view.phase in OPEN)
    return frozenset(effect for view in busy for effect in pending_effects(view))
