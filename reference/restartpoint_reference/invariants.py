"""What is true of every durable state (§3.3, §9.1), as named predicates.

Each predicate answers the sentences that say where a state breaks it; none when it holds. ``check`` asks all of them
about a whole state, ``check_commit`` about what one commit touched; `changes` holds what is true of the commit itself.

Of the numbers of §9.1, these are no predicates over a durable state, and hold elsewhere: all-or-none (2) in ``apply``;
reads that fold no history (5), the branch index (10) and the catalogue of gates (23) in the runtime; a parent chain
that never changes (6), since no write changes an entry; one active operation per lane (22) in the live process. That
the conversation needs no operation (8) follows from 11 and 20, whose predicates read none.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from restartpoint_reference.changes import CHANGES
from restartpoint_reference.scope import LANE_REGISTERS, OPERATION_REGISTERS, Scope, touched, whole
from restartpoint_reference.shapes import UNSET, Json, Record, Refused, Unset, as_object, read_string
from restartpoint_reference.store import Delta, State, stats_with
from restartpoint_reference.transitions.frame import NotThis, View
from restartpoint_reference.transitions.tools import is_truncated, step_id
from restartpoint_reference.vocabulary.entries import EntryType, Namespace
from restartpoint_reference.vocabulary.messages import StopReason, role, source_calls
from restartpoint_reference.vocabulary.registers import (
    BranchPreparation,
    CompactionPreparation,
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    NavigationIntent,
    Operation,
    PendingCustom,
    PendingMessage,
    RunIntent,
)
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    Checkpoint,
    CompactionPhase,
    CompactionState,
    CompletedCall,
    DeferredPending,
    DeferredPhase,
    FailureDrain,
    Generating,
    GenerationPending,
    NavigationState,
    PendingCall,
    ResponseProvenance,
    RunPhase,
    RunState,
    SummaryPending,
    SummaryPhase,
    ToolsPhase,
)


@dataclass(frozen=True, kw_only=True)
class Broken:
    """An invariant that a state breaks: its name, its section with the number in §9.1, and where."""

    name: str
    section: str
    reason: str

    def __str__(self) -> str:
        return f"{self.name.replace('_', ' ')}: {self.reason} (§{self.section})"


@dataclass(frozen=True, kw_only=True)
class Invariant:
    """A named predicate over what a check looks at."""

    name: str
    section: str
    find: Callable[[Scope], Iterator[str]]


def check(state: State) -> tuple[Broken, ...]:
    """Everything that the state breaks; empty for a sound state. Costs the size of the session."""
    return _broken(whole(state))


def check_commit(state: State, delta: Delta) -> tuple[Broken, ...]:
    """What a commit and the state after it break, when the state before it was sound; costs what the commit touched."""
    rules = ((section, rule.__name__, rule(delta)) for section, rule in CHANGES)
    changed = (Broken(name=name, section=section, reason=reason) for section, name, found in rules for reason in found)
    return (*changed, *_broken(touched(state, delta)))


def _broken(scope: Scope) -> tuple[Broken, ...]:
    return tuple(
        Broken(name=invariant.name, section=invariant.section, reason=reason)
        for invariant in INVARIANTS
        for reason in invariant.find(scope)
    )


def operations(state: State) -> tuple[View, ...]:
    """A view of every open operation whose registers can be read."""
    return whole(state).operations


# --- storage and tree


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


# --- registers


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
                _ = (view.operation, view.operation_state)
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
                there = (held.target_id, held.summarize, held.label)
                if there != (intent.target_id, intent.summarize, intent.label):
                    yield f"op.state/{view.operation_id} navigates elsewhere than op.meta says"
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


# --- what a state names


def named_entries_exist(scope: Scope) -> Iterator[str]:
    """Every committed entry that op.meta or op.state names exists and is of the type that it is named for (§3.3)."""
    for view in scope.operations:
        for what, key in _named_entries(view):
            entry = scope.state.entries.get(key)
            if entry is None:
                yield f"{what} of {view.operation_id} names {key}, which does not exist"
            elif what in _RESPONSES and role(entry.message or {}) != "assistant":
                yield f"{what} of {view.operation_id} names {key}, which is no response"
            elif what == "promptEntryIds" and entry.message is None:
                yield f"{what} of {view.operation_id} names {key}, which is no message"


_RESPONSES: Final = ("latestAssistantEntryId", "assistantEntryId", "sourceEntryId", "provenance.entryId")
"""What a run names its responses by; any entry may be a leaf, a source, a target or a trigger."""


def named_registers_exist(scope: Scope) -> Iterator[str]:
    """Pending calls have their arguments and structural work its preparation (§3.3)."""
    for view in scope.operations:
        for namespace, key in _named_registers(view):
            if scope.state.register(namespace, key) is None:
                yield f"{namespace}/{key} does not exist"


def reserved_ids_are_free(scope: Scope) -> Iterator[str]:
    """An id that is reserved for content to come holds nothing yet (§9.1, 15)."""
    for view in scope.reserving:
        for key in _reserved(view):
            if key in scope.state.entries or key in scope.state.usage:
                yield f"{key} is reserved by {view.operation_id} and exists"


def structural_work_fits(scope: Scope) -> Iterator[str]:
    """A summary's context is that of the work it is for, which an operation of its own does at its source (§3.3)."""
    for view in scope.operations:
        held, source = view.operation_state, view.operation.source_leaf_id
        expected: tuple[str, str | Unset]
        if not isinstance(held, RunState) and view.leaf != source:
            yield f"{view.operation_id} is at {view.leaf}, away from its source {source}"
        match held:
            case RunState(phase=CompactionPhase(reason=reason, structural=structural)):
                expected = ("compaction", reason)
            case CompactionState(structural=structural):
                expected = ("compaction", "manual")
            case NavigationState(phase=SummaryPhase(structural=structural)):
                expected = ("branch_summary", UNSET)
            case _:
                continue
        if isinstance(structural, Generating):
            generation = structural.generation
            context = generation.context
            if (context.task_id, context.kind, context.reason) != (structural.task_id, *expected):
                yield f"the summary context of {view.operation_id} is that of other work"
            for key in generation.usage_ids if isinstance(generation, SummaryPending) else ():
                if key not in scope.state.usage:
                    yield f"{view.operation_id} counts the usage {key}, which is not in the ledger"


