"""Sessions as the backends leave them: clean files of every scenario, rewritten, forked, torn, in JSONL or SQLite."""

import hashlib
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest

from restartpoint.contract import LANE_LEAF, RegisterSet
from restartpoint_oracle.audit import Kind, SeenCommit, Standing, audit, judge
from restartpoint_reference import State
from tests.harness.cli.stage import call, commit, open_repository, play_prompt
from tests.oracle.audit.counting import names_of
from tests.oracle.audit.histories import (
    HEADER,
    Elements,
    History,
    file_of,
    lines_of,
    recorded,
    runtime_files,
    snapshot_of,
)


def test_the_file_of_every_scenario_is_clean(tmp_path: Path) -> None:
    audited = 0
    for name, path in runtime_files(tmp_path):
        report = audit(path)
        assert (name, report.exit_code, report.findings) == (name, 0, ())
        assert report.commits == len(path.read_bytes().splitlines()) - 1
        audited += 1
    assert audited


@pytest.mark.parametrize("history", recorded(), ids=lambda history: history.name)
def test_every_recorded_session_is_clean_as_a_file(history: History, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(file_of(history))
    report = audit(path, keep_commits=True, finalizations_admitted=history.is_finalized)
    assert (report.exit_code, report.findings) == (0, ())
    assert tuple(named.name for named in report.named) == names_of(history)
    assert all(named.sound for named in report.named)


FINALIZED = [history for history in recorded() if history.is_finalized]


@pytest.mark.parametrize("history", FINALIZED, ids=lambda history: history.name)
def test_an_end_from_outside_is_found_unless_it_was_admitted(history: History, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(file_of(history))
    (finding,) = audit(path).findings
    assert (finding.kind, finding.transition, finding.section) == (Kind.PROCEDURE, "finalize_externally", "4.9")
    assert "an external finalization (§4.9) that nobody declared" in finding.differences[0]
    assert call("audit", str(path)).exit_code == 1
    assert call("audit", "--admit-finalization", str(path)).exit_code == 0


@pytest.mark.parametrize("history", recorded()[::5], ids=lambda history: history.name)
def test_a_session_that_was_rewritten_at_any_commit_is_judged_from_there_on(history: History, tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    for at, standing in enumerate(history.standings[:-1]):
        if at:
            path.write_bytes(b"".join([*snapshot_of(standing.state), *map(lines_of, history.commits[at:])]))
            report = audit(path, finalizations_admitted=history.is_finalized)
            assert (report.findings, report.commits) == ((), len(history.commits) - at)
            assert report.rows


def rewritten(history: History) -> tuple[bytes, list[bytes]]:
    header, *rows = snapshot_of(history.standings[-1].state)
    return header, rows


PLAIN = recorded()[0]


def test_a_rewritten_file_that_kept_no_mark_is_known_by_its_rows(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(b"".join([file_of(History(name="", start=State.empty(), commits=())), *rewritten(PLAIN)[1]]))
    report = audit(path)
    assert (report.exit_code, report.commits, report.rows) == (0, 0, len(rewritten(PLAIN)[1]))


def test_a_file_that_only_says_that_it_was_rewritten_is_found(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(file_of(PLAIN, header={**HEADER, "nextSeq": 1000}))
    report = audit(path)
    assert report.exit_code == 1
    assert {finding.kind for finding in report.findings} == {Kind.ROWS}
    assert any("current rows" in line for finding in report.findings for line in finding.differences)


@pytest.mark.parametrize(
    "change, reason",
    [
        (lambda rows: [row for row in rows if b"lane.state" not in row], "lane.state/main does not exist"),
        (lambda rows: [row for row in rows if b'"kind":"entry"' not in row], "leaves exist"),
        (lambda rows: [*rows[1:], rows[0]], "sequence number"),
    ],
    ids=["a lane without its state", "a leaf without its entry", "rows out of order"],
)
def test_a_state_that_no_restore_accepts_is_found(
    change: Callable[[list[bytes]], list[bytes]], reason: str, tmp_path: Path
) -> None:
    header, rows = rewritten(PLAIN)
    path = tmp_path / "session.jsonl"
    path.write_bytes(header + b"".join(change(rows)))
    report = audit(path)
    assert report.exit_code == 1
    assert any(reason in line for finding in report.findings for line in finding.differences)


def test_a_fork_begins_with_what_it_copied(tmp_path: Path) -> None:
    rows = rewritten(PLAIN)[1]
    path = tmp_path / "session.jsonl"
    whole = b"[" + b",".join(row.rstrip(b"\n") for row in rows) + b"]\n"
    plain = file_of(History(name="", start=State.empty(), commits=()), header={**HEADER, "parentSessionId": "s-0"})
    path.write_bytes(plain + whole)
    assert audit(path).exit_code == 0
    path.write_bytes(plain.replace(b"parentSessionId", b"cwd") + whole)
    assert audit(path).exit_code == 1


def test_a_torn_line_is_no_violation_wherever_it_is_cut(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    whole = file_of(PLAIN)
    last = len(whole.splitlines(keepends=True)[-1])
    for cut in range(1, last, 7):
        path.write_bytes(whole[:-cut])
        report = audit(path)
        assert (report.exit_code, report.torn_bytes) == (0, last - cut)
    assert "are torn; a writer drops them" in call("audit", str(path)).stdout


def test_judging_goes_on_after_a_commit_that_no_transition_makes(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    reversed_writes: Elements = []
    for element, other in zip(PLAIN.commits[2], PLAIN.commits[2][::-1], strict=True):
        assert isinstance(element, dict)
        assert isinstance(other, dict)
        reversed_writes.append({**other, "seq": element["seq"]})
    commits = (*PLAIN.commits[:2], reversed_writes, *PLAIN.commits[3:])
    path.write_bytes(file_of(History(name="", start=State.empty(), commits=commits)))
    report = audit(path)
    assert [finding.commit for finding in report.findings] == [3]
    assert (report.commits, report.stopped) == (len(PLAIN.commits), None)


def test_judging_stops_where_a_commit_leaves_no_state(tmp_path: Path) -> None:
    path = tmp_path / "session.jsonl"
    path.write_bytes(file_of(History(name="", start=State.empty(), commits=(*PLAIN.commits[:4], *PLAIN.commits[3:]))))
    report = audit(path)
    assert report.commits == 5
    assert report.stopped == "commit 5 (line 6) leaves no state, so nothing after it is judged"
    assert [finding.kind for finding in report.findings] == [Kind.UNEXPLAINED, Kind.RULE]


def test_a_broken_invariant_is_told_once(tmp_path: Path) -> None:
    standing = Standing.of(State.empty())
    leak = {"kind": "register", "op": "set", "seq": 0, "namespace": "op.meta", "key": "o", "value": 1}
    found = []
    for elements in (PLAIN.commits[0], [{**leak, "seq": 3}], [{**leak, "seq": 4, "key": "p"}]):
        verdict = judge(standing, SeenCommit(elements=elements))  # type: ignore[arg-type]
        assert verdict.after is not None
        standing = verdict.after
        found.append([line for one in verdict.findings if one.kind is Kind.INVARIANT for line in one.differences])
    assert [len(lines) for lines in found] == [0, 2, 2]
    assert not set(found[1]) & set(found[2])


# --- SQLite


@pytest.fixture
def database(tmp_path: Path) -> Path:
    async def play() -> Path:
        repository = open_repository("sqlite", tmp_path)
        session = await repository.create(id="s-1")
        await play_prompt(session, "one", "two")
        session = await repository.open("s-1")
        first = (await session.find_entries())[-1]
        await commit(session, RegisterSet(LANE_LEAF, "main", first.id))
        await play_prompt(session, "another branch")
        return repository.path_of("s-1")

    return anyio.run(play)


def test_a_database_is_held_as_a_state(database: Path) -> None:
    report = audit(database)
    assert (report.exit_code, report.findings, report.commits) == (0, (), 0)
    assert (report.format, report.session) == ("sqlite", "s-1")
    assert report.rows > 10


@pytest.mark.parametrize(
    "statement, kind, reason",
    [
        ("UPDATE session SET message_count = 99", Kind.ROWS, "messageCount"),
        ("UPDATE session SET usage_payload = '{}'", Kind.ROWS, "usage"),
        ("UPDATE session SET usage_payload = '{'", Kind.ROWS, "no JSON"),
        ("UPDATE session SET next_seq = 2", Kind.ROWS, "next sequence number"),
        ("UPDATE session SET next_seq = 'x'", Kind.ROWS, "next_seq"),
        ("UPDATE entries SET parent_id = 'nowhere' WHERE seq > 6", Kind.ROWS, "parent"),
        ("UPDATE usage_ledger SET seq = (SELECT max(seq) FROM entries)", Kind.ROWS, "used twice"),
        ("UPDATE entries SET payload = NULL WHERE seq = (SELECT max(seq) FROM entries)", Kind.ROWS, "no text"),
        ("UPDATE entries SET payload = '7' WHERE seq = (SELECT max(seq) FROM entries)", Kind.ROWS, "no object"),
        ("UPDATE entries SET payload = '{\"id\":1}' WHERE seq = (SELECT max(seq) FROM entries)", Kind.ROWS, "column"),
        ("UPDATE usage_ledger SET adjustment = 7", Kind.ROWS, "neither 0 nor 1"),
        ("UPDATE registers SET value = '\"nowhere\"' WHERE namespace = 'lane.leaf'", Kind.INVARIANT, "leaves exist"),
        ("DELETE FROM registers WHERE namespace = 'lane.state'", Kind.ROWS, "does not exist"),
        ("INSERT INTO registers VALUES ('op.meta', 'o', 900, '1')", Kind.ROWS, "next sequence number"),
        ("INSERT INTO registers VALUES ('op.extra', 'o', 1, '1')", Kind.ROWS, "op.extra"),
        ("DELETE FROM branch_entries", Kind.ROWS, "is on no branch"),
        ("DELETE FROM branch_meta", Kind.ROWS, "belong to no segment"),
        ("UPDATE branch_meta SET tip_seq = tip_seq + 1", Kind.ROWS, "is not its newest row"),
        ("UPDATE branch_meta SET base_branch_id = 'x', base_seq = 3", Kind.ROWS, "does not hold"),
        ("UPDATE branch_entries SET entry_seq = entry_seq + 1", Kind.ROWS, "which no entry is"),
        ("DELETE FROM branch_entries WHERE entry_seq = 4", Kind.ROWS, "parent"),
    ],
)  # fmt: skip
def test_what_is_changed_in_a_database_is_found(database: Path, statement: str, kind: Kind, reason: str) -> None:
    with sqlite3.connect(database) as connection:
        connection.execute(statement)
    connection.close()
    report = audit(database)
    assert report.exit_code == 1
    lines = [line for finding in report.findings if finding.kind is kind for line in finding.differences]
    assert any(reason in line for line in lines), report.findings


def digest(folder: Path) -> dict[str, str]:
    return {path.name: hashlib.sha256(path.read_bytes()).hexdigest() for path in folder.iterdir()}


@pytest.mark.parametrize("suffixes", [(), ("-wal",), ("-wal", "-shm")], ids=["closed", "a log", "a log and its index"])
def test_a_database_and_what_lies_beside_it_stay_as_they_are(
    database: Path, suffixes: tuple[str, ...], tmp_path: Path
) -> None:
    there = tmp_path / "copy"
    there.mkdir()
    with sqlite3.connect(database, isolation_level=None) as connection:
        connection.execute("UPDATE session SET created_at = created_at + 1")
        for suffix in ("", *suffixes):
            shutil.copyfile(f"{database}{suffix}", f"{there / 'session.sqlite'}{suffix}")
        before = digest(there)
        assert audit(there / "session.sqlite").exit_code == 0
        assert audit(database).exit_code == 0  # while its writer lives
        assert digest(there) == before
    connection.close()
