"""The judge explains what the model makes, and refuses what it does not make."""

from collections.abc import Callable

import pytest

from restartpoint.contract import (
    FACT_NAME,
    LANE_LEAF,
    PENDING_ENTRY,
    EntryDraft,
    InsertEntry,
    InsertUsage,
    PendingCustom,
    RegisterDelete,
    RegisterSet,
    Transaction,
    UsageDraft,
    Write,
)
from restartpoint.errors import DuplicateId, StorageFault
from restartpoint.repo import MemoryRepository
from restartpoint.session import SessionMutator
from restartpoint.storage import MemoryStorage
from restartpoint_oracle import (
    ContentDiffers,
    InvariantViolated,
    Judged,
    JudgedRepository,
    JudgedStorage,
    JudgeViolation,
    ManualClock,
    RaisingFaults,
    counted_ids,
)
from restartpoint_oracle.samples import FIRST_TRANSACTION, METADATA, custom, message, usage
from tests.oracle.replayed import open_judged, transaction_of
from tests.reference.walk import Walk
from tests.reference.walks import SCENARIOS, abort
from tests.reference.walks.runs import orphaned_requests, plain_run


def is_made_by_commits_alone(scenario: Callable[[], Walk]) -> bool:
    """Whether no state of the walk was planted between two of its commits."""
    steps = scenario().steps
    ends = [step.before.next_seq + len(step.elements) for step in steps]
    return [step.before.next_seq for step in steps[1:]] == ends[:-1]


REPLAYED = [scenario for scenario in SCENARIOS if is_made_by_commits_alone(scenario)]

Change = Callable[[tuple[Write, ...]], tuple[Write, ...]]


@pytest.mark.parametrize("scenario", REPLAYED, ids=lambda scenario: scenario.__name__)
async def test_every_commit_of_the_model_is_explained_by_its_own_name(scenario: Callable[[], Walk]) -> None:
    walk = scenario()
    storage = await open_judged(walk.steps, ManualClock())
    assert [judged.name for judged in storage.judge.history] == walk.names
    assert [judged.inputs for judged in storage.judge.history] == [step.inputs for step in walk.steps]
    assert storage.judge.history[-1].seqs[-1] == walk.state.next_seq - 1
    await storage.close()


