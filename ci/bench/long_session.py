"""A long session of many kinds of commits, made by the model itself (§3)."""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count

from restartpoint_reference import TRANSITIONS, Commit, InsertEntry, Json, JsonObject, Namespace, State, apply
from restartpoint_reference.transitions.acceptance import AcceptRun, NewMessage
from restartpoint_reference.transitions.facts import RecordUsage, SetFact
from restartpoint_reference.transitions.frame import Inputs, Nothing, View
from restartpoint_reference.transitions.generation import IntendAssistant, StartGeneration
from restartpoint_reference.transitions.queues import IdleWrite, QueuedMessage
from restartpoint_reference.transitions.session import Configuration, CreateLane
from restartpoint_reference.transitions.settlement import Response, SettleRetryable, SettleToolCalls
from restartpoint_reference.transitions.tools import IntendTool, ToolResult
from restartpoint_reference.vocabulary.messages import zero_usage
from restartpoint_reference.vocabulary.registers import CompactionSettings, LaneConfiguration, ModelIdentity
from restartpoint_reference.vocabulary.states import QueueMode, Replay, RetryPolicy, RunSettings, ToolExecution

__all__ = ["ObservedCommit", "Tail", "long_session"]

NOTHING = Nothing()
CONFIGURATION = LaneConfiguration(
    model=ModelIdentity(provider="acme", model_id="m-1"), thinking_level="off", active_tool_names=("read", "write")
)
SETTINGS = RunSettings(
    compaction=CompactionSettings(enabled=True, reserve_tokens=16_384, keep_recent_tokens=20_000),
    steering_mode=QueueMode.ALL,
    follow_up_mode=QueueMode.ONE_AT_A_TIME,
    tool_execution=ToolExecution.PARALLEL,
)
START = StartGeneration(
    step_id="", stream_options={"maxTokens": 4096}, retry_policy=RetryPolicy(max_attempts=3, base_delay_ms=2000)
)
LONGEST_TURN = 30
"""More commits than one turn makes."""
LANES = ("main", "side-1", "side-2")
WORDS = "What changed in the sign-in flow since the last release, and who reviewed it? " * 3


@dataclass(frozen=True, kw_only=True)
class ObservedCommit:
    """One commit as a storage told it: its elements (§1.7), their sequence numbers, and its time."""

    elements: list[Json]
    seqs: tuple[int, ...]
    timestamp: int


@dataclass(frozen=True, kw_only=True)
class Tail:
    """The last commits of a session, and what leads to them from a state in which no operation is open."""

    before: State
    lead: tuple[ObservedCommit, ...]
    commits: tuple[ObservedCommit, ...]


def long_session(length: int, last: int) -> Tail:
    """The last commits of a session that has so many, written by three lanes in turn."""
    author = _Author(last)
    author.take("create_session")
    author.take("seed_main", Configuration(configuration=CONFIGURATION))
    for author.lane in LANES[1:]:
        author.take("create_lane", CreateLane(configuration=CONFIGURATION, anchor=None))
    for number in count():
        author.lane = LANES[number % len(LANES)]
        for _ in _turn(author):
            if author.taken == length:
                return author.tail()
    raise AssertionError("a session never ends by itself")


class _Author:
    """Makes one legal commit after another and remembers the last ones."""

    def __init__(self, last: int) -> None:
        self._length_of_tail = last
        self.state = State.empty()
        self.lane = "main"
        self.taken = 0
        self._minted = 0
        self._last: deque[tuple[State, ObservedCommit]] = deque(maxlen=last + LONGEST_TURN)

    def id(self, leader: str | None = None) -> str:
        """A new UUIDv7, with the time of its leader if it has one."""
        self._minted += 1
        time = f"{1_700_000_000_000 + self.taken:012x}"
        head = f"{time[:8]}-{time[8:]}-7000-8000-" if leader is None else leader[:24]
        return f"{head}{self._minted:012x}"

    def take(self, name: str, inputs: Inputs = NOTHING) -> None:
        """Make the commit of this transition."""
        now = 1_700_000_000_000 + self.taken
        transition = TRANSITIONS[name]
        commit = transition(self.state, self.lane if transition.takes_lane else None, inputs)
        assert isinstance(commit, Commit), commit
        first = self.state.next_seq
        applied = apply(self.state, commit.writes, timestamp=now)
        assert isinstance(applied, tuple), applied
        elements: list[Json] = []
        for seq, write in enumerate(commit.writes, start=first):
            stamp: JsonObject = {"timestamp": now} if isinstance(write, InsertEntry) else {}
            elements.append({**write.to_json(), "seq": seq, **stamp})
        text = json.dumps(elements)  # read anew, as from a file: nothing of the author's is shared
        seen = ObservedCommit(elements=json.loads(text), seqs=applied[1].seqs, timestamp=now)
        self._last.append((self.state, seen))
        self.state = applied[0]
        self.taken += 1

    def tail(self) -> Tail:
        """What was remembered."""
        at = next(at for at, (state, _) in enumerate(self._last) if not state.namespaces[Namespace.OP_META])
        commits = tuple(seen for _, seen in list(self._last)[at:])
        lead = len(commits) - self._length_of_tail
        return Tail(before=self._last[at][0], lead=commits[:lead], commits=commits[lead:])


