"""What must be true at the end, wherever the process was killed; each claim is checked on what is on disk."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from restartpoint.cli.demonstration.scene import Effect
from restartpoint.cli.inspection import Inspection
from restartpoint.contract import (
    AgentMessage,
    Entry,
    MessagePayload,
    role_of,
    source_calls,
    stop_reason_of,
    sum_usage,
)  # fmt: skip

__all__ = ["Check", "checks"]


class Check(msgspec.Struct, frozen=True):
    """A claim and what speaks against it, or None when it holds."""

    claim: str
    objection: str | None

    @property
    def holds(self) -> bool:
        """Whether the claim is true."""
        return self.objection is None


def checks(inspection: Inspection, effects: Sequence[Effect]) -> tuple[Check, ...]:
    """Every claim about the session at the end and the log of effects."""
    path = _path(inspection)
    messages = [entry.payload.message for entry in path if isinstance(entry.payload, MessagePayload)]
    return (
        Check("the unsafe tool was started at most once", _repeated(effects)),
        Check("every tool call has exactly one result, right behind its answer, in order", _unanswered(messages)),
        Check("a result that says it succeeded comes from a tool that ran to its end", _invented(messages, effects)),
        Check("the transcript is one path from the prompt to the final answer", _broken(inspection, path, messages)),
        Check("every answer has its one ledger row, and the total is their sum", _unbalanced(inspection, path)),
        Check("the run completed, and no register of an operation is left", _unfinished(inspection)),
    )


def _path(inspection: Inspection) -> list[Entry]:
    """The entries from the root to the leaf of main."""
    by_id = {entry.id: entry for entry in inspection.entries}
    at = next((lane.leaf_id for lane in inspection.lanes if lane.name == "main"), None)
    path: list[Entry] = []
    while at is not None and at in by_id:
        path.append(by_id[at])
        at = by_id[at].parent_id
    return path[::-1]


def _repeated(effects: Sequence[Effect]) -> str | None:
    starts = sum(effect.tool == "write_notes" and effect.event == "started" for effect in effects)
    return None if starts <= 1 else f"it was started {starts} times"


def _unanswered(messages: Sequence[AgentMessage]) -> str | None:
    expected: list[str] = []
    for message in messages:
        if role_of(message) == "toolResult":
            found = str(message.get("toolCallId"))
            if not expected or expected.pop(0) != found:
                return f"a result for {found} stands where none belongs"
        elif expected:
            return f"{expected[0]} has no result"
        else:
            expected = [call.id for call in source_calls(message)] if role_of(message) == "assistant" else []
    return f"{expected[0]} has no result" if expected else None


def _invented(messages: Sequence[AgentMessage], effects: Sequence[Effect]) -> str | None:
    finished = {effect.call_id for effect in effects if effect.event == "finished"}
    for message in messages:
        claims = role_of(message) == "toolResult" and message.get("toolName") == "write_notes"
        if claims and not message.get("isError") and message.get("toolCallId") not in finished:
            return f"{message.get('toolCallId')} has a result but did not finish"
    return None


def _broken(inspection: Inspection, path: Sequence[Entry], messages: Sequence[AgentMessage]) -> str | None:
    if len(path) != len(inspection.entries) or len(messages) != len(path):
        return f"{len(inspection.entries)} entries, {len(path)} of them on the way to the leaf"
    if not messages or role_of(messages[0]) != "user":
        return "it does not begin with the prompt"
    if role_of(messages[-1]) != "assistant" or stop_reason_of(messages[-1]) != "stop":
        return "it does not end with an answer"
    return None


def _unbalanced(inspection: Inspection, path: Sequence[Entry]) -> str | None:
    answers = [entry.id for entry in path if _is_answer(entry)]
    if [row.entry_id for row in inspection.usage] != answers:
        return f"{len(answers)} answers and {len(inspection.usage)} rows"
    if sum_usage(row.usage for row in inspection.usage) != inspection.stats.usage:
        return "the total is another one"
    return None


def _is_answer(entry: Entry) -> bool:
    return isinstance(entry.payload, MessagePayload) and role_of(entry.payload.message) == "assistant"


def _unfinished(inspection: Inspection) -> str | None:
    return next(_unfinished_parts(inspection), None)


def _unfinished_parts(inspection: Inspection) -> Iterator[str]:
    yield from inspection.problems
    for register in inspection.registers:
        if register.namespace.name.startswith(("op.", "pending.")):
            yield f"{register.namespace.name}/{register.key} is left"
    for lane in inspection.lanes:
        if lane.last_result is None or lane.last_result.outcome != "completed":
            yield f"lane {lane.name} has no completed run"
