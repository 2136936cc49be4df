"""What is true of every durable state (§3.3, §9.1), as named predicates.

Each predicate answers the sentences that say where a state breaks it; none when it holds. ``check`` asks all of them.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Final

from restartpoint_reference.persistent import PersistentMap
from restartpoint_reference.shapes import UNSET, Record, Refused
from restartpoint_reference.store import Delta, State, stats_of
from restartpoint_reference.transitions.frame import NO_LANE, NotThis, View, read_state
from restartpoint_reference.transitions.terminal import owned_pending_ids
from restartpoint_reference.transitions.tools import is_truncated, step_id
from restartpoint_reference.vocabulary.entries import Entry, EntryType, Namespace
from restartpoint_reference.vocabulary.messages import StopReason, role, source_calls
from restartpoint_reference.vocabulary.registers import (
    LaneConfiguration,
    LaneLastResult,
    LaneState,
    NavigationIntent,
    Operation,
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
    """A named predicate over a state; ``of_rows`` says that it walks every entry and ledger row."""

    name: str
    section: str
    find: Callable[[State], Iterator[str]]
    of_rows: bool

    def broken(self, state: State) -> tuple[Broken, ...]:
        """Where the state breaks it."""
        return tuple(Broken(name=self.name, section=self.section, reason=reason) for reason in self.find(state))


def check(state: State) -> tuple[Broken, ...]:
    """Everything that the state breaks; empty for a sound state. Costs the size of the session."""
    return tuple(broken for invariant in INVARIANTS for broken in invariant.broken(state))


def check_commit(state: State, delta: Delta) -> tuple[Broken, ...]:
    """What the state after a commit breaks, when the state before it was sound; costs no more than what is current.

    The rows that the commit inserted are held to the same predicates as a session of their own; what concerns rows
    against all others (unique ids, increasing sequence numbers, existing parents, the ledger's sum) ``apply`` upholds.
    """
    rows = replace(State.empty(), entries=_by_id(delta.entries), next_seq=state.next_seq)
    fresh = (broken for invariant in INVARIANTS if invariant.find in OF_ONE_ROW for broken in invariant.broken(rows))
    current = (broken for invariant in INVARIANTS if not invariant.of_rows for broken in invariant.broken(state))
    return (*fresh, *current)


def _by_id(entries: tuple[Entry, ...]) -> PersistentMap[str, Entry]:
    made: PersistentMap[str, Entry] = PersistentMap()
    for entry in entries:
        made = made.set(entry.id, entry)
    return made


# --- storage and tree


def ids_are_unique(state: State) -> Iterator[str]:
    """Entries and usage rows share one id namespace (§9.1, 1)."""
    return (f"{key} is an entry and a usage row" for key in state.usage if key in state.entries)


def sequence_numbers_are_unique(state: State) -> Iterator[str]:
    """Every sequence number was given out once, and the next one is greater than all (§9.1, 2)."""
    held = [entry.seq for entry in state.entries.values()] + [row.seq for row in state.usage.values()]
    held += [register.seq for registers in state.namespaces.values() for register in registers.values()]
    if len(set(held)) < len(held):
        yield "a sequence number is used twice"
    if max(held, default=0) >= state.next_seq:
        yield f"{max(held)} was given out, but the next is {state.next_seq}"


def parents_come_first(state: State) -> Iterator[str]:
    """Every parent exists and is older than its child (§9.1, 11)."""
    for entry in state.entries.values():
        if entry.parent_id is not None:
            parent = state.entries.get(entry.parent_id)
            if parent is None or parent.seq >= entry.seq:
                yield f"the parent {entry.parent_id} of {entry.id} does not precede it"


def stats_equal_the_ledger(state: State) -> Iterator[str]:
    """The maintained statistics are those of the rows (§1.6)."""
    if stats_of(state) != state.stats:
        yield f"maintained {state.stats.to_json()}, counted {stats_of(state).to_json()}"


def responses_are_settled(state: State) -> Iterator[str]:
    """No stored assistant message is pending (§2.1)."""
    for entry in state.entries.values():
        message = entry.message
        if message is not None and role(message) == "assistant" and message.get("stopReason") == StopReason.PENDING:
            yield f"entry {entry.id} holds a pending response"


# --- registers


def registers_have_their_shape(state: State) -> Iterator[str]:
    """Every register holds the value that its namespace prescribes (§1.3)."""
    readers: dict[Namespace, type[Record]] = {
        Namespace.LANE_CONFIG: LaneConfiguration,
        Namespace.LANE_STATE: LaneState,
        Namespace.LANE_LAST_RESULT: LaneLastResult,
        Namespace.OP_META: Operation,
    }
    for namespace, record in readers.items():
        for register in state.namespaces[namespace].values():
            try:
                record.from_json(register.value)
            except Refused as refused:
                yield f"{namespace}/{register.key}: {refused}"


def every_operation_is_owned(state: State) -> Iterator[str]:
    """op.* registers exist exactly while a lane names their operation, which op.meta confirms (§9.1, 12, 13)."""
    named = {view.lane_state.current_operation_id for view in lanes(state)}
    for namespace in (Namespace.OP_META, Namespace.OP_STATE, Namespace.OP_TOOL_ARGS, Namespace.OP_PREPARATION):
        for key in state.keys(namespace):
            if key.partition(":")[0] not in named:
                yield f"{namespace}/{key} belongs to no open operation"
    for view in operations(state):
        meta = view.operation
        if meta.lane != view.lane or meta.operation_id != view.operation_id:
            yield f"op.meta/{view.operation_id} belongs to {meta.operation_id} of lane {meta.lane}"


def an_operation_is_open_once(state: State) -> Iterator[str]:
    """No two lanes name one operation (§9.1, 17)."""
    open_on: dict[str, str] = {}
    for view in lanes(state):
        operation = view.lane_state.current_operation_id
        if operation is not None and operation in open_on:
            yield f"{operation} is open on {open_on[operation]} and {view.lane}"
        elif operation is not None:
            open_on[operation] = view.lane


def state_fits_the_intent(state: State) -> Iterator[str]:
    """op.state is a total state of the kind that op.meta intends, with the same target (§3.3)."""
    for view in operations(state):
        held, intent = view.operation_state, view.operation.intent
        match held, intent:
            case NavigationState(), NavigationIntent():
                there = (held.target_id, held.summarize, held.label)
                if there != (intent.target_id, intent.summarize, intent.label):
                    yield f"op.state/{view.operation_id} navigates elsewhere than op.meta says"
            case _:
                pass


def queued_content_waits_once(state: State) -> Iterator[str]:
    """Every queued id has its register and no entry, is listed once, and no register waits unlisted (§9.1, 13, 15)."""
    listed: list[str] = []
    for view in lanes(state):
        listed += view.lane_state.pending_next_run
    for view in operations(state):
        listed += owned_pending_ids(view)
    waiting = state.namespaces[Namespace.PENDING_ENTRY]
    for key in listed:
        if key not in waiting:
            yield f"{key} is queued without its pending.entry register"
        if listed.count(key) > 1:
            yield f"{key} is queued twice"
    for key in waiting:
        if key in state.entries:
            yield f"{key} is pending and placed"
        if key not in listed:
            yield f"pending.entry/{key} waits for nothing"


def leaves_exist(state: State) -> Iterator[str]:
    """Every lane has a leaf register, and it names an existing entry or the root (§3.3, 20)."""
    for view in lanes(state):
        if view.leaf is not None and view.leaf not in state.entries:
            yield f"lane.leaf/{view.lane} names {view.leaf}, which does not exist"


# --- what a state names


def named_entries_exist(state: State) -> Iterator[str]:
    """Every committed entry that op.meta or op.state names exists (§3.3)."""
    for view in operations(state):
        for what, key in _named_entries(view):
            if key not in state.entries:
                yield f"{what} of {view.operation_id} names {key}, which does not exist"


def named_registers_exist(state: State) -> Iterator[str]:
    """Pending calls have their arguments and structural work its preparation (§3.3)."""
    for view in operations(state):
        for namespace, key in _named_registers(view):
            if state.register(namespace, key) is None:
                yield f"{namespace}/{key} does not exist"


def reserved_ids_are_free(state: State) -> Iterator[str]:
    """An id that is reserved for content to come holds nothing yet (§9.1, 15)."""
    for view in operations(state):
        for key in _reserved(view):
            if key in state.entries or key in state.usage:
                yield f"{key} is reserved by {view.operation_id} and exists"


def batches_are_complete(state: State) -> Iterator[str]:
    """A batch lists exactly its response's calls, ascending, under unique result ids (§3.3)."""
    for view in operations(state):
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        calls = view.batch.calls
        response = state.entries.get(view.batch.assistant_entry_id)
        source = [] if response is None else [call.source_index for call in source_calls(response.message or {})]
        if [call.source_index for call in calls] != source:
            yield f"the calls of {view.operation_id} are not those at {source}"
        if len({call.result_entry_id for call in calls}) < len(calls):
            yield f"two calls of {view.operation_id} share a result id"
        if all(isinstance(call, CompletedCall) for call in calls):
            yield f"the batch of {view.operation_id} is complete and still open"


def results_match_their_calls(state: State) -> Iterator[str]:
    """A completed call's entry is the result of that call, and agrees on ending the run (§3.3)."""
    for view in operations(state):
        if not isinstance(view.operation_state, RunState) or not isinstance(view.run.phase, ToolsPhase):
            continue
        response = state.entries.get(view.batch.assistant_entry_id)
        sources = {call.source_index: call for call in source_calls((response and response.message) or {})}
        for call in view.batch.calls:
            entry = state.entries.get(call.result_entry_id)
            source = sources.get(call.source_index)
            if not isinstance(call, CompletedCall) or entry is None or source is None:
                continue
            message = entry.message or {}
            if (message.get("toolCallId"), message.get("toolName")) != (source.id, source.name):
                yield f"entry {entry.id} is not the result of {source.name} {source.id}"
            if ("terminate" in entry.payload) != call.terminate:
                yield f"entry {entry.id} and its call disagree on ending the run"


def truncated_calls_never_start(state: State) -> Iterator[str]:
    """No call of a response that was cut at its limit is pending (§3.7)."""
    for view in operations(state):
        if isinstance(view.operation_state, RunState) and isinstance(view.run.phase, ToolsPhase):
            started = any(isinstance(call, PendingCall) for call in view.batch.calls)
            if started and view.batch.assistant_entry_id in state.entries and is_truncated(view):
                yield f"{view.operation_id} runs a call of a truncated response"


# --- what the predicates walk


def lanes(state: State) -> Iterator[View]:
    """A view of every lane whose own registers can be read."""
    for lane in state.keys(Namespace.LANE_STATE):
        view = View(state, lane)
        if _readable(lambda view=view: (view.lane_state, view.leaf)):  # type: ignore[misc]
            yield view


def operations(state: State) -> Iterator[View]:
    """A view of every open operation whose registers can be read."""
    for view in lanes(state):
        if view.lane_state.current_operation_id is None:
            continue
        if _readable(lambda view=view: (view.operation, view.operation_state)):  # type: ignore[misc]
            yield view


def everything_is_readable(state: State) -> Iterator[str]:
    """The registers of every lane and of its open operation exist and can be read (§3.3)."""
    for lane in state.keys(Namespace.LANE_STATE):
        view = View(state, lane)
        try:
            _ = (view.lane_state, view.leaf)
            if view.phase not in (NO_LANE, "idle"):
                _ = read_state(view.operation.kind, view.operation_state.to_json())
        except NotThis as reason:
            yield f"lane {lane}: {reason}"


def _readable(read: Callable[[], object]) -> bool:
    try:
        read()
    except NotThis:
        return False
    return True


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
        case RunState(phase=CompactionPhase(structural=Generating(generation=generation))):
            yield generation.context.result_entry_id
        case _:
            pass


def compactions_hold_their_tail(state: State) -> Iterator[str]:
    """A compaction is self-contained: it carries its retained tail (§2.1)."""
    for entry in state.entries.values():
        if entry.type is EntryType.COMPACTION and not isinstance(entry.payload.get("retainedTail"), list):
            yield f"compaction {entry.id} has no retained tail"


OF_ONE_ROW: Final = (responses_are_settled, compactions_hold_their_tail)
"""The predicates that ask of an entry only what it holds itself."""

OF_ROWS: Final = (
    *OF_ONE_ROW,
    ids_are_unique,
    sequence_numbers_are_unique,
    parents_come_first,
    stats_equal_the_ledger,
)
"""The predicates that walk every entry and ledger row."""

INVARIANTS: Final[tuple[Invariant, ...]] = tuple(
    Invariant(name=find.__name__, section=section, find=find, of_rows=find in OF_ROWS)
    for section, find in (
        ("9.1, 1", ids_are_unique),
        ("9.1, 2", sequence_numbers_are_unique),
        ("9.1, 11", parents_come_first),
        ("1.6", stats_equal_the_ledger),
        ("2.1", responses_are_settled),
        ("2.1", compactions_hold_their_tail),
        ("9.1, 3", registers_have_their_shape),
        ("9.1, 12", everything_is_readable),
        ("9.1, 13", every_operation_is_owned),
        ("9.1, 17", an_operation_is_open_once),
        ("9.1, 12", state_fits_the_intent),
        ("9.1, 15", queued_content_waits_once),
        ("9.1, 20", leaves_exist),
        ("9.1, 20", named_entries_exist),
        ("9.1, 20", named_registers_exist),
        ("9.1, 15", reserved_ids_are_free),
        ("9.1, 20", batches_are_complete),
        ("9.1, 20", results_match_their_calls),
        ("3.7", truncated_calls_never_start),
    )
)
"""Every invariant that one durable state can break."""