def batches_are_complete(scope: Scope) -> Iterator[str]:
    """A batch lists exactly its response's calls, ascending, under unique result ids (§3.3)."""
    for view in scope.operations:
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        calls = view.batch.calls
        response = scope.state.entries.get(view.batch.assistant_entry_id)
        source = [] if response is None else [call.source_index for call in source_calls(response.message or {})]
        if [call.source_index for call in calls] != source:
            yield f"the calls of {view.operation_id} are not those at {source}"
        if len({call.result_entry_id for call in calls}) < len(calls):
            yield f"two calls of {view.operation_id} share a result id"
        if all(isinstance(call, CompletedCall) for call in calls):
            yield f"the batch of {view.operation_id} is complete and still open"


def results_match_their_calls(scope: Scope) -> Iterator[str]:
    """A completed call's entry is the result of that call, and agrees on ending the run (§3.3)."""
    for view in scope.operations:
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        response = scope.state.entries.get(view.batch.assistant_entry_id)
        sources = {call.source_index: call for call in source_calls((response and response.message) or {})}
        for call in view.batch.calls:
            entry = scope.state.entries.get(call.result_entry_id)
            source = sources.get(call.source_index)
            if not isinstance(call, CompletedCall) or entry is None or source is None:
                continue
            message = entry.message or {}
            answered = (role(message), message.get("toolCallId"), message.get("toolName"))
            if answered != ("toolResult", source.id, source.name):
                yield f"entry {entry.id} is not the result of {source.name} {source.id}"
            if ("terminate" in entry.payload) != call.terminate:
                yield f"entry {entry.id} and its call disagree on ending the run"


def truncated_calls_never_start(scope: Scope) -> Iterator[str]:
    """No call of a response that was cut at its limit is pending (§3.7)."""
    for view in scope.operations:
        if isinstance(view.operation_state, RunState) and isinstance(view.run.phase, ToolsPhase):
            started = any(isinstance(call, PendingCall) for call in view.batch.calls)
            response = scope.state.entries.get(view.batch.assistant_entry_id)
            if started and response is not None and response.message is not None and is_truncated(view):
                yield f"{view.operation_id} runs a call of a truncated response"


