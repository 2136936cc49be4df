"""A trace of any implementation is judged commit by commit, with what it claims and the restarts that it tells of."""

import json
from pathlib import Path
from typing import Any

import pytest

from restartpoint_oracle.audit import Kind, Report, audit
from restartpoint_reference.transitions.tools import INTERRUPTED, NOT_EXECUTED
from tests.oracle.audit.counting import names_of
from tests.oracle.audit.histories import Elements, History, recorded

EXAMPLE = Path(__file__).resolve().parents[3] / "docs" / "reference" / "example.trace.ndjson"
PAGE = EXAMPLE.with_name("traces.md")

Line = dict[str, Any]


def example() -> list[Line]:
    return [json.loads(line) for line in EXAMPLE.read_text("utf-8").splitlines()]


def audited(lines: list[Line], folder: Path) -> Report:
    path = folder / "trace.ndjson"
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    return audit(path, keep_commits=True)


def trace_of(history: History) -> list[Line]:
    """A recorded session as another runtime would tell it."""
    state = {
        "kind": "state",
        "entries": [entry.to_json() for entry in history.start.entries.values()],
        "registers": [one.to_json() for held in history.start.namespaces.values() for one in held.values()],
        "usage": [row.to_json() for row in history.start.usage.values()],
        "nextSeq": history.start.next_seq,
    }
    commits = [_commit(name, elements) for name, elements in zip(names_of(history), history.commits, strict=True)]
    return [{"kind": "trace", "v": 1}, *([state] if history.start.entries else []), *commits]


def _commit(name: str, elements: Elements) -> Line:
    writes = [dict(element) for element in elements if isinstance(element, dict)]
    seqs = [write.pop("seq") for write in writes]
    times = [write.pop("timestamp") for write in writes if write["kind"] == "entry"]
    return {"kind": "commit", "name": name, "timestamp": (times or [1])[0], "seqs": seqs, "writes": writes}


def test_the_example_of_the_page_is_clean(tmp_path: Path) -> None:
    report = audit(EXAMPLE)
    assert (report.exit_code, report.format, report.findings) == (0, "trace", ())
    assert report.commits >= 9
    assert report.restarts == 2


def test_the_page_shows_every_kind_of_line_and_every_key() -> None:
    text = PAGE.read_text("utf-8")
    for line in example():
        assert f"`{line['kind']}`" in text
        assert all(f"`{key}`" in text for key in line)
    assert all(f"`{key}`" in text for key in ("state", "entries", "registers", "usage", "nextSeq"))


@pytest.mark.parametrize("history", recorded()[::3], ids=lambda history: history.name)
def test_a_session_that_another_runtime_tells_is_judged_as_its_file_is(history: History, tmp_path: Path) -> None:
    report = audited(trace_of(history), tmp_path)
    assert report.findings == ()
    assert [named.name for named in report.named] == [*names_of(history)]


def test_a_recovery_without_a_restart_is_out_of_turn_where_restarts_are_told(tmp_path: Path) -> None:
    lines = [line for line in example() if line["kind"] != "restart"]
    report = audited(lines, tmp_path)
    assert [(one.kind, one.transition) for one in report.findings] == [
        (Kind.PROCEDURE, "recover_assistant"), (Kind.PROCEDURE, "recover_exhausted_assistant"),
    ]  # fmt: skip
    lines[0]["restarts"] = False
    assert audited(lines, tmp_path).findings == ()


def test_a_settlement_after_a_restart_is_out_of_turn(tmp_path: Path) -> None:
    (history,) = (one for one in recorded() if one.name == "model: plain_run 1")
    lines = trace_of(history)
    lines[0]["restarts"] = True
    at = next(number for number, line in enumerate(lines) if line.get("name") == "settle_stop")
    report = audited([*lines[:at], {"kind": "restart"}, *lines[at:]], tmp_path)
    assert [(one.kind, one.transition) for one in report.findings] == [(Kind.PROCEDURE, "settle_stop")]


def test_a_wrong_claim_is_told_beside_what_the_model_says(tmp_path: Path) -> None:
    lines = example()
    lines[3] = {**lines[3], "name": "settle_stop", "lane": "side"}
    (finding,) = audited(lines, tmp_path).findings
    assert (finding.kind, finding.transition, finding.line) == (Kind.CLAIM, "accept_run", 4)
    named, placed = finding.differences
    assert named == "the trace calls it settle_stop, the model accept_run"
    assert placed == "the trace places it on lane 'side', the model on 'main'"


def test_claims_may_be_left_out(tmp_path: Path) -> None:
    lines = [{key: value for key, value in line.items() if key not in ("name", "lane")} for line in example()]
    assert audited(lines, tmp_path).findings == ()


def test_a_trace_declares_an_end_from_outside_by_its_name(tmp_path: Path) -> None:
    history = next(one for one in recorded() if one.is_finalized)
    lines = trace_of(history)
    assert lines[-1]["name"] == "finalize_externally"
    assert audited(lines, tmp_path).findings == ()
    del lines[-1]["name"]
    (finding,) = audited(lines, tmp_path).findings
    assert (finding.kind, finding.section) == (Kind.PROCEDURE, "4.9")


def test_as_many_numbers_as_writes_are_needed(tmp_path: Path) -> None:
    lines = example()
    lines[1]["seqs"].pop()
    report = audited(lines, tmp_path)
    assert [finding.kind for finding in report.findings] == [Kind.RULE]
    assert report.stopped is not None


def test_a_state_that_no_session_holds_is_found(tmp_path: Path) -> None:
    register = {"namespace": "lane.leaf", "key": "main", "value": "nowhere", "seq": 1}
    head = {"kind": "trace", "v": 1}
    broken = audited([head, {"kind": "state", "registers": [register], "nextSeq": 9}], tmp_path)
    assert {finding.kind for finding in broken.findings} == {Kind.ROWS, Kind.INVARIANT}
    unread = audited([head, {"kind": "state", "registers": [{**register, "seq": "1"}]}], tmp_path)
    assert unread.stopped is not None


@pytest.mark.parametrize(
    "number, line, reason",
    [
        (2, {"kind": "commits"}, "no line of a trace"),
        (2, [], "no line of a trace"),
        (2, {"kind": "commit", "writes": [], "seqs": []}, "without timestamp"),
        (2, {"kind": "commit", "writes": [], "seqs": [], "timestamp": True}, "timestamp of a commit line is True"),
        (2, {"kind": "restart", "at": 1}, "has no 'at'"),
        (3, {"kind": "state"}, "second line or nowhere"),
        (1, {"kind": "trace", "v": 1, "session": 7}, "session of a trace line is 7"),
        (1, {"kind": "trace"}, "without v"),
    ],
)
def test_a_line_that_is_none_of_a_trace_is_told(number: int, line: Any, reason: str, tmp_path: Path) -> None:
    lines = example()
    lines[number - 1] = line
    report = audited(lines, tmp_path)
    assert report.exit_code == 2
    assert report.unreadable is not None
    assert report.unreadable.startswith(f"line {number}: ")
    assert reason in report.unreadable


def test_the_page_gives_the_words_that_tell_synthetic_results_apart() -> None:
    rows = [line for line in PAGE.read_text("utf-8").splitlines() if line.startswith("| `This tool call")]
    assert [row.split("`")[1] for row in rows] == [INTERRUPTED, NOT_EXECUTED]
