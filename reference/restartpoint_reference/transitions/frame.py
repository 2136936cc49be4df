"""What every transition is made of: the view it reads, its inputs, its guards, and the commit it answers (§3.4)."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, TypeAlias, TypeVar

from restartpoint_reference.shapes import UNSET, Json, Record, Refused, Unset
from restartpoint_reference.store import State
from restartpoint_reference.vocabulary.entries import (
    DeleteRegister,
    Entry,
    EntryType,
    InsertEntry,
    InsertUsage,
    Namespace,
    NewEntry,
    NewUsage,
    Observed,
    SetRegister,
    Write,
)
from restartpoint_reference.vocabulary.messages import Message
from restartpoint_reference.vocabulary.registers import LaneConfiguration, LaneState, Operation, OperationKind
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CompactionPhase,
    CompactionState,
    DeferredPhase,
    GenerationPending,
    GenerationReady,
    NavigationState,
    OperationState,
    Running,
    RunPhase,
    RunState,
    StructuralDecision,
    SummaryPhase,
    ToolBatch,
    ToolsPhase,
)

if TYPE_CHECKING:
    from functools import cached_property

    once = cached_property
else:

    class once:  # noqa: N801 - it decorates like the standard one, which takes a lock each time
        """A property that is read once: what its function answers is kept in the instance."""

        def __init__(self, read):
            self._read = read
            self.__doc__ = read.__doc__

        def __set_name__(self, owner, name):
            self._name = name

        def __get__(self, instance, owner=None):
            if instance is None:
                return self
            value = instance.__dict__[self._name] = self._read(instance)
            return value


Writes: TypeAlias = tuple[Write, ...]

Phases: TypeAlias = tuple[str, ...]

NO_LANE: Final[Phases] = ("no lane",)
IDLE: Final[Phases] = ("idle",)
GENERATIONS: Final[Phases] = ("assistant.ready", "assistant.effect_pending", "assistant.retry_wait")
IN_RUN_COMPACTION: Final[Phases] = ("compaction.deciding", "compaction.generating")
RUN: Final[Phases] = (
    "checkpoint", *GENERATIONS, "tools", "deferred.suspended", "deferred.effect_pending", *IN_RUN_COMPACTION,
    "failure_drain",
)  # fmt: skip
COMPACTION: Final[Phases] = ("compact.deciding", "compact.generating")
NAVIGATION: Final[Phases] = ("navigate.ready_to_commit", "navigate.deciding", "navigate.generating")
DECIDING: Final[Phases] = ("compaction.deciding", "compact.deciding", "navigate.deciding")
GENERATING: Final[Phases] = ("compaction.generating", "compact.generating", "navigate.generating")
OPEN: Final[Phases] = (*RUN, *COMPACTION, *NAVIGATION)
LANE: Final[Phases] = (*IDLE, *OPEN)
ANY: Final[Phases] = (*NO_LANE, *LANE)
"""The from-phases of transitions that take place whatever the lane is doing."""


class NotThis(Exception):
    """The observed writes, or the state, cannot be this transition's; the message says why."""


class Inputs(Record):
    """What is chosen outside the model for one transition; never anything that the state already says."""


@dataclass(frozen=True, kw_only=True)
class Nothing(Inputs):
    """No input: the state says everything."""


def read_state(kind: OperationKind, value: Json) -> OperationState:
    """The operation state of this JSON value, for an operation of this kind (§3.2)."""
    return _STATES[kind](value)


_STATES: Final[Mapping[OperationKind, Callable[[Json], OperationState]]] = {
    OperationKind.RUN: RunState.from_json,
    OperationKind.COMPACTION: CompactionState.from_json,
    OperationKind.NAVIGATION: NavigationState.from_json,
}
"""Per kind of operation, how its state is read."""