def _named_entries(view: View) -> Iterator[tuple[str, str]]:
    operation, held = view.operation, view.operation_state
    if operation.source_leaf_id is not None:
        yield "sourceLeafId", operation.source_leaf_id
    match operation.intent:
        case RunIntent(prompt_entry_ids=prompts):
            yield from (("promptEntryIds", key) for key in prompts)
        case NavigationIntent(target_id=str() as target):
            yield "targetId", target
        case _:
            pass
    if isinstance(held, RunState):
        if held.latest_assistant_entry_id is not None:
            yield "latestAssistantEntryId", held.latest_assistant_entry_id
        yield from _phase_entries(held.phase)


def _phase_entries(phase: RunPhase) -> Iterator[tuple[str, str]]:
    match phase:
        case Checkpoint(trigger_entry_id=trigger):
            yield "triggerEntryId", trigger
            marker = phase.threshold_checked_trigger_entry_id
            if marker is not UNSET:
                yield "thresholdCheckedTriggerEntryId", marker
        case AssistantPhase(generation=generation):
            yield "context.triggerEntryId", generation.context.trigger_entry_id
        case ToolsPhase(batch=batch):
            yield "assistantEntryId", batch.assistant_entry_id
            for call in batch.calls:
                if isinstance(call, CompletedCall):
                    yield "resultEntryId", call.result_entry_id
        case CompactionPhase(resume_after=checkpoint):
            yield from _phase_entries(checkpoint)
        case DeferredPhase(deferred=deferred):
            yield "sourceEntryId", deferred.source_entry_id
        case FailureDrain(provenance=ResponseProvenance(entry_id=key)):
            yield "provenance.entryId", key
        case FailureDrain():
            pass


def _named_registers(view: View) -> Iterator[tuple[Namespace, str]]:
    match view.operation_state:
        case RunState(phase=ToolsPhase(batch=batch)):
            for call in batch.calls:
                if isinstance(call, PendingCall):
                    key = f"{view.operation_id}:{step_id(batch)}:{call.source_index}"
                    yield Namespace.OP_TOOL_ARGS, key
        case (
            RunState(phase=CompactionPhase(structural=structural))
            | CompactionState(structural=structural)
            | NavigationState(phase=SummaryPhase(structural=structural))
        ):
            yield Namespace.OP_PREPARATION, f"{view.operation_id}:{structural.task_id}"
        case _:
            pass


def _reserved(view: View) -> Iterator[str]:
    match view.operation_state:
        case RunState(
            phase=AssistantPhase(generation=GenerationPending() as pending)
            | DeferredPhase(deferred=DeferredPending() as pending)
        ):
            yield from (pending.response_entry_id, pending.usage_id)
        case RunState(phase=ToolsPhase(batch=batch)):
            yield from (call.result_entry_id for call in batch.calls if not isinstance(call, CompletedCall))
        case (
            RunState(phase=CompactionPhase(structural=Generating(generation=generation)))
            | CompactionState(structural=Generating(generation=generation))
            | NavigationState(phase=SummaryPhase(structural=Generating(generation=generation)))
        ):
            yield generation.context.result_entry_id
            if isinstance(generation, SummaryPending) and generation.request is not UNSET:
                yield generation.request.usage_id
        case _:
            pass


INVARIANTS: Final[tuple[Invariant, ...]] = tuple(
    Invariant(name=find.__name__, section=section, find=find)
    for section, find in (
        ("9.1, 1", ids_are_unique),
        ("9.1, 2", sequence_numbers_are_unique),
        ("9.1, 11", parents_come_first),
        ("1.6", stats_equal_the_ledger),
        ("2.1", responses_are_settled),
        ("9.1, 7", entries_carry_their_content),
        ("9.1, 3", registers_have_their_shape),
        ("9.1, 12", everything_is_readable),
        ("9.1, 13", every_operation_is_owned),
        ("9.1, 12", state_fits_the_intent),
        ("9.1, 15", queued_content_waits_once),
        ("9.1, 20", leaves_exist),
        ("9.1, 20", named_entries_exist),
        ("9.1, 20", named_registers_exist),
        ("9.1, 15", reserved_ids_are_free),
        ("3.3", structural_work_fits),
        ("9.1, 20", batches_are_complete),
        ("9.1, 20", results_match_their_calls),
        ("3.7", truncated_calls_never_start),
    )
)
"""Every invariant that one durable state can break."""
