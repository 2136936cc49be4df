"""Several storages and the model of storage, asked the same and held to the same answer."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self, TypeVar, assert_never

from restartpoint.contract import (
    BranchScan,
    CommitResult,
    Entry,
    EntryScan,
    EntryStructure,
    Namespace,
    Register,
    SessionMetadata,
    Transaction,
    UsageRow,
    UsageScan,
)
from restartpoint.errors import (
    DuplicateId,
    EmptyTransaction,
    InvalidJson,
    InvalidQuery,
    MissingParent,
    StaleExpectation,
    StorageError,
    UnknownEntry,
)
from restartpoint.storage import Storage
from restartpoint_oracle import wire
from restartpoint_oracle.content import content_of_model, content_of_storage
from restartpoint_oracle.doubles import ManualClock, RaisingFaults
from restartpoint_oracle.errors import LockstepBroken
from restartpoint_oracle.places import LEASE_MS, Place
from restartpoint_oracle.samples import FIRST_TRANSACTION, METADATA
from restartpoint_oracle.wire import Json, JsonObject
from restartpoint_reference import (
    BranchOrder,
    EntryType,
    Observed,
    Order,
    Rule,
    State,
    UnknownStart,
    Violation,
    apply,
    differences,
    get_entries,
    list_registers,
    scan_branch,
    scan_branch_structure,
    scan_entries,
    scan_usage,
)
from restartpoint_reference import BranchScan as ModelBranchScan
from restartpoint_reference import EntryScan as ModelEntryScan
from restartpoint_reference import Expectation as ModelExpectation
from restartpoint_reference import Namespace as ModelNamespace
from restartpoint_reference import UsageScan as ModelUsageScan

__all__ = ["Lockstep"]

T = TypeVar("T")


@dataclass
class _Runner:
    """A place and the storage that is open in it."""

    place: Place
    storage: Storage
    rows: dict[str, bytes] = field(default_factory=dict)
    """Every entry and ledger row that was ever answered, by id."""

    def remember(self, content: JsonObject) -> None:
        """Rows are written once: every earlier one is still there and unchanged, whatever the model says (§9.1, 1)."""
        now = dict(_rows_by_id(content))
        changed = [key for key, text in self.rows.items() if now.get(key) != text]
        if changed:
            raise LockstepBroken(f"{self.place.name} changed or lost rows: {', '.join(changed)}")
        self.rows = now


class Lockstep:
    """One session in every place and in the model; a context manager that owns the event loop of the storages.

    The loop is asyncio's; a call runs to its end before the next begins. Backends that use a thread must be given
    an inline hop, so that one seed is one run.
    """

    def __init__(self, places: Sequence[Place]) -> None:
        self.state = State.empty()
        self.clock = ManualClock()
        self._loop = asyncio.new_event_loop()
        self._runners = [_Runner(place, self._run(self._create(place, METADATA))) for place in places]
        self.state = self._applied(FIRST_TRANSACTION)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close every storage and the loop."""
        for runner in self._runners:
            self._run(runner.storage.close())
        self._loop.close()

    @property
    def remembered(self) -> list[dict[str, bytes]]:
        """Per place, every entry and ledger row that it answered, by id."""
        return [dict(runner.rows) for runner in self._runners]

    # --- commits ------------------------------------------------------------------------------------------------

    def commit(self, tx: Transaction) -> None:
        """Commit a transaction that the model accepts, everywhere; everybody gives out the same numbers and time."""
        first, timestamp = self.state.next_seq, self.clock.now_ms()
        self.state = self._applied(tx)
        expected: JsonObject = {
            "firstSeq": first, "seqs": [*range(first, self.state.next_seq)], "timestamp": timestamp
        }  # fmt: skip
        self._ask("commit", expected, lambda storage: storage.commit(tx), _result)

    def refuse(self, tx: Transaction, *, no_json: bool = False) -> str:
        """Commit a transaction that must be refused, everywhere with the same error; answers the error's name."""
        expected = _error(InvalidJson("", "")) if no_json else self._refusal(tx)
        self._ask("commit", expected, lambda storage: storage.commit(tx), _result)
        error = expected["error"]
        assert isinstance(error, str)
        return error

    def _applied(self, tx: Transaction) -> State:
        observed = self._observed(tx)
        made = apply(
            self.state, observed.writes, timestamp=self.clock.now_ms(), seqs=observed.seqs, expectations=_expected(tx)
        )
        if isinstance(made, Violation):
            raise LockstepBroken(f"the model refuses a transaction that was meant to be legal: {made}")
        return made[0]

    def _refusal(self, tx: Transaction) -> JsonObject:
        observed = self._observed(tx)
        made = apply(self.state, observed.writes, timestamp=self.clock.now_ms(), expectations=_expected(tx))
        if not isinstance(made, Violation):
            raise LockstepBroken(f"the model accepts a transaction that was meant to be refused: {tx}")
        return _error(_as_error(tx, made))

    def _observed(self, tx: Transaction) -> Observed:
        seqs = tuple(range(self.state.next_seq, self.state.next_seq + len(tx.writes)))
        placed = CommitResult(first_seq=self.state.next_seq, seqs=seqs, timestamp=self.clock.now_ms())
        return Observed.from_json(wire.commit_json(tx, placed), self.clock.now_ms())

    # --- queries ------------------------------------------------------------------------------------------------

    def branch(self, query: BranchScan) -> list[Json]:
        """A branch scan, with and without payloads; answers the entries, none when the start is unknown."""
        try:
            scan = _branch_scan(query)
            entries: Json = [entry.to_json() for entry in scan_branch(self.state, scan)]
            structure: Json = [*scan_branch_structure(self.state, scan)]
        except UnknownStart:
            entries = structure = _error(UnknownEntry(str(query.start)))
        except ValueError:
            entries = structure = _error(InvalidQuery())
        self._ask(f"{query}", entries, lambda storage: storage.scan_branch(query), _entries)
        self._ask(f"structure of {query}", structure, lambda storage: storage.scan_branch_structure(query), _structures)
        return entries if isinstance(entries, list) else []

    def entries(self, query: EntryScan) -> None:
        """An inventory of entries."""
        scan = ModelEntryScan(
            type=None if query.type is None else EntryType(query.type), custom_type=query.custom_type,
            from_seq=query.from_seq, to_seq=query.to_seq, order=Order(query.order), limit=query.limit,
        )  # fmt: skip
        expected: Json = [entry.to_json() for entry in scan_entries(self.state, scan)]
        self._ask(f"{query}", expected, lambda storage: storage.scan_entries(query), _entries)

    def usage(self, query: UsageScan) -> None:
        """A read of the ledger."""
        scan = ModelUsageScan(
            from_seq=query.from_seq, to_seq=query.to_seq, order=Order(query.order), limit=query.limit
        )  # fmt: skip
        expected: Json = [row.to_json() for row in scan_usage(self.state, scan)]
        self._ask(f"{query}", expected, lambda storage: storage.scan_usage(query), _rows)

    def registers(self, namespace: Namespace[object], prefix: str) -> None:
        """A listing of registers, and the same keys one by one and in one batch."""
        found = [one.to_json() for one in list_registers(self.state, ModelNamespace(namespace.name), prefix)]
        keys = [(namespace, str(one["key"])) for one in found]
        self._ask(
            f"{namespace.name}/{prefix!r}*", [*found], lambda at: at.list_registers(namespace, prefix), _registers
        )
        self._ask("a batch", [*found, None], lambda at: at.get_registers([*keys, (namespace, "absent")]), _registers)

    def exactly(self, ids: list[str]) -> None:
        """Entries by id."""
        expected: JsonObject = {key: found.to_json() for key, found in get_entries(self.state, ids).items()}
        self._ask(
            f"the entries {ids}", expected, lambda storage: storage.get_entries(ids),
            lambda found: {key: wire.entry_json(one) for key, one in found.items()},
        )  # fmt: skip

    def everything(self) -> None:
        """All that is held, the statistics included."""
        expected = content_of_model(self.state)
        for runner in self._runners:
            found = self._run(content_of_storage(runner.storage))
            self._compare(runner, "everything", expected, found)
            runner.remember(found)

    # --- losing the process -------------------------------------------------------------------------------------

    def reopen(self) -> None:
        """Close and open every storage; nothing has changed."""
        for runner in self._runners:
            self._run(runner.storage.close())
            runner.storage = self._run(runner.place.reopen(clock=self.clock, faults=RaisingFaults()))
        self.everything()

    def crash(self, torn: float) -> None:
        """Lose every process, with a torn write on the disk where a backend tears; what was committed is there."""
        self.clock.advance(LEASE_MS)
        for runner in self._runners:
            faults = RaisingFaults()
            runner.storage = self._run(runner.place.crash(clock=self.clock, faults=faults, torn=torn))
        self.everything()

    # --- asking -------------------------------------------------------------------------------------------------

    async def _create(self, place: Place, metadata: SessionMetadata) -> Storage:
        return await place.create(metadata, FIRST_TRANSACTION, clock=self.clock, faults=RaisingFaults())

    def _ask(
        self,
        what: str,
        expected: Json,
        call: Callable[[Storage], Awaitable[T]],
        as_json: Callable[[T], Json],
    ) -> None:
        async def answer(storage: Storage) -> Json:
            try:
                return as_json(await call(storage))
            except StorageError as error:
                return _error(error)

        for runner in self._runners:
            self._compare(runner, what, expected, self._run(answer(runner.storage)))

    def _compare(self, runner: _Runner, what: str, expected: Json, found: Json) -> None:
        lines = differences(expected, found)
        if lines:
            head = f"{runner.place.name} answers otherwise than the model of storage: {what}"
            raise LockstepBroken("\n  - ".join((head, *lines[:20])))

    def _run(self, awaitable: Awaitable[T]) -> T:
        async def run() -> T:
            return await awaitable

        return self._loop.run_until_complete(run())