@dataclass(frozen=True)
class View:
    """The latest registers of one lane and its operation, as a mutation on the lane line rereads them (§3.4).

    Reading what is absent or misshapen raises ``NotThis``.
    """

    state: State
    lane: str

    @once
    def lane_state(self) -> LaneState:
        """The lane's state (§3.3)."""
        return _decoded(self.state, Namespace.LANE_STATE, self.lane, LaneState.from_json)

    @once
    def leaf(self) -> str | None:
        """Where the lane appends next (§2.3)."""
        value = _present(self.state, Namespace.LANE_LEAF, self.lane)
        if value is not None and not isinstance(value, str):
            raise NotThis(f"lane.leaf/{self.lane} holds {value!r}")
        return value

    @once
    def configuration(self) -> LaneConfiguration:
        """The lane's total configuration (§2.3)."""
        return _decoded(self.state, Namespace.LANE_CONFIG, self.lane, LaneConfiguration.from_json)

    @once
    def operation_id(self) -> str:
        """The open operation."""
        if self.lane_state.current_operation_id is None:
            raise NotThis(f"lane {self.lane} is idle")
        return self.lane_state.current_operation_id

    @once
    def operation(self) -> Operation:
        """The open operation's acceptance data (§3.1)."""
        return _decoded(self.state, Namespace.OP_META, self.operation_id, Operation.from_json)

    @once
    def operation_state(self) -> OperationState:
        """The open operation's total state (§3.2)."""
        kind = self.operation.kind
        return _decoded(self.state, Namespace.OP_STATE, self.operation_id, _STATES[kind])

    @once
    def run(self) -> RunState:
        """The total state of the open run."""
        if not isinstance(self.operation_state, RunState):
            raise NotThis(f"operation {self.operation_id} is not a run")
        return self.operation_state

    @property
    def structural(self) -> StructuralDecision:
        """The compaction or branch summary under way, in a run or by itself (§3.9)."""
        match self.operation_state:
            case (
                RunState(phase=CompactionPhase(structural=structural))
                | CompactionState(structural=structural)
                | NavigationState(phase=SummaryPhase(structural=structural))
            ):
                return structural
        raise NotThis("nothing structural is under way")

    @property
    def ready(self) -> GenerationReady:
        """The generation that is ready for its next attempt."""
        match self.run.phase:
            case AssistantPhase(generation=GenerationReady() as ready):
                return ready
        raise NotThis("no generation is ready")

    @property
    def pending(self) -> GenerationPending:
        """The generation whose request may have been sent."""
        match self.run.phase:
            case AssistantPhase(generation=GenerationPending() as pending):
                return pending
        raise NotThis("no request is pending")

    @property
    def batch(self) -> ToolBatch:
        """The tool batch under way."""
        match self.run.phase:
            case ToolsPhase(batch=batch):
                return batch
        raise NotThis("no tool batch is open")

    def entry(self, id: str) -> Entry:
        """The entry of this id."""
        if id not in self.state.entries:
            raise NotThis(f"no entry {id}")
        return self.state.entries[id]

    def message(self, id: str) -> Message:
        """The message of the message entry of this id."""
        message = self.entry(id).message
        if message is None:
            raise NotThis(f"entry {id} is not a message")
        return message

    @once
    def phase(self) -> str:
        """The lane's phase as the transition table names it: ``idle``, ``assistant.effect_pending``, ``tools``, ..."""
        if self.state.register(Namespace.LANE_STATE, self.lane) is None:
            return NO_LANE[0]
        if self.lane_state.current_operation_id is None:
            return IDLE[0]
        match self.operation_state:
            case RunState(phase=phase):
                return run_phase_name(phase)
            case CompactionState(structural=structural):
                return f"compact.{_tag(structural)}"
            case NavigationState(phase=SummaryPhase(structural=structural)):
                return f"navigate.{_tag(structural)}"
            case NavigationState():
                return "navigate.ready_to_commit"


def run_phase_name(phase: RunPhase) -> str:
    """The name of a run's phase, with the status inside it where there is one."""
    match phase:
        case AssistantPhase(generation=inner):
            return f"{_tag(phase)}.{_tag(inner)}"
        case DeferredPhase(deferred=polled):
            return f"{_tag(phase)}.{_tag(polled)}"
        case CompactionPhase(structural=structural):
            return f"{_tag(phase)}.{_tag(structural)}"
        case _:
            return _tag(phase)


