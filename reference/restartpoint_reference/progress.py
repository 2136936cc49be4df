"""Whether the commits of each operation come in the order of its procedure (§3.12, §4.5, §4.6, decision AMB-87).

``explain`` says that a transition makes this commit from this state; here is whether it was this transition's turn. A
step may have been chosen before a public call changed the state, so it is legal when it was a next step of any durable
state since the operation's previous step. Only the ends of a run re-read the inbox before they commit.

An operation ends out of turn only by an administrator's hand (§4.9). No public call does that (decision AMB-77), and
any wrong end would look like it: so such an end is a misstep unless somebody declares it.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from restartpoint_reference.explain import Explained
from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.procedure import Names, next_steps, pending_effect, pending_effects, variants
from restartpoint_reference.shapes import Json
from restartpoint_reference.store import State
from restartpoint_reference.transitions import ALIKE, TRANSITIONS
from restartpoint_reference.transitions.failure import Queue, Revival
from restartpoint_reference.transitions.frame import Commit, NotThis, View
from restartpoint_reference.transitions.tools import IntendTool
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.states import CompactionState, NavigationState, RunState

REREADING: Final = frozenset({
    "append_run_end_follow_up", "finish_run", "finish_terminated_tools", "finish_aborted_run", "finish_failed",
    "finish_aborted_deferred", "finish_aborted_compaction_in_run",
})  # fmt: skip
"""The steps that re-read the inbox in their mutation: what arrived before them comes first (decision AMB-87)."""

DRAINS: Final = frozenset({
    "apply_writes", "apply_projecting_writes", "apply_writes_in_failure", "revive_from_failure",
})  # fmt: skip
"""The steps that may take deferred writes; the revival of a failed run when its list is that of the writes (§3.12)."""

FINALIZATION: Final = "finalize_externally"
"""The end of an operation from outside (§4.9)."""


@dataclass(frozen=True, kw_only=True)
class Misstep:
    """A commit whose turn it was not. ``missing`` are the steps that were due instead, one of which was skipped."""

    name: str
    section: str
    lane: str
    missing: Names
    reason: str

    def __str__(self) -> str:
        return f"{self.name} on lane {self.lane} came out of turn (§{self.section}): {self.reason}"


@dataclass(frozen=True, kw_only=True, eq=False)
class _Due:
    """What one open operation may commit next.

    ``now`` are the steps of the newest state with the variants that may come, () where a step has only one, ``chosen``
    those of every state since the operation's previous step. ``writes`` are the deferred writes that waited at that
    step, and ``lost`` the effects whose process is gone. A state that is too damaged to be read says nothing
    (``is_readable``); what is wrong with it is the invariants' to say.
    """

    view: View
    now: Mapping[str, Names]
    chosen: frozenset[tuple[str, str]]
    writes: tuple[str, ...]
    lost: frozenset[str]
    is_readable: bool = True


@dataclass(frozen=True, kw_only=True, eq=False)
class Progress:
    """What every open operation of a session may commit next; a value that moves with each commit.

    ``restarts_are_seen`` says that somebody tells of every new owner (``attached``). Otherwise, as in a file, each
    effect may have been orphaned at any time, and the steps of a live process and of a new one are both legal.
    ``finalizations_admitted`` says that an administrator may end operations from outside, unannounced.
    """

    lanes: PersistentMap[str, _Due]
    restarts_are_seen: bool
    finalizations_admitted: bool

    @classmethod
    def of(cls, state: State, *, restarts_are_seen: bool = True, finalizations_admitted: bool = False) -> Self:
        """The progress of a session that was just opened: whatever is pending has lost its process (§4.5)."""
        lanes: PersistentMap[str, _Due] = PersistentMap()
        for lane in state.keys(Namespace.LANE_STATE):
            view = View(state, lane)
            if _is_open(view):
                lost = pending_effects(view)
                lanes = lanes.set(lane, _due(view, lost, None, restarts_are_seen=restarts_are_seen))
        return cls(lanes=lanes, restarts_are_seen=restarts_are_seen, finalizations_admitted=finalizations_admitted)

    def attached(self, state: State) -> Self:
        """The progress after a new owner attached to the session: nothing that an earlier one chose can commit."""
        return self.of(
            state, restarts_are_seen=self.restarts_are_seen, finalizations_admitted=self.finalizations_admitted
        )

    def reread(self, state: State) -> Self:
        """The progress when the outcome of a commit was not seen and the same owner goes on from what is durable."""
        fresh = self.attached(state)
        lanes = fresh.lanes
        for lane, found in fresh.lanes.items():
            lost = self._lost(lane, found.view.operation_id)
            before = self.lanes.get(lane)
            kept = before if before is not None and _place(before.view) == _place(found.view) else None
            lanes = lanes.set(lane, _due(found.view, lost, kept, restarts_are_seen=self.restarts_are_seen))
        return self._with(lanes)

    def _lost(self, lane: str, operation_id: str) -> frozenset[str]:
        """The effects of an operation whose process is known to be gone."""
        before = self.lanes.get(lane)
        return before.lost if before is not None and before.view.operation_id == operation_id else frozenset()

    def due(self, lane: str) -> Names:
        """The steps that the newest state asks for on a lane, in the order of the procedure; empty when it is idle."""
        found = self.lanes.get(lane)
        return () if found is None else tuple(found.now)

    def chosen(self, lane: str) -> frozenset[str]:
        """The steps that were due on a lane at any state since the operation's previous step (decision AMB-87)."""
        found = self.lanes.get(lane)
        return frozenset() if found is None else frozenset(name for name, _ in found.chosen)

    def lost(self, lane: str) -> frozenset[str]:
        """The effects on a lane that may be under way and whose process is known to be gone."""
        found = self.lanes.get(lane)
        return frozenset() if found is None else found.lost & pending_effects(found.view)

    def mark(self, lane: str) -> Json:
        """What tells two progresses of one lane apart at the same state."""
        found = self.lanes.get(lane)
        if found is None:
            return None
        return [[[*step] for step in sorted(found.chosen)], [*found.writes], [*sorted(self.lost(lane))]]

    def after(self, commit: Explained | Commit, state: State, *, declared: bool = False) -> "Self | Misstep":
        """The progress after this commit, which led to ``state``; a misstep when it was not its turn.

        ``declared`` says that somebody vouches for an external finalization. To go on after a misstep, begin anew with
        ``of``.
        """
        if commit.lane is None:
            return self
        before = self.lanes.get(commit.lane)
        is_vouched_for = declared or self.finalizations_admitted
        if commit.name == FINALIZATION and not is_vouched_for:
            return _undeclared(commit.lane, before)
        is_public = TRANSITIONS[commit.name].public or (is_vouched_for and _may_be_a_finalization(commit.name))
        if not is_public:
            misstep = _misstep(commit, commit.lane, before, restarts_are_seen=self.restarts_are_seen)
            if misstep is not None:
                return misstep
        view = View(state, commit.lane)
        if before is not None and (left := _left_behind(commit, before, view)):
            return _partial(commit, commit.lane, left)
        if not _is_open(view):
            return self._with(self.lanes if before is None else self.lanes.remove(commit.lane))
        lost = self._lost(commit.lane, view.operation_id)
        same = before is not None and before.view.operation_id == view.operation_id
        due = _due(view, lost, before if same and is_public else None, restarts_are_seen=self.restarts_are_seen)
        return self._with(self.lanes.set(commit.lane, due))

    def _with(self, lanes: PersistentMap[str, _Due]) -> Self:
        return type(self)(
            lanes=lanes,
            restarts_are_seen=self.restarts_are_seen,
            finalizations_admitted=self.finalizations_admitted,
        )


