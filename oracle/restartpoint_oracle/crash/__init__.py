"""Crash sweeps: a scenario is stopped after every commit, resumed, and must come to the same end (§0.3, §4.5).

``sweep`` runs in this process on any backend, ``sweep_killed`` kills real processes, ``sweep_torn_jsonl`` and
``sweep_torn_sqlite`` cut what a crash may leave half written.
"""

from restartpoint_oracle.crash.errors import CrashShows
from restartpoint_oracle.crash.killed import sweep_killed
from restartpoint_oracle.crash.report import Finding, SweepReport
from restartpoint_oracle.crash.scenario import (
    Scenario,
    Step,
    appends,
    creates_lane,
    labels_leaf,
    on_harness,
    on_lane,
    on_session,
    prompts,
    records_usage,
    sets_fact,
    sets_name,
)
from restartpoint_oracle.crash.scenarios import SCENARIOS
from restartpoint_oracle.crash.sweep import sweep
from restartpoint_oracle.crash.torn import sweep_torn_jsonl, sweep_torn_sqlite

__all__ = [
    "SCENARIOS", "CrashShows", "Finding", "Scenario", "Step", "SweepReport", "appends", "creates_lane", "labels_leaf",
    "on_harness", "on_lane", "on_session", "prompts", "records_usage", "sets_fact", "sets_name", "sweep",
    "sweep_killed", "sweep_torn_jsonl", "sweep_torn_sqlite",
]  # fmt: skip
