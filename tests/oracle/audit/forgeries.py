"""Sessions that were edited by hand, each in one way that a defect or a forger would choose, and what must be found."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeAlias

from restartpoint_oracle.audit import Kind
from tests.oracle.audit.counting import names_of
from tests.oracle.audit.histories import Elements, History, recorded

__all__ = ["FORGERIES", "Forgery", "Session"]

Write: TypeAlias = "dict[str, Any]"


class Session:
    """A recorded session that can be edited; commits are found by the names of their transitions."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.commits: list[list[Any]] = copy.deepcopy([*history.commits])
        self.names = [*names_of(history)]

    def at(self, name: str, nth: int = 0) -> int:
        """The place of the nth commit of this transition."""
        return [index for index, found in enumerate(self.names) if found == name][nth]

    def commit(self, name: str, nth: int = 0) -> list[Any]:
        """Its writes."""
        return self.commits[self.at(name, nth)]

    def write(self, name: str, place: str, nth: int = 0) -> Write:
        """Its first write to this place: a namespace, ``entry`` or ``usage``."""
        found: Write = next(each for each in self.commit(name, nth) if each.get("namespace", each["kind"]) == place)
        return found

    def entry(self, name: str, nth: int = 0) -> Write:
        """The entry that it inserts."""
        return self.write(name, "entry", nth)

    def state(self, name: str, nth: int = 0) -> Write:
        """The operation state that it sets."""
        found: Write = self.write(name, "op.state", nth)["value"]
        return found

    def drop(self, name: str, place: str, nth: int = 0) -> None:
        """Leave one write out."""
        self.commit(name, nth).remove(self.write(name, place, nth))

    def leave_out(self, name: str, nth: int = 0) -> None:
        """Leave the whole commit out."""
        at = self.at(name, nth)
        del self.commits[at], self.names[at]

    def insert(self, at: int, elements: Elements) -> None:
        """Another commit before the one at this place."""
        self.commits.insert(at, copy.deepcopy(elements))
        self.names.insert(at, "inserted")

    def numbered(self) -> History:
        """The edited session under consecutive sequence numbers, so that only the edit can be found."""
        seq = self.history.start.next_seq
        for elements in self.commits:
            for element in elements:
                element["seq"] = seq
                seq += 1
        return self.as_it_is()

    def as_it_is(self) -> History:
        """The edited session under the numbers that it has."""
        return History(name=self.history.name, start=self.history.start, commits=tuple(self.commits))


Change: TypeAlias = Callable[[Session], object]


@dataclass(frozen=True, kw_only=True)
class Forgery:
    """An edit and its verdict: kind, transition (or the nearest one), section and some words of the first finding.

    ``at`` is the commit that is found, by its name before the edit. Where a commit is missing or one too many, no
    particular transition is the nearest: then ``transition`` is None.
    """

    name: str
    session: str
    change: Change
    kind: Kind = Kind.UNEXPLAINED
    transition: str | None = None
    at: str = ""
    section: str = ""
    says: str = ""
    keeps_numbers: bool = False

    def unedited(self) -> History:
        """The recorded session."""
        return _histories()[self.session]

    def edited(self) -> tuple[History, list[str]]:
        """The session with the edit in it, and the names that its commits had."""
        session = Session(self.unedited())
        self.change(session)
        return (session.as_it_is() if self.keeps_numbers else session.numbered()), session.names


@cache
def _histories() -> dict[str, History]:
    return {history.name.removesuffix(" 1"): history for history in recorded()}


ONE, TWO = "runtime: one tool", "runtime: two tools side by side"
STEERED, ABORTED, COMPACTED = "model: steered_run", "model: drained_run", "model: compacted_twice"


def _second_operation(session: Session) -> None:
    again = copy.deepcopy(session.commit("accept_run"))
    for old, new in (("entry", "id"), ("op.meta", "key"), ("op.state", "key")):
        write = next(each for each in again if each.get("namespace", each["kind"]) == old)
        write[new] = write[new][:-1] + "f"
    session.insert(session.at("start_generation"), again)


def _reused_id(session: Session) -> None:
    session.entry("settle_stop")["id"] = session.entry("settle_tool_calls")["id"]


def _second_result_first(session: Session) -> None:
    first, second = session.at("settle_tool"), session.at("complete_batch")
    session.commits[first], session.commits[second] = session.commits[second], session.commits[first]


def _intent_without_planned_call(session: Session) -> None:
    session.insert(session.at("complete_batch"), session.commit("intend_tool"))


def _going_back(session: Session) -> None:
    for element in session.commit("start_generation", 1):
        element["seq"] = 3


def _same_number_twice(session: Session) -> None:
    writes = session.commit("settle_stop")
    writes[1]["seq"] = writes[0]["seq"]