def _turn(author: _Author) -> Iterator[None]:
    """A run with overlapping tools and a repeated request, and what else a caller does; stops at each commit."""
    steps: list[tuple[str, Callable[[], Inputs]]] = [
        ("write_idle", lambda: IdleWrite(id=author.id(), custom_type="note", data={"n": author.taken})),
        (
            "set_fact",
            lambda: SetFact(namespace=Namespace.FACT_CUSTOM, key=f"k{author.taken % 100}", value=author.taken),
        ),
        ("enqueue_next_run", lambda: QueuedMessage(id=author.id(), message=_user())),
        ("accept_run", lambda: _accepted(author)),
        *_request(author),
        ("settle_retryable", lambda: SettleRetryable(response=_error(), not_before=2_000_000_000_000)),
        ("end_retry_wait", Nothing),
        ("intend_assistant", lambda: _intended(author)),
        ("settle_tool_calls", lambda: _called(author)),
        ("intend_tool", lambda: IntendTool(source_index=1, arguments={"path": WORDS[:40]}, replay=Replay.SAFE)),
        ("intend_tool", lambda: IntendTool(source_index=2, arguments={"path": WORDS[:20]}, replay=Replay.NEVER)),
        ("settle_tool", lambda: ToolResult(message=_result("t1", "read"), usage_id=author.id(), usage=_usage())),
        ("complete_batch", lambda: ToolResult(message=_result("t2", "write"))),
        *_request(author),
        ("record_usage", lambda: RecordUsage(id=author.id(), usage=_usage())),
        ("settle_stop", lambda: Response(response=_assistant("stop"))),
        ("finish_run", Nothing),
    ]
    for name, inputs in steps:
        author.take(name, inputs())
        yield


def _accepted(author: _Author) -> AcceptRun:
    prompts = (NewMessage(id=author.id(), message=_user()),)
    return AcceptRun(
        operation_id=author.id(), started_at=author.taken, captured=1, prompts=prompts, injected=(), settings=SETTINGS
    )


def _request(author: _Author) -> list[tuple[str, Callable[[], Inputs]]]:
    return [
        ("start_generation", lambda: replace(START, step_id=author.id())),
        ("intend_assistant", lambda: _intended(author)),
    ]


def _intended(author: _Author) -> IntendAssistant:
    return IntendAssistant(
        response_entry_id=author.id(), usage_id=author.id(), intended_output_limit=4096, context_window=200_000
    )


def _called(author: _Author) -> SettleToolCalls:
    leader = View(author.state, author.lane).pending.response_entry_id
    calls: list[Json] = [
        {"type": "toolCall", "id": call, "name": name, "arguments": {"path": WORDS[:20]}}
        for call, name in (("t1", "read"), ("t2", "write"))
    ]
    response = _assistant("toolUse", *calls)
    return SettleToolCalls(response=response, result_ids=(author.id(leader), author.id(leader)))


def _text() -> JsonObject:
    return {"type": "text", "text": WORDS}


def _user() -> JsonObject:
    return {"role": "user", "content": [_text()], "timestamp": 1}


def _usage() -> JsonObject:
    return {**zero_usage(), "input": 1200, "output": 70, "totalTokens": 1270}


def _assistant(stop: str, *calls: Json) -> JsonObject:
    head: JsonObject = {"role": "assistant", "content": [_text(), *calls], "api": "scripted", "provider": "acme"}
    return {**head, "model": "m-1", "usage": _usage(), "stopReason": stop, "timestamp": 5}


def _error() -> JsonObject:
    return {**_assistant("error"), "content": [], "errorMessage": "overloaded"}


def _result(id: str, name: str) -> JsonObject:
    head: JsonObject = {"role": "toolResult", "toolCallId": id, "toolName": name, "content": [_text()]}
    return {**head, "isError": False, "timestamp": 6}
