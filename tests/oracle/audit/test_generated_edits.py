"""Whatever is edited in a session file is seen, except what another legal session could have held (§3, §9.1)."""

from collections import Counter

import pytest

from restartpoint_oracle.audit import Kind
from restartpoint_reference import TRANSITIONS
from tests.oracle.audit.counting import names_of, one_of_each
from tests.oracle.audit.edits import EditKind
from tests.oracle.audit.histories import recorded
from tests.oracle.audit.listed import reason_for


@pytest.mark.parametrize("part", range(4))
def test_every_edit_of_one_commit_of_each_transition_is_seen_or_listed(part: int) -> None:
    """``python -m ci.edits`` makes them in every commit of every session."""
    missed: list[str] = []
    caught, seen_as = Counter[EditKind](), set[Kind]()
    for outcome in one_of_each([*TRANSITIONS][part::4]):
        if outcome.finding is not None:
            caught[outcome.edit.kind] += 1
            seen_as.add(outcome.finding.kind)
        elif reason_for(outcome) is None:
            missed.append(f"{outcome.history}: {outcome.names} {outcome.edit.kind} {outcome.edit.place}")
    assert missed == []
    assert caught.keys() >= set(EditKind) - {EditKind.MOVE_TIME}  # seen only where a commit holds two entries
    assert seen_as >= {Kind.UNEXPLAINED, Kind.RULE}


def test_the_sessions_hold_every_transition() -> None:
    assert {name for history in recorded() for name in names_of(history)} == TRANSITIONS.keys()
