"""Every exception of the runtime, one class per thing that a caller can do about it (§5.1, §4.8).

``Rejected`` means that nothing was written and the call may be changed and repeated. ``StorageError`` comes from a
backend, ``SessionError`` from a session or a repository. ``HarnessFault`` and ``HarnessClosed`` end a harness.
"""

from __future__ import annotations

__all__ = [
    "Closed", "CommitRefused", "CorruptFile", "DuplicateId", "EmptyTransaction", "HarnessClosed", "HarnessFault",
    "HookAnswerRefused", "InvalidJson", "InvalidLane", "InvalidMessage", "InvalidNavigation", "InvalidOptions",
    "InvalidQuery", "InvalidSessionId", "InvariantBroken", "LaneBusy", "LaneExists", "LeaseHeld", "LeaseLost",
    "ListenerOverflow", "MissingIdentities", "MissingParent", "MutatorSpent", "NoActiveOperation", "NoActiveRun",
    "NotBuiltYet", "NothingToCompact", "NothingToResume", "Rejected", "RestartpointError", "SessionCorruption",
    "SessionError", "SessionExists", "SessionLocked", "SessionNotFound", "SessionOpen", "StaleExpectation",
    "StorageClosed", "StorageCorruption", "StorageError", "StorageFault", "StorageInUse", "UnknownEntry",
    "UnknownSkill", "UnknownTarget", "UnknownTemplate", "UnsupportedStorageVersion", "WriteUncertain",
    "WrongEventLoop",
]  # fmt: skip


class RestartpointError(Exception):
    """The root of every exception that this package raises."""


# --- rejections: nothing was written (§5.1) ---------------------------------------------------------------------


class Rejected(RestartpointError):
    """The call was refused before anything was written; the session is unchanged."""


class LaneBusy(Rejected):
    """The lane has an open operation or an admission reservation; wait for it, resume it, or abort it."""

    def __init__(self, lane: str, operation_id: str, operation_kind: str) -> None:
        super().__init__(
            f"lane {lane!r} is busy with {operation_kind} {operation_id}; wait until it is idle, resume() or abort() it"
        )
        self.lane, self.operation_id, self.operation_kind = lane, operation_id, operation_kind


class MissingIdentities(Rejected):
    """Models or tools that the lane's configuration names are not registered; register them and call again."""

    def __init__(self, lane: str, *, tools: tuple[str, ...] = (), models: tuple[str, ...] = ()) -> None:
        parts = [f"{kind} {', '.join(names)}" for kind, names in (("models", models), ("tools", tools)) if names]
        super().__init__(f"lane {lane!r} names {' and '.join(parts)} which are not registered; register them and retry")
        self.lane, self.tools, self.models = lane, tools, models


class _LaneRejection(Rejected):
    _text = ""

    def __init__(self, lane: str) -> None:
        super().__init__(f"lane {lane!r} {self._text}")
        self.lane = lane


class NoActiveRun(_LaneRejection):
    """The lane has no open run under running control; use next_run() or prompt()."""

    _text = "has no open run that accepts input; use next_run() or prompt()"


class NoActiveOperation(_LaneRejection):
    """The lane is idle, so there is nothing to abort."""

    _text = "has no open operation"


class NothingToResume(_LaneRejection):
    """The lane is idle, so there is nothing to resume; get_last_result() has the latest outcome."""

    _text = "has no open operation to resume; get_last_result() has the outcome of the latest one"


class NothingToCompact(_LaneRejection):
    """The lane's context has nothing that a compaction would summarize."""

    _text = "has nothing to compact"


class _LaneReasonRejection(Rejected):
    _text = ""

    def __init__(self, lane: str, reason: str) -> None:
        super().__init__(f"lane {lane!r}: {self._text}: {reason}")
        self.lane, self.reason = lane, reason


class InvalidMessage(_LaneReasonRejection):
    """The message cannot be accepted; the reason says what to change."""

    _text = "the message cannot be accepted"


class InvalidNavigation(_LaneReasonRejection):
    """The navigation request contradicts itself or the lane; the reason says how."""

    _text = "the navigation cannot be accepted"


