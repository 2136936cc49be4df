"""The context of a provider request, projected from the tree (§2.5)."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, TypeAlias

from restartpoint_reference.queries import BranchScan, scan_branch
from restartpoint_reference.shapes import JsonObject
from restartpoint_reference.store import State
from restartpoint_reference.vocabulary.entries import Entry, EntryType
from restartpoint_reference.vocabulary.messages import Message, SourceCall, StopReason, role, source_calls

COMPACTION_LEAD: Final = "The conversation before this point was compacted. Summary:\n\n"
"""What a compaction's summary says of itself in the context (decision ST-2.5-15)."""

BRANCH_LEAD: Final = "A branch of this conversation was explored and left. Summary:\n\n"
"""What a branch summary says of itself in the context (decision ST-2.5-15)."""

NO_RESULT: Final = "No result was recorded for this tool call."
"""The text of the result that an orphaned tool call gets in the context (decision ST-2.5-16)."""

DROPPED: Final = frozenset({StopReason.ERROR.value, StopReason.ABORTED.value, StopReason.DEFERRED.value})
"""Stop reasons of assistant responses that never enter the context (rule 3)."""

Projector: TypeAlias = Callable[[Entry], Sequence[Message] | None]
"""From a custom entry to the messages that stand for it; None or no message when nothing does (rule 4)."""


def project(state: State, leaf: str | None, projectors: Mapping[str, Projector] | None = None) -> list[Message]:
    """The messages of a request at this leaf, oldest first, before ``transform_context`` (§2.5, rules 1 to 4, healed).

    The newest compaction on the path opens the context: its summary, then its retained tail; nothing older is read.
    Raises ``UnknownStart`` when the leaf does not exist.
    """
    if leaf is None:
        return []
    newest_first = scan_branch(state, BranchScan(start=leaf, stop_at_type=EntryType.COMPACTION))
    return healed([message for entry in reversed(newest_first) for message in messages_of(entry, projectors)])


def messages_of(entry: Entry, projectors: Mapping[str, Projector] | None = None) -> list[Message]:
    """What one entry adds to the context, oldest first and not healed; rule 3 applies in a retained tail too."""
    return [message for message in _messages(entry, projectors or {}) if not is_dropped(message)]


def _messages(entry: Entry, projectors: Mapping[str, Projector]) -> Iterable[Message]:
    match entry.type:
        case EntryType.MESSAGE:
            return (entry.message or {},)
        case EntryType.COMPACTION:
            tail = entry.payload.get("retainedTail")
            kept = tail if isinstance(tail, list) else []
            return (_summary(COMPACTION_LEAD, entry), *(message for message in kept if isinstance(message, dict)))
        case EntryType.BRANCH_SUMMARY:
            return (_summary(BRANCH_LEAD, entry),)
        case EntryType.CUSTOM:
            projector = projectors.get(str(entry.custom_type))
            return () if projector is None else (projector(entry) or ())


def _summary(lead: str, entry: Entry) -> Message:
    text = f"{lead}{entry.payload.get('summary')}"
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": entry.timestamp}


def is_dropped(message: Message) -> bool:
    """Whether the message never enters the context, wherever it stands (rule 3)."""
    return role(message) == "assistant" and message.get("stopReason") in DROPPED


def healed(messages: Sequence[Message]) -> list[Message]:
    """The messages with a synthetic error result for every tool call that has no result anywhere later in the list.

    It stands directly after its assistant message, several in the order of their calls, with that message's timestamp.
    Nothing is removed or reordered; a settled history comes back unchanged (decision ST-2.5-16).
    """
    made: list[Message] = []
    for message, answered in zip(messages, _answered_after(messages), strict=True):
        made.append(message)
        made.extend(_no_result(call, message) for call in source_calls(message) if call.id not in answered)
    return made


def _answered_after(messages: Sequence[Message]) -> list[frozenset[str]]:
    """Per message, the tool call ids that a later message answers; only assistant messages need it."""
    after: list[frozenset[str]] = []
    seen: set[str] = set()
    for message in reversed(messages):
        after.append(frozenset(seen) if source_calls(message) else frozenset())
        if role(message) == "toolResult":
            seen.add(str(message.get("toolCallId")))
    return after[::-1]


def _no_result(call: SourceCall, assistant: Message) -> JsonObject:
    result: JsonObject = {
        "role": "toolResult",
        "toolCallId": call.id,
        "toolName": call.name,
        "content": [{"type": "text", "text": NO_RESULT}],
        "isError": True,
    }
    return {**result, "timestamp": assistant["timestamp"]} if "timestamp" in assistant else result
