"""The named transitions of Part 3 and the session's own commits, one function each.

A transition is called with a state, a lane and its inputs, and answers a ``Commit`` or the ``Refusal`` of a guard.
``TRANSITIONS`` holds all of them by name.
"""

from restartpoint_reference.transitions.frame import Transition
from restartpoint_reference.transitions.table import ALIKE, ALL, FROM_PHASE, NO_COMMIT, TRANSITIONS, WITHOUT_LANE

__all__ = ["ALIKE", "ALL", "FROM_PHASE", "NO_COMMIT", "TRANSITIONS", "WITHOUT_LANE", "Transition"]
