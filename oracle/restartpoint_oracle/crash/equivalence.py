"""When a run that crashed comes to the same as one that did not: everything that may differ stands here (§0.3, §4.5).

Ids, sequence numbers and times differ always, and so do the order of commits of different lanes, the number of attempts
and the ids that an abandoned attempt had reserved. Beyond that, only effects whose outcome a crash left unknown:

1. A tool call that must not run again may be answered with a synthetic interrupted result. It then reports no usage and
   does not end the run, so that a run which would have ended with it goes on. Where the model is said to react to
   interrupted results, whatever follows one in its run is not compared.
2. A tool call that may run again may have started once more per crash, and so may a request.
3. A request of unknown outcome, at the last attempt that its policy admits, fails its run, and nothing follows in it.
   Later runs whose context would have held the rest are billed for another context; that they say the same holds still.

Everything else is equal: what each step placed and where, its ledger rows, how it ended, facts, queues, configurations
and last results of all lanes, and the total of the ledger unless 1 or 3 changed a row. No unsafe call starts twice.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import zip_longest

from restartpoint_oracle.crash.account import Account, Placed, StepAccount
from restartpoint_oracle.wire import Json, JsonObject
from restartpoint_reference import differences

__all__ = ["Comparison", "compare"]

INTERRUPTED = "an unsafe call was answered as interrupted"
FAILED = "a request of unknown outcome failed its run"
REPEATED_CALL = "a safe call started again"
REPEATED_REQUEST = "a request was sent again"


@dataclass(kw_only=True)
class Comparison:
    """``differences`` that may not be, worded for a person; ``allowed`` ones by kind, with how often they occurred."""

    differences: list[str] = field(default_factory=list)
    allowed: Counter[str] = field(default_factory=Counter)


def compare(expected: Account, found: Account) -> Comparison:
    """The account of a run that crashed, held to that of the uninterrupted run."""
    comparison, astray, rebilled = Comparison(), set[int](), set[int]()
    for number, (step, other) in enumerate(zip(expected.steps, found.steps, strict=True)):
        pair = _StepPair(step, other, found, comparison, billed=other.follows not in astray | rebilled)
        pair.compare(f"step {number}, {step.words}")
        if pair.astray:
            astray.add(number)
        elif not pair.billed:
            rebilled.add(number)
    lines = comparison.differences
    lines += differences([*sorted(expected.lanes)], [*sorted(found.lanes)], "lanes")
    for lane in sorted(expected.lanes.keys() & found.lanes.keys()):
        free = found.latest[lane] in astray
        lines += differences(_lane(expected, lane, free), _lane(found, lane, free), f"lane {lane}")
    lines += differences(expected.facts, found.facts, "facts")
    if not comparison.allowed[INTERRUPTED] and not comparison.allowed[FAILED]:
        lines += differences(expected.stats, found.stats, "the session's totals")
    return comparison


def _lane(account: Account, lane: str, free: bool) -> JsonObject:
    """The lane; when its latest run went another allowed way, how that ended is left to the step's comparison."""
    ends = ("last result", "open operation")
    return {key: value for key, value in account.lanes[lane].items() if not (free and key in ends)}


