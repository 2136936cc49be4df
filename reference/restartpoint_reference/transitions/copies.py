"""Sessions that begin with content: a fork of another session, the import of an old file (§2.7, Appendix B).

The source cannot be seen in the new session. Held to account is what its own first state can show: an order in which
parents come first, facts that may be copied, whole lanes that are idle, and a ledger that starts anew.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from restartpoint_reference.shapes import UNSET, JsonObject, Refused, Unset, as_object
from restartpoint_reference.transitions.facts import FACTS, RESERVED_FACTS, SetFact, fact_is_well_formed
from restartpoint_reference.transitions.frame import (
    NO_LANE,
    Inputs,
    NotThis,
    Seen,
    View,
    Writes,
    transition,
)
from restartpoint_reference.transitions.session import IDLE_LANE, MAIN, is_lane_name, session_is_new
from restartpoint_reference.vocabulary.entries import (
    EntryType,
    InsertEntry,
    InsertUsage,
    Namespace,
    NewEntry,
    NewUsage,
    SetRegister,
)
from restartpoint_reference.vocabulary.messages import Usage, add_usage, role, zero_usage
from restartpoint_reference.vocabulary.registers import LaneConfiguration

PARENT_FACT = "session/parent"
"""The reserved custom fact that names the session a fork was made from (decision A10)."""


@dataclass(frozen=True, kw_only=True)
class Content(Inputs):
    """The copied entries, flat as on disk without seq and timestamp, in the order of their source; and the facts."""

    entries: tuple[JsonObject, ...]
    facts: tuple[SetFact, ...]


def _facts(seen: Seen) -> tuple[SetFact, ...]:
    return tuple(
        SetFact(namespace=write.namespace, key=write.key, value=write.value)
        for write in seen.observed.writes
        if isinstance(write, SetRegister) and write.namespace in FACTS
    )


def _entries(seen: Seen) -> tuple[JsonObject, ...]:
    return tuple(entry.to_json() for entry in seen.entries)


def _leaves(seen: Seen) -> tuple[tuple[str, str | None], ...]:
    found: list[tuple[str, str | None]] = []
    for write in seen.observed.writes:
        if isinstance(write, SetRegister) and write.namespace is Namespace.LANE_LEAF:
            if write.value is not None and not isinstance(write.value, str):
                raise NotThis("a leaf is no entry id")
            found.append((write.key, write.value))
    return tuple(found)


def parents_come_first(_: View, inputs: Content) -> str | None:
    """Every copied entry stands after its parent, which is copied too (§1.2, §2.7)."""
    copied: set[str | None] = {None}
    for entry in map(NewEntry.from_json, inputs.entries):
        if entry.parent_id not in copied:
            return f"the parent of {entry.id} is not copied before it"
        copied.add(entry.id)
    return None


def facts_may_be_copied(view: View, inputs: Content) -> str | None:
    """Each fact once; labels of copied entries only; the source's identity never (§2.7, decisions A6, A10)."""
    addresses = [(fact.namespace, fact.key) for fact in inputs.facts]
    if len(set(addresses)) < len(addresses):
        return "a fact is set twice"
    copied = _ids(inputs)
    for fact in inputs.facts:
        reason = fact_is_well_formed(view, fact)
        if reason is not None:
            return reason
        if fact.namespace is Namespace.FACT_LABEL and fact.key not in copied:
            return f"the label of {fact.key}, which is not copied"
        names_the_parent = fact.key == PARENT_FACT and isinstance(fact.value, str)
        if fact.namespace is Namespace.FACT_CUSTOM and fact.key.startswith(RESERVED_FACTS) and not names_the_parent:
            return f"{fact.key} is the source's own"
    return None


def _ids(inputs: Content) -> set[str]:
    return {str(entry["id"]) for entry in inputs.entries}


def _content(inputs: Content) -> Writes:
    entries = (InsertEntry(entry=NewEntry.from_json(entry)) for entry in inputs.entries)
    facts = (SetRegister(namespace=fact.namespace, key=fact.key, value=fact.value) for fact in inputs.facts)
    return (*entries, *facts)


def _lane(name: str, leaf_id: str | None) -> Writes:
    return (
        SetRegister(namespace=Namespace.LANE_LEAF, key=name, value=leaf_id),
        SetRegister(namespace=Namespace.LANE_STATE, key=name, value=IDLE_LANE.to_json()),
    )


# --- forks


@dataclass(frozen=True, kw_only=True)
class CopiedLane(Inputs):
    """A lane as it is copied: its total configuration when it has one, and its leaf."""

    name: str
    configuration: LaneConfiguration | Unset = UNSET
    leaf_id: str | None


@dataclass(frozen=True, kw_only=True)
class ForkInto(Content):
    """With the content, the lanes: only main for one branch, every lane for the whole tree (§2.7)."""

    lanes: tuple[CopiedLane, ...]


