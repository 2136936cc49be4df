"""Lanes and their configuration: how a session and each lane begin (§2.3, §2.8)."""

from dataclasses import dataclass

from restartpoint_reference.transitions.frame import (
    IDLE,
    LANE,
    NO_LANE,
    Inputs,
    Nothing,
    NotThis,
    Seen,
    View,
    Writes,
    set_lane_state,
    set_leaf,
    transition,
)
from restartpoint_reference.vocabulary.entries import Namespace, SetRegister
from restartpoint_reference.vocabulary.registers import LaneConfiguration, LaneState

MAIN = "main"
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
    """Like its state, the lane's other two registers are absent, which the commit also expects (decisions A3, A4)."""
    spaces = (Namespace.LANE_LEAF, Namespace.LANE_CONFIG)
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
