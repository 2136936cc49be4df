"""What a summary is made of: how much of the conversation it replaces, and what is kept as it was (§1.3, §3.2, §3.9).

The messages of a preparation are those of the tree by the ordinary rules 1 to 4 of §2.5, not healed. Chosen outside are
the places where they are cut, the estimates of tokens, and what the application's projectors made of custom entries.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from typing import TypeAlias

from restartpoint_reference.queries import BranchScan, path, scan_branch
from restartpoint_reference.shapes import UNSET, JsonObject, Record, Unset, same
from restartpoint_reference.store import State
from restartpoint_reference.tree import is_dropped, messages_of
from restartpoint_reference.vocabulary.entries import Entry, EntryType
from restartpoint_reference.vocabulary.messages import Message, role
from restartpoint_reference.vocabulary.registers import (
    BranchPreparation,
    CompactionPreparation,
    CompactionSettings,
    FileOperations,
)


@dataclass(frozen=True, kw_only=True)
class Projected(Record):
    """What a projector made of one custom entry; the model knows no projectors (§2.5)."""

    entry_id: str
    messages: tuple[JsonObject, ...]


@dataclass(frozen=True, kw_only=True)
class CompactionCut(Record):
    """How many messages of the context are summarised, how many of the split turn's prefix follow; the rest is kept."""

    summarized: int
    prefix: int
    tokens_before: int
    file_ops: FileOperations
    projected: tuple[Projected, ...] = ()


@dataclass(frozen=True, kw_only=True)
class BranchCut(Record):
    """Which messages of the branch that is left are summarised, by position; a token budget may leave some out."""

    chosen: tuple[int, ...]
    total_tokens: int
    file_ops: FileOperations
    projected: tuple[Projected, ...] = ()


Place: TypeAlias = tuple[str, Message | None]
"""A message and the entry that it is of, or None for a custom entry, whatever its projector makes of it."""


def filled(places: Iterable[Place], projected: Iterable[Projected]) -> tuple[Message, ...]:
    """The messages in order, with those of the projectors where their custom entries stand."""
    made = {item.entry_id: item.messages for item in projected}
    return tuple(
        message
        for key, known in places
        for message in (made.get(key, ()) if known is None else (known,))
    )  # fmt: skip


def _places(entries: Iterable[Entry]) -> list[Place]:
    made: list[Place] = []
    for entry in entries:
        if entry.type is EntryType.CUSTOM:
            made.append((entry.id, None))
        else:
            made.extend((entry.id, message) for message in messages_of(entry))
    return made


def unprojectable(places: Iterable[Place], projected: Sequence[Projected]) -> str | None:
    """Why these projections cannot be those of the custom entries that stand here; None when they can (rules 3, 4)."""
    custom = {key for key, known in places if known is None}
    strays = [
        item.entry_id
        for item in projected
        if item.entry_id not in custom or not item.messages or any(map(is_dropped, item.messages))
    ]
    return f"no custom entry projects for {', '.join(strays)}" if strays else None


def unsorted(files: FileOperations) -> str | None:
    """Which list of files is not sorted and free of repetition (§3.2); None when all are."""
    lists = {"read": files.read, "written": files.written, "edited": files.edited}
    wrong = [name for name, paths in lists.items() if list(paths) != sorted(set(paths))]
    return f"not sorted: {', '.join(wrong)}" if wrong else None


def file_lists(files: FileOperations) -> JsonObject:
    """The details of a generated summary: files that were only read, and files that were changed, both sorted."""
    modified = {*files.written, *files.edited}
    read, changed = sorted({*files.read} - modified), sorted(modified)
    return {"readFiles": [*read], "modifiedFiles": [*changed]}


# --- compaction


def _context(state: State, leaf: str | None) -> list[Entry]:
    """The newest compaction at or above the leaf, if there is one, and every entry after it (§2.5, rules 1 and 2)."""
    if leaf is None:
        return []
    return scan_branch(state, BranchScan(start=leaf, stop_at_type=EntryType.COMPACTION))[::-1]


def compaction_places(state: State, leaf: str | None) -> list[Place]:
    """What a compaction at this leaf divides: the context without an earlier summary, which is passed on beside it."""
    entries = _context(state, leaf)
    earlier = entries and entries[0].type is EntryType.COMPACTION
    return _places(entries)[1 if earlier else 0 :]


def previous_summary(state: State, leaf: str | None) -> str | Unset:
    """The summary of the compaction that opens the context, which the next one continues."""
    for entry in _context(state, leaf)[:1]:
        if entry.type is EntryType.COMPACTION:
            return str(entry.payload["summary"])
    return UNSET


def prepared_compaction(
    state: State, leaf: str | None, cut: CompactionCut, settings: CompactionSettings
) -> CompactionPreparation:
    """The context at this leaf, divided in order at the cut: summarised, prefix of the split turn, retained."""
    messages = filled(compaction_places(state, leaf), cut.projected)
    first, last = cut.summarized, cut.summarized + cut.prefix
    return CompactionPreparation(
        messages_to_summarize=messages[:first],
        turn_prefix_messages=messages[first:last],
        retained_tail=messages[last:],
        is_split_turn=cut.prefix > 0,
        tokens_before=cut.tokens_before,
        previous_summary=previous_summary(state, leaf),
        file_ops=cut.file_ops,
        settings=settings,
    )


