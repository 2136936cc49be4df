"""What is true of the registers of a state and of who owns them (§3.3, §9.1)."""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from restartpoint_reference.scope import LANE_REGISTERS, OPERATION_REGISTERS, Scope
from restartpoint_reference.shapes import Json, Record, Refused, as_object, read_string
from restartpoint_reference.transitions.frame import NotThis
from restartpoint_reference.vocabulary.entries import Namespace
from restartpoint_reference.vocabulary.registers import (
    BranchPreparation,
    CompactionIntent,
    CompactionPreparation,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    NavigationIntent,
    Operation,
    PendingCustom,
    PendingMessage,
)
from restartpoint_reference.vocabulary.states import (
    CompactionState,
    NavigationState,
)


def registers_have_their_shape(scope: Scope) -> Iterator[str]:
    """Every register holds the value that its namespace prescribes, null only where that permits it (§1.3, §9.1, 3)."""
    for register in scope.registers:
        reader = _SHAPES.get(register.namespace)
        try:
            if reader is not None:
                register.read(reader)
        except Refused as refused:
            yield f"{register.namespace}/{register.key}: {refused}"


def _id_or_null(value: Json) -> object:
    return None if value is None else read_string(value)


def _tagged(*nouns: type[Record]) -> Callable[[Json], object]:
    """The reader of whichever of these nouns the value's tag names."""

    def read(value: Json) -> object:
        held = as_object(value)
        for noun in nouns:
            if noun._tag is not None and held.get(noun._tag[0]) == noun._tag[1]:
                return noun.from_json(held)
        raise Refused("a tag of none of its shapes")

    return read


_SHAPES: Final[Mapping[Namespace, Callable[[Json], object]]] = {
    Namespace.LANE_LEAF: _id_or_null,
    Namespace.LANE_CONFIG: LaneConfiguration.from_json,
    Namespace.LANE_STATE: LaneState.from_json,
    Namespace.LANE_LAST_RESULT: LaneLastResult.from_json,
    Namespace.OP_META: Operation.from_json,
    Namespace.OP_TOOL_ARGS: as_object,
    Namespace.OP_PREPARATION: _tagged(CompactionPreparation, BranchPreparation),
    Namespace.PENDING_ENTRY: _tagged(PendingMessage, PendingCustom),
    Namespace.FACT_NAME: read_string,
    Namespace.FACT_LABEL: read_string,
}
"""How the value of each namespace is read; ``op.state`` is read by the kind of its operation, a custom fact is free."""


def everything_is_readable(scope: Scope) -> Iterator[str]:
    """The registers of every lane and of its open operation exist and can be read (§3.3, §9.1, 12)."""
    for view in scope.named:
        lane = view.lane
        try:
            _ = (view.lane_state, view.leaf)
            if view.lane_state.current_operation_id is not None:
                _ = (view.configuration, view.operation, view.operation_state)
        except NotThis as reason:
            if any(scope.state.register(namespace, lane) is not None for namespace in LANE_REGISTERS):
                yield f"lane {lane}: {reason}"


def every_operation_is_owned(scope: Scope) -> Iterator[str]:
    """op.* registers exist exactly while one lane names their operation, which op.meta confirms (§9.1, 12, 13, 17).

    So no two lanes name one operation: op.meta confirms it to one of them at most.
    """
    named = {view.lane_state.current_operation_id for view in scope.lanes}
    for operation in scope.operation_ids:
        if operation not in named:
            for namespace in OPERATION_REGISTERS:
                for key in scope.state.keys(namespace, operation):
                    if key.partition(":")[0] == operation:
                        yield f"{namespace}/{key} belongs to no open operation"
    for view in scope.operations:
        meta = view.operation
        if meta.lane != view.lane or meta.operation_id != view.operation_id:
            yield f"op.meta/{view.operation_id} belongs to {meta.operation_id} of lane {meta.lane}"


def state_fits_the_intent(scope: Scope) -> Iterator[str]:
    """op.state is a total state of the kind that op.meta intends, with the same target (§3.3)."""
    for view in scope.operations:
        held, intent = view.operation_state, view.operation.intent
        match held, intent:
            case NavigationState(), NavigationIntent():
                there = (held.target_id, held.summarize, held.label, held.custom_instructions)
                if there != (intent.target_id, intent.summarize, intent.label, intent.custom_instructions):
                    yield f"op.state/{view.operation_id} navigates elsewhere than op.meta says"
            case CompactionState(), CompactionIntent():
                if held.custom_instructions != intent.custom_instructions:
                    yield f"op.state/{view.operation_id} has other instructions than op.meta"
            case _:
                pass


def queued_content_waits_once(scope: Scope) -> Iterator[str]:
    """Every queued id has its register and no entry, is listed once, and no register waits unlisted (§9.1, 4, 13, 15).

    An id that became an entry in the same commit is looked at as well: its register must be gone.
    """
    waiting, listed = scope.state.namespaces[Namespace.PENDING_ENTRY], Counter(scope.listed)
    placed = (entry.id for entry in scope.entries if entry.id in waiting)
    for key in sorted({*listed, *scope.was_listed, *scope.touched_pending, *placed}):
        times = listed[key] + scope.is_listed_elsewhere(key)
        if times and key not in waiting:
            yield f"{key} is queued without its pending.entry register"
        if times > 1:
            yield f"{key} is queued twice"
        if key in waiting and key in scope.state.entries:
            yield f"{key} is pending and placed"
        if key in waiting and not times:
            yield f"pending.entry/{key} waits for nothing"


def leaves_exist(scope: Scope) -> Iterator[str]:
    """Every lane has a leaf register, and it names an existing entry or the root (§3.3, §9.1, 20)."""
    for view in scope.lanes:
        if view.leaf is not None and view.leaf not in scope.state.entries:
            yield f"lane.leaf/{view.lane} names {view.leaf}, which does not exist"


def results_name_ended_operations(scope: Scope) -> Iterator[str]:
    """What lane.lastResult names is not what the lane has open (§9.1, 13, 16)."""
    for view in scope.lanes:
        last, operation = scope.state.value(Namespace.LANE_LAST_RESULT, view.lane), view.lane_state.current_operation_id
        if operation is not None and isinstance(last, dict) and last.get("operationId") == operation:
            yield f"lane.lastResult/{view.lane} names {operation}, which is open"


def facts_are_about_what_exists(scope: Scope) -> Iterator[str]:
    """A label is that of an entry, and the session has one name (§1.3)."""
    for register in scope.registers:
        if register.namespace is Namespace.FACT_LABEL and register.key not in scope.state.entries:
            yield f"fact.label/{register.key} labels what does not exist"
        if register.namespace is Namespace.FACT_NAME and register.key:
            yield f"fact.name/{register.key} has a key"


OF_REGISTERS: Final[tuple[tuple[str, Callable[[Scope], Iterator[str]]], ...]] = (
    ("9.1, 3", registers_have_their_shape),
    ("9.1, 12", everything_is_readable),
    ("9.1, 13", every_operation_is_owned),
    ("9.1, 12", state_fits_the_intent),
    ("9.1, 15", queued_content_waits_once),
    ("9.1, 20", leaves_exist),
    ("9.1, 16", results_name_ended_operations),
    ("1.3", facts_are_about_what_exists),
)
"""Each with its section and number."""
