"""When effects start, interleaved with the commits: no effect before its intent, no next one before settlement (§0.3).

An ``EffectLog`` follows judges. Whoever starts an effect tells it, in the step in which the effect starts; the log asks
the model's state at that moment which durable intent allows it. Since an intent is a reserved id inside ``op.state``,
which only settlement or recovery replaces, an effect of a next phase can show no intent of its own before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from restartpoint.contract import AgentMessage, JsonObject, Model, ModelRequest
from restartpoint_oracle.errors import EffectOutOfOrder, RequestDiffers
from restartpoint_oracle.judge import Judge, Judged, lanes_of
from restartpoint_reference import UNSET, Namespace, Projector, State, differences, project
from restartpoint_reference.transitions.frame import NotThis, View
from restartpoint_reference.vocabulary.messages import source_calls
from restartpoint_reference.vocabulary.states import (
    AssistantPhase,
    CompactionPhase,
    CompactionState,
    DeferredPending,
    DeferredPhase,
    Generating,
    GenerationPending,
    GenerationRetryWait,
    NavigationState,
    PendingCall,
    RunState,
    SummaryPending,
    SummaryPhase,
    SummaryRetryWait,
    ToolsPhase,
)

__all__ = [
    "EffectKind", "EffectLog", "EffectStarted", "Intent", "check_request_messages", "check_requests",
    "check_sandwich",
]  # fmt: skip

EffectKind: TypeAlias = Literal["provider", "tool", "hook", "timer"]


@dataclass(frozen=True, kw_only=True)
class Intent:
    """A durable permission to start one effect: what kind, on which lane, under which reserved id.

    ``tool_call`` names the provider's call id for tools. ``projected`` says whether a request carries the context of
    the lane: summaries carry messages of their own.
    """

    kind: EffectKind
    lane: str
    id: str
    tool_call: str | None = None
    arguments: object = UNSET
    projected: bool = False


@dataclass(frozen=True, kw_only=True)
class EffectStarted:
    """An effect that started, the intent that allows it (None: there is none), and what differs from it."""

    kind: EffectKind
    name: str
    intent: Intent | None
    differences: tuple[str, ...] = ()


@dataclass
class EffectLog:
    """Effects and commits in the order in which they happened; ``judges`` are those that it follows."""

    projectors: Mapping[str, Projector] = field(default_factory=dict)
    events: list[EffectStarted | Judged] = field(default_factory=list)
    judges: list[Judge] = field(default_factory=list)
    _started: set[tuple[int, str]] = field(default_factory=set)

    def follow(self, judge: Judge) -> None:
        """Log the judge's commits, and take its state for that of the effects to come."""
        self.judges.append(judge)
        self.events.extend(judge.history)
        judge.on_commit(self.events.append)

    def restarted(self) -> None:
        """A new harness runs the same open session: calls that are safe to replay may start once more."""
        self._started.clear()

    def provider(self, model: Model, request: ModelRequest) -> None:
        """A provider request starts."""
        free = self._open("provider")
        scored = [(self._request_differences(self.judges[at], intent, request), at, intent) for at, intent in free]
        if not scored:
            self.events.append(EffectStarted(kind="provider", name=model.model_id, intent=None))
            return
        found, position, intent = min(scored, key=lambda one: len(one[0]))
        self._take("provider", model.model_id, position, intent, found)

    def tool(self, name: str, tool_call_id: str, arguments: JsonObject) -> None:
        """A tool call starts with these effective arguments."""
        for position, intent in self._open("tool"):
            if intent.tool_call == tool_call_id:
                wanted: Any = {} if intent.arguments is UNSET else intent.arguments
                self._take("tool", name, position, intent, differences(wanted, arguments, "arguments"))
                return
        self.events.append(EffectStarted(kind="tool", name=name, intent=None))

    def timer(self, delay_ms: int) -> None:
        """A timer starts."""
        for position, intent in self._open("timer"):
            self._take("timer", f"{delay_ms} ms", position, intent, ())
            return
        self.events.append(EffectStarted(kind="timer", name=f"{delay_ms} ms", intent=None))

    def hook(self, name: str) -> None:
        """A hook starts; hooks have no intent (§0.3), so only their place in the order is kept."""
        self.events.append(EffectStarted(kind="hook", name=name, intent=None))

    def _open(self, kind: EffectKind) -> Iterator[tuple[int, Intent]]:
        """The intents of that kind that no effect has used, each with the position of its judge; the latest first."""
        for position in reversed(range(len(self.judges))):
            for view in lanes_of(self.judges[position].state):
                for intent in _intents(view):
                    if intent.kind == kind and (position, intent.id) not in self._started:
                        yield position, intent

    def _take(self, kind: EffectKind, name: str, position: int, intent: Intent, found: tuple[str, ...]) -> None:
        if kind != "timer":  # one wait may be slept through in several parts
            self._started.add((position, intent.id))
        self.events.append(EffectStarted(kind=kind, name=name, intent=intent, differences=found))

    def _request_differences(self, judge: Judge, intent: Intent, request: ModelRequest) -> tuple[str, ...]:
        if not intent.projected:
            return ()
        return _message_differences(judge.state, intent.lane, request.messages, self.projectors)


