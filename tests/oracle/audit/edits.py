"""Every edit of a session that a forger or a defect might make, one at a time, and whether the audit sees it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

from restartpoint_oracle.audit import Finding, SeenCommit, Standing, judge, judge_state
from restartpoint_reference import Json
from tests.oracle.audit.histories import Elements, History
from tests.reference.test_alterations import alterations

__all__ = ["Edit", "EditKind", "Outcome", "edits_of", "outcome_of"]


Make: TypeAlias = "Callable[[EditKind, str, Elements], Edit]"


class EditKind(StrEnum):
    """What is done to one commit."""

    ALTER = "a field is altered"
    MOVE_SEQ = "a sequence number is altered"
    MOVE_TIME = "a timestamp is altered"
    DROP_WRITE = "a write is dropped"
    SWAP_WRITES = "neighbouring writes are swapped"
    DOUBLE_WRITE = "a write is doubled"
    DROP_COMMIT = "a commit is dropped"
    DOUBLE_COMMIT = "a commit is doubled"
    DOUBLE_LINE = "a line is doubled, number by number"
    SWAP_COMMITS = "neighbouring commits are swapped"
    SWAP_LINES = "neighbouring lines are swapped, number by number"
    TO_THE_END = "a commit is moved to the end"


@dataclass(frozen=True, kw_only=True)
class Edit:
    """``tail`` takes the place of the commits from number ``at`` (from 0) on; ``place`` says where in the commit."""

    kind: EditKind
    at: int
    place: str
    tail: Sequence[Elements]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What became of an edit: ``finding`` is the first one, None when the edited session looks like another legal one.

    ``names`` are the transitions of the edited commit and the next one, ``now`` what stands there is taken for.
    """

    history: str
    edit: Edit
    names: tuple[str, ...]
    now: str | None
    finding: Finding | None
    is_last: bool


def outcome_of(history: History, standings: Sequence[Standing], names: Sequence[str], edit: Edit) -> Outcome:
    """The audit of the session from the edit on."""
    standing, finding, now = standings[edit.at], None, None
    for number, elements in enumerate(edit.tail):
        verdict = judge(standing, SeenCommit(elements=elements))
        if number == 0 and verdict.explained is not None:
            now = verdict.explained.name
        if verdict.findings or verdict.after is None:
            finding = verdict.findings[0]
            break
        standing = verdict.after
    if finding is None:
        finding = next(iter(judge_state(standing)[1]), None)
    return Outcome(
        history=history.name,
        edit=edit,
        names=tuple(names[edit.at : edit.at + 2]),
        now=now,
        finding=finding,
        is_last=edit.at == len(history.commits) - 1,
    )


def edits_of(history: History, at: int) -> Iterator[Edit]:
    """Every edit of one commit of a session."""
    commits, elements, rest = history.commits, history.commits[at], history.commits[at + 1 :]

    def edit(kind: EditKind, place: str, *tail: Elements, renumbered: bool = True) -> Edit:
        return Edit(kind=kind, at=at, place=place, tail=_numbered(tail, elements) if renumbered else tail)

    for pattern, altered in alterations(elements):
        yield edit(EditKind.ALTER, pattern, altered, *rest, renumbered=False)
    yield from _displaced(elements, lambda kind, place, altered: edit(kind, place, altered, *rest, renumbered=False))
    for index, write in enumerate(elements):
        before, after = elements[:index], elements[index + 1 :]
        yield edit(EditKind.DROP_WRITE, _place(write), [*before, *after], *rest)
        yield edit(EditKind.DOUBLE_WRITE, _place(write), [*before, write, write, *after], *rest)
        if after:
            yield edit(EditKind.SWAP_WRITES, _place(write), [*before, after[0], write, *after[1:]], *rest)
    yield edit(EditKind.DROP_COMMIT, "", *rest)
    yield edit(EditKind.DOUBLE_COMMIT, "", elements, *commits[at:])
    yield edit(EditKind.DOUBLE_LINE, "", elements, *commits[at:], renumbered=False)
    if rest:
        yield edit(EditKind.SWAP_COMMITS, "", rest[0], elements, *rest[1:])
        yield edit(EditKind.SWAP_LINES, "", rest[0], elements, *rest[1:], renumbered=False)
    if len(rest) > 1:
        yield edit(EditKind.TO_THE_END, "", *rest, elements)


def _displaced(elements: Elements, make: Make) -> Iterator[Edit]:
    """The numbers and times that storage gave to the writes, altered."""
    for index, element in enumerate(elements):
        assert isinstance(element, dict)
        seq = element["seq"]
        assert isinstance(seq, int)
        for other in (1, seq - 1, seq + 1):
            if other != seq:
                altered: Elements = [*elements[:index], {**element, "seq": other}, *elements[index + 1 :]]
                yield make(
                    EditKind.MOVE_SEQ, f"{_place(element)}, by {other - seq if other > 1 else 'going back'}", altered
                )
        if isinstance(timestamp := element.get("timestamp"), int):
            altered = [*elements[:index], {**element, "timestamp": timestamp + 1}, *elements[index + 1 :]]
            yield make(EditKind.MOVE_TIME, _place(element), altered)


def _numbered(commits: Sequence[Elements], first: Elements) -> list[Elements]:
    """The commits with consecutive numbers from that of a commit's first write, so that no number betrays the edit."""
    head = first[0]
    assert isinstance(head, dict)
    seq = head["seq"]
    assert isinstance(seq, int)
    numbered: list[Elements] = []
    for elements in commits:
        placed: list[Json] = []
        for element in elements:
            assert isinstance(element, dict)
            placed.append({**element, "seq": seq})
            seq += 1
        numbered.append(placed)
    return numbered


def _place(write: Json) -> str:
    assert isinstance(write, dict)
    return str(write.get("namespace", write["kind"]))
