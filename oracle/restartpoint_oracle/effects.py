"""When effects start, interleaved with the commits: no effect before its intent, no next one before settlement (§0.3).

An ``EffectLog`` follows judges. Whoever starts an effect tells it, in the step in which the effect starts; the log asks
the model's state at that moment which durable intent allows it. Since an intent is a reserved id inside ``op.state``,
which only settlement or recovery replaces, an effect of a next phase can show no intent of its own before that.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from restartpoint.contract import AgentMessage, JsonObject, Model, ModelRequest
from restartpoint_oracle.errors import EffectOutOfOrder, RequestDiffers
from restartpoint_oracle.intents import EffectKind, Intent, intents_of
from restartpoint_oracle.judge import Judge, Judged, lanes_of
from restartpoint_reference import UNSET, EntryType, Namespace, Projector, State, differences, project

__all__ = [
    "EffectLog", "EffectStarted", "WrongSettlement", "check_growth", "check_request_messages", "check_requests",
    "check_sandwich",
]  # fmt: skip

RAN: Final = frozenset({
    "settle_tool_calls", "settle_overflow", "settle_unpreparable_overflow", "settle_deferred",
    "settle_invalid_deferred", "settle_stop", "settle_cancelled", "settle_tool", "settle_cancelled_tool",
    "settle_poll_pending", "settle_poll_mismatch", "settle_poll_tool_calls", "settle_poll_ready",
})  # fmt: skip
"""Settlements with a result that only the effect itself can have given.

An error need not come from the effect: a model that is gone after the intent settles as a failure too (§3.7).
"""

NEVER_RAN: Final = frozenset({"refuse_tool", "refuse_truncated_tool", "cancel_planned_tool", "cancel_refused_tool"})
"""Settlements of calls that must not have started (§3.8, §4.6)."""


@dataclass(frozen=True, kw_only=True)
class EffectStarted:
    """An effect that started, the intent that allows it (None: there is none), and what differs from it.

    ``inserted`` says where a request's messages depart from those of its lane's previous one before their end, though
    neither a compaction nor a navigation came between.
    """

    kind: EffectKind
    name: str
    intent: Intent | None
    differences: tuple[str, ...] = ()
    inserted: tuple[str, ...] = ()


@dataclass(frozen=True)
class WrongSettlement:
    """The commit before it settles an effect as run that did not start, or as never run one that did."""

    reason: str


@dataclass(frozen=True, kw_only=True)
class _Sent:
    """The messages of a lane's latest request, and the leaf at which they were projected."""

    leaf: str | None
    messages: tuple[AgentMessage, ...]