class InvalidLane(_LaneReasonRejection):
    """The lane name is not allowed, or no such lane exists."""

    _text = "the lane name cannot be used"


class LaneExists(_LaneRejection):
    """A lane of that name exists; lanes are never renamed or deleted."""

    _text = "exists already; choose another name"


class UnknownSkill(Rejected):
    """No registered skill has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no skill is named {name!r}; register it with set_resources()")
        self.name = name


class UnknownTemplate(Rejected):
    """No registered prompt template has that name."""

    def __init__(self, name: str) -> None:
        super().__init__(f"no prompt template is named {name!r}; register it with set_resources()")
        self.name = name


class UnknownTarget(Rejected):
    """No entry has that id."""

    def __init__(self, target_id: str) -> None:
        super().__init__(f"no entry has the id {target_id!r}")
        self.target_id = target_id


class Closed(Rejected):
    """The harness, session or repository was closed before the call was accepted."""

    def __init__(self, what: str = "the harness") -> None:
        super().__init__(f"{what} is closed; open the session again")


class WrongEventLoop(Rejected):
    """The harness was called from outside of the event loop that opened it; call it in a task there."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"{reason}; call the harness in a task of the loop that opened it: anyio.from_thread.run() goes there from "
            "a worker thread, asyncio.run_coroutine_threadsafe() from any other"
        )
        self.reason = reason


class InvalidOptions(Rejected):
    """An option or setting has a value that is not allowed; the message names the option and the allowed range."""

    def __init__(self, option: str, reason: str) -> None:
        super().__init__(f"{option}: {reason}")
        self.option, self.reason = option, reason


class NotBuiltYet(Rejected):
    """The call needs a part of the specification that this version does not have."""

    def __init__(self, section: str, what: str) -> None:
        super().__init__(f"{what} (§{section}) is not built yet in this version; see the table in the README")
        self.section, self.what = section, what


# --- storage (§1.4, §1.5) ---------------------------------------------------------------------------------------


class StorageError(RestartpointError):
    """The root of what a storage backend raises."""


class CommitRefused(StorageError):
    """The transaction was refused before anything was applied; no sequence number was used (§1.4)."""


class EmptyTransaction(CommitRefused):
    """A transaction needs at least one write."""

    def __init__(self) -> None:
        super().__init__("a transaction needs at least one write; when there is nothing to write, do not commit")


class InvalidJson(CommitRefused):
    """A value cannot be kept as JSON on every backend; the path says which one."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path, self.reason = path, reason


class StaleExpectation(CommitRefused):
    """A register did not have the expected sequence number; read it again and decide anew."""

    def __init__(self, namespace: str, key: str, *, expected: int | None, actual: int | None) -> None:
        super().__init__(f"{namespace}/{key} was expected at seq {expected} but is at {actual}; read it again")
        self.namespace, self.key, self.expected, self.actual = namespace, key, expected, actual


class StorageCorruption(StorageError):
    """The write or the file contradicts an invariant of storage; nothing was applied."""


class DuplicateId(StorageCorruption):
    """An entry or a usage row with that id exists; both share one namespace."""

    def __init__(self, id: str) -> None:
        super().__init__(f"the id {id!r} is taken; entries and usage rows are written once under one id namespace")
        self.id = id


class MissingParent(StorageCorruption):
    """The parent that an entry names does not exist."""

    def __init__(self, id: str, parent_id: str) -> None:
        super().__init__(f"entry {id!r} names the parent {parent_id!r}, which does not exist")
        self.id, self.parent_id = id, parent_id


class CorruptFile(StorageCorruption):
    """A session file cannot be read; the message says where and why. The file is left as it is."""

    def __init__(self, path: str, reason: str, *, line: int | None = None, offset: int | None = None) -> None:
        at = "" if line is None else f" line {line}"
        at += "" if offset is None else f" (byte {offset})"
        super().__init__(f"{path}:{at} {reason}" if at else f"{path}: {reason}")
        self.path, self.reason, self.line, self.offset = path, reason, line, offset


class StorageFault(StorageError):
    """The outcome of a write is uncertain or the writer lost its claim; reopen the session to go on."""


class WriteUncertain(StorageFault):
    """A write failed part-way, so the storage accepts no more; reopen the session, which keeps whole commits only."""


class LeaseLost(StorageFault):
    """Another process took the session over; nothing of this commit was written."""


class StorageClosed(StorageError):
    """The storage was closed; open the session again through its repository."""

    def __init__(self) -> None:
        super().__init__("this storage is closed; open the session again through its repository")


class UnknownEntry(StorageError):
    """A scan starts at an id that names no entry."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no entry has the id {id!r}")
        self.id = id


