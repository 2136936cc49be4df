"""The audit: a file judged from its first commit to its last, whoever wrote it (§3, §9.1).

``audit`` reads a JSONL session, a SQLite session or a trace, and answers a ``Report``. ``judge`` is the step that it
repeats, from one ``Standing`` to the next.
"""

from restartpoint_oracle.audit.auditing import Told, audit
from restartpoint_oracle.audit.findings import FileFormat, Finding, Kind, NamedCommit, Report
from restartpoint_oracle.audit.judging import SeenCommit, Standing, Verdict, judge, judge_state

__all__ = [
    "FileFormat", "Finding", "Kind", "NamedCommit", "Report", "SeenCommit", "Standing", "Told", "Verdict", "audit",
    "judge", "judge_state",
]  # fmt: skip
