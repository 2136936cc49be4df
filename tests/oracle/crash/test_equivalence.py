"""The equivalence: nothing but what it states may differ, and what differs is said in words."""

from collections import Counter
from collections.abc import Callable
from dataclasses import replace

import pytest

from restartpoint_oracle.crash import SCENARIOS, sweep
from restartpoint_oracle.crash.account import Account, Placed, account_of
from restartpoint_oracle.crash.equivalence import INTERRUPTED, compare
from restartpoint_oracle.crash.mortal import Stop
from restartpoint_oracle.crash.run import Run
from restartpoint_oracle.places import MemoryPlace

Alter = Callable[[Account], Account]
BEFORE_THE_RESULT = Stop(7, before=True)


async def accounts(name: str, stop: Stop) -> tuple[Account, Account]:
    """The scenario without a crash, and with one."""
    whole, crashed = Run(SCENARIOS[name](), MemoryPlace()), Run(SCENARIOS[name](), MemoryPlace())
    await whole.begin()
    await crashed.begin(stop=stop)
    await crashed.go_on(await crashed.crash())
    return account_of(whole), account_of(crashed)


def entries(change: Callable[[list[Placed]], object], step: int = 0) -> Alter:
    def alter(account: Account) -> Account:
        changed = [*account.steps[step].entries]
        change(changed)
        return replace(account, steps=[*account.steps[:step], replace(account.steps[step], entries=changed)])

    return alter


def first_step(**changes: object) -> Alter:
    return lambda account: replace(account, steps=[replace(account.steps[0], **changes)])  # type: ignore[arg-type]


def main(key: str, value: str) -> Alter:
    return lambda account: replace(account, lanes={"main": {**account.lanes["main"], key: value}})


def with_fact(account: Account) -> Account:
    return replace(account, facts={**account.facts, "fact colour": "red"})


def renamed(entry: Placed) -> Placed:
    return replace(entry, says={**entry.says, "message": {"role": "user"}})


ALTERATIONS: dict[str, tuple[Alter, str]] = {
    "an entry is missing": (
        entries(lambda held: held.pop()), "entry 4: expected assistant by settle_stop, found nothing"),
    "an entry too many": (entries(lambda held: held.append(held[0])), "entry 5: nothing was expected"),
    "an entry says something else": (
        entries(lambda held: held.__setitem__(0, renamed(held[0]))), "entry 1.message.content: expected"),
    "entries change places": (entries(lambda held: held.reverse()), "entry 1.after"),
    "a ledger row is missing": (
        entries(lambda held: held.__setitem__(1, replace(held[1], rows=[]))), "entry 2.ledger rows: expected 1 items"),
    "a result is interrupted without a crash inside its call": (
        entries(lambda held: held.__setitem__(2, replace(held[2], uncertain=False))), "no crash had left its outcome"),
    "another call is interrupted": (
        entries(lambda held: held.__setitem__(2, replace(held[2], call="s9"))), "an interrupted result of save s9"),
    "a row beside the entries": (first_step(other_rows=[{"usage": {}}]), "ledger rows: expected 0 items, found 1"),
    "another end": (first_step(ended="finish_failed"), "its last commit: expected 'finish_run'"),
    "an unsafe call started twice": (first_step(started=Counter({("save", "s1"): 2})), "started 2 times for call s1"),
    "a call that nobody asked for": (
        first_step(started=Counter({("load", "l7"): 1})), "load started 1 times for call l7, expected at most 0"),
    "too many requests": (first_step(requests=4), "4 requests were sent; expected 2"),
    "too few requests": (first_step(requests=1), "1 requests were sent; expected 2"),
    "another leaf": (main("leaf", "the root"), "lane main.leaf"),
    "another last result": (main("last result", "none"), "lane main.last result"),
    "a lost queue": (main("waiting for the next run", "none"), "lane main.waiting for the next run"),
    "another configuration": (main("configuration", "none"), "lane main.configuration"),
    "an operation that is open at the end": (main("open operation", "tools"), "lane main.open operation"),
    "another fact": (with_fact, "facts.fact colour"),
    "another lane": (
        lambda account: replace(account, lanes={**account.lanes, "side": {}}), "lanes: expected 1 items, found 2"),
}  # fmt: skip


async def test_an_interrupted_unsafe_call_is_the_same_run() -> None:
    comparison = compare(*await accounts("unsafe_tool", BEFORE_THE_RESULT))
    assert comparison.differences == []
    assert comparison.allowed == Counter({INTERRUPTED: 1})


@pytest.mark.parametrize("alter, words", ALTERATIONS.values(), ids=ALTERATIONS)
async def test_anything_else_is_a_difference(alter: Alter, words: str) -> None:
    expected, found = await accounts("unsafe_tool", BEFORE_THE_RESULT)
    assert words in "\n".join(compare(expected, alter(found)).differences)


async def test_the_ledger_total_counts_where_no_outcome_is_unknown() -> None:
    expected, found = await accounts("safe_tool", BEFORE_THE_RESULT)
    assert compare(expected, found).differences == []
    assert "the session's totals" in "\n".join(compare(expected, replace(found, stats={})).differences)


async def test_a_run_that_waits_at_the_end_is_left_open_after_a_crash_too() -> None:
    expected, found = await accounts("deferred", Stop(8))
    assert expected.lanes["main"]["open operation"] == {"phase": "deferred", "registers": 2}
    assert compare(expected, found).differences == []
    ended = replace(found, lanes={**found.lanes, "main": {**found.lanes["main"], "open operation": None}})
    assert compare(expected, ended).differences != []


async def test_nothing_may_follow_a_request_that_failed_its_run() -> None:
    expected, found = await accounts("plain", Stop(4))
    assert compare(expected, found).differences == []
    longer = entries(lambda held: held.append(held[0]))(found)
    assert "1 entries follow the request that failed the run" in "\n".join(compare(expected, longer).differences)


async def test_what_follows_an_interrupted_result_counts_unless_the_model_reacts_to_it() -> None:
    expected, found = await accounts("unsafe_tool", BEFORE_THE_RESULT)
    other = entries(lambda held: held.__setitem__(3, renamed(held[3])))(found)
    assert compare(expected, other).differences != []
    assert compare(expected, replace(other, reacts=True)).differences == []


async def test_a_run_that_goes_another_way_still_has_to_end() -> None:
    expected, found = await accounts("terminating_batch", Stop(7, before=True))
    assert compare(expected, found).differences == []
    first = replace(found.steps[0], ended="settle_stop")
    assert "its run has to end" in "\n".join(
        compare(expected, replace(found, steps=[first, found.steps[1]])).differences
    )


async def test_a_request_that_nobody_expected_may_not_fail_the_run() -> None:
    expected, found = await accounts("plain", Stop(4))
    shorter = entries(list.pop)(expected)
    assert "a request that nobody expected failed the run" in "\n".join(compare(shorter, found).differences)


async def test_a_script_whose_uninterrupted_run_fails_is_told_at_once() -> None:
    def broken() -> object:
        raise LookupError("the script is wrong")

    with pytest.raises(LookupError, match="the script is wrong"):
        await sweep(broken, MemoryPlace)  # type: ignore[arg-type]