CHANGES: dict[str, Change] = {
    "the first write is left out": lambda writes: writes[1:],
    "the last write is left out": lambda writes: writes[:-1],
    "the writes are reversed": lambda writes: writes[::-1],
    "a fact is written beside": lambda writes: (*writes, RegisterSet(FACT_NAME, "", "stray")),
    "the leaf moves to the root beside": lambda writes: (*writes, RegisterSet(LANE_LEAF, "main", None)),
    "a ledger row is written beside": lambda writes: (
        *writes,
        InsertUsage(UsageDraft(id="stray-usage", usage=usage(1))),
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
async def test_a_settlement_that_departs_from_the_model_is_refused_with_the_nearest_transition(change: Change) -> None:
    steps = plain_run().steps
    position = next(at for at, step in enumerate(steps) if step.commit.name == "settle_stop")
    storage = await open_judged(steps[:position], ManualClock())
    before = storage.judge.state
    tx = transaction_of(steps[position].elements)
    with pytest.raises(JudgeViolation) as caught:
        await storage.commit(Transaction(change(tx.writes)))
    assert caught.value.differences
    assert storage.judge.state is before
    assert storage.judge.violations == [caught.value]
    with pytest.raises(JudgeViolation):
        storage.judge.verify()


async def test_after_a_finding_nothing_more_is_judged() -> None:
    storage = await open_judged(plain_run().steps[:2], ManualClock())
    with pytest.raises(JudgeViolation):
        await storage.commit(Transaction((RegisterDelete(LANE_LEAF, "main"),)))
    judged = len(storage.judge.history)
    await storage.commit(Transaction((RegisterSet(FACT_NAME, "", "a name"),)))
    assert len(storage.judge.history) == judged
    assert len(storage.judge.violations) == 1
    await storage.close()


async def test_whatever_judging_a_commit_raises_is_a_finding() -> None:
    *before, last = plain_run().steps
    storage = await open_judged(before, ManualClock())

    def defective(_: Judged) -> None:
        raise ValueError("a defect of the judge")

    storage.judge.on_commit(defective)
    with pytest.raises(JudgeViolation, match="raised ValueError: a defect of the judge"):
        await storage.commit(transaction_of(last.elements))
    with pytest.raises(JudgeViolation, match="a defect of the judge"):
        storage.judge.verify()


async def test_a_refusal_of_the_storage_is_no_commit_and_passes_through() -> None:
    walk = plain_run()
    storage = await open_judged(walk.steps, ManualClock())
    taken = next(iter(walk.state.entries))
    with pytest.raises(DuplicateId):
        await storage.commit(Transaction((InsertEntry(EntryDraft(id=taken, parent_id=None, payload=message())),)))
    assert storage.judge.violations == []
    await storage.commit(Transaction((RegisterSet(FACT_NAME, "", "a name"),)))
    assert storage.judge.history[-1].name == "set_fact"
    assert storage.judge.unobserved == 0
    await storage.close()


async def test_the_first_transaction_of_a_session_is_judged_as_well() -> None:
    stray = Transaction((*FIRST_TRANSACTION.writes, RegisterSet(FACT_NAME, "", "stray")))
    inner = await MemoryStorage.create(METADATA, stray, clock=ManualClock())
    with pytest.raises(JudgeViolation):
        await JudgedStorage.over_new(inner)


async def test_a_storage_that_answers_something_else_is_found_at_close() -> None:
    clock = ManualClock()
    inner = await MemoryStorage.create(METADATA, FIRST_TRANSACTION, clock=clock)
    storage = await JudgedStorage.over_new(inner)
    await inner.commit(Transaction((RegisterSet(FACT_NAME, "", "behind the judge"),)))
    with pytest.raises(ContentDiffers, match="registers: expected 2 items, found 3"):
        await storage.close()


async def test_a_session_that_no_sound_history_leaves_is_refused_at_once() -> None:
    orphan = RegisterSet(PENDING_ENTRY, "e-1", PendingCustom(custom_type="note"))
    inner = await MemoryStorage.create(METADATA, Transaction((*FIRST_TRANSACTION.writes, orphan)), clock=ManualClock())
    with pytest.raises(InvariantViolated, match="waits for nothing"):
        await JudgedStorage.over_existing(inner)


async def test_after_an_uncertain_write_the_judge_goes_on_from_what_is_stored() -> None:
    clock, faults = ManualClock(), RaisingFaults()
    inner = await MemoryStorage.create(METADATA, FIRST_TRANSACTION, clock=clock, faults=faults)
    storage = await JudgedStorage.over_new(inner)
    faults.arm("commit.after_write", OSError("gone"))
    with pytest.raises(OSError, match="gone"):
        await storage.commit(Transaction((RegisterSet(FACT_NAME, "", "written"),)))
    with pytest.raises(StorageFault):
        await storage.commit(Transaction((RegisterSet(FACT_NAME, "", "more"),)))
    assert storage.judge.unobserved >= 1
    await storage.close()
    storage.judge.verify()


async def test_a_judged_repository_judges_sessions_from_their_first_commit_and_when_they_are_opened_again() -> None:
    clock = ManualClock()
    repository = JudgedRepository(MemoryRepository(clock=clock, ids=counted_ids(clock)))
    async with repository:
        session = await repository.create(id="s-1")
        await session.set_name("a name")
        await session.append_message({"role": "user", "content": [], "timestamp": 1})
        await session.append_custom_entry("note")
        assert [judged.name for judged in repository.judge.history] == [
            "create_session", "set_fact", "write_idle", "write_idle",
        ]  # fmt: skip
        await session.close()
        again = await repository.open("s-1")
        assert repository.judge.history == []
        await again.set_name("another")
        assert [judged.name for judged in repository.judge.history] == ["set_fact"]
        assert [found.id for found in (await repository.list()).sessions] == ["s-1"]
    repository.verify()


async def _stray(mutator: SessionMutator) -> None:
    entry = EntryDraft(id="stray", parent_id=None, payload=custom())
    await mutator.commit(Transaction((InsertEntry(entry),)))


async def test_a_commit_behind_the_session_s_back_fails_the_repository_s_verification() -> None:
    clock = ManualClock()
    inner = MemoryRepository(clock=clock, ids=counted_ids(clock))
    repository = JudgedRepository(inner)
    session = await repository.create(id="s-1")
    with pytest.raises(JudgeViolation):
        await session.mutate("main", _stray)
    with pytest.raises(JudgeViolation):
        repository.verify()
    await repository.close()


@pytest.mark.parametrize("restarted", [True, False])
async def test_a_step_whose_turn_it_is_not_is_refused_with_what_was_due(restarted: bool) -> None:
    """A pending request may be recovered by a new owner only."""
    walk = orphaned_requests()
    position = walk.names.index("recover_assistant")
    storage = await open_judged(walk.steps[:position], ManualClock())
    tx = transaction_of(walk.steps[position].elements)
    if restarted:
        storage.judge.attached()
        await storage.commit(tx)
        assert storage.judge.due("main") == ("intend_assistant",)
        return
    with pytest.raises(JudgeViolation, match="the effect's own process is alive: settle_tool_calls") as caught:
        await storage.commit(tx)
    assert (caught.value.transition, caught.value.section) == ("recover_assistant", "3.7")


@pytest.mark.parametrize("scenario", [abort.ended_from_outside, abort.completed_from_outside])
async def test_an_end_from_outside_is_refused_unless_it_was_declared(scenario: Callable[[], Walk]) -> None:
    *steps, last = scenario().steps
    storage = await open_judged(steps, ManualClock())
    with pytest.raises(JudgeViolation, match=r"an external finalization \(§4.9\) that nobody declared") as caught:
        await storage.commit(transaction_of(last.elements))
    assert (caught.value.transition, caught.value.section) == ("finalize_externally", "4.9")
    await storage.close()


async def test_an_end_from_outside_passes_where_it_was_declared() -> None:
    *steps, last = abort.failed_from_outside().steps
    storage = await open_judged(steps, ManualClock())
    existing = await JudgedStorage.over_existing(storage.inner, finalizations_admitted=True)
    await existing.commit(transaction_of(last.elements))
    assert existing.judge.history[-1].name == "finalize_externally"
    assert existing.judge.due("main") == ()
    await existing.close()
