"""The executable model of Restartpoint: pure functions from states to commits.

Start with ``State`` and ``apply`` (§1.4), then ``explain`` (§3), which names the transition of an observed commit.
Everything the model reads is parsed JSON in the shapes of the specification; it knows no runtime.
"""

from restartpoint_reference import invariants
from restartpoint_reference.explain import Explained, Unexplained, explain
from restartpoint_reference.procedure import next_steps
from restartpoint_reference.progress import Misstep, Progress
from restartpoint_reference.queries import (
    BranchOrder,
    BranchScan,
    EntryScan,
    Order,
    UnknownStart,
    UsageScan,
    get_entries,
    get_register,
    list_registers,
    path,
    scan_branch,
    scan_branch_structure,
    scan_entries,
    scan_usage,
)  # fmt: skip
from restartpoint_reference.shapes import UNSET, Json, JsonObject, Refused, Unset, differences, same
from restartpoint_reference.store import Delta, Rule, State, Stats, Violation, apply, stats_of
from restartpoint_reference.transitions import ALIKE, NO_COMMIT, TRANSITIONS
from restartpoint_reference.transitions.frame import Commit, Refusal, Transition, View
from restartpoint_reference.tree import Projector, project
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    Entry,
    EntryType,
    Expectation,
    InsertEntry,
    InsertUsage,
    Namespace,
    NewEntry,
    NewUsage,
    Observed,
    Register,
    SetRegister,
    UsageRow,
    Write,
)  # fmt: skip

__all__ = [
    "ALIKE", "NO_COMMIT", "TRANSITIONS", "UNSET", "BranchOrder", "BranchScan", "Commit", "DeleteRegister", "Delta",
    "Entry", "EntryScan", "EntryType", "Expectation", "Explained", "InsertEntry", "InsertUsage", "Json", "JsonObject",
    "Misstep", "Namespace", "NewEntry", "NewUsage", "Observed", "Order", "Progress", "Projector", "Refusal",
    "Refused", "Register", "Rule", "SetRegister", "State", "Stats", "Transition", "Unexplained", "UnknownStart",
    "Unset", "UsageRow", "UsageScan", "View", "Violation", "Write", "apply", "differences", "explain", "get_entries",
    "get_register", "invariants", "list_registers", "next_steps", "path", "project", "same", "scan_branch",
    "scan_branch_structure", "scan_entries", "scan_usage", "stats_of",
]  # fmt: skip