@dataclass
class EffectLog:
    """Effects and commits in the order in which they happened; ``judges`` are those that it follows."""

    projectors: Mapping[str, Projector] = field(default_factory=dict)
    events: list[EffectStarted | Judged | WrongSettlement] = field(default_factory=list)
    judges: list[Judge] = field(default_factory=list)
    _started: set[tuple[int, str]] = field(default_factory=set)
    _sent: dict[tuple[int, str], _Sent] = field(default_factory=dict)

    def follow(self, judge: Judge) -> None:
        """Log the judge's commits, and take its state for that of the effects to come."""
        position = len(self.judges)
        self.judges.append(judge)
        self.events.extend(judge.history)
        judge.on_commit(lambda commit: self._committed(position, commit))

    def restarted(self) -> None:
        """A new harness runs the same open session: calls that are safe to replay may start once more."""
        self._started.clear()
        for judge in self.judges:
            judge.attached()

    def provider(self, model: Model, request: ModelRequest) -> None:
        """A provider request starts."""
        free = self._open("provider")
        scored = [(self._request_differences(self.judges[at], intent, request), at, intent) for at, intent in free]
        if not scored:
            self.events.append(EffectStarted(kind="provider", name=model.model_id, intent=None))
            return
        found, position, intent = min(scored, key=lambda one: len(one[0]))
        inserted = self._inserted(position, intent, request) if intent.projected else ()
        self._take("provider", model.model_id, position, intent, found, inserted)

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
                for intent in intents_of(view):
                    if intent.kind == kind and (position, intent.id) not in self._started:
                        yield position, intent

    def _committed(self, position: int, commit: Judged) -> None:
        """Hold a settlement to the starts before it; one that completes a batch is named in its detail."""
        self.events.append(commit)
        kind, settled = commit.detail or commit.name, commit.inserted[:1]
        started = any((position, key) in self._started for key in settled)
        if (kind in RAN and not started) or (kind in NEVER_RAN and started):
            what = "had started" if started else "never started"
            self.events.append(WrongSettlement(f"{kind} settles {settled}, whose effect {what} (§{commit.section})"))

    def _inserted(self, position: int, intent: Intent, request: ModelRequest) -> tuple[str, ...]:
        """Where the lane's previous request is not the head of this one, if it had to be (§2.5)."""
        state, lane = self.judges[position].state, (position, intent.lane)
        leaf = _leaf(state, intent.lane)
        before, self._sent[lane] = self._sent.get(lane), _Sent(leaf=leaf, messages=tuple(request.messages))
        if before is None or not _is_continued(state, before.leaf, leaf):
            return ()
        head = request.messages[: len(before.messages)]
        return differences([*before.messages], [*head], "messages")

    def _take(
        self,
        kind: EffectKind,
        name: str,
        position: int,
        intent: Intent,
        found: tuple[str, ...],
        inserted: tuple[str, ...] = (),
    ) -> None:
        if kind != "timer":  # one wait may be slept through in several parts
            self._started.add((position, intent.id))
        self.events.append(EffectStarted(kind=kind, name=name, intent=intent, differences=found, inserted=inserted))

    def _request_differences(self, judge: Judge, intent: Intent, request: ModelRequest) -> tuple[str, ...]:
        if not intent.projected:
            return ()
        return _message_differences(judge.state, intent.lane, request.messages, self.projectors)


def check_sandwich(log: EffectLog) -> None:
    """Every effect started under a durable intent of its own, tools with its arguments; what settles as run did run.

    A call that was refused, blocked or cut off never started.

    Raises:
        EffectOutOfOrder: names the effect and the last commit before it, or the settlement.
    """
    last = "no commit"
    for event in log.events:
        match event:
            case Judged():
                last = event.name
            case WrongSettlement():
                raise EffectOutOfOrder(event.reason)
            case EffectStarted(kind="hook"):
                pass
            case EffectStarted(intent=None):
                reason = "started without a durable intent that no other effect had used"
                raise EffectOutOfOrder(f"{event.kind} {event.name} {reason}; the last commit was {last} (§0.3)")
            case EffectStarted(kind="tool", differences=found) if found:
                head = f"tool {event.name} ran with other arguments (§3.8)"
                raise EffectOutOfOrder("\n  - ".join((head, *found)))
            case EffectStarted():
                pass


def check_growth(log: EffectLog) -> None:
    """The requests of a lane only grow at the tail, except across a compaction or a navigation (§2.5).

    Not for sessions with a hook that rewrites the context.

    Raises:
        RequestDiffers: names the first request that does not, and where.
    """
    for event in log.events:
        if isinstance(event, EffectStarted) and event.inserted:
            lane = None if event.intent is None else event.intent.lane
            head = f"a request of lane {lane} to {event.name} does not begin with the one before it (§2.5)"
            raise RequestDiffers("\n  - ".join((head, *event.inserted)))


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
    return differences([*project(state, _leaf(state, lane), projectors)], [*messages], "messages")


def _leaf(state: State, lane: str) -> str | None:
    leaf = state.value(Namespace.LANE_LEAF, lane)
    assert leaf is None or isinstance(leaf, str)
    return leaf


def _is_continued(state: State, before: str | None, leaf: str | None) -> bool:
    """Whether the path from the leaf leads back to the earlier leaf, and no compaction lies between."""
    while leaf is not None and leaf != before:
        entry = state.entries[leaf]
        if entry.type is EntryType.COMPACTION:
            return False
        leaf = entry.parent_id
    return leaf == before
