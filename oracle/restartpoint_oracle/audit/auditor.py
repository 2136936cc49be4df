"""The audit of one file as it goes on: the standing, and everything that is told of it at the end."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from restartpoint_oracle.audit import damaged
from restartpoint_oracle.audit.findings import FileFormat, Finding, Kind, NamedCommit, Report
from restartpoint_oracle.audit.judging import SeenCommit, Standing, Verdict, judge, judge_state
from restartpoint_reference import UNSET, Json, Refused, State, Violation, apply

__all__ = ["Auditor"]


class Auditor:
    """Takes rows, then commits, in the order of a file. ``going`` turns False when nothing later can be judged."""

    def __init__(self, path: str, *, keep_commits: bool, finalizations_admitted: bool) -> None:
        self.path = path
        self.format: FileFormat | None = None
        self.session: str | None = None
        self.torn_bytes = 0
        self.going = True
        self._standing = Standing.of(State.empty(), finalizations_admitted=finalizations_admitted)
        self._keep = keep_commits
        self._rows = self._commits = self._restarts = 0
        self._names: Counter[str] = Counter()
        self._findings: list[Finding] = []
        self._named: list[NamedCommit] = []
        self._stopped: str | None = None

    # --- the state that a file starts from, or is

    def row(self, element: Json, line: int) -> None:
        """Take a current row (§1.7); one that cannot stand beside the ones before it stops the audit."""
        self._rows += 1
        try:
            observed = damaged.observed([element])
        except Refused as refused:
            self._refuse(str(refused), line)
            return
        timestamp = 0 if observed.timestamp is UNSET else observed.timestamp
        applied = apply(self._standing.state, observed.writes, timestamp=timestamp, seqs=observed.seqs)
        if isinstance(applied, Violation):
            self._refuse(str(applied), line)
        else:
            self._standing = replace(self._standing, state=applied[0])

    def state(self, state: State, rows: int) -> None:
        """Take a whole state instead of its rows."""
        self._rows = rows
        self._standing = replace(self._standing, state=state)

    def start(self, line: int | None, *, next_seq: int = 0) -> None:
        """Hold the state so far to what is true of every state, and judge commits from ``next_seq`` on from there."""
        state = self._standing.state
        state = replace(state, next_seq=max(state.next_seq, next_seq))
        self._standing = self._standing.anew(state)
        self._check(line)

    def _check(self, line: int | None) -> None:
        self._standing, findings = judge_state(self._standing)
        self._findings.extend(finding.at(line, None) for finding in findings)

    def _refuse(self, reason: str, line: int) -> None:
        self.find(Finding(kind=Kind.ROWS, section="1.7", differences=(reason,)), line)
        self.stop(f"the rows of line {line} cannot be taken, so nothing after them is judged")

    # --- commits

    def commit(self, commit: SeenCommit, line: int) -> None:
        """Judge the next commit."""
        self._commits += 1
        verdict = judge(self._standing, commit)
        if verdict.explained is not None:
            self._names[verdict.explained.name] += 1
        if verdict.findings:
            self._findings.extend(finding.at(line, self._commits, verdict.seqs) for finding in verdict.findings)
        if self._keep:
            self._named.append(_named(verdict, self._commits, line))
        if verdict.after is None:
            self.stop(f"commit {self._commits} (line {line}) leaves no state, so nothing after it is judged")
        else:
            self._standing = verdict.after

    def restart(self) -> None:
        """The process that made the commits so far is gone, and another one owns the session."""
        self._restarts += 1
        self._standing = self._standing.restarted()

    def expect_restarts(self) -> None:
        """The file tells of every restart; before the first row or commit."""
        self._standing = replace(self._standing, restarts_are_seen=True).restarted()

    # --- what is wrong, and the end

    def find(self, finding: Finding, line: int | None) -> None:
        """Add a finding of the file itself."""
        self._findings.append(finding.at(line, None))

    def ambiguous(self, faults: tuple[str, ...], line: int) -> None:
        """Add what two JSON readers would read differently in a line."""
        if faults:
            self.find(Finding(kind=Kind.TEXT, section="1.1", differences=faults), line)

    def stop(self, reason: str) -> None:
        """Judge nothing more."""
        self.going, self._stopped = False, reason

    def report(self, *, unreadable: str | None = None) -> Report:
        """The end: the last state is held to everything once more, unless the file ended otherwise than by its end."""
        if self.going and unreadable is None:
            self._check(None)
        return Report(
            path=self.path,
            format=self.format,
            session=self.session,
            rows=self._rows,
            commits=self._commits,
            restarts=self._restarts,
            torn_bytes=self.torn_bytes,
            transitions=dict(self._names),
            findings=tuple(self._findings),
            named=tuple(self._named),
            stopped=self._stopped,
            unreadable=unreadable,
        )

    def begins_with(self, elements: Json) -> bool:
        """Whether a transition of the model makes these elements from nothing."""
        return judge(Standing.of(State.empty()), SeenCommit(elements=elements)).explained is not None


def _named(verdict: Verdict, number: int, line: int) -> NamedCommit:
    found = verdict.explained
    return NamedCommit(
        number=number,
        line=line,
        seqs=verdict.seqs,
        name=None if found is None else found.name,
        id=None if found is None else found.id,
        section=next((finding.section for finding in verdict.findings), "") if found is None else found.section,
        lane=None if found is None else found.lane,
        detail="" if found is None else found.detail,
        sound=not verdict.findings,
    )
