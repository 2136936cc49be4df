"""Sessions: lane-bound tree views, the lane mutation line, facts, context projection (§2.3-§2.8, §5.3)."""

from restartpoint.session.context import (
    BRANCH_SUMMARY_PREFIX,
    COMPACTION_PREFIX,
    HEALED_RESULT_TEXT,
    BranchReader,
    EntryProjector,
    context_entries,
    heal,
    project_context,
    project_entry,
)
from restartpoint.session.line import CommitListener, SessionMutator, WriteLine
from restartpoint.session.reading import SessionReader
from restartpoint.session.session import (
    MAX_LANE_NAME,
    Session,
    check_lane_name,
    first_transaction,
)
from restartpoint.session.tree import MAIN_LANE, RESERVED_FACT_PREFIX, SessionTree

__all__ = [
    "BRANCH_SUMMARY_PREFIX",
    "COMPACTION_PREFIX",
    "HEALED_RESULT_TEXT",
    "MAIN_LANE",
    "MAX_LANE_NAME",
    "RESERVED_FACT_PREFIX",
    "BranchReader",
    "CommitListener",
    "EntryProjector",
    "Session",
    "SessionMutator",
    "SessionReader",
    "SessionTree",
    "WriteLine",
    "check_lane_name",
    "context_entries",
    "first_transaction",
    "heal",
    "project_context",
    "project_entry",
]
