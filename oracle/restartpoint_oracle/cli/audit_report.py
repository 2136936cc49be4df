"""A report for people. What a file says is shown as text that no terminal acts on."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

from rich.console import Console
from rich.text import Text

from restartpoint.cli.layout import print_rows
from restartpoint.cli.safe_text import safe_text
from restartpoint_oracle.audit import Finding, Kind, NamedCommit, Report

__all__ = ["print_report"]

_MOST_FINDINGS = 20
_MOST_DIFFERENCES = 12
_LONGEST = 400


def print_report(console: Console, report: Report, *, everything: bool) -> None:
    """Print what was judged, the commits that were kept, each finding with its place, and the verdict."""
    console.print(safe_text(report.path, style="bold"), soft_wrap=True)
    if report.format is None:
        _verdict(console, report)
        return
    console.print(safe_text(f"  {_judged(report)}"), soft_wrap=True)
    if report.named:
        print_rows(console, _table(report.named))
    most = len(report.findings) if everything else _MOST_FINDINGS
    for finding in islice(report.findings, most):
        _print_finding(console, finding, everything=everything)
    if len(report.findings) > most:
        console.print(f"  … and {_count(len(report.findings) - most, 'finding')} more; --all shows them")
    if report.torn_bytes:
        console.print(
            f"  note: {_count(report.torn_bytes, 'byte')} after the last whole line are torn; a writer drops them"
        )
    if report.stopped is not None:
        console.print(safe_text(f"  stopped: {report.stopped}"), soft_wrap=True)
    _verdict(console, report)


def _judged(report: Report) -> str:
    parts = ["trace" if report.format == "trace" else f"{report.format} session"]
    if report.session is not None:
        parts[0] += f" {report.session}"
    if report.rows:
        parts.append(f"{_count(report.rows, 'row')} held as a state")
    if report.commits or not report.rows:
        parts.append(f"{_count(report.commits, 'commit')} judged")
    if report.restarts:
        parts.append(_count(report.restarts, "restart"))
    return ", ".join(parts)


def _table(commits: Iterable[NamedCommit]) -> list[list[Text]]:
    heads = ("#", "line", "seqs", "lane", "section", "transition")
    rows = [[Text(head, style="dim") for head in heads]]
    for commit in commits:
        name = "no transition" if commit.name is None else f"{commit.id} {commit.name}"
        detail = f" ({commit.detail})" if commit.detail else ""
        place = (str(commit.number), str(commit.line), _span(commit.seqs), commit.lane or "", f"§{commit.section}")
        style = "" if commit.sound else "red"
        rows.append([safe_text(cell, style=style) for cell in (*place, f"{name}{detail}")])
    return rows


def _print_finding(console: Console, finding: Finding, *, everything: bool) -> None:
    console.print(safe_text(f"  {_place(finding)}: {_head(finding)}", style="red"), soft_wrap=True)
    most = len(finding.differences) if everything else _MOST_DIFFERENCES
    for line in finding.differences[:most]:
        console.print(safe_text(f"    - {line}", longest=None if everything else _LONGEST), soft_wrap=True)
    if len(finding.differences) > most:
        console.print(f"    … and {_count(len(finding.differences) - most, 'difference')} more; --all shows them")


def _place(finding: Finding) -> str:
    if finding.line is None:
        return "the state at the end"
    if finding.commit is None:
        return f"line {finding.line}"
    return f"line {finding.line}, commit {finding.commit}, {_count_seqs(finding.seqs)}"


def _head(finding: Finding) -> str:
    lane = "" if finding.lane is None else f" on lane {finding.lane}"
    where = "" if finding.transition is None else f" {finding.transition}{lane}"
    match finding.kind:
        case Kind.UNEXPLAINED if finding.transition is None:
            return f"no transition makes this commit{lane} (§{finding.section})"
        case Kind.UNEXPLAINED:
            return f"no transition makes this commit; the nearest is{where} (§{finding.section})"
        case Kind.RULE:
            return f"storage never takes this commit:{where} (§{finding.section})"
        case Kind.INVARIANT:
            return f"an invariant is broken after{where or ' this'} (§{finding.section})"
        case Kind.PROCEDURE:
            return f"{finding.transition}{lane} is no next step here (§{finding.section})"
        case Kind.CLAIM:
            return f"this is{where} (§{finding.section})"
        case Kind.ROWS:
            return f"the rows are wrong (§{finding.section})"
        case Kind.TEXT:
            return f"this line is no clear JSON (§{finding.section})"


def _verdict(console: Console, report: Report) -> None:
    if report.unreadable is not None:
        console.print(safe_text(f"  unreadable: {report.unreadable}", style="red"), soft_wrap=True)
    if report.findings:
        console.print(Text(f"  {_count(len(report.findings), 'violation')}", style="red"))
    elif report.unreadable is None:
        console.print(Text("  clean", style="green"))


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _count_seqs(seqs: tuple[int, ...]) -> str:
    return "no seqs" if not seqs else f"seq{'s' if len(seqs) > 1 else ''} {_span(seqs)}"


def _span(seqs: tuple[int, ...]) -> str:
    if len(seqs) < 2:
        return "".join(map(str, seqs))
    return f"{seqs[0]}–{seqs[-1]}"
