"""A SQLite session as a final state (§1.7): its rows as the model's state, and what is kept beside them.

It is read in one read transaction of a connection that cannot write. SQLite makes files of its own beside a database in
WAL mode, so one that nobody has open is read as immutable, one whose log lost its index is read from a copy, and every
other one with its index read only.
"""

from __future__ import annotations

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import quote

from restartpoint_oracle.audit.auditor import Auditor
from restartpoint_oracle.audit.branches import branch_problems
from restartpoint_oracle.audit.damaged import refusing
from restartpoint_oracle.audit.findings import Finding, Kind
from restartpoint_oracle.audit.rows import Rows, read_rows
from restartpoint_oracle.errors import Unreadable
from restartpoint_reference import Refused, State, differences

__all__ = ["MAGIC", "audit_database"]

MAGIC = b"SQLite format 3\0"
"""How every SQLite file begins."""

_STORAGE_VERSION = 1
_BUSY_MS = 5_000


def audit_database(path: Path, auditor: Auditor) -> None:
    """Take the whole database.

    Raises:
        Unreadable: this is no session's database, it is damaged, or somebody keeps every reader out.
    """
    auditor.format = "sqlite"
    try:
        with _connected(path) as connection:
            connection.execute("BEGIN")
            rows = read_rows(connection)
    except sqlite3.Error as error:
        text = str(error)
        reason = "this database is no session" if text.startswith("no such") else "the database cannot be read"
        raise Unreadable(f"{reason}: {text}") from error
    except Refused as refused:
        _refuse(refused, auditor)
    else:
        _audit(rows, auditor)


@contextmanager
def _connected(path: Path) -> Iterator[sqlite3.Connection]:
    path = path.resolve()
    log, index, journal = (path.with_name(path.name + suffix) for suffix in ("-wal", "-shm", "-journal"))
    logged = log.exists() and log.stat().st_size > 0
    if logged and not index.exists():
        with TemporaryDirectory(prefix="restartpoint-audit-") as folder:
            copy = Path(folder) / "session"
            shutil.copyfile(path, copy)
            shutil.copyfile(log, copy.with_name("session-wal"))
            with closing(_connect(copy, "mode=ro")) as connection:
                yield connection
    else:
        alone = not (logged or index.exists() or journal.exists())
        with closing(_connect(path, "mode=ro&immutable=1" if alone else "mode=ro&readonly_shm=1")) as connection:
            yield connection


def _connect(path: Path, mode: str) -> sqlite3.Connection:
    connection = sqlite3.connect(f"file:{quote(str(path))}?{mode}", uri=True, isolation_level=None)
    connection.execute(f"PRAGMA busy_timeout = {_BUSY_MS}")
    connection.execute("PRAGMA query_only = ON")
    return connection


def _audit(rows: Rows, auditor: Auditor) -> None:
    if rows.storage_version > _STORAGE_VERSION:
        known = f"newer than {_STORAGE_VERSION}, which this program knows"
        raise Unreadable(f"storage version {rows.storage_version} is {known}")
    auditor.session = rows.session
    try:
        with refusing():
            state = State.from_parts(rows.entries, rows.registers, rows.usage, next_seq=rows.next_seq)
    except Refused as refused:
        _refuse(refused, auditor)
        return
    auditor.state(state, len(rows.entries) + len(rows.registers) + len(rows.usage))
    wrong = differences(state.stats.to_json(), rows.stats, "session")
    if wrong:
        auditor.find(Finding(kind=Kind.ROWS, section="1.6", differences=wrong), None)
    lost = tuple(branch_problems(state, rows.branches, rows.places))
    if lost:
        auditor.find(Finding(kind=Kind.ROWS, section="2.6", differences=lost), None)


def _refuse(refused: Refused, auditor: Auditor) -> None:
    auditor.find(Finding(kind=Kind.ROWS, section="1.7", differences=(str(refused),)), None)
    auditor.stop("the rows make no state, so nothing more is judged")
