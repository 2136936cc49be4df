"""Commits of a session that belong to no operation: lanes, facts, the caller's usage (§2.3, §2.4, §1.6)."""

from dataclasses import dataclass

from restartpoint_reference.shapes import UNSET, Json, JsonObject, Unset
from restartpoint_reference.transitions.frame import (
    ANY,
    IDLE,
    LANE,
    NO_LANE,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    delete,
    set_lane_state,
    set_leaf,
    transition,
)
from restartpoint_reference.vocabulary.entries import InsertUsage, Namespace, NewUsage, SetRegister
from restartpoint_reference.vocabulary.registers import LaneConfiguration, LaneState

MAIN = "main"
FACTS = (Namespace.FACT_NAME, Namespace.FACT_LABEL, Namespace.FACT_CUSTOM)
RESERVED_FACTS = "session/"
"""How the keys of custom facts begin that no application sets (decision A6)."""
SESSION_ID = "session/id"
IDLE_LANE = LaneState(current_operation_id=None, pending_next_run=())


def lane_is_main(view: View, _: Inputs) -> str | None:
    """The lane that every session has (§2.3)."""
    return None if view.lane == MAIN else f"{view.lane} is not {MAIN}"


def session_is_new(view: View, _: Inputs) -> str | None:
    """Nothing was ever committed (§2.8)."""
    started = len(view.state.entries) or any(view.state.namespaces.values())
    return "the session exists" if started else None


@transition(
    "S01",
    section="2.3, 2.8",
    phases=NO_LANE,
    inputs=Nothing,
    guards=(lane_is_main, session_is_new),
    extract=lambda _view, _seen: Nothing(),
    public=True,
)
def create_session(view: View, _: Nothing) -> Writes:
    """A session starts with main at the root, idle and without a configuration."""
    return (set_leaf(view, None), set_lane_state(view, IDLE_LANE))


@dataclass(frozen=True, kw_only=True)
class Configuration(Inputs):
    """The total configuration of the lane."""

    configuration: LaneConfiguration


def _configuration(_: View, seen: Seen) -> Configuration:
    return Configuration(configuration=seen.read(Namespace.LANE_CONFIG, LaneConfiguration.from_json))


def lane_is_unconfigured(view: View, _: Inputs) -> str | None:
    """The lane has no configuration yet (§2.3)."""
    configured = view.state.register(Namespace.LANE_CONFIG, view.lane) is not None
    return f"lane {view.lane} is configured" if configured else None


def lane_is_configured(view: View, _: Inputs) -> str | None:
    """The lane has a configuration (§2.3)."""
    configured = view.state.register(Namespace.LANE_CONFIG, view.lane) is not None
    return None if configured else f"lane {view.lane} is not configured"


def _set_configuration(view: View, configuration: LaneConfiguration) -> SetRegister:
    return SetRegister(namespace=Namespace.LANE_CONFIG, key=view.lane, value=configuration.to_json())


@transition(
    "S02",
    section="5.2",
    phases=IDLE,
    inputs=Configuration,
    guards=(lane_is_main, lane_is_unconfigured),
    extract=_configuration,
    public=True,
)
def seed_main(view: View, inputs: Configuration) -> Writes:
    """The first attachment of a harness configures main."""
    return (_set_configuration(view, inputs.configuration),)


@dataclass(frozen=True, kw_only=True)
class CreateLane(Inputs):
    """The total configuration of a new lane, and the entry it is anchored at."""

    configuration: LaneConfiguration
    anchor: str | None


def _created(_: View, seen: Seen) -> CreateLane:
    anchor = seen.set(Namespace.LANE_LEAF).value
    if anchor is not None and not isinstance(anchor, str):
        raise NotThis("the leaf is no entry id")
    return CreateLane(configuration=_configuration(_, seen).configuration, anchor=anchor)


def lane_name_is_legal(view: View, _: Inputs) -> str | None:
    """1 to 256 characters without control characters (decision ST-2.3-14)."""
    return None if is_lane_name(view.lane) else f"{view.lane!r} is no lane name"


def is_lane_name(name: str) -> bool:
    """Whether a lane may be called so (decision ST-2.3-14)."""
    return 1 <= len(name) <= 256 and all(ord(letter) >= 32 for letter in name)


def session_exists(view: View, _: Inputs) -> str | None:
    """Lanes are added to a session, which always has main (§2.3)."""
    known = view.state.register(Namespace.LANE_STATE, MAIN) is not None
    return None if known else "there is no session yet"


def anchor_exists(view: View, inputs: CreateLane) -> str | None:
    """The anchor is the root or an existing entry (§2.3)."""
    known = inputs.anchor is None or inputs.anchor in view.state.entries
    return None if known else f"the anchor {inputs.anchor} does not exist"


@transition(
    "S03",
    section="2.3",
    phases=NO_LANE,
    inputs=CreateLane,
    guards=(session_exists, lane_name_is_legal, anchor_exists),
    extract=_created,
    public=True,
)
def create_lane(view: View, inputs: CreateLane) -> Writes:
    """A lane starts at its anchor, with a configuration of its own and nothing copied."""
    return (
        _set_configuration(view, inputs.configuration),
        set_leaf(view, inputs.anchor),
        set_lane_state(view, IDLE_LANE),
    )


def lane_has_no_register(view: View, _: Inputs) -> str | None:
    """All three registers of the lane are absent, which the commit also expects (decisions A3, A4)."""
    spaces = (Namespace.LANE_LEAF, Namespace.LANE_CONFIG, Namespace.LANE_STATE)
    held = [space.value for space in spaces if view.state.register(space, view.lane) is not None]
    return f"{', '.join(held)} of {view.lane} exist" if held else None


@transition(
    "S10",
    section="2.3",
    phases=NO_LANE,
    inputs=Configuration,
    guards=(lane_name_is_legal, lane_has_no_register),
    extract=_configuration,
    public=True,
)
def ensure_strand(view: View, inputs: Configuration) -> Writes:
    """A strand is seeded before anything runs: at the root, configured, idle.

    A main that lacks only its configuration gets that alone, which is ``seed_main`` (decision A4).
    """
    return (set_leaf(view, None), _set_configuration(view, inputs.configuration), set_lane_state(view, IDLE_LANE))


@transition(
    "S04",
    section="2.3, 4.3",
    phases=LANE,
    inputs=Configuration,
    guards=(lane_is_configured,),
    extract=_configuration,
    public=True,
)
def configure_lane(view: View, inputs: Configuration) -> Writes:
    """The lane's configuration is replaced as a whole."""
    return (_set_configuration(view, inputs.configuration),)


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
