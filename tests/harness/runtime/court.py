"""The model as judge of a session under test: every commit explained, applied and held to the invariants at once."""

from collections.abc import Mapping

from restartpoint.contract import NAMESPACES, CommitResult, EntryScan, ModelRequest, Transaction, UsageScan
from restartpoint.session import Session
from restartpoint.storage import Storage
from restartpoint_oracle.wire import commit_json, entry_json, json_text, register_json, usage_json
from restartpoint_reference import (
    Explained,
    Namespace,
    Observed,
    Projector,
    State,
    Unexplained,
    Violation,
    apply,
    explain,
    invariants,
    project,
)

__all__ = ["Court", "model_state"]


async def model_state(storage: Storage | Session) -> State:
    """Everything durable of a session, as the model holds it."""
    registers = [
        register_json(register)
        for namespace in NAMESPACES.values()
        for register in await storage.list_registers(namespace)
    ]
    return State.from_parts(
        entries=[entry_json(entry) for entry in await storage.scan_entries(EntryScan(order="asc"))],
        registers=registers,
        usage=[usage_json(row) for row in await storage.scan_usage(UsageScan(order="asc"))],
    )


class Court:
    """Follows one open session. ``objections`` must be empty at the end; ``names`` are the transitions in order."""

    def __init__(
        self, state: State, projectors: Mapping[str, Projector] | None = None, *, check_invariants: bool = True
    ) -> None:
        self.state = state
        self.names: list[str] = []
        self.commits: list[Transaction] = []
        self.objections: list[str] = []
        self.opted_out: str | None = None
        self._projectors = projectors
        self._check_invariants = check_invariants

    def judge(self, lane: str, tx: Transaction, result: CommitResult) -> str:
        """The name of the transition that made this commit, or "unexplained" with an objection."""
        elements = commit_json(tx, result)
        verdict = explain(self.state, list(elements), result.timestamp)
        self.commits.append(tx)
        match verdict:
            case Explained(name=name):
                pass
            case Unexplained():
                name = "unexplained"
                self.objections.append(f"commit {len(self.commits)} on lane {lane}: {verdict}")
        self.names.append(name)
        observed = Observed.from_json(list(elements), result.timestamp)
        applied = apply(self.state, observed.writes, timestamp=result.timestamp, seqs=result.seqs)
        if isinstance(applied, Violation):
            self.objections.append(f"commit {len(self.commits)} on lane {lane}: {applied}")
        else:
            self.state = applied[0]
            if self._check_invariants:
                self.objections += [f"after {name}: {broken}" for broken in invariants.check(self.state)]
        return name

    def compare(self, request: ModelRequest) -> None:
        """Hold a request's messages to the model's projection at the leaf of a lane that waits for a response."""
        if self.opted_out is not None:
            return
        asked = json_text(list(request.messages))
        expected = [json_text(list(project(self.state, leaf, self._projectors))) for leaf in self._waiting_leaves()]
        if asked not in expected:
            self.objections.append(f"a request holds {asked!r}, the model projects {expected!r}")

    def _waiting_leaves(self) -> list[str | None]:
        found: list[str | None] = []
        for lane in self.state.keys(Namespace.LANE_STATE):
            lane_state = self.state.value(Namespace.LANE_STATE, lane)
            assert isinstance(lane_state, dict)
            operation = lane_state["currentOperationId"]
            op_state = self.state.value(Namespace.OP_STATE, operation) if isinstance(operation, str) else None
            if isinstance(op_state, dict) and b'"responseEntryId"' in json_text(op_state):
                leaf = self.state.value(Namespace.LANE_LEAF, lane)
                assert leaf is None or isinstance(leaf, str)
                found.append(leaf)
        return found

    @staticmethod
    def opt_out_text(reason: str) -> str:
        """What is printed when a test leaves the comparison of requests out."""
        return f"requests are not compared with the model: {reason}"