def _tag(noun: Record) -> str:
    """The word in JSON that tells the noun from the others of its union."""
    return "" if noun._tag is None else noun._tag[1]


T = TypeVar("T")


def _present(state: State, namespace: Namespace, key: str) -> Json:
    value = state.value(namespace, key)
    if value is UNSET:
        raise NotThis(f"{namespace}/{key} does not exist")
    return value


def _decoded(state: State, namespace: Namespace, key: str, reader: Callable[[Json], T]) -> T:
    register = state.register(namespace, key)
    if register is None:
        raise NotThis(f"{namespace}/{key} does not exist")
    try:
        return register.read(reader)
    except Refused as refused:
        raise NotThis(f"{namespace}/{key}: {refused}") from None


I_contra = TypeVar("I_contra", bound=Inputs, contravariant=True)
I = TypeVar("I", bound=Inputs)  # noqa: E741 - one letter for one type parameter

Guard: TypeAlias = Callable[[View, I], str | None]
"""A condition with a name: None when it holds, otherwise the reason why it does not."""


@dataclass(frozen=True, kw_only=True)
class Commit:
    """The one transaction of a transition; ``detail`` tells variants of one name apart for people."""

    name: str
    lane: str | None
    inputs: Inputs
    writes: Writes
    detail: str = ""


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """The first guard that forbids a transition, and why."""

    name: str
    guard: str
    reason: str


class Seen:
    """An observed commit, with the questions that extraction asks of it; a missing part raises ``NotThis``."""

    def __init__(self, observed: Observed) -> None:
        self.observed = observed
        self.entries: tuple[NewEntry, ...] = tuple(
            write.entry for write in observed.writes if isinstance(write, InsertEntry)
        )
        self.usage: tuple[NewUsage, ...] = tuple(
            write.row for write in observed.writes if isinstance(write, InsertUsage)
        )

    def first_entry(self) -> NewEntry:
        """The first inserted entry."""
        if not self.entries:
            raise NotThis("no entry is inserted")
        return self.entries[0]

    def first_message(self) -> Message:
        """The message of the first inserted entry."""
        message = self.first_entry().message
        if message is None:
            raise NotThis("the inserted entry is not a message")
        return message

    def set(self, namespace: Namespace) -> SetRegister:
        """The first write that sets a register of the namespace."""
        for write in self.observed.writes:
            if isinstance(write, SetRegister) and write.namespace is namespace:
                return write
        raise NotThis(f"no {namespace} is set")

    def deleted(self, namespace: Namespace) -> tuple[str, ...]:
        """The keys of the namespace that are deleted."""
        return tuple(
            write.key
            for write in self.observed.writes
            if isinstance(write, DeleteRegister) and write.namespace is namespace
        )

    def read(self, namespace: Namespace, reader: Callable[[Json], T]) -> T:
        """The value of the first set of the namespace, read as this noun."""
        try:
            return self.set(namespace).read(reader)
        except Refused as refused:
            raise NotThis(f"{namespace} is set to another shape: {refused}") from None

    def run(self) -> RunState:
        """The run state that is set."""
        return self.read(Namespace.OP_STATE, RunState.from_json)


@dataclass(frozen=True, kw_only=True, eq=False)
class Transition:
    """A named transition: where it starts, what forbids it, which writes it makes, and how it is recognised.

    A ``public`` one is made by a call from outside, at any time; the others are steps of an operation's procedure.
    """

    id: str
    name: str
    section: str
    phases: Phases
    summary: str
    inputs: type[Inputs]
    guards: Mapping[str, Callable[[View, Inputs], str | None]]
    build: Callable[[View, Inputs], Writes]
    extract: Callable[[View, Seen], Inputs]
    detail: Callable[[View, Inputs], str]
    public: bool
    takes_lane: bool

    def __call__(self, state: State, lane: str | None, inputs: Inputs) -> Commit | Refusal:
        """The commit of this transition from this state, or the guard that forbids it."""
        return self.commit(View(state, lane or ""), inputs)

    def commit(self, view: View, inputs: Inputs) -> Commit | Refusal:
        """The same from a view that was already read."""
        try:
            refusal = self.forbidden(view, inputs)
            if refusal is not None:
                return refusal
            detail = self.detail(view, inputs)
            lane = view.lane if self.takes_lane else None
            writes = self.build(view, inputs)
            return Commit(name=self.name, lane=lane, inputs=inputs, writes=writes, detail=detail)
        except NotThis as reason:
            return Refusal(name=self.name, guard="state_is_readable", reason=str(reason))

    def forbidden(self, view: View, inputs: Inputs) -> Refusal | None:
        """The first guard that does not hold."""
        if view.phase not in self.phases:
            reason = f"lane {view.lane} is at {view.phase}, not at {' or '.join(self.phases)}"
            return Refusal(name=self.name, guard="from_phase", reason=reason)
        for name, guard in self.guards.items():
            reason_or_none = guard(view, inputs)
            if reason_or_none is not None:
                return Refusal(name=self.name, guard=name, reason=reason_or_none)
        return None