def _forked(_: View, seen: Seen) -> ForkInto:
    if seen.usage:
        raise NotThis("a fork's ledger starts at zero")
    try:
        configured = {
            write.key: LaneConfiguration.from_json(write.value)
            for write in seen.observed.writes
            if isinstance(write, SetRegister) and write.namespace is Namespace.LANE_CONFIG
        }
    except Refused as refused:
        raise NotThis(f"lane.config is set to another shape: {refused}") from None
    lanes = tuple(
        CopiedLane(name=name, configuration=configured.get(name, UNSET), leaf_id=leaf) for name, leaf in _leaves(seen)
    )
    return ForkInto(entries=_entries(seen), facts=_facts(seen), lanes=lanes)


def something_is_copied(_: View, inputs: ForkInto) -> str | None:
    """The fork of an empty source without a configuration is a session like any new one (decision ST-2.7-17)."""
    main = CopiedLane(name=MAIN, leaf_id=None)
    empty = not inputs.entries and not inputs.facts and inputs.lanes == (main,)
    return "nothing is copied: this creates a session" if empty else None


def lanes_are_whole(_: View, inputs: ForkInto) -> str | None:
    """Main is there, no name comes twice, only main may be unconfigured, and every leaf was copied (§2.7)."""
    names = [lane.name for lane in inputs.lanes]
    if MAIN not in names or len(set(names)) < len(names):
        return "the lanes are not main and others, once each"
    copied = _ids(inputs)
    for lane in inputs.lanes:
        if not is_lane_name(lane.name):
            return f"{lane.name!r} is no lane name"
        if lane.configuration is UNSET and lane.name != MAIN:
            return f"lane {lane.name} is not configured"
        if lane.leaf_id is not None and lane.leaf_id not in copied:
            return f"the leaf of {lane.name} is not copied"
    return None


@transition(
    "S08",
    section="2.7",
    phases=NO_LANE,
    inputs=ForkInto,
    guards=(session_is_new, something_is_copied, parents_come_first, facts_may_be_copied, lanes_are_whole),
    extract=_forked,
    takes_lane=False,
    public=True,
)
def fork_into(_: View, inputs: ForkInto) -> Writes:
    """A session starts with entries, facts and lanes of another one; its lanes are idle and its ledger is empty."""
    lanes: list[Writes] = []
    for lane in inputs.lanes:
        if lane.configuration is not UNSET:
            value = lane.configuration.to_json()
            lanes.append((SetRegister(namespace=Namespace.LANE_CONFIG, key=lane.name, value=value),))
        lanes.append(_lane(lane.name, lane.leaf_id))
    return (*_content(inputs), *(write for lane_writes in lanes for write in lane_writes))


# --- import


@dataclass(frozen=True, kw_only=True)
class ImportV3(Content):
    """With the content, main's leaf, and the id minted for the aggregate usage row."""

    leaf_id: str | None
    usage_id: str


def _imported(_: View, seen: Seen) -> ImportV3:
    match _leaves(seen), seen.usage:
        case ((_, leaf),), (row,):
            return ImportV3(entries=_entries(seen), facts=_facts(seen), leaf_id=leaf, usage_id=row.id)
    raise NotThis("an import sets one leaf and inserts one usage row")


def import_has_no_custom_facts(_: View, inputs: ImportV3) -> str | None:
    """An old file knows the session's name and labels, nothing else that is a fact (Appendix B)."""
    custom = [fact.key for fact in inputs.facts if fact.namespace is Namespace.FACT_CUSTOM]
    return f"custom facts are imported: {', '.join(custom)}" if custom else None


def leaf_is_imported(_: View, inputs: ImportV3) -> str | None:
    """Main stands at an imported entry, or at the root (Appendix B)."""
    known = inputs.leaf_id is None or inputs.leaf_id in _ids(inputs)
    return None if known else f"the leaf {inputs.leaf_id} is not imported"


def displayed_usage(entries: Iterable[NewEntry]) -> Usage:
    """The sum of what assistant messages, compactions and branch summaries display (decision ST-B-26)."""
    total = zero_usage()
    for entry in entries:
        match entry.type:
            case EntryType.MESSAGE if role(entry.message or {}) == "assistant":
                total = add_usage(total, as_object((entry.message or {}).get("usage")))
            case EntryType.COMPACTION | EntryType.BRANCH_SUMMARY if "usage" in entry.payload:
                total = add_usage(total, as_object(entry.payload["usage"]))
            case _:
                pass
    return total


@transition(
    "S09",
    section="7.3, Appendix B",
    phases=NO_LANE,
    inputs=ImportV3,
    guards=(session_is_new, parents_come_first, facts_may_be_copied, import_has_no_custom_facts, leaf_is_imported),
    extract=_imported,
    takes_lane=False,
    public=True,
)
def import_v3(_: View, inputs: ImportV3) -> Writes:
    """An old file becomes a session: its entries and facts, an unconfigured main, and one row that sums its usage.

    It is published in one file with the commit that caused it, which is a transition of its own (decision ST-B-21).
    """
    row = NewUsage(
        id=inputs.usage_id,
        adjustment=True,
        usage=displayed_usage(map(NewEntry.from_json, inputs.entries)),
        details={"source": "v3-import"},
    )
    return (*_content(inputs), *_lane(MAIN, inputs.leaf_id), InsertUsage(row=row))
