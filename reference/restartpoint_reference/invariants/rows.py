"""What is true of the rows of a state, its statistics and its tree (§1.4, §1.6, §2.1)."""

from collections.abc import Callable, Iterator
from typing import Final

from restartpoint_reference.scope import Scope
from restartpoint_reference.store import stats_with
from restartpoint_reference.vocabulary.entries import EntryType
from restartpoint_reference.vocabulary.messages import StopReason, role


def ids_are_unique(scope: Scope) -> Iterator[str]:
    """Entries and usage rows share one id namespace (§9.1, 1)."""
    shared = {row.id for row in scope.usage if row.id in scope.state.entries}
    shared.update(entry.id for entry in scope.entries if entry.id in scope.state.usage)
    return (f"{key} is an entry and a usage row" for key in sorted(shared))


def sequence_numbers_are_unique(scope: Scope) -> Iterator[str]:
    """Every sequence number was given out once, and the next one is greater than all (§9.1, 2)."""
    held = [one.seq for one in scope.entries] + [one.seq for one in scope.usage] + [one.seq for one in scope.registers]
    if len(set(held)) < len(held):
        yield "a sequence number is used twice"
    least, _ = scope.base
    strays = [seq for seq in held if not least <= seq < scope.state.next_seq]
    yield from (f"{seq} is not from {least} to below the next, {scope.state.next_seq}" for seq in strays)


def parents_come_first(scope: Scope) -> Iterator[str]:
    """Every parent exists and is older than its child (§9.1, 11)."""
    for entry in scope.entries:
        if entry.parent_id is not None:
            parent = scope.state.entries.get(entry.parent_id)
            if parent is None or parent.seq >= entry.seq:
                yield f"the parent {entry.parent_id} of {entry.id} does not precede it"


def stats_equal_the_ledger(scope: Scope) -> Iterator[str]:
    """The maintained statistics are those of the rows (§1.6)."""
    counted = scope.base[1]
    if scope.entries or scope.usage:
        counted = stats_with(counted, scope.entries, scope.usage)
    if counted is not scope.state.stats and counted != scope.state.stats:
        yield f"maintained {scope.state.stats.to_json()}, counted {counted.to_json()}"


def responses_are_settled(scope: Scope) -> Iterator[str]:
    """No stored assistant message is pending (§2.1)."""
    for entry in scope.entries:
        message = entry.message
        if message is not None and role(message) == "assistant" and message.get("stopReason") == StopReason.PENDING:
            yield f"entry {entry.id} holds a pending response"


def entries_carry_their_content(scope: Scope) -> Iterator[str]:
    """Only a custom entry may omit its content; a compaction carries its retained tail (§2.1, §9.1, 7)."""
    for entry in scope.entries:
        if entry.type in _CONTENT and not isinstance(entry.payload.get(_CONTENT[entry.type]), dict | list | str):
            yield f"{entry.type} {entry.id} has no {_CONTENT[entry.type]}"


_CONTENT: Final = {
    EntryType.MESSAGE: "message",
    EntryType.COMPACTION: "retainedTail",
    EntryType.BRANCH_SUMMARY: "summary",
}


OF_ROWS: Final[tuple[tuple[str, Callable[[Scope], Iterator[str]]], ...]] = (
    ("9.1, 1", ids_are_unique),
    ("9.1, 2", sequence_numbers_are_unique),
    ("9.1, 11", parents_come_first),
    ("1.6", stats_equal_the_ledger),
    ("2.1", responses_are_settled),
    ("9.1, 7", entries_carry_their_content),
)
"""Each with its section and number."""