def _is_open(view: View) -> bool:
    try:
        return view.operation_state is not None
    except NotThis:
        return False


def _place(view: View) -> tuple[str, object]:
    """Where an operation stands: what its own steps change and public calls do not."""
    match view.operation_state:
        case RunState(phase=phase, latest_assistant_entry_id=latest):
            return view.operation_id, (phase, latest)
        case CompactionState(structural=structural):
            return view.operation_id, structural
        case NavigationState(phase=phase):
            return view.operation_id, phase


def _due(view: View, lost: frozenset[str], kept: _Due | None, *, restarts_are_seen: bool) -> _Due:
    """What is due at a state, beside what was chosen before it since the operation's previous step (``kept``)."""
    try:
        histories = (lost,) if restarts_are_seen else (frozenset[str](), pending_effects(view))
        now = _steps(view, *histories)
    except (NotThis, ValueError):
        return _Due(view=view, now={}, chosen=frozenset(), writes=(), lost=lost, is_readable=False)
    chosen = frozenset((name, one) for name, found in now.items() for one in found or ("",))
    if kept is not None:
        return _Due(view=view, now=now, chosen=kept.chosen | chosen, writes=kept.writes, lost=lost)
    return _Due(view=view, now=now, chosen=chosen, writes=_waiting(view), lost=lost)


