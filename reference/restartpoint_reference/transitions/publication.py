"""What a published summary holds, generated or supplied by a hook, and the publication of compactions (§2.1, §3.9)."""

from dataclasses import dataclass
from functools import reduce

from restartpoint_reference.preparation import file_lists
from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.transitions.compaction import resumed
from restartpoint_reference.transitions.frame import (
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    control_is_running,
    set_leaf,
    transition,
)
from restartpoint_reference.transitions.structural import a_request_settled, attempt, no_request_is_open, preparation
from restartpoint_reference.transitions.terminal import terminal
from restartpoint_reference.vocabulary.entries import EntryType, InsertEntry, InsertUsage, NewEntry, NewUsage
from restartpoint_reference.vocabulary.messages import Usage, add_usage, zero_usage
from restartpoint_reference.vocabulary.registers import CompactionPreparation, Outcome


@dataclass(frozen=True, kw_only=True)
class Summary(Inputs):
    """The words of a generated summary; all else of its entry is prescribed (§2.1)."""

    summary: str


@dataclass(frozen=True, kw_only=True)
class HookSummary(Inputs):
    """What a decision hook supplied, and the ids minted for its entry and its reported usage (§3.9)."""

    entry_id: str
    summary: str
    details: Json | Unset = UNSET
    usage_id: str | Unset = UNSET
    usage: JsonObject | Unset = UNSET


def seen_summary(_: View, seen: Seen) -> Summary:
    """The words of the summary entry that is inserted."""
    return Summary(summary=str(seen.first_entry().payload.get("summary")))


def seen_hook_summary(_: View, seen: Seen) -> HookSummary:
    """The hook's result, read from the entry and the ledger row that are inserted."""
    entry = seen.first_entry()
    row = seen.usage[0] if seen.usage else None
    return HookSummary(
        entry_id=entry.id,
        summary=str(entry.payload.get("summary")),
        details=entry.payload.get("details", UNSET),
        usage_id=UNSET if row is None else row.id,
        usage=UNSET if row is None else row.usage,
    )


def hook_usage_is_whole(_: View, inputs: HookSummary) -> str | None:
    """A reported usage has a row id (§1.6)."""
    return "a usage row has an id and a usage" if (inputs.usage is UNSET) != (inputs.usage_id is UNSET) else None


def hook_usage(inputs: HookSummary) -> Writes:
    """The ledger row of what the hook reported, before the entry that it belongs to (decision AMB-11)."""
    if inputs.usage is UNSET or inputs.usage_id is UNSET:
        return ()
    row = NewUsage(id=inputs.usage_id, entry_id=inputs.entry_id, adjustment=False, usage=inputs.usage)
    return (InsertUsage(row=row),)


def hook_content(inputs: HookSummary) -> JsonObject:
    """The part of a hook's entry that compactions and branch summaries share; nothing is added to it (§2.1)."""
    made: JsonObject = {"summary": inputs.summary}
    if inputs.details is not UNSET:
        made["details"] = inputs.details
    if inputs.usage is not UNSET:
        made["usage"] = inputs.usage
    return {**made, "fromHook": True}


def generated_content(view: View, inputs: Summary) -> JsonObject:
    """The same of a generated entry: the files of the preparation, and what its attempt cost by the ledger (§3.10)."""
    return {
        "summary": inputs.summary,
        "details": file_lists(preparation(view).file_ops),
        "usage": attempt_usage(view),
        "fromHook": False,
    }


def attempt_usage(view: View) -> Usage:
    """The usage of the producing attempt: the ledger rows of its requests, summed in their order (§3.10)."""
    rows = [view.state.usage.get(key) for key in attempt(view).usage_ids]
    return reduce(add_usage, (row.usage for row in rows if row is not None), zero_usage())


# --- compactions


def _published(view: View, id: str, content: JsonObject) -> Writes:
    """The compaction entry with the tail and the count that were prepared, and the leaf on it (§2.1)."""
    prepared = preparation(view)
    if not isinstance(prepared, CompactionPreparation):
        raise NotThis("what was prepared is no compaction")
    kept: JsonObject = {"retainedTail": list(prepared.retained_tail), "tokensBefore": prepared.tokens_before}
    entry = NewEntry(id=id, parent_id=view.leaf, type=EntryType.COMPACTION, payload={**content, **kept})
    return (InsertEntry(entry=entry), set_leaf(view, id))


def _hook_published(view: View, inputs: HookSummary) -> Writes:
    return (*hook_usage(inputs), *_published(view, inputs.entry_id, hook_content(inputs)))


def _generated(view: View, inputs: Summary) -> Writes:
    return _published(view, attempt(view).context.result_entry_id, generated_content(view, inputs))


@transition(
    "T53",
    section="3.9",
    phases=("compact.deciding",),
    inputs=HookSummary,
    guards=(control_is_running, hook_usage_is_whole),
    extract=seen_hook_summary,
)
def publish_hook_compaction(view: View, inputs: HookSummary) -> Writes:
    """The hook supplies the compaction, and the operation ends with it."""
    publication = _hook_published(view, inputs)
    return terminal(view, Outcome.COMPLETED, publication=publication, leaf_id=inputs.entry_id)


@transition(
    "T54",
    section="3.9",
    phases=("compaction.deciding",),
    inputs=HookSummary,
    guards=(control_is_running, hook_usage_is_whole),
    extract=seen_hook_summary,
)
def publish_hook_compaction_in_run(view: View, inputs: HookSummary) -> Writes:
    """The hook supplies the compaction, and the run continues where it began to compact."""
    return (*_hook_published(view, inputs), resumed(view))


@transition(
    "T64",
    section="3.9",
    phases=("compact.generating",),
    inputs=Summary,
    guards=(control_is_running, no_request_is_open, a_request_settled),
    extract=seen_summary,
)
def publish_compaction(view: View, inputs: Summary) -> Writes:
    """The generated compaction is published, and the operation ends with it."""
    leaf = attempt(view).context.result_entry_id
    return terminal(view, Outcome.COMPLETED, publication=_generated(view, inputs), leaf_id=leaf)


@transition(
    "T65",
    section="3.9",
    phases=("compaction.generating",),
    inputs=Summary,
    guards=(control_is_running, no_request_is_open, a_request_settled),
    extract=seen_summary,
)
def publish_compaction_in_run(view: View, inputs: Summary) -> Writes:
    """The generated compaction is published, and the run continues where it began to compact."""
    return (*_generated(view, inputs), resumed(view))