class InvalidQuery(StorageError):
    """A query holds a value that is not allowed, such as a negative limit."""


class StorageInUse(StorageError):
    """Somebody else owns the session for writing; nothing was changed."""


class SessionLocked(StorageInUse):
    """Another open of the same JSONL file holds its lock, in this process or another; close that one first."""

    def __init__(self, path: str) -> None:
        super().__init__(f"{path} is locked by another writer; close the other session or wait for its process to end")
        self.path = path


class LeaseHeld(StorageInUse):
    """Another owner holds the unexpired writer lease of the SQLite session."""

    def __init__(self, path: str, owner_id: str, expires_at_ms: int) -> None:
        super().__init__(
            f"{path} is leased by writer {owner_id} until {expires_at_ms} ms; close that session or wait for its expiry"
        )
        self.path, self.owner_id, self.expires_at_ms = path, owner_id, expires_at_ms


# --- sessions and repositories (§2.8) ---------------------------------------------------------------------------


class SessionError(RestartpointError):
    """The root of what a session or a repository raises."""


class SessionNotFound(SessionError):
    """The repository has no session of that id."""

    def __init__(self, id: str) -> None:
        super().__init__(f"no session has the id {id!r}")
        self.id = id


class SessionExists(SessionError):
    """The repository has a session of that id already."""

    def __init__(self, id: str) -> None:
        super().__init__(f"a session with the id {id!r} exists already; open it or choose another id")
        self.id = id


class SessionOpen(SessionError):
    """This repository has the session open; close it first."""

    def __init__(self, id: str) -> None:
        super().__init__(f"session {id!r} is open in this repository; close it first")
        self.id = id


class InvalidSessionId(SessionError):
    """The id cannot become a file name; use letters, digits, and . _ - within 1 to 128 characters."""

    def __init__(self, id: str, reason: str) -> None:
        super().__init__(f"the session id {id!r} cannot be used: {reason}")
        self.id, self.reason = id, reason


class UnsupportedStorageVersion(SessionError):
    """The session was written under a storage version that this program does not know; use a newer program."""

    def __init__(self, path: str, version: int, supported: int) -> None:
        super().__init__(f"{path} has storage version {version}; this program knows {supported}")
        self.path, self.version, self.supported = path, version, supported


class SessionCorruption(SessionError):
    """The registers of a lane contradict each other or the tree; the check names the rule that failed (§3.3)."""

    def __init__(self, lane: str, check: str, detail: str) -> None:
        super().__init__(f"lane {lane!r} fails {check}: {detail}")
        self.lane, self.check, self.detail = lane, check, detail


class MutatorSpent(SessionError):
    """A mutator commits once and only inside its callback; use a second mutate() for a second transition."""


# --- harness (§4.7, §4.8) ---------------------------------------------------------------------------------------


class HarnessFault(RestartpointError):
    """A commit failed or an invariant broke, so the harness stopped; open the session again. See ``__cause__``."""


class HarnessClosed(RestartpointError):
    """The harness was closed while an accepted operation ran; the operation stays open and can be resumed."""


class HookAnswerRefused(RestartpointError):
    """A hook handler answered against the contract of its hook, so the answer was ignored; correct the handler."""


class ListenerOverflow(RestartpointError):
    """An async listener fell too far behind and was dropped; register it again and let it hand events on faster."""


class InvariantBroken(RestartpointError):
    """Code and durable state contradict each other; this is a defect of the program, never of its input."""