def _rows_by_id(content: JsonObject) -> Iterator[tuple[str, bytes]]:
    for part in ("entries", "usage"):
        rows = content[part]
        assert isinstance(rows, list)
        for row in rows:
            assert isinstance(row, dict)
            yield str(row["id"]), wire.json_text(row)


def _expected(tx: Transaction) -> list[ModelExpectation]:
    return [ModelExpectation.from_json(wire.expectation_json(one)) for one in tx.expectations]


def _as_error(tx: Transaction, violation: Violation) -> StorageError:
    """The error that a backend raises for a rule of the model."""
    written = None if violation.index is None else wire.commit_json(
        Transaction(tx.writes[violation.index : violation.index + 1]), CommitResult(first_seq=1, seqs=(1,), timestamp=1)
    )[0]  # fmt: skip
    row = written if isinstance(written, dict) else {}
    match violation.rule:
        case Rule.EMPTY:
            return EmptyTransaction()
        case Rule.EXPECTATION:
            assert violation.stale is not None
            stale = violation.stale
            return StaleExpectation(stale.namespace, stale.key, expected=stale.seq, actual=violation.actual_seq)
        case Rule.UNIQUE_ID:
            return DuplicateId(str(row["id"]))
        case Rule.PARENT:
            return MissingParent(str(row["id"]), str(row["parentId"]))
        case Rule.SEQUENCE:
            raise LockstepBroken(f"the model numbers its own writes wrongly: {violation}")
        case _:
            assert_never(violation.rule)


