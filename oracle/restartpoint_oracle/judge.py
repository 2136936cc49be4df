"""The judge: every commit of a storage explained by the model and held to the invariants, before its caller sees it.

The judge holds a state of the model and moves it with each commit that the judged storage accepted. It reads the
runtime's values through their JSON only (see `wire`), so a commit is what a file would say, not what an object means.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from restartpoint.contract import CommitResult, Transaction
from restartpoint.storage import Storage
from restartpoint_oracle.content import content_of_model, content_of_storage
from restartpoint_oracle.errors import ContentDiffers, InvariantViolated, JudgeViolation, OracleFinding
from restartpoint_oracle.wire import Json, JsonObject, commit_json, expectation_json
from restartpoint_reference import (
    Delta,
    Expectation,
    Explained,
    Misstep,
    Namespace,
    Observed,
    Progress,
    Refused,
    State,
    Unexplained,
    Violation,
    apply,
    differences,
    explain,
    invariants,
)
from restartpoint_reference.transitions.frame import Inputs, View

__all__ = ["Judge", "Judged", "lanes_of"]


@dataclass(frozen=True, kw_only=True)
class Judged:
    """An explained commit: the transition's name and table id, its lane and inputs, and what storage assigned.

    ``inserted`` are the ids of its entries, in order.
    """

    name: str
    id: str
    section: str
    lane: str | None
    inputs: Inputs
    seqs: tuple[int, ...]
    timestamp: int
    inserted: tuple[str, ...] = ()
    detail: str = ""


class Judge:
    """The model's state of one session, and what was judged on the way to it.

    ``history`` holds every explained commit in order, ``violations`` every finding: a harness may turn the exception
    into a fault of its own, so whoever ends a test asks ``verify``. After a finding the judge stops judging. The end of
    an operation from outside (§4.9) is a finding unless ``finalizations_admitted`` declares that there may be some.
    """

    def __init__(self, state: State, *, finalizations_admitted: bool = False) -> None:
        self.state = state
        self.history: list[Judged] = []
        self.violations: list[OracleFinding] = []
        self.unobserved = 0
        self._progress: Progress | None = None
        self._finalizations_admitted = finalizations_admitted
        self._listeners: list[Callable[[Judged], None]] = []

    @classmethod
    def of_new_session(cls, content: JsonObject, *, timestamp: int, finalizations_admitted: bool = False) -> Judge:
        """A judge of a session that was just created: its first transaction is judged from nothing.

        ``content`` is what the storage holds by now (see `content`), ``timestamp`` when it began, if no entry says it.
        """
        judge = cls(State.empty(), finalizations_admitted=finalizations_admitted)
        elements: list[JsonObject] = []
        for part, head in _HEADS.items():
            rows = content[part]
            assert isinstance(rows, list)
            elements.extend({**head, **row} for row in rows if isinstance(row, dict))
        elements.sort(key=_seq)
        stamps = [element["timestamp"] for element in elements if "timestamp" in element]
        first = stamps[0] if stamps and isinstance(stamps[0], int) else timestamp
        judge.judge([*elements], tuple(map(_seq, elements)), first)
        return judge

    def on_commit(self, listener: Callable[[Judged], None]) -> None:
        """Tell ``listener`` of every explained commit."""
        self._listeners.append(listener)

    def observe(self, tx: Transaction, result: CommitResult) -> Judged | None:
        """Judge a commit that the storage accepted; None once an earlier commit was found wrong.

        Raises:
            JudgeViolation: no transition of the model makes this commit from the state before it.
            InvariantViolated: the state after it breaks an invariant.
        """
        if self.violations:
            return None
        expectations = [Expectation.from_json(expectation_json(one)) for one in tx.expectations]
        return self.judge(commit_json(tx, result), result.seqs, result.timestamp, expectations)

    def resume_from(self, state: State) -> None:
        """Go on from a state that was read anew, because the outcome of a commit was not seen (``unobserved``)."""
        self.unobserved += 1
        turns = self._turns
        self.state = state
        self._progress = turns.reread(state)

    def attached(self) -> None:
        """A new owner attached to the open session: what is pending has lost its process (§4.5)."""
        self._progress = self._turns.attached(self.state)

    def due(self, lane: str) -> tuple[str, ...]:
        """The steps that the lane's operation owes now, in the order of its procedure; none when it is idle (§3.12)."""
        return self._turns.due(lane)

    @property
    def _turns(self) -> Progress:
        """Whose turn it is, read from the state when it is first asked: an unsound one may never be gone on from."""
        if self._progress is None:
            return Progress.of(self.state, finalizations_admitted=self._finalizations_admitted)
        return self._progress

    def verify(self) -> None:
        """Raise the first finding, if there was one."""
        if self.violations:
            raise self.violations[0]

    async def compare(self, storage: Storage) -> None:
        """Hold everything that the storage answers to the model's state.

        Raises:
            ContentDiffers: they differ.
            InvariantViolated: the state breaks an invariant that costs too much to check at every commit.
        """
        if self.violations:
            return
        self.check_everything("all commits")
        lines = differences(content_of_model(self.state), await content_of_storage(storage))
        if lines:
            head = "the storage answers other rows than were committed (§1.5)"
            raise self._found(ContentDiffers("\n  - ".join((head, *lines))))

    def judge(
        self,
        elements: Sequence[Json],
        seqs: tuple[int, ...],
        timestamp: int,
        expectations: Sequence[Expectation] = (),
    ) -> Judged:
        """Judge a commit by its JSONL elements (§1.7).

        Raises:
            JudgeViolation: no transition of the model makes this commit, it was not that transition's turn, or judging
                it raised something else: a judge that fell silent would pass whatever comes after.
            InvariantViolated: the state after it breaks an invariant.
        """
        try:
            return self._judge(elements, seqs, timestamp, expectations)
        except OracleFinding:
            raise
        except Exception as error:
            reason = f"judging the commit raised {type(error).__name__}: {error}"
            raise self._found(JudgeViolation(None, "3", (reason,), lane=None)) from error

    def _judge(
        self, elements: Sequence[Json], seqs: tuple[int, ...], timestamp: int, expectations: Sequence[Expectation]
    ) -> Judged:
        try:
            observed = Observed.from_json([*elements], timestamp)
        except Refused as refused:
            raise self._found(JudgeViolation(None, "1.4", (f"writes{refused}",), lane=None)) from None
        explained = explain(self.state, observed)
        if isinstance(explained, Unexplained):
            nearest, section = explained.nearest, explained.section
            raise self._found(JudgeViolation(nearest, section, explained.differences, lane=explained.lane))
        applied = apply(self.state, observed.writes, timestamp=timestamp, seqs=seqs, expectations=expectations)
        if isinstance(applied, Violation):
            raise self._found(JudgeViolation(explained.name, "1.4", (str(applied),), lane=explained.lane))
        turns = self._turns
        self.state, delta = applied
        judged = _judged(explained, delta)
        self.history.append(judged)
        for listener in self._listeners:
            listener(judged)
        self._keep_turns(turns.after(explained, self.state))
        if broken := invariants.check_commit(self.state, delta):
            raise self._found(InvariantViolated(explained.name, [str(one) for one in broken]))
        return judged

    def _keep_turns(self, moved: Progress | Misstep) -> None:
        if isinstance(moved, Misstep):
            raise self._found(JudgeViolation(moved.name, moved.section, (moved.reason,), lane=moved.lane))
        self._progress = moved

    def check_everything(self, after: str) -> None:
        """Hold the whole state to the invariants; costs the size of the session.

        Raises:
            InvariantViolated: names the event that led to the state, and what does not hold.
        """
        if broken := invariants.check(self.state):
            raise self._found(InvariantViolated(after, [str(one) for one in broken]))

    def _found(self, finding: OracleFinding) -> OracleFinding:
        self.violations.append(finding)
        return finding


_HEADS: Final[Mapping[str, JsonObject]] = {
    "entries": {"kind": "entry"},
    "registers": {"kind": "register", "op": "set"},
    "usage": {"kind": "usage"},
}
"""What a row is as the element of a commit, besides its own fields (§1.7)."""


def _seq(element: JsonObject) -> int:
    seq = element["seq"]
    assert isinstance(seq, int)
    return seq


def _judged(explained: Explained, delta: Delta) -> Judged:
    return Judged(
        name=explained.name,
        id=explained.id,
        section=explained.section,
        lane=explained.lane,
        inputs=explained.inputs,
        seqs=delta.seqs,
        timestamp=delta.timestamp,
        inserted=tuple(entry.id for entry in delta.entries),
        detail=explained.detail,
    )


def lanes_of(state: State) -> list[View]:
    """The model's view of every lane of a state, by name."""
    return [View(state, lane) for lane in state.keys(Namespace.LANE_STATE)]
