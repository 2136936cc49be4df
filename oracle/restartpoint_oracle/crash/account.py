"""What a finished session comes to, told by the steps of its script instead of by ids and times."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import cast

from restartpoint_oracle.crash.chronicle import Chronicle, Committed, Reopened, Requested, ToolStarted
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.wire import Json, JsonObject

__all__ = ["Account", "Placed", "StepAccount", "account_of"]

_SYNTHETIC = frozenset({"interrupt_tool", "recover_exhausted_assistant"})


@dataclass(frozen=True, kw_only=True)
class Placed:
    """An entry as a step placed it: what it says, its ledger rows, and how it got there.

    ``uncertain``: it settles an effect of which a crash had left only the intent. ``call`` is the tool call it answers.
    """

    says: JsonObject
    rows: list[Json]
    way: str
    uncertain: bool
    call: str | None = None
    tool: str | None = None

    @property
    def is_synthetic(self) -> bool:
        """It stands where a result would be whose effect nobody can know."""
        return self.way in _SYNTHETIC

    @property
    def ends_the_run(self) -> bool:
        """A tool result that asks to end the run."""
        return self.says.get("terminate") is True


@dataclass(frozen=True, kw_only=True)
class StepAccount:
    """What one step left behind. ``ended`` is its last transition; rows of no entry are ``other_rows``."""

    words: str
    entries: list[Placed]
    other_rows: list[Json]
    ended: str
    follows: int | None
    """The step at whose entry the first entry hangs."""
    started: Counter[tuple[str, str]]
    """How often each tool call started, by tool and call id."""
    requests: int


@dataclass(frozen=True, kw_only=True)
class Account:
    """A finished session. ``lanes`` and ``facts`` name entries by their place in the steps; ``stats`` is the total."""

    steps: list[StepAccount]
    lanes: dict[str, JsonObject]
    latest: dict[str, int | None]
    """The step that started each lane's open operation, else that of its last result."""
    facts: JsonObject
    stats: Json
    unsafe: frozenset[str]
    """The tools that must not run twice."""
    crashes: int
    reacts: bool


def account_of(run: Run) -> Account:
    """The account of a run whose last process finished."""
    return _Reading(run).account()