def _steps(view: View, *histories: frozenset[str]) -> Mapping[str, Names]:
    """The next steps and their variants, for each set of effects whose process may be gone."""
    found: dict[str, Names] = {}
    for lost in histories:
        admitted = variants(view, lost)
        for name in next_steps(view, orphaned=pending_effect(view) in lost):
            if name not in admitted:
                found[name] = ()
            elif admitted[name]:
                found[name] = tuple(dict.fromkeys((*found.get(name, ()), *admitted[name])))
    return found


def _waiting(view: View) -> tuple[str, ...]:
    return view.operation_state.inbox.writes if isinstance(view.operation_state, RunState) else ()


def _variant(commit: Explained | Commit) -> str:
    """Which of the commits of its name this is (see ``variants``)."""
    match commit.inputs:
        case IntendTool(source_index=place):
            return str(place)
        case Revival(queue=queue):
            return queue.value
        case _:
            return commit.detail


def _misstep(commit: Explained | Commit, lane: str, due: _Due | None, *, restarts_are_seen: bool) -> Misstep | None:
    name, variant = commit.name, _variant(commit)
    if due is None:
        return Misstep(
            name=name, section="3.1", lane=lane, missing=(), reason=f"lane {lane} has no operation under way"
        )
    chosen = {(name, ""), (name, variant)}
    if not due.is_readable or (name in due.now if name in REREADING else chosen & due.chosen):
        return None
    first = _alternatives(due.now, name)
    if name in REREADING and chosen & due.chosen:
        reason = f"{name} was due before input arrived, and re-reads the inbox: {first} is due now"
    elif restarts_are_seen and _was_due_otherwise(due, name, variant):
        orphaned = pending_effect(due.view) in due.lost
        whose = "the process that started the effect is gone" if orphaned else "the effect's own process is alive"
        reason = f"{whose}: {first} is due"
    elif name in due.now:
        reason = f"{name} came as {variant}, and {first} is due"
    else:
        reason = f"{first} is due first and was skipped"
    found = next((TRANSITIONS[step] for step in due.now if step in TRANSITIONS), TRANSITIONS[name])
    return Misstep(name=name, section=found.section, lane=lane, missing=tuple(due.now), reason=reason)


def _was_due_otherwise(due: _Due, name: str, variant: str) -> bool:
    """Whether the step would be in turn if the process of the effect that settles next had lived, or had ended."""
    pending = pending_effect(due.view)
    if pending is None:
        return False
    found = _steps(due.view, due.lost ^ {pending})
    return name in found and (not found[name] or variant in found[name])


def _left_behind(commit: Explained | Commit, before: _Due, view: View) -> tuple[str, ...]:
    """The deferred writes that waited before the drain was chosen and are not in it (§3.12, decision AMB-21)."""
    if commit.name not in DRAINS or (commit.name == "revive_from_failure" and _variant(commit) != Queue.WRITES):
        return ()
    still = _waiting(view)
    return tuple(queued for queued in before.writes if queued in still)


def _partial(commit: Explained | Commit, lane: str, left: tuple[str, ...]) -> Misstep:
    reason = f"it leaves {', '.join(left)} behind, which waited before the drain was chosen"
    return Misstep(name=commit.name, section="3.12", lane=lane, missing=(commit.name,), reason=reason)


def _may_be_a_finalization(name: str) -> bool:
    """Whether an external finalization can make the very same writes."""
    return frozenset({FINALIZATION, name}) in ALIKE


def _undeclared(lane: str, due: _Due | None) -> Misstep:
    now = {} if due is None else due.now
    reason = f"an external finalization (§4.9) that nobody declared, while {_alternatives(now)} is due"
    section = TRANSITIONS[FINALIZATION].section
    return Misstep(name=FINALIZATION, section=section, lane=lane, missing=tuple(now), reason=reason)


def _alternatives(steps: Mapping[str, Names], name: str = "") -> str:
    """The steps in words; the one of this name with its variants."""
    said = [f"{step} ({' or '.join(found)})" if step == name and found else step for step, found in steps.items()]
    *most, last = said or ("nothing",)
    return f"{', '.join(most)} or {last}" if most else last
