"""Walks of a session through the transitions of the model, each step seen as a stranger would see it."""

from dataclasses import dataclass, field, replace

from restartpoint_reference import (
    ALIKE,
    Commit,
    Explained,
    Json,
    JsonObject,
    State,
    Transition,
    apply,
    explain,
    invariants,
)
from restartpoint_reference.transitions.frame import Inputs, Nothing
from restartpoint_reference.vocabulary.entries import InsertEntry
from restartpoint_reference.vocabulary.messages import zero_usage

NOTHING = Nothing()


def uid(time: int, tail: int) -> str:
    """A UUIDv7 minted at this time (Unix ms) with this tail."""
    prefix = f"{time:012x}"
    return f"{prefix[:8]}-{prefix[8:]}-7000-8000-{tail:012x}"


def usage(**counts: int) -> JsonObject:
    """Usage with these counts, the rest zero."""
    return {**zero_usage(), **counts}


def user(text: str, timestamp: int = 1) -> JsonObject:
    return {"role": "user", "content": [{"type": "text", "text": text}], "timestamp": timestamp}


def call(id: str, name: str) -> JsonObject:
    return {"type": "toolCall", "id": id, "name": name, "arguments": {"path": id}}


def assistant(*blocks: JsonObject, stop: str = "stop", error: str | None = None, output: int = 7) -> JsonObject:
    message: JsonObject = {
        "role": "assistant",
        "content": [*blocks],
        "api": "scripted",
        "provider": "acme",
        "model": "m-1",
        "usage": usage(input=10, output=output, totalTokens=10 + output),
        "stopReason": stop,
        "timestamp": 5,
    }
    return message if error is None else {**message, "errorMessage": error}


def text(words: str) -> JsonObject:
    return {"type": "text", "text": words}


def result(id: str, name: str, words: str = "done", *, error: bool = False) -> JsonObject:
    return {
        "role": "toolResult",
        "toolCallId": id,
        "toolName": name,
        "content": [text(words)],
        "isError": error,
        "timestamp": 6,
    }


@dataclass(frozen=True, kw_only=True)
class Step:
    """One commit: the state before it, what it was, and its JSONL elements."""

    before: State
    commit: Commit
    inputs: Inputs
    elements: list[Json]


@dataclass
class Walk:
    """A session that is led through transitions; every commit is explained back and every state is sound."""

    state: State = field(default_factory=State.empty)
    steps: list[Step] = field(default_factory=list)
    lane: str = "main"

    def take(self, transition: Transition, inputs: Inputs = NOTHING) -> Commit:
        """Make the commit of this transition; fails unless it is explained by this name and these inputs."""
        commit = transition(self.state, self.lane if transition.takes_lane else None, inputs)
        assert isinstance(commit, Commit), commit
        now = 1000 + self.state.next_seq
        elements = as_elements(commit, self.state.next_seq, now)
        explained = explain(self.state, elements, now)
        assert isinstance(explained, Explained), str(explained)
        assert explained.lane == commit.lane
        if frozenset({explained.name, commit.name}) not in ALIKE:
            assert (explained.name, explained.inputs) == (commit.name, inputs)
        applied = apply(self.state, commit.writes, timestamp=now)
        assert isinstance(applied, tuple), applied
        self.steps.append(Step(before=self.state, commit=commit, inputs=inputs, elements=elements))
        self.state, delta = applied
        assert invariants.check(self.state) == ()
        assert invariants.check_commit(self.state, delta) == ()
        return commit

    @property
    def names(self) -> list[str]:
        return [step.commit.name for step in self.steps]

    def fork(self) -> "Walk":
        """Another walk that starts where this one stands."""
        return replace(self, steps=[])


def as_elements(commit: Commit, first_seq: int, timestamp: int) -> list[Json]:
    """The commit's JSONL elements as a storage would have written them."""
    made: list[Json] = []
    for seq, write in enumerate(commit.writes, start=first_seq):
        element: JsonObject = {**write.to_json(), "seq": seq}
        made.append({**element, "timestamp": timestamp} if isinstance(write, InsertEntry) else element)
    return made
