"""A commit in words, told from what it writes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from restartpoint.cli.demonstration.commits import Wire

__all__ = ["phrases", "write_names"]


def phrases(commits: Iterable[Sequence[Wire]]) -> list[str]:
    """What each of the commits means, given the ones before it."""
    told: list[str] = []
    tools: dict[int, str] = {}
    for writes in commits:
        for entry in (write for write in writes if write["kind"] == "entry"):
            if entry["message"]["role"] == "assistant":
                blocks = enumerate(entry["message"]["content"])
                tools = {index: block["name"] for index, block in blocks if block["type"] == "toolCall"}
        told.append(_phrase(writes, tools))
    return told


def _phrase(writes: Sequence[Wire], tools: Mapping[int, str]) -> str:
    values = {write["namespace"]: write.get("value") for write in writes if write.get("op") == "set"}
    entries = [write for write in writes if write["kind"] == "entry"]
    state = values.get("op.state")
    if (result := values.get("lane.lastResult")) is not None:
        return f"the {result['kind']} ends: {result['outcome']}"
    if "op.meta" in values:
        return "the prompt is accepted"
    if "op.tool_args" in values and state is not None:
        return _intended_call(state, tools)
    if entries and state is not None:
        return _settled(entries[-1], state)
    if state is not None:
        return _step(state)
    if values.keys() == {"lane.config"}:
        return "the lane gets its configuration"
    if values.keys() == {"lane.leaf", "lane.state"}:
        return "the session is created"
    return "something else"


def _intended_call(state: Wire, tools: Mapping[int, str]) -> str:
    pending = [call for call in state["phase"]["batch"]["calls"] if call["status"] == "effect_pending"]
    return f"{tools[pending[-1]['sourceIndex']]} is about to run, replay {pending[-1]['replay']}"


def _settled(entry: Wire, state: Wire) -> str:
    message = entry["message"]
    if message["role"] == "toolResult":
        failed = " as an error" if message["isError"] else ""
        return f"the result of {message['toolName']} is recorded{failed}"
    match state["phase"]["kind"]:
        case "tools":
            calls = len(state["phase"]["batch"]["calls"])
            return f"the answer is recorded, with its cost and a plan of {calls} calls"
        case "failure_drain":
            return "an error stands in for the answer"
        case _:
            return "the answer is recorded, with its cost"


def _step(state: Wire) -> str:
    phase = state["phase"]
    if phase["kind"] != "assistant":
        return f"the run is at {phase['kind']}"
    if phase["generation"]["status"] == "effect_pending":
        return "the model is about to be asked"
    return "a request is prepared"


def write_names(writes: Sequence[Wire]) -> str:
    """What the commit writes, in order; deletions with a minus."""
    names = Counter(_name(write) for write in writes)
    return " ".join(name if count == 1 else f"{name}({count})" for name, count in names.items())


def _name(write: Wire) -> str:
    if write["kind"] != "register":
        return str(write["kind"])
    return f"-{write['namespace']}" if write["op"] == "delete" else str(write["namespace"])