def compaction_cut(state: State, leaf: str | None, seen: CompactionPreparation) -> CompactionCut:
    """The cut that makes this preparation at this leaf, if one does."""
    messages = (*seen.messages_to_summarize, *seen.turn_prefix_messages, *seen.retained_tail)
    return CompactionCut(
        summarized=len(seen.messages_to_summarize),
        prefix=len(seen.turn_prefix_messages),
        tokens_before=seen.tokens_before,
        file_ops=seen.file_ops,
        projected=_projections(compaction_places(state, leaf), messages),
    )


def _projections(places: Sequence[Place], seen: Sequence[Message]) -> tuple[Projected, ...]:
    """What stands where custom entries do, each up to the first place where the messages after it are found."""
    runs: list[list[Message]] = [[]]
    custom: list[str] = []
    for key, known in places:
        if known is None:
            custom.append(key)
            runs.append([])
        else:
            runs[-1].append(known)
    found: list[Projected] = []
    at = len(runs[0])
    for index, (key, run) in enumerate(zip(custom, runs[1:], strict=True), start=1):
        end = len(seen) - len(run) if index == len(custom) else _where(run, seen, at)
        if end > at:
            found.append(Projected(entry_id=key, messages=tuple(seen[at:end])))
        at = end + len(run)
    return tuple(found)


def _where(run: Sequence[Message], seen: Sequence[Message], start: int) -> int:
    for at in range(start, len(seen) - len(run) + 1):
        if all(map(same, run, seen[at : at + len(run)])):
            return at
    return start


def impossible_cut(state: State, leaf: str | None, cut: CompactionCut) -> str | None:
    """Why the context at this leaf cannot be cut so; None when it can."""
    places = compaction_places(state, leaf)
    messages = filled(places, cut.projected)
    replaced = cut.summarized + cut.prefix
    if min(cut.summarized, cut.prefix, cut.tokens_before) < 0 or not 1 <= replaced <= len(messages):
        return f"{cut.summarized} and {cut.prefix} messages replaced of {len(messages)}"
    if replaced < len(messages) and role(messages[replaced]) == "toolResult":
        return "the retained tail begins with a tool result"
    return unprojectable(places, cut.projected) or unsorted(cut.file_ops)


# --- branch summary


def branch_places(state: State, leaf: str | None, target: str | None) -> list[Place]:
    """What a navigation leaves: the messages from where the branches part to the leaf, across compactions (§3.10)."""
    kept = {entry.id for entry in path(state, target)}
    left = list(takewhile(lambda entry: entry.id not in kept, path(state, leaf)))
    return _places(reversed(left))


def prepared_branch(state: State, leaf: str | None, target: str | None, cut: BranchCut) -> BranchPreparation:
    """The chosen messages of the branch that is left, in order."""
    messages = filled(branch_places(state, leaf, target), cut.projected)
    return BranchPreparation(
        messages=tuple(messages[index] for index in cut.chosen if index < len(messages)),
        file_ops=cut.file_ops,
        total_tokens=cut.total_tokens,
    )


def branch_cut(state: State, leaf: str | None, target: str | None, seen: BranchPreparation) -> BranchCut:
    """The cut that makes this preparation, if one does: each message is the next known one, or a projector's."""
    places = branch_places(state, leaf, target)
    chosen: list[int] = []
    foreign: list[Projected] = []
    at = 0
    for message in seen.messages:
        known = (index for index in range(at, len(places)) if same(message, places[index][1]))
        custom = (index for index in range(at, len(places)) if places[index][1] is None)
        at = next(known, next(custom, len(places)))
        chosen.append(sum(held is not None for _, held in places[:at]) + len(foreign))
        if at < len(places) and places[at][1] is None:
            foreign.append(Projected(entry_id=places[at][0], messages=(message,)))
        elif at < len(places):
            at += 1
    return BranchCut(
        chosen=tuple(chosen), total_tokens=seen.total_tokens, file_ops=seen.file_ops, projected=_joined(foreign)
    )


def _joined(found: Iterable[Projected]) -> tuple[Projected, ...]:
    """One projection for each entry."""
    groups = groupby(found, key=lambda item: item.entry_id)
    return tuple(
        Projected(entry_id=key, messages=tuple(message for item in group for message in item.messages))
        for key, group in groups
    )  # fmt: skip


def impossible_branch(state: State, leaf: str | None, target: str | None, cut: BranchCut) -> str | None:
    """Why the branch that is left cannot be summarised so; None when it can."""
    places = branch_places(state, leaf, target)
    count = len(filled(places, cut.projected))
    if not cut.chosen:
        return "nothing to summarize"
    if list(cut.chosen) != sorted({*cut.chosen} & {*range(count)}) or cut.total_tokens < 0:
        return f"the messages are not some of the {count} that are left, in their order"
    return unprojectable(places, cut.projected) or unsorted(cut.file_ops)