class _Reading:
    def __init__(self, run: Run) -> None:
        self._run = run
        self._chronicle: Chronicle = run.chronicle
        self._commits = self._chronicle.all(Committed)
        self._by_entry = {entry: commit for commit in self._commits for entry in commit.entries}
        content = run.content
        self._entries = cast("list[JsonObject]", content["entries"])
        self._rows = cast("list[JsonObject]", content["usage"])
        self._registers = cast("list[JsonObject]", content["registers"])
        self._uncertain = {key for event in self._chronicle.all(Reopened) for key in event.uncertain}
        self._of_step: dict[int | None, list[str]] = {}
        for entry in self._entries:
            made = self._by_entry.get(str(entry["id"]))
            self._of_step.setdefault(None if made is None else made.step, []).append(str(entry["id"]))

    def account(self) -> Account:
        scenario = self._run.scenario
        return Account(
            steps=[self._step(number, step.words) for number, step in enumerate(scenario.steps())],
            lanes={lane: self._lane(lane, state) for lane, state in self._all("lane.state")},
            latest={lane: self._latest(lane, state) for lane, state in self._all("lane.state")},
            facts=self._facts(),
            stats=self._run.content["stats"],
            unsafe=frozenset(tool.name for tool in scenario.tools() if tool.replay == "never"),
            crashes=self._chronicle.crashes,
            reacts=scenario.reacts,
        )

    def _step(self, number: int, words: str) -> StepAccount:
        mine = [commit for commit in self._commits if commit.step == number]
        placed = self._of_step.get(number, [])
        usage = {row for commit in mine for row in commit.usage}
        started = Counter(
            (event.tool, event.call) for event in self._chronicle.all(ToolStarted) if event.step == number
        )
        return StepAccount(
            words=words,
            entries=[self._placed(entry) for entry in self._entries if entry["id"] in placed],
            other_rows=[
                self._row(row) for row in self._rows if row["id"] in usage and row.get("entryId") not in placed
            ],
            ended=mine[-1].transition if mine else "nothing",
            follows=self._step_before(placed[0]) if placed else None,
            started=started,
            requests=sum(event.step == number for event in self._chronicle.all(Requested)),
        )

    def _placed(self, entry: JsonObject) -> Placed:
        entry_id, message = str(entry["id"]), entry.get("message")
        says = {key: value for key, value in entry.items() if key not in ("id", "parentId", "seq", "timestamp")}
        says = {"after": self._before(entry), **says}
        call = tool = None
        if isinstance(message, dict):
            says["message"] = {key: value for key, value in message.items() if key != "timestamp"}
            if message.get("role") == "toolResult":
                call, tool = str(message.get("toolCallId")), str(message.get("toolName"))
        return Placed(
            says=says,
            rows=[self._row(row) for row in self._rows if row.get("entryId") == entry_id],
            way=self._by_entry[entry_id].way,
            uncertain=entry_id in self._uncertain,
            call=call,
            tool=tool,
        )

    def _before(self, entry: JsonObject) -> str:
        """Where the entry hangs: at the one before it in its step, or elsewhere."""
        entry_id, parent = str(entry["id"]), entry["parentId"]
        mine = self._of_step[self._by_entry[entry_id].step]
        position = mine.index(entry_id)
        if position and mine[position - 1] == parent:
            return "the entry before"
        return self._place(parent)

    def _step_before(self, id: str) -> int | None:
        parent = next(entry["parentId"] for entry in self._entries if entry["id"] == id)
        return self._by_entry[parent].step if isinstance(parent, str) and parent in self._by_entry else None

    def _place(self, id: Json) -> str:
        """An entry by its step; the last one of a step is its end, however many are before it."""
        if id is None:
            return "the root"
        for step, entries in self._of_step.items():
            if id in entries:
                position = entries.index(str(id)) + 1
                return f"the end of step {step}" if position == len(entries) else f"entry {position} of step {step}"
        return f"unknown entry {id}"

    def _row(self, row: JsonObject) -> JsonObject:
        kept = {key: value for key, value in row.items() if key not in ("id", "seq", "entryId")}
        return {**kept, "of": self._place(row["entryId"])} if "entryId" in row else kept

    def _latest(self, lane: str, state: Json) -> int | None:
        result = dict(self._all("lane.lastResult")).get(lane)
        assert isinstance(state, dict)
        ended = result.get("operationId") if isinstance(result, dict) else None
        return self._chronicle.step_of_operation(str(state["currentOperationId"] or ended))

    def _lane(self, lane: str, state: Json) -> JsonObject:
        assert isinstance(state, dict)
        result = dict(self._all("lane.lastResult")).get(lane)
        pending = dict(self._all("pending.entry"))
        open_id = state["currentOperationId"]
        queued = state["pendingNextRun"]
        assert isinstance(queued, list)
        return {
            "leaf": self._place(dict(self._all("lane.leaf"))[lane]),
            "configuration": dict(self._all("lane.config")).get(lane),
            "last result": self._result(result) if isinstance(result, dict) else None,
            "waiting for the next run": [pending.get(str(key)) for key in queued],
            "open operation": None if open_id is None else self._operation(str(open_id)),
        }

    def _result(self, result: JsonObject) -> JsonObject:
        places: JsonObject = {
            key: self._place(result[key]) for key in ("leafId", "finalAssistantEntryId") if key in result
        }
        return {**{key: value for key, value in result.items() if key != "operationId"}, **places}

    def _operation(self, operation_id: str) -> JsonObject:
        state = dict(self._all("op.state")).get(operation_id)
        phase = state.get("phase") if isinstance(state, dict) else None
        kind = phase.get("kind") if isinstance(phase, dict) else None
        return {"phase": kind, "registers": sum(operation_id in key for key in self._owned())}

    def _owned(self) -> list[str]:
        namespaces = ("op.meta", "op.state", "op.tool_args", "op.preparation")
        return [key for namespace in namespaces for key, _ in self._all(namespace)]

    def _facts(self) -> JsonObject:
        facts: JsonObject = {f"label of {self._place(key)}": value for key, value in self._all("fact.label")}
        facts.update((f"fact {key}", value) for key, value in self._all("fact.custom"))
        facts.update(("name", value) for _, value in self._all("fact.name"))
        open_ids = [str(state["currentOperationId"]) for _, state in self._all("lane.state") if isinstance(state, dict)]
        leaked = [key for key in self._owned() if not any(open_id in key for open_id in open_ids)]
        by_steps = {row for commit in self._commits if commit.step is not None for row in commit.usage}
        facts["registers of ended operations"] = len(leaked)
        facts["entries of no step"] = len(self._of_step.get(None, []))
        facts["ledger rows of no step"] = sum(row["id"] not in by_steps for row in self._rows)
        facts["queued content"] = len(self._all("pending.entry"))
        return facts

    def _all(self, namespace: str) -> list[tuple[str, Json]]:
        return [(str(one["key"]), one["value"]) for one in self._registers if one["namespace"] == namespace]
