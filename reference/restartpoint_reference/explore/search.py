"""Bounded exhaustive search: every state that the world can bring about within bounds, each visited once."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from restartpoint_reference import invariants
from restartpoint_reference.explain import Explained, explain
from restartpoint_reference.explore.sameness import fingerprint
from restartpoint_reference.explore.world import COSTS, Move, Slice, effects, lanes_of, moves
from restartpoint_reference.store import State, Violation, apply
from restartpoint_reference.transitions.frame import Commit
from restartpoint_reference.transitions.table import ALIKE
from restartpoint_reference.vocabulary.entries import Observed

CRASH: Final = "crash"
"""The event that no transition makes: every process that drove a lane is gone."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A reached state, what was spent on the way, and the reserved ids whose effects died with a process."""

    state: State
    spent: Mapping[str, int] = field(default_factory=dict)
    orphans: frozenset[str] = frozenset()

    @property
    def fingerprint(self) -> bytes:
        """Equal only for nodes from which the same follows."""
        return fingerprint(self.state, dict(sorted(self.spent.items())), [*sorted(self.orphans)])


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
        start = self._opened()
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

    def _opened(self) -> Node:
        node = Node(state=State.empty())
        for move in self.slice.opening:
            commit = move.transition(node.state, move.lane, move.inputs)
            assert isinstance(commit, Commit), commit
            found = committed(self.slice, node, move, commit)
            assert isinstance(found, Node), found
            self.taken[commit.name] += 1
            node = replace(found, spent={})
        return node

    def _path(self, key: bytes) -> tuple[str, ...]:
        names: list[str] = []
        while (came := self.came[key]) is not None:
            key, name = came
            names.append(name)
        return tuple(reversed(names))


def steps(slice: Slice, node: Node) -> Iterator[tuple[str, Node | str]]:
    """Everything that can happen next: its name, and the node that it leads to or a sentence that says what broke."""
    for view in lanes_of(slice, node.state):
        for move in moves(slice, view, node.spent, node.orphans):
            commit = move.transition.commit(view, move.inputs)
            if isinstance(commit, Commit):
                yield commit.name, committed(slice, node, move, commit)
    crashes = node.spent.get(CRASH, 0)
    pending = effects(slice, node.state)
    if crashes < slice.bounds.get(CRASH, 0) and not pending <= node.orphans:
        yield CRASH, replace(node, spent={**node.spent, CRASH: crashes + 1}, orphans=node.orphans | pending)


def committed(slice: Slice, node: Node, move: Move, commit: Commit) -> Node | str:
    """The node after a commit, or what the commit breaks."""
    applied = apply(node.state, commit.writes, timestamp=0)
    if isinstance(applied, Violation):
        return f"{commit.name} breaks {applied}"
    state, delta = applied
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
    orphans = node.orphans & effects(slice, state) if node.orphans else node.orphans
    return Node(state=state, spent=spent, orphans=orphans)
