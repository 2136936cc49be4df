"""Random transactions that fit a state of the model, and ones that must be refused, as Hypothesis strategies."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hypothesis import strategies as st

from restartpoint.contract import (
    NAMESPACES,
    UNSET,
    EntryDraft,
    EntryPayload,
    Expectation,
    InsertEntry,
    InsertUsage,
    RegisterDelete,
    RegisterSet,
    Transaction,
    UnsetType,
    UsageDraft,
    Write,
)
from restartpoint_oracle.machine.choices import Choose
from restartpoint_oracle.samples import (
    REGISTER_SAMPLES,
    assistant,
    compaction,
    custom,
    message,
    register_value,
    summary,
    tool_result,
    usage,
)
from restartpoint_reference import Namespace, State

__all__ = ["KEYS", "REFUSALS", "Refusal", "refused", "transactions"]

KEYS = ("main", "", "op-1", "op-1:s1:0", "op-1:s1:10", "op-10", "k%", "k_", "\ue000", "\U0001f600", "k\u0000", "\u2028")
"""Register keys; few, so that sets replace and deletes meet something."""

REFUSALS = (
    "empty",
    "json",
    "stale",
    "taken by an entry",
    "taken by a row",
    "taken in here",
    "no parent",
    "late parent",
)
"""The kinds of refusal; those that need an entry or a row fall back to ``no parent`` while there is none."""

_NAMESPACES = tuple(NAMESPACES.values())
_PREFIXES = ("e", "E%", "\U0001f600", "\u00e9")
_COSTS = (0, 0.1, 0.2, 0.3, 1e16, -1e16, 1.5)
_NO_JSON: tuple[Any, ...] = (float("nan"), float("inf"), 2**53, -(2**60), "\ud800", b"", {1: 2}, object())
_RECENT = 12


@dataclass(frozen=True, kw_only=True)
class Refusal:
    """A transaction that must be refused, and why."""

    kind: str
    tx: Transaction


@st.composite
def transactions(draw: st.DrawFn, state: State, counter: int) -> Transaction:
    """A transaction that the state accepts; ``counter`` makes its new ids unlike all others."""
    return _transaction(Choose(draw), state, counter)


@st.composite
def refused(draw: st.DrawFn, kind: str, state: State, counter: int) -> Refusal:
    """One offence of that kind at any position of an otherwise acceptable transaction."""
    choose = Choose(draw)
    lead = _transaction(choose, state, counter)
    if (kind == "taken by an entry" and not state.entries) or (kind == "taken by a row" and not state.usage):
        kind = "no parent"
    match kind:
        case "empty":
            return Refusal(kind=kind, tx=Transaction((), lead.expectations))
        case "stale":
            found = _expectation(choose, state)
            wrong = Expectation(found.namespace, found.key, 10_000_000 if found.seq is None else found.seq + 1)
            return Refusal(kind=kind, tx=Transaction(lead.writes, (*lead.expectations, wrong, wrong)))
        case _:
            offence = _offence(choose, kind, state, counter)
    at = choose.number(len(lead.writes))
    return Refusal(kind=kind, tx=Transaction((*lead.writes[:at], *offence, *lead.writes[at:]), lead.expectations))


def _transaction(choose: Choose, state: State, counter: int) -> Transaction:
    ids = [entry.id for entry in sorted(state.entries.values(), key=lambda entry: entry.seq)][-_RECENT:]
    writes: list[Write] = []
    for number in range(1 + choose.number(5)):
        fresh = f"{choose.of(_PREFIXES)}-{counter}-{number}"
        match choose.of(("entry", "register", "entry", "usage", "register")):
            case "entry":
                parent = choose.of([*ids[-2:], *ids, None][::-1] if choose.flag() else [*ids[-1:], None])
                writes.append(InsertEntry(EntryDraft(id=fresh, parent_id=parent, payload=_payload(choose, ids))))
                ids.append(fresh)
            case "usage":
                writes.append(_usage_row(choose, fresh, ids))
            case _:
                writes.append(_register_write(choose))
    expected = tuple(_expectation(choose, state) for _ in range(choose.of((0, 0, 1, 2))))
    return Transaction(tuple(writes), expected)


def _payload(choose: Choose, ids: list[str]) -> EntryPayload:
    extra = {choose.of(("laterField", "\u2028")): choose.json()} if choose.flag() else {}
    details = choose.json() if choose.flag() else UNSET
    match choose.of(("message", "custom", "assistant", "compaction", "summary", "tool", "custom")):
        case "message":
            return message(choose.of(("", "hi", "\u2028")), **extra)
        case "assistant":
            return assistant()
        case "tool":
            return tool_result(terminate=choose.flag())
        case "compaction":
            return compaction(details=details, extra=extra)
        case "summary":
            return summary(choose.of([*ids, "gone"]), details=details, usage=usage(1, 0.5), extra=extra)
        case _:
            return custom(choose.of(("note", "todo", "my/type")), data=details, extra=extra)


def _usage_row(choose: Choose, id: str, ids: list[str]) -> InsertUsage:
    names: tuple[str | UnsetType, ...] = (UNSET, *ids, "gone")
    row = UsageDraft(
        id=id,
        usage=usage(choose.number(1000), choose.of(_COSTS)),
        adjustment=choose.flag(),
        entry_id=choose.of(names),
        details=choose.json() if choose.flag() else UNSET,
    )
    return InsertUsage(row)


def _register_write(choose: Choose) -> Write:
    namespace, key = choose.of(_NAMESPACES), choose.of(KEYS)
    if choose.number(3) == 3:
        return RegisterDelete(namespace, key)
    if namespace.name == "fact.custom":
        return RegisterSet(namespace, key, choose.json())
    return RegisterSet(namespace, key, register_value(namespace.name, choose.of(REGISTER_SAMPLES[namespace.name])))


def _expectation(choose: Choose, state: State) -> Expectation:
    """One that holds; of a register that exists, where there is one of the chosen namespace."""
    namespace = choose.of(_NAMESPACES)
    keys = state.keys(Namespace(namespace.name)) or KEYS
    key = choose.of(keys)
    held = state.register(Namespace(namespace.name), key)
    return Expectation(namespace, key, None if held is None else held.seq)


def _offence(choose: Choose, kind: str, state: State, counter: int) -> tuple[Write, ...]:
    match kind:
        case "json":
            return (RegisterSet(NAMESPACES["fact.custom"], "k", [choose.of(_NO_JSON)]),)
        case "taken by an entry":
            return (_under(choose.of(sorted(state.entries)), as_entry=choose.flag()),)
        case "taken by a row":
            return (_under(choose.of(sorted(state.usage)), as_entry=choose.flag()),)
        case "taken in here":
            twice = f"twice-{counter}"
            return _under(twice, as_entry=choose.flag()), _under(twice, as_entry=choose.flag())
        case "no parent":
            return (InsertEntry(EntryDraft(id=f"orphan-{counter}", parent_id="nowhere", payload=message())),)
        case _:
            child = InsertEntry(EntryDraft(id=f"child-{counter}", parent_id=f"late-{counter}", payload=message()))
            return child, InsertEntry(EntryDraft(id=f"late-{counter}", parent_id=None, payload=message()))


def _under(id: str, *, as_entry: bool) -> Write:
    if as_entry:
        return InsertEntry(EntryDraft(id=id, parent_id=None, payload=custom()))
    return InsertUsage(UsageDraft(id=id, usage=usage()))
