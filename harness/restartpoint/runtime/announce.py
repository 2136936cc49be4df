"""Events: what each step of a run publishes, and in which order around its commit (§5.5)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, assert_never

import msgspec

from restartpoint.contract import (
    UNSET,
    AgentMessage,
    AssistantEvent,
    CommitResult,
    Entry,
    EntryAddedEvent,
    InsertEntry,
    InsertUsage,
    JsonObject,
    MessageEndEvent,
    MessagePayload,
    MessageStartEvent,
    MessageUpdateEvent,
    MissingIdentitiesNames,
    MissingIdentitySuspension,
    RunAborted,
    RunCompleted,
    RunDeferred,
    RunEndEvent,
    RunFailed,
    RunOutcome,
    RunResumeEvent,
    RunStartEvent,
    RunSuspendEvent,
    SourceCall,
    ToolEndEvent,
    ToolResult,
    ToolStartEvent,
    ToolUpdateEvent,
    Transaction,
    TurnEndEvent,
    TurnStartEvent,
    UsageEvent,
    UsageRow,
    or_unset,
)  # fmt: skip
from restartpoint.events import EventBus
from restartpoint.session import Session

__all__ = ["Announcer", "Committed", "bill"]


class Committed(msgspec.Struct, frozen=True, kw_only=True):
    """The entries and ledger rows of one commit, as they are stored."""

    entries: tuple[Entry, ...]
    usage: tuple[UsageRow, ...]

    @classmethod
    def of(cls, transaction: Transaction, result: CommitResult) -> Committed:
        """What a transaction inserted, with the numbers that storage gave it."""
        entries, usage = [], []
        for write, seq in zip(transaction.writes, result.seqs, strict=True):
            if isinstance(write, InsertEntry):
                draft = write.entry
                entries.append(
                    Entry(
                        id=draft.id,
                        parent_id=draft.parent_id,
                        seq=seq,
                        timestamp=result.timestamp,
                        payload=draft.payload,
                    )
                )
            elif isinstance(write, InsertUsage):
                row = write.row
                usage.append(
                    UsageRow(
                        id=row.id,
                        seq=seq,
                        usage=row.usage,
                        adjustment=row.adjustment,
                        entry_id=row.entry_id,
                        details=row.details,
                    )
                )
        return cls(entries=tuple(entries), usage=tuple(usage))


class Announcer:
    """Publishes for one operation. ``restored`` marks re-emitted lifecycle as recovery, never durable facts."""

    def __init__(self, events: EventBus, session: Session, lane: str, run_id: str, *, restored: bool) -> None:
        self._events = events
        self._session = session
        self._lane = lane
        self._run_id = run_id
        self._recovery: Literal[True] | msgspec.UnsetType = True if restored else UNSET

    @property
    def _silent(self) -> bool:
        return not self._events.heard

    # --- run lifecycle ------------------------------------------------------------------------------------------

    def run_start(self) -> None:
        """The prompt was accepted."""
        if not self._silent:
            self._events.publish(RunStartEvent(lane=self._lane, run_id=self._run_id))

    def run_resume(self) -> None:
        """``resume()`` took the run up."""
        if not self._silent:
            event = RunResumeEvent(lane=self._lane, run_id=self._run_id, recovery=self._recovery)
            self._events.publish(event)

    def placed(self, entries: Sequence[Entry]) -> None:
        """Messages that a transition placed: for each its start, its end, its entry."""
        if self._silent:
            return
        for entry in entries:
            if isinstance(entry.payload, MessagePayload):
                self.message_start(entry.payload.message)
                self.message_end(entry.payload.message, entry.id)
            self._events.publish(EntryAddedEvent(lane=self._lane, entry=entry))

    def run_end(self, outcome: RunOutcome) -> None:
        """The run ended or suspended."""
        if self._silent:
            return
        lane, run_id = self._lane, self._run_id
        match outcome:
            case RunCompleted() | RunAborted() | RunFailed():
                self._events.publish(_end_event(lane, outcome))
            case RunDeferred(deferred=handle):
                suspend = RunSuspendEvent(lane=lane, run_id=run_id, reason="deferred", deferred=handle)
                self._events.publish(suspend)
            case MissingIdentitySuspension(tools=tools, models=models):
                names = MissingIdentitiesNames(tools=tools, models=models)
                suspend = RunSuspendEvent(lane=lane, run_id=run_id, reason="missing_identities", missing=names)
                self._events.publish(suspend)
            case _ as unreachable:
                assert_never(unreachable)

    # --- turns and messages -------------------------------------------------------------------------------------

    def turn_start(self, turn_id: str, *, recovery: bool = False) -> None:
        """A generation step began, or a restored one is shown again."""
        if not self._silent:
            mark = self._recovery if recovery else UNSET
            self._events.publish(TurnStartEvent(lane=self._lane, run_id=self._run_id, turn_id=turn_id, recovery=mark))

    def turn_end(self, turn_id: str, message: AgentMessage, tool_results: list[AgentMessage]) -> None:
        """The step's response and its tool results are recorded."""
        if not self._silent:
            event = TurnEndEvent(
                lane=self._lane, run_id=self._run_id, turn_id=turn_id, message=message, tool_results=tool_results
            )
            self._events.publish(event)

    def message_start(self, message: AgentMessage) -> None:
        """A message begins."""
        if not self._silent:
            self._events.publish(MessageStartEvent(lane=self._lane, run_id=self._run_id, message=message))

    def message_update(self, message: AgentMessage, event: AssistantEvent) -> None:
        """A streamed response grew."""
        if not self._silent:
            update = MessageUpdateEvent(lane=self._lane, run_id=self._run_id, message=message, event=event)
            self._events.publish(update)

    def message_end(self, message: AgentMessage, entry_id: str) -> None:
        """A message has its final value, under that reserved or committed id."""
        if not self._silent:
            end = MessageEndEvent(lane=self._lane, run_id=self._run_id, message=message, entry_id=entry_id)
            self._events.publish(end)

    # --- tools --------------------------------------------------------------------------------------------------

    def tool_start(self, turn_id: str, call: SourceCall, args: JsonObject, *, recovery: bool = False) -> None:
        """A real call is about to run, or an interrupted one is shown."""
        if not self._silent:
            event = ToolStartEvent(
                lane=self._lane,
                run_id=self._run_id,
                turn_id=turn_id,
                tool_call_id=call.id,
                tool_name=call.name,
                args=args,
                recovery=self._recovery if recovery else UNSET,
            )
            self._events.publish(event)

    def tool_update(self, turn_id: str, call: SourceCall, partial: ToolResult) -> None:
        """A running call published a partial result."""
        if not self._silent:
            event = ToolUpdateEvent(
                lane=self._lane,
                run_id=self._run_id,
                turn_id=turn_id,
                tool_call_id=call.id,
                tool_name=call.name,
                partial_result=partial,
            )
            self._events.publish(event)

    def tool_end(self, turn_id: str, call: SourceCall, result: ToolResult, *, recovery: bool = False) -> None:
        """A call's result is final."""
        if not self._silent:
            event = ToolEndEvent(
                lane=self._lane,
                run_id=self._run_id,
                turn_id=turn_id,
                tool_call_id=call.id,
                tool_name=call.name,
                result=result,
                is_error=result.is_error,
                terminate=result.terminate,
                recovery=self._recovery if recovery else UNSET,
            )
            self._events.publish(event)

    # --- commits ------------------------------------------------------------------------------------------------

    async def committed(self, committed: Committed) -> None:
        """The entries, then the ledger rows with the session's totals."""
        if self._silent:
            return
        for entry in committed.entries:
            self._events.publish(EntryAddedEvent(lane=self._lane, entry=entry))
        await bill(self._events, self._session, self._lane, committed.usage)


async def bill(events: EventBus, session: Session, lane: str, rows: Sequence[UsageRow]) -> None:
    """Publish ledger rows that were committed, with the session's totals."""
    if not events.heard or not rows:
        return
    totals = (await session.get_stats()).usage
    for row in rows:
        events.publish(UsageEvent(lane=lane, row=row, totals=totals))


def _end_event(lane: str, outcome: RunCompleted | RunAborted | RunFailed) -> RunEndEvent:
    word: Literal["completed", "aborted", "failed"]
    match outcome:
        case RunCompleted():
            word = "completed"
        case RunAborted():
            word = "aborted"
        case RunFailed():
            word = "failed"
        case _ as unreachable:
            assert_never(unreachable)
    return RunEndEvent(
        lane=lane,
        run_id=outcome.run_id,
        outcome=word,
        leaf_id=outcome.leaf_id,
        error=outcome.error if isinstance(outcome, RunFailed) else UNSET,
        final_entry_id=or_unset(outcome.final_entry_id),
        final_message=or_unset(outcome.final_message),
    )
