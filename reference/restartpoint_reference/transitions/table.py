"""The table of the transitions, collected from the rooms of this package."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from restartpoint_reference.transitions import (
    acceptance,
    attempts,
    cancellation,
    cancelled_tools,
    checkpoint,
    compaction,
    copies,
    deferred,
    facts,
    failure,
    finalization,
    generation,
    navigation,
    publication,
    queues,
    session,
    settlement,
    structural,
    terminal,
    tools,
)
from restartpoint_reference.transitions.frame import ANY, NO_LANE, Transition

_ROOMS: Final = (
    acceptance, checkpoint, generation, settlement, tools, deferred, compaction, publication, navigation,
    structural, attempts, failure, cancellation, cancelled_tools, terminal, finalization, queues, session, facts,
    copies,
)  # fmt: skip


def _place(found: Transition) -> tuple[bool, str]:
    """The place in the table: the operation's rows by number, then the session's; every number has two digits."""
    return (found.id.startswith("S"), found.id)


ALL: Final[tuple[Transition, ...]] = tuple(
    sorted({found for room in _ROOMS for found in vars(room).values() if isinstance(found, Transition)}, key=_place)
)
"""Every transition in the order of the table."""

TRANSITIONS: Final[Mapping[str, Transition]] = MappingProxyType({found.name: found for found in ALL})
"""Every transition by name, in the order of the table."""

FROM_PHASE: Final[Mapping[str, tuple[Transition, ...]]] = MappingProxyType(
    {
        phase: tuple(found for found in ALL if phase in found.phases and (found.takes_lane or found.phases == NO_LANE))
        for phase in ANY
    }
)
"""Per phase of a lane, the transitions on its line that start there; without one, those that make a session as well."""

WITHOUT_LANE: Final[tuple[Transition, ...]] = tuple(found for found in ALL if not found.takes_lane)
"""The commits of the session as a whole."""

NO_COMMIT: Final[Mapping[str, str]] = MappingProxyType(
    {
        "T08": "no compaction is due at this boundary, or it was checked before: the next step is taken (§3.12)",
        "T37": "an orphaned call that is safe by its stored and current declaration runs again, unwritten (§4.5)",
        "T85": "a later abort of an open operation answers what the first one drained (§4.6)",
        "T88": "an activation without an unused poll permit leaves a deferred run suspended as it is (§4.5)",
        "T89": "a task whose operation has ended writes nothing and resolves from the lane's last result (§4.9)",
        "T90": "a tree write beside a compaction or navigation waits for its end, and is then admitted anew (§3.11)",
    }
)
"""The modelled rows of the table that make no commit."""

_IMITATED: Final = (
    "finish_run", "finish_terminated_tools", "finish_failed", "finish_aborted_run", "finish_aborted_deferred",
    "finish_aborted_compaction_in_run", "finish_aborted_structural", "decline_structural", "fail_structural",
    "recover_exhausted_summary",
)  # fmt: skip

ALIKE: Final[Mapping[frozenset[str], str]] = MappingProxyType(
    {
        frozenset(
            {"finalize_externally", name}
        ): "from outside, an operation may be ended as it would have ended (§4.9)"
        for name in _IMITATED
    }
)
"""Pairs of transitions that can make the very same writes from the same state, with the reason; explanation names the
first of them in the table."""
