"""Reports for programs: one line of ASCII JSON, which docs/reference/cli.md describes."""

from __future__ import annotations

import json
from collections.abc import Sequence

from restartpoint_oracle.audit.findings import Finding, NamedCommit, Report

__all__ = ["DOCUMENT_FORMAT", "document"]

DOCUMENT_FORMAT = 1
"""The version of the document; a change that a program could trip over raises it."""


def document(reports: Sequence[Report], *, commits: bool) -> str:
    """The reports as one document; ``commits`` adds the name of every commit."""
    whole = {
        "format": DOCUMENT_FORMAT,
        "exitCode": max((report.exit_code for report in reports), default=0),
        "files": [_file(report, commits=commits) for report in reports],
    }
    return json.dumps(whole, separators=(",", ":"))


def _file(report: Report, *, commits: bool) -> dict[str, object]:
    made: dict[str, object] = {
        "path": report.path.encode(errors="backslashreplace").decode(),
        "exitCode": report.exit_code,
        "fileFormat": report.format,
        "session": report.session,
        "rows": report.rows,
        "commits": report.commits,
        "restarts": report.restarts,
        "tornBytes": report.torn_bytes,
        "transitions": dict(sorted(report.transitions.items())),
        "findings": [_finding(finding) for finding in report.findings],
        "stopped": report.stopped,
        "unreadable": report.unreadable,
    }
    return {**made, "named": [_named(commit) for commit in report.named]} if commits else made


def _finding(finding: Finding) -> dict[str, object]:
    return {
        "kind": finding.kind.value,
        "section": finding.section,
        "line": finding.line,
        "commit": finding.commit,
        "seqs": list(finding.seqs),
        "lane": finding.lane,
        "transition": finding.transition,
        "differences": list(finding.differences),
    }


def _named(commit: NamedCommit) -> dict[str, object]:
    return {
        "commit": commit.number,
        "line": commit.line,
        "seqs": list(commit.seqs),
        "transition": commit.name,
        "id": commit.id,
        "section": commit.section,
        "lane": commit.lane,
        "detail": commit.detail,
        "sound": commit.sound,
    }