def _error(error: StorageError) -> JsonObject:
    """An error by its kind and by what it names."""
    match error:
        case StaleExpectation():
            named: JsonObject = {
                "namespace": str(error.namespace), "key": error.key, "expected": error.expected, "actual": error.actual,
            }  # fmt: skip
        case DuplicateId() | UnknownEntry():
            named = {"id": error.id}
        case MissingParent():
            named = {"id": error.id, "parentId": error.parent_id}
        case _:
            named = {}
    return {"error": type(error).__name__, **named}


def _branch_scan(query: BranchScan) -> ModelBranchScan:
    return ModelBranchScan(
        start=str(query.start),
        stop_at_type=None if query.stop_at_type is None else EntryType(query.stop_at_type),
        stop_at_id=query.stop_at_id,
        type=None if query.type is None else EntryType(query.type),
        custom_type=query.custom_type,
        order=BranchOrder(query.order),
        cursor=None if query.cursor is None else query.cursor.seq,
        limit=query.limit,
    )


def _result(result: CommitResult) -> JsonObject:
    return {"firstSeq": result.first_seq, "seqs": [*result.seqs], "timestamp": result.timestamp}


def _entries(found: list[Entry]) -> list[Json]:
    return [wire.entry_json(one) for one in found]


def _structures(found: list[EntryStructure]) -> list[Json]:
    return [wire.structure_json(one) for one in found]


def _rows(found: list[UsageRow]) -> list[Json]:
    return [wire.usage_json(one) for one in found]


def _registers(found: Sequence[Register[Any] | None]) -> list[Json]:
    return [None if one is None else wire.register_json(one) for one in found]
