"""Whether the commits of each operation come in the order of its procedure (§3.12, §4.5, §4.6, decision AMB-87).

``explain`` says that a transition makes this commit from this state; here is whether it was this transition's turn. A
step may have been chosen before a public call changed the state, so it is legal when it was a next step of any durable
state since the operation's previous step. Only the ends of a run re-read the inbox before they commit.

An operation ends out of turn only by an administrator's hand (§4.9). No public call does that (decision AMB-77), and
any wrong end would look like it: so such an end is a misstep unless somebody declares it.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, Self

from restartpoint_reference.explain import Explained
from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.procedure import Names, next_steps, pending_effect, pending_effects
from restartpoint_reference.store import State
from restartpoint_reference.transitions import ALIKE, TRANSITIONS
from restartpoint_reference.transitions.frame import Commit, NotThis, View
from restartpoint_reference.vocabulary.entries import Namespace

REREADING: Final = frozenset({
    "append_run_end_follow_up", "finish_run", "finish_terminated_tools", "finish_aborted_run", "finish_failed",
})  # fmt: skip
"""The steps that re-read the inbox in their mutation: what arrived before them comes first (decision AMB-87)."""

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

    ``now`` are the steps of the newest state, ``chosen`` those of every state since the operation's previous step, and
    ``lost`` are the effects whose process is gone. A state that is too damaged to be read says nothing
    (``is_readable``); what is wrong with it is the invariants' to say.
    """

    view: View
    now: Names
    chosen: frozenset[str]
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
                lanes = lanes.set(lane, _due(view, lost, (), restarts_are_seen=restarts_are_seen))
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
            lanes = lanes.set(lane, _due(found.view, lost, (), restarts_are_seen=self.restarts_are_seen))
        return self._with(lanes)

    def _lost(self, lane: str, operation_id: str) -> frozenset[str]:
        """The effects of an operation whose process is known to be gone."""
        before = self.lanes.get(lane)
        return before.lost if before is not None and before.view.operation_id == operation_id else frozenset()

    def due(self, lane: str) -> Names:
        """The steps that the newest state asks for on a lane, in the order of the procedure; empty when it is idle."""
        found = self.lanes.get(lane)
        return () if found is None else found.now

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
            misstep = _misstep(commit.name, commit.lane, before, restarts_are_seen=self.restarts_are_seen)
            if misstep is not None:
                return misstep
        view = View(state, commit.lane)
        if not _is_open(view):
            return self._with(self.lanes if before is None else self.lanes.remove(commit.lane))
        lost = self._lost(commit.lane, view.operation_id)
        same = before is not None and before.view.operation_id == view.operation_id
        chosen = before.chosen if before is not None and same and is_public else ()
        due = _due(view, lost, chosen, restarts_are_seen=self.restarts_are_seen)
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


def _due(view: View, lost: frozenset[str], chosen: Iterable[str], *, restarts_are_seen: bool) -> _Due:
    try:
        if restarts_are_seen:
            now = next_steps(view, orphaned=pending_effect(view) in lost)
        else:
            now = tuple(dict.fromkeys((*next_steps(view), *next_steps(view, orphaned=True))))
    except (NotThis, ValueError):
        return _Due(view=view, now=(), chosen=frozenset(), lost=lost, is_readable=False)
    return _Due(view=view, now=now, chosen=frozenset((*chosen, *now)), lost=lost)


def _misstep(name: str, lane: str, due: _Due | None, *, restarts_are_seen: bool) -> Misstep | None:
    if due is None:
        return Misstep(
            name=name, section="3.1", lane=lane, missing=(), reason=f"lane {lane} has no operation under way"
        )
    if not due.is_readable or name in (due.now if name in REREADING else due.chosen):
        return None
    orphaned = pending_effect(due.view) in due.lost
    first = _alternatives(due.now)
    if name in due.chosen:
        reason = f"{name} was due before input arrived, and re-reads the inbox: {first} is due now"
    elif restarts_are_seen and name in next_steps(due.view, orphaned=not orphaned):
        whose = "the process that started the effect is gone" if orphaned else "the effect's own process is alive"
        reason = f"{whose}: {first} is due"
    else:
        reason = f"{first} is due first and was skipped"
    found = next((TRANSITIONS[step] for step in due.now if step in TRANSITIONS), TRANSITIONS[name])
    return Misstep(name=name, section=found.section, lane=lane, missing=due.now, reason=reason)


def _may_be_a_finalization(name: str) -> bool:
    """Whether an external finalization can make the very same writes."""
    return frozenset({FINALIZATION, name}) in ALIKE


def _undeclared(lane: str, due: _Due | None) -> Misstep:
    now = () if due is None else due.now
    reason = f"an external finalization (§4.9) that nobody declared, while {_alternatives(now)} is due"
    return Misstep(name=FINALIZATION, section=TRANSITIONS[FINALIZATION].section, lane=lane, missing=now, reason=reason)


def _alternatives(names: Names) -> str:
    *most, last = names or ("nothing",)
    return f"{', '.join(most)} or {last}" if most else last
