"""Facts of a session and the caller's own usage, which belong to no operation and no lane (§2.4, §1.6)."""

from dataclasses import dataclass
from typing import Final

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.transitions.frame import ANY, Inputs, NotThis, Seen, View, Writes, delete, transition
from restartpoint_reference.vocabulary.entries import InsertUsage, Namespace, NewUsage, SetRegister

FACTS: Final = (Namespace.FACT_NAME, Namespace.FACT_LABEL, Namespace.FACT_CUSTOM)
RESERVED_FACTS: Final = "session/"
"""How the keys of custom facts begin that no application sets (decision A6)."""
SESSION_ID: Final = "session/id"


@dataclass(frozen=True, kw_only=True)
class FactAddress(Inputs):
    """A fact's address."""

    namespace: Namespace
    key: str


@dataclass(frozen=True, kw_only=True)
class SetFact(FactAddress):
    """With the address, the value; JSON null is a value."""

    value: Json


def fact_is_well_formed(_: View, inputs: SetFact) -> str | None:
    """Names and labels are text, and the name has the empty key (§2.4)."""
    if inputs.namespace not in FACTS:
        return f"{inputs.namespace} holds no facts"
    if inputs.namespace is not Namespace.FACT_CUSTOM and not isinstance(inputs.value, str):
        return "names and labels are text"
    return "the session name has the empty key" if inputs.namespace is Namespace.FACT_NAME and inputs.key else None


def key_is_not_reserved(_: View, inputs: FactAddress) -> str | None:
    """Keys that begin ``session/`` belong to the session itself (decision A6)."""
    reserved = inputs.namespace is Namespace.FACT_CUSTOM and inputs.key.startswith(RESERVED_FACTS)
    return f"{inputs.key} is reserved" if reserved else None


def label_target_exists(view: View, inputs: SetFact) -> str | None:
    """A label names an existing entry (decision ST-2.4-06)."""
    dangling = inputs.namespace is Namespace.FACT_LABEL and inputs.key not in view.state.entries
    return f"no entry {inputs.key} to label" if dangling else None


def _set_fact(_: View, seen: Seen) -> SetFact:
    for namespace in FACTS:
        for write in seen.observed.writes:
            if isinstance(write, SetRegister) and write.namespace is namespace:
                return SetFact(namespace=namespace, key=write.key, value=write.value)
    raise NotThis("no fact is set")


@transition(
    "S05",
    section="2.4",
    phases=ANY,
    inputs=SetFact,
    guards=(fact_is_well_formed, key_is_not_reserved, label_target_exists),
    extract=_set_fact,
    takes_lane=False,
    public=True,
)
def set_fact(_: View, inputs: SetFact) -> Writes:
    """A fact is set; no leaf moves."""
    return (SetRegister(namespace=inputs.namespace, key=inputs.key, value=inputs.value),)


def fact_exists(view: View, inputs: FactAddress) -> str | None:
    """Clearing an unset fact makes no commit at all (§2.4)."""
    if inputs.namespace not in FACTS:
        return f"{inputs.namespace} holds no facts"
    known = view.state.register(inputs.namespace, inputs.key) is not None
    return None if known else f"{inputs.namespace}/{inputs.key} is not set"


def _deleted_fact(_: View, seen: Seen) -> FactAddress:
    for namespace in FACTS:
        for key in seen.deleted(namespace):
            return FactAddress(namespace=namespace, key=key)
    raise NotThis("no fact is deleted")


@transition(
    "S06",
    section="2.4",
    phases=ANY,
    inputs=FactAddress,
    guards=(fact_exists, key_is_not_reserved),
    extract=_deleted_fact,
    takes_lane=False,
    public=True,
)
def delete_fact(_: View, inputs: FactAddress) -> Writes:
    """A fact is removed and leaves no tombstone."""
    return delete(inputs.namespace, inputs.key)


@dataclass(frozen=True, kw_only=True)
class RecordUsage(Inputs):
    """A reconciliation by the caller, under an id minted for it."""

    id: str
    usage: JsonObject
    entry_id: str | Unset = UNSET
    details: Json | Unset = UNSET


def _recorded(_: View, seen: Seen) -> RecordUsage:
    if not seen.usage:
        raise NotThis("no usage is recorded")
    row = seen.usage[0]
    return RecordUsage(id=row.id, usage=row.usage, entry_id=row.entry_id, details=row.details)


@transition(
    "S07",
    section="1.6, 5.1",
    phases=ANY,
    inputs=RecordUsage,
    extract=_recorded,
    takes_lane=False,
    public=True,
)
def record_usage(_: View, inputs: RecordUsage) -> Writes:
    """The caller adjusts the ledger."""
    row = NewUsage(id=inputs.id, entry_id=inputs.entry_id, adjustment=True, usage=inputs.usage, details=inputs.details)
    return (InsertUsage(row=row),)


@dataclass(frozen=True, kw_only=True)
class SessionId(Inputs):
    """The canonical id: minted, or reserved by the repository that created the session (decision A9)."""

    id: str


def _identified(_: View, seen: Seen) -> SessionId:
    write = seen.set(Namespace.FACT_CUSTOM)
    if write.key != SESSION_ID or not isinstance(write.value, str):
        raise NotThis("no session id is set")
    return SessionId(id=write.value)


def session_has_no_id(view: View, inputs: SessionId) -> str | None:
    """An id is set once and never overwritten, which the commit also expects (decisions A3, A9)."""
    if not inputs.id:
        return "an id is not empty"
    known = view.state.register(Namespace.FACT_CUSTOM, SESSION_ID) is not None
    return "the session has its id" if known else None


@transition(
    "S11",
    section="2.4",
    phases=ANY,
    inputs=SessionId,
    guards=(session_has_no_id,),
    extract=_identified,
    takes_lane=False,
    public=True,
)
def ensure_id(_: View, inputs: SessionId) -> Writes:
    """A session that has no id of its own gets one."""
    return (SetRegister(namespace=Namespace.FACT_CUSTOM, key=SESSION_ID, value=inputs.id),)