def _two_times(session: Session) -> None:
    session.commits[session.at("accept_run")].insert(1, {**session.entry("accept_run"), "id": "x", "timestamp": 5})


def _texts(message: Any) -> Iterator[Write]:
    return (block for block in message["content"] if block["type"] == "text")


def _other_words(message: Any) -> None:
    next(_texts(message))["text"] += "!"


_FORGERIES: Final = (
    Forgery(
        name="aborted without cancel", session=ONE,
        change=lambda s: s.entry("settle_stop")["message"].update(stopReason="aborted"),
        transition="settle_stop", section="3.7",
    ),
    Forgery(
        name="a pending response is stored", session=ONE,
        change=lambda s: s.entry("settle_stop")["message"].update(stopReason="pending"),
        at="settle_stop", section="1.4", says="not a settled stop reason",
    ),
    Forgery(
        name="two open operations on one lane", session=ONE, change=_second_operation,
        at="inserted",
    ),
    Forgery(
        name="op.state outlives its operation", session=ONE, change=lambda s: s.drop("finish_run", "op.state"),
        transition="finish_run", section="3.12, 3.13", says="missing",
    ),
    Forgery(
        name="op.meta outlives its operation", session=ONE, change=lambda s: s.drop("finish_run", "op.meta"),
        transition="finish_run", section="3.12, 3.13", says="missing",
    ),
    Forgery(
        name="arguments outlive their call", session=ONE, change=lambda s: s.drop("complete_batch", "op.tool_args"),
        transition="complete_batch", section="3.8", says="missing",
    ),
    Forgery(
        name="content is placed and still queued", session=STEERED,
        change=lambda s: s.drop("consume_steer", "pending.entry"),
        transition="consume_steer", section="3.11, 3.12", says="missing",
    ),
    Forgery(
        name="a request that was never intended", session=ONE, change=lambda s: s.leave_out("intend_assistant"),
        at="settle_tool_calls",
    ),
    Forgery(
        name="a request without its context", session=ONE, change=lambda s: s.leave_out("start_generation"),
        at="intend_assistant",
    ),
    Forgery(
        name="a tool that was never intended", session=ONE, change=lambda s: s.leave_out("intend_tool"),
        at="complete_batch",
    ),
    Forgery(
        name="an end before the answer", session=ONE, change=lambda s: s.leave_out("settle_stop"),
        at="finish_run",
    ),
    Forgery(
        name="a run that was never accepted", session=ONE, change=lambda s: s.leave_out("accept_run"),
        at="start_generation",
    ),
    Forgery(
        name="a reused entry id", session=ONE, change=_reused_id,
        transition="settle_stop", section="3.7",
    ),
    Forgery(
        name="a response under another id than reserved", session=ONE,
        change=lambda s: s.entry("settle_tool_calls").update(id="x"),
        transition="settle_tool_calls", section="3.7",
    ),
    Forgery(
        name="a wrong parent", session=ONE,
        change=lambda s: s.entry("complete_batch").update(parentId=s.entry("accept_run")["id"]),
        transition="complete_batch", section="3.8", says="parentId",
    ),
    Forgery(
        name="a parent that does not exist", session=ONE,
        change=lambda s: s.entry("complete_batch").update(parentId="nowhere"),
        transition="complete_batch", section="3.8", says="parentId",
    ),
    Forgery(
        name="a missing usage row", session=ONE, change=lambda s: s.drop("settle_stop", "usage"),
        transition="settle_stop", section="3.7", says="missing",
    ),
    Forgery(
        name="a row that bills more than the response says", session=ONE,
        change=lambda s: s.write("settle_stop", "usage")["usage"].update(output=10**6),
        transition="settle_stop", section="3.7", says="usage",
    ),
    Forgery(
        name="a row for another entry", session=ONE,
        change=lambda s: s.write("settle_stop", "usage").update(entryId=s.entry("settle_tool_calls")["id"]),
        transition="settle_stop", section="3.7", says="entryId",
    ),
    Forgery(
        name="results out of order", session=TWO, change=_second_result_first,
        at="settle_tool", transition="complete_batch", section="3.8", says="answers the call does not hold",
    ),
    Forgery(
        name="a result of another call", session=ONE,
        change=lambda s: s.entry("complete_batch")["message"].update(toolCallId="other"),
        transition="complete_batch", section="3.8", says="expected the result of save call_0_0",
    ),
    Forgery(
        name="a terminate flag that the batch does not know", session=TWO,
        change=lambda s: s.entry("settle_tool").update(terminate=True),
        transition="settle_tool", section="3.8", says="terminate",
    ),
    Forgery(
        name="a call that is intended twice", session=ONE, change=_intent_without_planned_call,
        at="inserted", transition="intend_tool", section="3.8",
    ),
    Forgery(
        name="an intent without its arguments", session=ONE, change=lambda s: s.drop("intend_tool", "op.tool_args"),
        transition="intend_tool", section="3.8", says="op.tool_args",
    ),
    Forgery(
        name="a second attempt that was the first", session=ONE,
        change=lambda s: s.state("intend_assistant")["phase"]["generation"].update(attempt=2),
        transition="intend_assistant", section="3.7", says="attempt",
    ),
    Forgery(
        name="a leaf that stays behind", session=ONE, change=lambda s: s.drop("settle_stop", "lane.leaf"),
        transition="settle_stop", section="3.7", says="missing",
    ),
    Forgery(
        name="a leaf that moves elsewhere", session=ONE,
        change=lambda s: s.write("settle_stop", "lane.leaf").update(value=s.entry("accept_run")["id"]),
        transition="settle_stop", section="3.7", says="value",
    ),
    Forgery(
        name="an end without a result", session=ONE, change=lambda s: s.drop("finish_run", "lane.lastResult"),
        transition="finish_run", section="3.12, 3.13", says="missing",
    ),
    Forgery(
        name="an end that calls itself failed", session=ONE,
        change=lambda s: s.write("finish_run", "lane.lastResult")["value"].update(outcome="failed"),
        transition="finish_run", section="3.12, 3.13", says="outcome",
    ),
    Forgery(
        name="an operation that ends twice", session=ONE,
        change=lambda s: s.insert(len(s.commits), s.commit("finish_run")),
        at="inserted",
    ),
    Forgery(
        name="a lane that stays taken", session=ONE, change=lambda s: s.drop("finish_run", "lane.state"),
        transition="finish_run", section="3.12, 3.13", says="missing",
    ),
    Forgery(
        name="a session that is created twice", session=ONE,
        change=lambda s: s.insert(2, s.commit("create_session")),
        at="inserted",
    ),
    Forgery(
        name="an empty transaction", session=ONE, change=lambda s: s.insert(5, []),
        at="inserted", section="1.4", says="at least one write",
    ),
    Forgery(
        name="a namespace that does not exist", session=ONE,
        change=lambda s: s.write("seed_main", "lane.config").update(namespace="op.extra"),
        at="seed_main", section="1.4", says="op.extra",
    ),
    Forgery(
        name="a sequence that goes back", session=ONE, change=_going_back, keeps_numbers=True,
        kind=Kind.RULE, transition="start_generation", section="1.4", says="sequence number 3 is below",
    ),
    Forgery(
        name="a number that is given twice", session=ONE, change=_same_number_twice, keeps_numbers=True,
        kind=Kind.RULE, transition="settle_stop", section="1.4", says="sequence number",
    ),
    Forgery(
        name="two times in one commit", session=ONE, change=_two_times,
        at="accept_run", section="1.4", says="timestamp",
    ),
    Forgery(
        name="other words than were queued", session=STEERED,
        change=lambda s: _other_words(s.entry("consume_steer")["message"]),
        transition="consume_steer", section="3.11, 3.12", says="text",
    ),
    Forgery(
        name="steering that nobody consumed", session=STEERED, change=lambda s: s.leave_out("consume_steer"),
        at="enqueue_steer",
    ),
    Forgery(
        name="control that runs again", session=ABORTED,
        change=lambda s: s.state("apply_cancelled_writes")["control"].update(status="running"),
        transition="apply_cancelled_writes", section="3.12, 4.6", says="control",
    ),
    Forgery(
        name="an abort that was never asked for", session=ABORTED, change=lambda s: s.leave_out("abort_run"),
        at="defer_write",
    ),
    Forgery(
        name="an aborted run that calls itself completed", session=ABORTED,
        change=lambda s: s.write("finish_aborted_run", "lane.lastResult")["value"].update(outcome="completed"),
        transition="finish_aborted_run", section="3.12, 4.6", says="outcome",
    ),
    Forgery(
        name="a run that ends aborted though nobody asked", session=ONE,
        change=lambda s: s.write("finish_run", "lane.lastResult")["value"].update(outcome="aborted"),
        at="finish_run",
    ),
    Forgery(
        name="another tail than was prepared", session=COMPACTED,
        change=lambda s: s.entry("publish_compaction")["retainedTail"].pop(),
        transition="publish_compaction", section="3.9", says="retainedTail",
    ),
    Forgery(
        name="a summary that cost less than its requests", session=COMPACTED,
        change=lambda s: s.entry("publish_compaction")["usage"].update(input=0),
        transition="publish_compaction", section="3.9", says="usage",
    ),
    Forgery(
        name="a preparation that outlives its compaction", session=COMPACTED,
        change=lambda s: s.drop("publish_compaction", "op.preparation"),
        transition="publish_compaction", section="3.9", says="op.preparation",
    ),
)  # fmt: skip

FORGERIES: Final[dict[str, Forgery]] = {forgery.name: forgery for forgery in _FORGERIES}
"""By name."""