def transition(
    id: str,
    *,
    section: str,
    phases: Phases,
    inputs: type[I],
    extract: Callable[[View, Seen], I],
    guards: tuple[Guard[I], ...] = (),
    detail: Callable[[View, I], str] | None = None,
    public: bool = False,
    takes_lane: bool = True,
) -> Callable[[Callable[[View, I], Writes]], Transition]:
    """Register a function from view and inputs to ordered writes as the transition of that name."""

    def declare(build: Callable[[View, I], Writes]) -> Transition:
        return Transition(
            id=id,
            name=build.__name__,
            section=section,
            phases=phases,
            summary=(build.__doc__ or "").strip().splitlines()[0],
            inputs=inputs,
            guards={guard.__name__: _erased(inputs, guard) for guard in guards},
            build=_erased(inputs, build),
            extract=extract,
            detail=_erased(inputs, detail or (lambda _view, _inputs: "")),
            public=public,
            takes_lane=takes_lane,
        )

    return declare


def _erased(inputs: type[I], function: Callable[[View, I], T]) -> Callable[[View, Inputs], T]:
    def call(view: View, given: Inputs) -> T:
        if not isinstance(given, inputs):
            raise TypeError(f"expected {inputs.__name__}, got {type(given).__name__}")
        return function(view, given)

    return call


# --- guards that many share


def control_is_running(view: View, _: Inputs) -> str | None:
    """Nobody has durably asked the operation to stop (§3.4)."""
    return None if isinstance(view.operation_state.control, Running) else "cancellation is requested"


# --- writes that many share


def set_state(view: View, state: OperationState) -> SetRegister:
    """``S(next)``: the total operation state (§0.7)."""
    return SetRegister(namespace=Namespace.OP_STATE, key=view.operation_id, value=state.to_json())


def set_lane_state(view: View, state: LaneState) -> SetRegister:
    """``L(next)``: the total lane state (§0.7)."""
    return SetRegister(namespace=Namespace.LANE_STATE, key=view.lane, value=state.to_json())


def set_leaf(view: View, id: str | None) -> SetRegister:
    """The lane's leaf moves (§2.3)."""
    return SetRegister(namespace=Namespace.LANE_LEAF, key=view.lane, value=id)


def insert_message(id: str, parent_id: str | None, message: Message, *, terminate: bool = False) -> InsertEntry:
    """A message entry; ``terminate`` is stored only when true (§2.1)."""
    payload: dict[str, Json] = {"message": message, "terminate": True} if terminate else {"message": message}
    return InsertEntry(entry=NewEntry(id=id, parent_id=parent_id, type=EntryType.MESSAGE, payload=payload))


def insert_custom(id: str, parent_id: str | None, custom_type: str, data: Json | Unset) -> InsertEntry:
    """A custom entry; absent data stays absent (§2.1)."""
    payload: dict[str, Json] = {} if data is UNSET else {"data": data}
    return InsertEntry(
        entry=NewEntry(id=id, parent_id=parent_id, type=EntryType.CUSTOM, custom_type=custom_type, payload=payload)
    )


def delete(namespace: Namespace, *keys: str) -> Writes:
    """The removal of these registers, in order."""
    return tuple(DeleteRegister(namespace=namespace, key=key) for key in keys)
