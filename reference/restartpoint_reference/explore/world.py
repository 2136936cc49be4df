"""What may happen next to a lane: the steps of its procedure, and what the world outside does within bounds."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import Final

from restartpoint_reference.explore.choices import Alphabet, Moment, choices
from restartpoint_reference.explore.choices.alphabet import CONFIGURATION, response
from restartpoint_reference.procedure import pending_effect
from restartpoint_reference.store import State
from restartpoint_reference.transitions.frame import Inputs, Nothing, Transition, View
from restartpoint_reference.transitions.session import Configuration, CreateLane
from restartpoint_reference.transitions.table import TRANSITIONS

LANES: Final = ("main", "side", "third")
COSTS: Final[Mapping[str, str]] = MappingProxyType({
    name: resource
    for resource, names in {
        "operations": ("accept_run", "accept_compaction", "accept_navigation", "accept_summarized_navigation"),
        "turns": ("start_generation",),
        "polls": ("intend_poll",),
        "checks": ("mark_threshold_checked",),
        "compactions": ("begin_threshold_compaction", "settle_overflow"),
        "requests": ("intend_summary_request",),
        "items": (
            "enqueue_steer", "enqueue_follow_up", "enqueue_next_run", "defer_write", "write_idle",
            "append_run_end_follow_up",
        ),
        "withdrawals": ("cancel_queued", "cancel_next_run"),
        "aborts": ("abort_run", "abort_structural", "finalize_externally"),
        "creations": ("create_lane", "ensure_strand"),
        "settings": ("configure_lane",),
        "facts": ("set_fact", "delete_fact", "record_usage", "ensure_id"),
    }.items()
    for name in names
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

    ``public`` names the calls that the world may make, ``asks`` the stop reasons of responses that ask for tools.
    ``bounds`` limits what ``COSTS`` names, crashes, lanes, calls per response and attempts per request, and ``full``
    has the wider limits of a long search. ``opened`` says that the session and its lanes exist from the start.
    """

    name: str
    summary: str
    opened: bool = True
    public: tuple[str, ...]
    alphabet: Alphabet
    asks: tuple[str, ...] = ()
    bounds: Mapping[str, int]
    full: Mapping[str, int]

    @property
    def lanes(self) -> tuple[str, ...]:
        """The names of the lanes, which need not exist yet."""
        return LANES[: self.bounds.get("lanes", 1)]

    @cached_property
    def words(self) -> Alphabet:
        """The alphabet within the bounds."""
        calls = range(1, self.bounds.get("calls", 1) + 1)
        asking = tuple(response(stop, calls=count) for stop in self.asks for count in calls)
        said = (*self.alphabet.responses, *asking)
        return replace(self.alphabet, responses=said, attempts=self.bounds.get("attempts", 1))

    @property
    def opening(self) -> tuple[Move, ...]:
        """The moves before the search: a session whose lanes are configured."""
        if not self.opened:
            return ()
        main, *others = self.lanes
        created = CreateLane(configuration=CONFIGURATION, anchor=None)
        return (
            _move("create_session", main, Nothing()),
            _move("seed_main", main, Configuration(configuration=CONFIGURATION)),
            *(_move("create_lane", lane, created) for lane in others),
        )


def _move(name: str, lane: str, inputs: Inputs) -> Move:
    return Move(transition=TRANSITIONS[name], lane=lane, inputs=inputs)


def lanes_of(slice: Slice, state: State) -> tuple[View, ...]:
    """The lanes of the slice in a state."""
    return tuple(View(state, lane) for lane in slice.lanes)


def called(slice: Slice, view: View) -> tuple[str, ...]:
    """The public calls that the world may make on a lane in its phase."""
    return tuple(name for name in slice.public if view.phase in TRANSITIONS[name].phases)


def is_left(slice: Slice, name: str, spent: Mapping[str, int]) -> bool:
    """Whether the bounds admit one more transition of this name."""
    resource = COSTS.get(name)
    return resource is None or spent.get(resource, 0) < slice.bounds.get(resource, 0)


def moves(slice: Slice, view: View, name: str, lost: frozenset[str]) -> Iterator[Move]:
    """The transition of this name on a lane, with each of the inputs that the world may choose."""
    at = Moment(view=view, alphabet=slice.words, orphaned=pending_effect(view) in lost)
    return (_move(name, view.lane, inputs) for inputs in choices(name, at))
