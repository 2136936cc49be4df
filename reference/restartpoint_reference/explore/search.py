"""Bounded exhaustive search: every state that the world can bring about within bounds, each visited once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from restartpoint_reference import invariants
from restartpoint_reference.explain import Explained, explain
from restartpoint_reference.explore.sameness import fingerprint
from restartpoint_reference.explore.world import COSTS, Move, Slice, called, is_left, lanes_of, moves
from restartpoint_reference.progress import FINALIZATION, Misstep, Progress
from restartpoint_reference.store import State, Violation, apply
from restartpoint_reference.transitions.frame import OPEN, Commit, View
from restartpoint_reference.transitions.table import ALIKE
from restartpoint_reference.vocabulary.entries import Observed

CRASH: Final = "crash"
"""The event that no transition makes: every process that drove a lane is gone."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A reached state, what was spent on the way, and whose turn it is: what was chosen, and which effects are lost."""

    state: State
    progress: Progress
    spent: Mapping[str, int] = field(default_factory=dict)

    @property
    def fingerprint(self) -> bytes:
        """Equal only for nodes from which the same follows."""
        marks = [self.progress.mark(lane) for lane in sorted(self.progress.lanes)]
        return fingerprint(self.state, dict(sorted(self.spent.items())), marks)


@dataclass(frozen=True, kw_only=True)
class Counterexample:
    """What does not hold, and a shortest way there by names of transitions and crashes."""

    problem: str
    path: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.problem}\n  after {' > '.join(self.path)}"


@dataclass(frozen=True, kw_only=True)
class Report:
    """What a search found so far: distinct states, commits made, depth, and how often each transition was taken."""

    slice: str
    states: int
    commits: int
    depth: int
    taken: Mapping[str, int]
    counterexample: Counterexample | None = None


def search(slice: Slice) -> Iterator[Report]:
    """The search of a slice, breadth first: a report after every level, the last one being whole.

    Each commit must be explained back by its name and inputs, and keep every rule of the store and every invariant. The
    search ends at the first that does not.
    """
    found = _Search(slice)
    yield found.report()
    while found.level and found.counterexample is None:
        found.descend()
        yield found.report()


class _Search:
    def __init__(self, slice: Slice) -> None:
        self.slice = slice
        self.taken: Counter[str] = Counter()
        self.counterexample: Counterexample | None = None
        self.depth = 0
        start = opened(slice)
        self.taken.update(move.transition.name for move in slice.opening)
        self.came: dict[bytes, tuple[bytes, str] | None] = {start.fingerprint: None}
        self.level = [(start.fingerprint, start)]

    def report(self) -> Report:
        return Report(
            slice=self.slice.name, states=len(self.came), commits=self.taken.total() - self.taken[CRASH],
            depth=self.depth, taken=dict(self.taken), counterexample=self.counterexample,
        )  # fmt: skip

    def descend(self) -> None:
        """Visit every state that is one step further away."""
        reached: list[tuple[bytes, Node]] = []
        for key, node in self.level:
            for name, found in steps(self.slice, node):
                self.taken[name] += 1
                if isinstance(found, str):
                    self.counterexample = Counterexample(problem=found, path=(*self._path(key), name))
                    return
                mark = found.fingerprint
                if mark not in self.came:
                    self.came[mark] = (key, name)
                    reached.append((mark, found))
        self.level, self.depth = reached, self.depth + 1

    def _path(self, key: bytes) -> tuple[str, ...]:
        names: list[str] = []
        while (came := self.came[key]) is not None:
            key, name = came
            names.append(name)
        return tuple(reversed(names))


def opened(slice: Slice) -> Node:
    """Where the search of a slice begins; its opening holds to the same rules."""
    node = Node(state=State.empty(), progress=Progress.of(State.empty()))
    for move in slice.opening:
        commit = move.transition(node.state, move.lane, move.inputs)
        assert isinstance(commit, Commit), commit
        found = committed(node, move, commit)
        assert isinstance(found, Node), found
        node = replace(found, spent={})
    return node


def steps(slice: Slice, node: Node) -> Iterator[tuple[str, Node | str]]:
    """Everything that can happen next: its name, and the node that it leads to or a sentence that says what broke."""
    for view in lanes_of(slice, node.state):
        yield from _calls(slice, node, view)
        yield from _procedure(slice, node, view)
    crashes = node.spent.get(CRASH, 0)
    if crashes < slice.bounds.get(CRASH, 0):
        progress = node.progress.attached(node.state)
        if any(progress.mark(lane) != node.progress.mark(lane) for lane in slice.lanes):
            yield CRASH, replace(node, progress=progress, spent={**node.spent, CRASH: crashes + 1})


def _calls(slice: Slice, node: Node, view: View) -> Iterator[tuple[str, Node | str]]:
    for name in called(slice, view):
        if is_left(slice, name, node.spent):
            for move in moves(slice, view, name, frozenset()):
                commit = move.transition.commit(view, move.inputs)
                if isinstance(commit, Commit):
                    found = committed(node, move, commit)
                    yield name, str(found) if isinstance(found, Misstep) else found


def _procedure(slice: Slice, node: Node, view: View) -> Iterator[tuple[str, Node | str]]:
    """Every step that was due since the operation's previous one; one must be possible, unless bounds forbid it."""
    chosen = sorted(node.progress.chosen(view.lane))
    is_stuck = view.phase in OPEN
    for name in chosen:
        if not is_left(slice, name, node.spent):
            is_stuck = False
            continue
        for move in moves(slice, view, name, node.progress.lost(view.lane)):
            commit = move.transition.commit(view, move.inputs)
            if isinstance(commit, Commit):
                found = committed(node, move, commit)
                if not isinstance(found, Misstep):
                    is_stuck = False
                    yield name, found
    if is_stuck:
        yield "nothing", f"no step can follow on lane {view.lane} at {view.phase}, where {', '.join(chosen)} is due"


def committed(node: Node, move: Move, commit: Commit) -> Node | str | Misstep:
    """The node after a commit, or what the commit breaks; a misstep when it is not its turn."""
    applied = apply(node.state, commit.writes, timestamp=0)
    if isinstance(applied, Violation):
        return f"{commit.name} breaks {applied}"
    state, delta = applied
    progress = node.progress.after(commit, state, declared=commit.name == FINALIZATION)
    if isinstance(progress, Misstep):
        return progress
    explained = explain(node.state, Observed(writes=commit.writes, seqs=delta.seqs, timestamp=0))
    if not isinstance(explained, Explained):
        return f"{commit.name} is not explained: {explained}"
    alike = frozenset({explained.name, commit.name}) in ALIKE
    if not alike and (explained.name, explained.inputs) != (commit.name, move.inputs):
        return f"{commit.name} is explained as {explained.name} with {explained.inputs}"
    broken = invariants.check_commit(state, delta)
    if broken:
        return f"{commit.name} breaks {broken[0]}"
    resource = COSTS.get(commit.name)
    spent = node.spent if resource is None else {**node.spent, resource: node.spent.get(resource, 0) + 1}
    return Node(state=state, progress=progress, spent=spent)