@dataclass
class _StepPair:
    """One step of both runs. ``astray``: what followed an unknown outcome in this step is rightly another."""

    expected: StepAccount
    found: StepAccount
    account: Account
    comparison: Comparison
    billed: bool = field(kw_only=True)
    astray: bool = False

    def compare(self, where: str) -> None:
        lines = [*self._entries(), *differences(self.expected.other_rows, self.found.other_rows, "ledger rows")]
        if not self.astray:
            lines += differences(self.expected.ended, self.found.ended, "its last commit")
        elif self.expected.ended.startswith("finish_") and not self.found.ended.startswith("finish_"):
            lines.append(f"its run has to end, but the last commit was {self.found.ended}")
        lines += [*self._calls(), *self._requests()]
        self.comparison.differences.extend(f"{where}: {line}" for line in lines)

    def _entries(self) -> Iterator[str]:
        free_after_batch = False
        for position, (one, other) in enumerate(zip_longest(self.expected.entries, self.found.entries), 1):
            where = f"entry {position}"
            if free_after_batch and (one is None or other is None or other.call is None):
                self.astray = True
                return
            if other is not None and other.is_synthetic:
                yield from self._synthetic(where, one, other)
                if other.call is None:
                    yield from self._failed(position)
                    return
                free_after_batch |= self.account.reacts or (one is not None and one.ends_the_run)
            elif one is None:
                yield f"{where}: nothing was expected, found {_brief(other)}"
            elif other is None:
                yield f"{where}: expected {_brief(one)}, found nothing"
            else:
                yield from differences(self._shown(one), self._shown(other), where)

    def _synthetic(self, where: str, one: Placed | None, other: Placed) -> Iterator[str]:
        """A synthetic settlement stands only for an effect of unknown outcome, in its place, once."""
        if not other.uncertain:
            yield f"{where}: {_brief(other)} is synthetic, but no crash had left its outcome unknown"
        if other.call is None:
            self.comparison.allowed[FAILED] += 1
            if one is None:
                yield f"{where}: a request that nobody expected failed the run"
            return
        self.comparison.allowed[INTERRUPTED] += 1
        if other.tool not in self.account.unsafe:
            yield f"{where}: the call of {other.tool} may run again, yet it was answered as interrupted"
        if one is None or (one.tool, one.call) != (other.tool, other.call):
            yield f"{where}: expected {_brief(one)}, found an interrupted result of {other.tool} {other.call}"

    def _failed(self, position: int) -> Iterator[str]:
        self.astray = True
        if position != len(self.found.entries):
            yield f"{len(self.found.entries) - position} entries follow the request that failed the run"
        if self.found.ended != "finish_failed":
            yield f"a request of unknown outcome fails its run; the last commit was {self.found.ended}"

    def _shown(self, placed: Placed) -> JsonObject:
        """The entry and its ledger rows, without amounts where another context was billed."""
        says, rows = placed.says, placed.rows
        if not self.billed:
            says = {key: _without_usage(value) for key, value in says.items()}
            rows = [_without_usage(row) for row in rows]
        return {**says, "ledger rows": rows}

    def _calls(self) -> Iterator[str]:
        expected, found = self.expected.started, self.found.started
        interrupted = {(one.tool, one.call) for one in self.found.entries if one.is_synthetic}
        for call in sorted(expected.keys() | found.keys()):
            (tool, call_id), least, times = call, expected[call], found[call]
            if tool in self.account.unsafe:
                most = 1 if self.astray else least
                least = 0 if self.astray or call in interrupted else least
                if times > 1 or times > most:
                    yield f"the unsafe tool {tool} started {times} times for call {call_id}, expected {most} (§4.5)"
            else:
                most = least + self.account.crashes if least or self.astray else 0
                least = 0 if self.astray else least
                if times > most:
                    yield f"the tool {tool} started {times} times for call {call_id}, expected at most {most}"
                if times > expected[call] > 0:
                    self.comparison.allowed[REPEATED_CALL] += 1
            if times < least:
                yield f"the tool {tool} started {times} times for call {call_id}, expected {least}"

    def _requests(self) -> Iterator[str]:
        expected, found = self.expected.requests, self.found.requests
        if not self.astray and not expected <= found <= expected + self.account.crashes:
            yield f"{found} requests were sent; expected {expected}, and one more at most for each crash"
        if found > expected:
            self.comparison.allowed[REPEATED_REQUEST] += 1


def _brief(placed: Placed | None) -> str:
    if placed is None:
        return "nothing"
    message = placed.says.get("message")
    what = message.get("role") if isinstance(message, dict) else placed.says.get("type")
    return f"{what} of {placed.tool} {placed.call}" if placed.call is not None else f"{what} by {placed.way}"


def _without_usage(value: Json) -> Json:
    return {key: inner for key, inner in value.items() if key != "usage"} if isinstance(value, dict) else value