def check_sandwich(log: EffectLog) -> None:
    """Every provider request, tool call and timer started under a durable intent of its own, tools with its arguments.

    Raises:
        EffectOutOfOrder: names the effect and the last commit before it.
    """
    last = "no commit"
    for event in log.events:
        match event:
            case Judged():
                last = event.name
            case EffectStarted(kind="hook"):
                pass
            case EffectStarted():
                if event.intent is None:
                    reason = "started without a durable intent that no other effect had used"
                    raise EffectOutOfOrder(f"{event.kind} {event.name} {reason}; the last commit was {last} (§0.3)")
                if event.kind == "tool" and event.differences:
                    found = "\n  - ".join((f"tool {event.name} ran with other arguments (§3.8)", *event.differences))
                    raise EffectOutOfOrder(found)


def check_requests(log: EffectLog) -> None:
    """Every request of an assistant step carried the context that the model projects at its lane's leaf (§2.5).

    Not for sessions with a hook that rewrites the context.

    Raises:
        RequestDiffers: names the first request that differs, and where.
    """
    for event in log.events:
        if isinstance(event, EffectStarted) and event.kind == "provider" and event.differences:
            lane = None if event.intent is None else event.intent.lane
            raise RequestDiffers("\n  - ".join((f"a request of lane {lane} to {event.name}", *event.differences)))


def check_request_messages(
    judge: Judge, request: ModelRequest, *, lane: str = "main", projectors: Mapping[str, Projector] | None = None
) -> None:
    """The request carries the messages that the model projects at the lane's leaf in the judge's state (§2.5).

    Raises:
        RequestDiffers: says where they differ.
    """
    found = _message_differences(judge.state, lane, request.messages, projectors or {})
    if found:
        raise RequestDiffers("\n  - ".join((f"a request of lane {lane}", *found)))


def _message_differences(
    state: State, lane: str, messages: list[AgentMessage], projectors: Mapping[str, Projector]
) -> tuple[str, ...]:
    leaf = state.value(Namespace.LANE_LEAF, lane)
    assert leaf is None or isinstance(leaf, str)
    return differences([*project(state, leaf, projectors)], [*messages], "messages")


def _intents(view: View) -> Iterator[Intent]:
    """Every effect that the lane's operation state allows to start."""
    try:
        if view.lane_state.current_operation_id is None:
            return
        held = view.operation_state
    except NotThis:
        return
    match held:
        case RunState(phase=AssistantPhase(generation=GenerationPending() as pending)):
            yield Intent(kind="provider", lane=view.lane, id=pending.response_entry_id, projected=True)
        case RunState(phase=AssistantPhase(generation=GenerationRetryWait() as wait)):
            yield Intent(kind="timer", lane=view.lane, id=f"{wait.context.step_id}:{wait.next_attempt}")
        case RunState(phase=DeferredPhase(deferred=DeferredPending() as poll)):
            yield Intent(kind="provider", lane=view.lane, id=poll.response_entry_id)
        case RunState(phase=ToolsPhase()):
            yield from _tool_intents(view)
        case RunState(phase=CompactionPhase(structural=Generating() as generating)):
            yield from _summary_intents(view, generating)
        case CompactionState(structural=Generating() as generating):
            yield from _summary_intents(view, generating)
        case NavigationState(phase=SummaryPhase(structural=Generating() as generating)):
            yield from _summary_intents(view, generating)
        case _:
            return


def _summary_intents(view: View, generating: Generating) -> Iterator[Intent]:
    match generating.generation:
        case SummaryPending(request=request) if request is not UNSET:
            yield Intent(kind="provider", lane=view.lane, id=request.usage_id)
        case SummaryRetryWait() as wait:
            yield Intent(kind="timer", lane=view.lane, id=f"{wait.context.task_id}:{wait.next_attempt}")
        case _:
            return


def _tool_intents(view: View) -> Iterator[Intent]:
    batch = view.batch
    calls = {call.source_index: call.id for call in source_calls(view.message(batch.assistant_entry_id))}
    for call in batch.calls:
        if isinstance(call, PendingCall):
            key = f"{view.operation_id}:{batch.turn_id}:{call.source_index}"
            yield Intent(
                kind="tool",
                lane=view.lane,
                id=call.result_entry_id,
                tool_call=calls.get(call.source_index),
                arguments=view.state.value(Namespace.OP_TOOL_ARGS, key),
            )
