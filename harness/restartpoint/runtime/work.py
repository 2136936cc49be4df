"""The live side of one operation: its gate, its barrier, and the one way that it changes durable state (§4.1-§4.3)."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TypeAlias, TypeVar

from restartpoint.contract import (
    LANE_LEAF,
    LANE_STATE,
    OP_PREPARATION,
    OP_STATE,
    OP_TOOL_ARGS,
    AgentMessage,
    JsonValue,
    MessagePayload,
    Operation,
    RunState,
    Transaction,
)  # fmt: skip
from restartpoint.errors import InvariantBroken
from restartpoint.execution.gate import OperationEnded
from restartpoint.runtime.announce import Announcer, Committed
from restartpoint.runtime.barrier import ActionInfo, BreakpointBarrier
from restartpoint.runtime.context import LiveContext
from restartpoint.runtime.gate import EffectGate
from restartpoint.runtime.services import Services
from restartpoint.runtime.transitions import Current, OwnedKeys
from restartpoint.session import SessionMutator, SessionReader

__all__ = ["Decide", "Work"]

T = TypeVar("T")

Decide: TypeAlias = Callable[[Current, SessionMutator], Awaitable[tuple[Transaction, T]]]
"""Verifies the reread state and gives the transaction with what the procedure wants back."""


class Work:
    """What the procedures of one operation work with. It decides nothing."""

    def __init__(
        self,
        services: Services,
        operation: Operation,
        barrier: BreakpointBarrier,
        context: LiveContext,
        *,
        restored: bool,
    ) -> None:
        self.services = services
        self.operation = operation
        self.barrier = barrier
        self.context = context
        self.gate = EffectGate()
        self.announce = Announcer(
            services.events, services.session, operation.lane, operation.operation_id, restored=restored
        )

    @property
    def lane(self) -> str:
        """The lane's name."""
        return self.operation.lane

    @property
    def operation_id(self) -> str:
        """The operation's durable id, public as the run id."""
        return self.operation.operation_id

    async def breakpoint(self, kind: str, description: str, **details: JsonValue) -> None:
        """Return when the step that follows may run. Details are ids, names and counts only."""
        if self.barrier.manual:
            await self.barrier.hit(ActionInfo(kind=kind, description=description, details=details))
        else:
            self.barrier.raise_if_closed()

    async def load(self) -> Current:
        """The operation as its registers say now.

        Raises:
            OperationEnded: a terminal transaction has won.
        """
        return await self._current(self.services.session)

    async def transition(self, decide: Decide[T]) -> T:
        """Reread, decide and commit once on the lane line; then announce what was committed.

        Raises:
            OperationEnded: a terminal transaction has won; nothing was written.
            StorageError: the commit failed; the harness must stop.
        """

        async def job(mutator: SessionMutator) -> tuple[T, Committed]:
            current = await self._current(mutator)
            transaction, value = await decide(current, mutator)
            committed = Committed.of(transaction, await mutator.commit(transaction))
            self.context.extend(committed.entries)
            return value, committed

        value, committed = await self.services.session.mutate(self.lane, job)
        await self.announce.committed(committed)
        return value

    async def _current(self, reader: SessionReader) -> Current:
        lane_state, state, leaf = await reader.get_registers(
            [(LANE_STATE, self.lane), (OP_STATE, self.operation_id), (LANE_LEAF, self.lane)]
        )
        if state is None or lane_state is None or lane_state.value.current_operation_id != self.operation_id:
            raise OperationEnded
        if leaf is None or not isinstance(state.value, RunState):
            raise InvariantBroken(f"operation {self.operation_id} is no run with a leaf")
        return Current(operation=self.operation, state=state.value, lane_state=lane_state.value, leaf_id=leaf.value)

    async def owned_keys(self, mutator: SessionMutator) -> OwnedKeys:
        """The register keys that the terminal transaction deletes besides meta and state."""
        prefix = f"{self.operation_id}:"
        arguments = await mutator.list_registers(OP_TOOL_ARGS, prefix)
        preparations = await mutator.list_registers(OP_PREPARATION, prefix)
        return OwnedKeys(
            tool_args=tuple(register.key for register in arguments),
            preparation=tuple(register.key for register in preparations),
        )

    async def message(self, entry_id: str) -> AgentMessage:
        """The message of an entry that the state names."""
        entry = (await self.services.session.get_entries([entry_id])).get(entry_id)
        if entry is None or not isinstance(entry.payload, MessagePayload):
            raise InvariantBroken(f"entry {entry_id} should be a message and is not there")
        return entry.payload.message
