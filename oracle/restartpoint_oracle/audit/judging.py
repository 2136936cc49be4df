"""One commit held to the model: which transition it is and whose turn, whether storage takes it, what state it leaves.

Pure: a ``Standing`` is what is known before a commit, ``judge`` answers the findings and the standing after it. So a
commit that no transition makes is found once, and judging goes on from the state that it made, as long as there is one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from restartpoint_oracle.audit import damaged
from restartpoint_oracle.audit.damaged import UNREADABLE
from restartpoint_oracle.audit.findings import Finding, Kind
from restartpoint_oracle.audit.restoring import restore_problems
from restartpoint_reference import (
    ALIKE,
    UNSET,
    Explained,
    Json,
    Refused,
    State,
    Unexplained,
    Unset,
    Violation,
    apply,
    invariants,
)
from restartpoint_reference.progress import FINALIZATION, Misstep, Progress

__all__ = ["SeenCommit", "Standing", "Verdict", "judge", "judge_state"]


@dataclass(frozen=True, kw_only=True)
class SeenCommit:
    """A commit as a file tells it: its elements in order (§1.7), and what the file claims that it is."""

    elements: Json
    timestamp: int | Unset = UNSET
    claimed_name: str | None = None
    claimed_lane: str | None = None


@dataclass(frozen=True, kw_only=True)
class Standing:
    """What is known of a session between two commits.

    ``broken`` are the invariants that were found broken already. ``progress`` is None where the state is so damaged
    that it does not say what comes next.
    """

    state: State
    restarts_are_seen: bool
    finalizations_admitted: bool
    progress: Progress | None
    broken: frozenset[str] = frozenset()

    @classmethod
    def of(cls, state: State, *, restarts_are_seen: bool = False, finalizations_admitted: bool = False) -> Standing:
        """At this state, of which nothing was found yet.

        Unless ``restarts_are_seen``, each effect may have lost its process at any time, since no file of a session says
        who wrote it: then the steps of a live process and those of a recovery are both legal. That an administrator may
        have ended an operation from outside (§4.9) is nothing that a file says, so somebody has to admit it.
        """
        return cls(
            state=state,
            restarts_are_seen=restarts_are_seen,
            finalizations_admitted=finalizations_admitted,
            progress=None,
        ).anew(state)

    def anew(self, state: State) -> Standing:
        """At another state, about which nothing is known of what led to it."""
        try:
            progress = Progress.of(
                state,
                restarts_are_seen=self.restarts_are_seen,
                finalizations_admitted=self.finalizations_admitted,
            )
        except UNREADABLE:
            progress = None
        return replace(self, state=state, progress=progress)

    def restarted(self) -> Standing:
        """After the process that made the commits so far is gone, and another one owns the session (§4.5)."""
        return self.anew(self.state)

    def after(
        self, state: State, explained: Explained | None, *, declared: bool
    ) -> tuple[Standing, tuple[Finding, ...]]:
        """At the state after a commit, and whether it was that transition's turn; after none, whatever is due is.

        ``declared`` says that the file itself calls the commit an external finalization.
        """
        moved = None
        if explained is not None and self.progress is not None:
            moved = _moved(self.progress, explained, state, declared=declared)
        if isinstance(moved, Progress):
            return replace(self, state=state, progress=moved), ()
        anew = self.anew(state)
        if moved is None:
            return anew, ()
        return anew, (Finding(kind=Kind.PROCEDURE, section=moved.section, differences=(moved.reason,)),)


def _moved(progress: Progress, explained: Explained, state: State, *, declared: bool) -> Progress | Misstep | None:
    try:
        return progress.after(explained, state, declared=declared)
    except UNREADABLE:
        return None


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """A judged commit. ``after`` is None when there is no state after it, so that nothing later can be judged."""

    explained: Explained | None
    seqs: tuple[int, ...]
    findings: tuple[Finding, ...]
    after: Standing | None


def judge(before: Standing, commit: SeenCommit) -> Verdict:
    """The verdict on the next commit of a session."""
    try:
        observed = damaged.observed(commit.elements, commit.timestamp)
    except Refused as refused:
        unread = Finding(kind=Kind.UNEXPLAINED, section="1.4", differences=(f"writes{refused}",))
        return Verdict(explained=None, seqs=(), findings=(unread,), after=None)
    answer = damaged.explained(before.state, observed)
    explained = answer if isinstance(answer, Explained) else None
    findings = list(_claims(answer, commit) if isinstance(answer, Explained) else _unexplained(answer))
    timestamp = 0 if observed.timestamp is UNSET else observed.timestamp
    if timestamp < 0:
        findings.append(Finding(kind=Kind.RULE, section="1.1", differences=(f"the timestamp is {timestamp}",)))
    applied = apply(before.state, observed.writes, timestamp=timestamp, seqs=observed.seqs)
    if isinstance(applied, Violation):
        findings.append(Finding(kind=Kind.RULE, section="1.4", differences=(str(applied),)))
        return Verdict(explained=explained, seqs=observed.seqs, findings=_named(findings, explained), after=None)
    state, delta = applied
    moved, missteps = before.after(state, explained, declared=commit.claimed_name == FINALIZATION)
    standing, broken = _held(moved, damaged.broken(lambda: invariants.check_commit(state, delta)))
    findings.extend((*missteps, *broken))
    return Verdict(explained=explained, seqs=observed.seqs, findings=_named(findings, explained), after=standing)


def judge_state(standing: Standing) -> tuple[Standing, tuple[Finding, ...]]:
    """What is wrong with a whole state and was not found before: invariants, and what restore checks (§4.4)."""
    held, broken = _held(standing, damaged.broken(lambda: invariants.check(standing.state)))
    try:
        with damaged.refusing():
            lost = tuple(restore_problems(standing.state))
    except Refused as refused:
        lost = (str(refused),)
    found = [Finding(kind=Kind.ROWS, section="3.3, 4.4", differences=lost)] if lost else []
    return held, (*broken, *found)


def _held(standing: Standing, broken: tuple[invariants.Broken, ...]) -> tuple[Standing, tuple[Finding, ...]]:
    if not broken and not standing.broken:
        return standing, ()
    fresh = [one for one in broken if str(one) not in standing.broken]
    findings = tuple(
        Finding(
            kind=Kind.INVARIANT, section=section, differences=tuple(str(one) for one in fresh if one.section == section)
        )
        for section in dict.fromkeys(one.section for one in fresh)
    )
    return replace(standing, broken=frozenset(str(one) for one in broken)), findings


def _unexplained(answer: Unexplained) -> tuple[Finding, ...]:
    return (
        Finding(
            kind=Kind.UNEXPLAINED,
            section=answer.section,
            transition=answer.nearest,
            lane=answer.lane,
            differences=answer.differences,
        ),
    )


def _claims(found: Explained, commit: SeenCommit) -> tuple[Finding, ...]:
    lines: list[str] = []
    claimed, lane = commit.claimed_name, commit.claimed_lane
    if claimed is not None and claimed != found.name and frozenset({claimed, found.name}) not in ALIKE:
        lines.append(f"the trace calls it {claimed}, the model {found.name}")
    if lane is not None and found.lane is not None and lane != found.lane:
        lines.append(f"the trace places it on lane {lane!r}, the model on {found.lane!r}")
    return (Finding(kind=Kind.CLAIM, section=found.section, differences=tuple(lines)),) if lines else ()


def _named(findings: list[Finding], explained: Explained | None) -> tuple[Finding, ...]:
    if explained is None:
        return tuple(findings)
    return tuple(replace(one, transition=explained.name, lane=explained.lane) for one in findings)
